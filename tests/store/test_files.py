"""Atomic writes, listing and copying, on the local disk and on a filesystem without rename."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from store import files
from store.digests import bytes_digest
from store.errors import StoreError


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path) -> str:
    return str(tmp_path / "place") if request.param == "local" else f"memory://{tmp_path.name}/place"


def test_what_is_written_is_read_and_listed(place):
    files.write_bytes(files.join(place, "b/two.bin"), b"22")
    files.write_bytes(files.join(place, "a.bin"), b"1")
    assert files.read_bytes(files.join(place, "b/two.bin")) == b"22"
    assert [(f.url.removeprefix(place), f.size) for f in files.list_files(place)] == [("/a.bin", 1), ("/b/two.bin", 2)]
    assert [f.size for f in files.list_files(files.join(place, "*.bin"))] == [1]
    assert files.list_folders(place) == ["b"]
    assert files.list_files(files.join(place, "nothing")) == []


def test_a_failed_write_leaves_the_old_file_and_no_trace(tmp_path):
    target = str(tmp_path / "file")
    files.write_bytes(target, b"old")
    with pytest.raises(RuntimeError), files.atomic_path(target) as path:
        with open(path, "wb") as stream:
            stream.write(b"half")
        raise RuntimeError("killed in the middle")
    assert files.read_bytes(target) == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk_is_one_clear_sentence(tmp_path):
    with pytest.raises(StoreError, match="the disk is full.*run the same command again"), files.atomic_path(str(tmp_path / "file")):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_a_copy_has_the_same_bytes_and_a_stamp_says_so(place):
    stamp = files.write_stamped(files.join(place, "one"), lambda path: open(path, "wb").write(b"content") and None)
    assert (stamp.bytes, stamp.xxh3_128) == (7, bytes_digest(b"content"))
    files.copy(files.join(place, "one"), files.join(place, "sub/two"))
    assert files.read_bytes(files.join(place, "sub/two")) == b"content"


def test_deleting_what_is_not_there_is_no_error(place):
    files.delete(files.join(place, "nothing"))
    files.write_bytes(files.join(place, "folder/one"), b"1")
    files.delete(files.join(place, "folder"))
    assert files.list_files(place) == []


def test_a_passing_remote_failure_is_tried_again_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(files, "FIRST_DELAY_S", 0.0)
    calls = []

    def flaky(fail_times: int):
        calls.append(1)
        if len(calls) <= fail_times:
            raise ConnectionError("dropped")
        return "answer"

    assert files.retrying(lambda: flaky(3), "s3://bucket/key") == "answer"
    calls.clear()
    with pytest.raises(ConnectionError):
        files.retrying(lambda: flaky(99), "s3://bucket/key")
    assert len(calls) == files.REMOTE_ATTEMPTS
    calls.clear()
    with pytest.raises(ConnectionError):
        files.retrying(lambda: flaky(1), "local/path")


def test_an_unknown_scheme_is_a_store_error():
    with pytest.raises(StoreError, match="nosuch"):
        files.exists("nosuch://bucket/key")


def test_one_of_many_creates(place):
    url = files.join(place, "folder/claim")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda i: files.create_bytes(url, str(i).encode()), range(32)))
    assert sum(won) == 1 and files.read_bytes(url) == str(won.index(True)).encode()
    assert [f.url.removeprefix(place) for f in files.list_files(place)] == ["/folder/claim"]
