"""Compiling of kernels: without the interpreter's lock, kept on the disk with the tables they work by, once on a machine.

Numba keeps compiled code by the time stamp of the file that holds a function, and does not see that a constant or a kernel of another
file has changed. So the folder it is kept in is named by a digest of all kernel sources and of what compiles them.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import njit

from store import files
from store.errors import StoreError

CACHE_VARIABLE = "HEADRACE_CACHE_DIR"
_LEAST_FREE_BYTES = 64_000_000
_inside = threading.local()  # `lock`: whether this thread has the lock of `compiled_once`


def kernel(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Decorates a function as a kernel. `inline`: its body becomes part of every caller's, for what stands in innermost loops."""
    if function is None:
        return lambda f: kernel(f, inline=inline)
    # Kernels only read and write arrays that they are handed: without numba's run time no reference is counted in a loop, which took
    # four fifths of the walk's time. So a kernel must not make an array.
    options = {"nogil": True, "boundscheck": False, "error_model": "numpy", "_nrt": False}
    folder = cache_folder()
    if inline or folder is None:
        return njit(function, forceinline=inline, **options)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        made = njit(function, cache=True, **options)
    except RuntimeError:  # the folder has gone or is full: compile in memory
        return njit(function, **options)
    finally:
        numba.config.CACHE_DIR = before
    made._cache.save_overload = _forgiving(made._cache.save_overload)
    return made


def _forgiving(save: Callable[..., None]) -> Callable[..., None]:
    """A disk that is full costs the cache and nothing else: the kernel is compiled and runs."""

    def saved(*arguments: Any) -> None:
        with contextlib.suppress(OSError):
            save(*arguments)

    return saved


@functools.cache
def cache_folder() -> Path | None:
    """Where compiled kernels are kept: under HEADRACE_CACHE_DIR, else the user's cache folder, else the temporary folder; None when
    none of them can be written by us alone."""
    named = os.environ.get(CACHE_VARIABLE)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    places = [Path(named)] if named else [home / "headrace", Path(tempfile.gettempdir()) / f"headrace-{os.getuid()}"]
    return next((place / "kernels" / _digest() for place in places if _usable(place / "kernels" / _digest())), None)


def _digest() -> str:
    """Of the kernels' sources and of what compiles them: Python, numba, the Unicode tables."""
    h = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        h.update(source.read_bytes())
    h.update(f"{sys.version_info[:3]} {numba.__version__}".encode())
    return h.hexdigest()[:16]


def _usable(folder: Path) -> bool:
    """Whether a folder is there or can be made, is ours alone (what lies in it is run), can be written, and has room."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
        tempfile.TemporaryFile(dir=folder).close()
        return shutil.disk_usage(folder).free >= _LEAST_FREE_BYTES
    except OSError:
        return False


def kept_arrays(name: str, make: Callable[[], Sequence[np.ndarray]]) -> tuple[np.ndarray, ...]:
    """The arrays that `make` makes from Python's own Unicode data and constants, kept on the disk under a name beside the compiled
    kernels: making them takes a second, reading them a hundredth. They cannot be written."""
    folder = cache_folder()
    if folder is None:
        return _constant(make())
    path = folder / f"{name}.npz"
    if (kept := _kept(path)) is not None:
        return kept
    with compiled_once():  # what makes them may be a kernel, too
        if (kept := _kept(path)) is not None:
            return kept
        made = _constant(make())
        with contextlib.suppress(StoreError), files.atomic_path(str(path)) as aside, open(aside, "wb") as stream:
            np.savez(stream, *made)
    return made


def _kept(path: Path) -> tuple[np.ndarray, ...] | None:
    """None when the file is not there, or is damaged (the archive holds check sums)."""
    with contextlib.suppress(OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile), np.load(path) as kept:
        return _constant(kept[key] for key in kept.files)
    return None


def _constant(arrays: Iterable[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Made and read ones are of one type, writable or not being part of it: a kernel would be compiled for each."""
    found = tuple(np.ascontiguousarray(array) for array in arrays)
    for array in found:
        array.flags.writeable = False
    return found


@contextlib.contextmanager
def compiled_once() -> Iterator[None]:
    """Inside, one process of a machine at a time: the first compiles, the others then find its work in the cache. May be nested."""
    folder = cache_folder()
    if folder is None or getattr(_inside, "lock", False):
        yield
        return
    try:
        lock = (folder / "lock").open("w")
    except OSError:
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _inside.lock = True
        try:
            yield
        finally:
            _inside.lock = False


def ready(dispatcher: Any) -> contextlib.AbstractContextManager[None]:
    """Around a kernel's call: the first one in a process compiles it under the lock of `compiled_once`, later ones cost nothing."""
    return contextlib.nullcontext() if dispatcher.overloads else compiled_once()
