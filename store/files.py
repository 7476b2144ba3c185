"""Files on any filesystem that fsspec opens, by URL. Writes are atomic: a reader sees the whole new file or none.

A local write goes to a temporary file in the same folder, is fsynced and renamed. An object store publishes an object only
when its upload is complete, so one upload is atomic there and no rename is needed.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import fsspec
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from store.digests import file_digest
from store.errors import StoreError

T = TypeVar("T")

# Remote requests fail now and then; five tries over about six seconds ride out a busy object store without hiding an outage.
REMOTE_ATTEMPTS = 5
FIRST_DELAY_S = 0.4
# These say something about the request itself: trying again cannot help.
PERMANENT_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)
TEMPORARY_PREFIX = ".tmp-"


@dataclass(frozen=True, order=True)
class FileInfo:
    """A file as listed. `version` is an ETag or modification time: it changes when the content does."""

    url: str
    size: int
    version: str


@dataclass(frozen=True)
class FileStamp:
    """What was written: size in bytes and xxh3-128 as 32 hex digits."""

    bytes: int
    xxh3_128: str


def filesystem(url: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The filesystem of a URL and the path inside it. Raises StoreError for an unknown scheme or a missing driver."""
    try:
        if is_local(url):
            return url_to_fs(local_path(url))
        return url_to_fs(url, use_listings_cache=False)
    except (ValueError, ImportError) as error:
        raise StoreError(f"cannot open {url!r}: {error}") from error


def is_local(url: str) -> bool:
    return "://" not in url or url.startswith(("file://", "local://"))


def local_path(url: str) -> str:
    """The absolute path of a local URL."""
    for scheme in ("file://", "local://"):
        url = url.removeprefix(scheme)
    return os.path.abspath(os.path.expanduser(url))


def join(url: str, *parts: str) -> str:
    return "/".join([url.rstrip("/"), *parts])


def retrying(action: Callable[[], T], url: str) -> T:
    """Runs an action on a URL; on a remote filesystem a passing failure is tried again with growing, jittered pauses."""
    attempts = 1 if is_local(url) else REMOTE_ATTEMPTS
    for attempt in range(attempts):
        try:
            return action()
        except PERMANENT_ERRORS:
            raise
        except Exception:
            # Drivers raise their own classes for a dropped connection or a 503, so anything else counts as passing until the last try.
            if attempt == attempts - 1:
                raise
            time.sleep(FIRST_DELAY_S * 2**attempt * random.uniform(0.75, 1.25))
    raise AssertionError("unreachable")


@contextmanager
def explained(action: str, url: str) -> Iterator[None]:
    """Turns the errors of an operating system or a driver into one sentence that names the file and the remedy."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        reasons = {
            errno.ENOSPC: "the disk is full; free some space and run the same command again",
            errno.EDQUOT: "the quota is used up; free some space and run the same command again",
            errno.EACCES: "permission denied; check who owns the folder",
            errno.EPERM: "permission denied; check who owns the folder",
            errno.EROFS: "the filesystem is read-only",
        }
        reason = reasons.get(error.errno or 0) or ("permission denied" if isinstance(error, PermissionError) else str(error))
        raise StoreError(f"cannot {action} {url}: {reason}") from error


def open_read(url: str) -> BinaryIO:
    """A seekable binary stream. Raises FileNotFoundError when there is no such file."""
    fs, path = filesystem(url)
    return retrying(lambda: fs.open(path, "rb"), url)


def read_bytes(url: str) -> bytes:
    fs, path = filesystem(url)
    return retrying(lambda: fs.cat_file(path), url)


def exists(url: str) -> bool:
    fs, path = filesystem(url)
    return retrying(lambda: fs.exists(path), url)


def info(url: str) -> FileInfo:
    """Size and version of one file. Raises FileNotFoundError."""
    fs, path = filesystem(url)
    return _file_info(url, retrying(lambda: fs.info(path), url))


def _file_info(url: str, entry: dict) -> FileInfo:
    version = entry.get("ETag") or entry.get("mtime") or entry.get("LastModified") or entry.get("created") or ""
    return FileInfo(url, int(entry["size"] or 0), str(version).strip('"'))


def _with_scheme(url: str, fs: fsspec.AbstractFileSystem, path: str) -> str:
    return path if isinstance(fs, LocalFileSystem) else url.split("://", 1)[0] + "://" + path.lstrip("/")


def list_files(pattern: str) -> list[FileInfo]:
    """The files that a path names, sorted by URL: one file, all files under a folder, or the matches of a glob."""
    fs, path = filesystem(pattern)
    if any(c in path for c in "*?["):
        found = retrying(lambda: fs.glob(path, detail=True), pattern)
    elif retrying(lambda: fs.isdir(path), pattern):
        found = retrying(lambda: fs.find(path, detail=True), pattern)
    elif retrying(lambda: fs.exists(path), pattern):
        found = {path: retrying(lambda: fs.info(path), pattern)}
    else:
        return []
    files = [_file_info(_with_scheme(pattern, fs, name), entry) for name, entry in found.items() if entry["type"] == "file"]
    return sorted(file for file in files if not os.path.basename(file.url).startswith(TEMPORARY_PREFIX))


def list_folders(url: str) -> list[str]:
    """Names of the folders directly under a folder, sorted; empty when it does not exist."""
    fs, path = filesystem(url)
    try:
        entries = retrying(lambda: fs.ls(path, detail=True), url)
    except FileNotFoundError:
        return []
    return sorted(os.path.basename(e["name"].rstrip("/")) for e in entries if e["type"] == "directory")


def delete(url: str) -> None:
    """Removes a file or a whole folder; what is not there is no error (another run may have removed it)."""
    fs, path = filesystem(url)
    if isinstance(fs, LocalFileSystem):
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else Path(path).unlink(missing_ok=True)
        return
    try:
        retrying(lambda: fs.rm(path, recursive=True), url)
    except FileNotFoundError:
        return


@contextmanager
def atomic_path(url: str) -> Iterator[str]:
    """Yields a local path to write; when the block ends the file is published at `url`, on an error nothing is.

    Raises StoreError with the reason when the place cannot be written.
    """
    if not is_local(url):
        with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
            temporary = os.path.join(folder, "upload")
            yield temporary
            fs, path = filesystem(url)
            with explained("write", url):
                retrying(lambda: fs.put_file(temporary, path), url)
        return
    target = local_path(url)
    temporary = os.path.join(os.path.dirname(target), f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
    with explained("write", url):
        os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        with explained("write", url):
            yield temporary
            with open(temporary, "rb+") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, target)
            sync_folder(os.path.dirname(target))
    finally:
        Path(temporary).unlink(missing_ok=True)


def sync_folder(folder: str) -> None:
    """Makes names that were changed in a local folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(url: str, data: bytes) -> None:
    """Publishes bytes at a URL atomically."""
    with atomic_path(url) as path, open(path, "wb") as stream:
        stream.write(data)


def create_bytes(url: str, data: bytes) -> bool:
    """Publishes bytes at a URL unless something stands there already. Returns whether they were published.

    Of several callers at once exactly one succeeds: on a local disk, and on an object store whose driver offers conditional writes.
    """
    fs, path = filesystem(url)
    if isinstance(fs, LocalFileSystem):
        folder = os.path.dirname(path)
        temporary = os.path.join(folder, f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
        with explained("write", url):
            os.makedirs(folder, exist_ok=True)
            try:
                write_bytes(temporary, data)
                os.link(temporary, path)
                sync_folder(folder)
            except FileExistsError:
                return False
            finally:
                Path(temporary).unlink(missing_ok=True)
        return True
    try:
        with explained("write", url):
            retrying(lambda: fs.pipe_file(path, data, mode="create"), url)
    except StoreError as error:
        if isinstance(error.__cause__, FileExistsError):
            return False
        raise
    return True


def copy(source: str, target: str) -> None:
    """Publishes a local file, or one of the same filesystem, at another URL, atomically: by a hard link, or by a copy that an object
    store makes itself."""
    if not is_local(target):
        fs, path = filesystem(target)
        with explained("write", target):
            if is_local(source):
                retrying(lambda: fs.put_file(local_path(source), path), target)
            else:
                retrying(lambda: fs.cp_file(filesystem(source)[1], path), target)
        return
    with atomic_path(target) as path:
        try:
            os.link(local_path(source), path)
        except OSError:  # a filesystem without hard links
            shutil.copyfile(local_path(source), path)


def write_stamped(url: str, write: Callable[[str], None]) -> FileStamp:
    """Lets `write` fill a local path, publishes it at `url` and returns its stamp."""
    with atomic_path(url) as path:
        write(path)
        size, digest = file_digest(path)
    return FileStamp(size, digest)
