"""A steady reader gives the bytes of a file, whatever fails on the way."""

from __future__ import annotations

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import files
from store.errors import StoreError
from store.steady import SteadyReader

DATA = bytes(range(256)) * 40
URL = "s3://bucket/file"


class Flaky(io.BytesIO):
    """A stream whose reads fail as told, and that is at another place after a failure."""

    failures: list[bool] = []

    def read(self, size: int | None = -1) -> bytes:
        if Flaky.failures and Flaky.failures.pop():
            self.seek(7)
            raise ConnectionResetError("connection dropped")
        return super().read(size)


@given(
    steps=st.lists(st.tuples(st.sampled_from(["read", "start", "current", "end"]), st.integers(0, 3000)), max_size=12),
    failures=st.lists(st.booleans(), max_size=30),
)
def test_it_reads_what_a_plain_stream_reads(steps, failures):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "open_read", lambda url: Flaky(DATA))
        patch.setattr(files, "info", lambda url: files.FileInfo(url, len(DATA), ""))
        patch.setattr(files, "FIRST_DELAY_S", 0.0)
        patch.setattr(files, "REMOTE_ATTEMPTS", 40)
        Flaky.failures = list(failures)
        plain = io.BytesIO(DATA)
        with SteadyReader(URL) as steady:
            for action, count in steps:
                if action == "read":
                    assert steady.read(count) == plain.read(count)
                elif action == "start":
                    assert steady.seek(count) == plain.seek(count)
                else:
                    whence, sign = (os.SEEK_CUR, 1) if action == "current" else (os.SEEK_END, -1)
                    assert steady.seek(sign * count, whence) == plain.seek(sign * count, whence)
                assert steady.tell() == plain.tell()
            assert steady.read() == plain.read()


def test_what_keeps_failing_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(files, "open_read", lambda url: Flaky(DATA))
    monkeypatch.setattr(files, "FIRST_DELAY_S", 0.0)
    Flaky.failures = [True] * 1000
    with pytest.raises(StoreError, match="cannot read s3://bucket/file: connection dropped"):
        SteadyReader(URL).read(10)
    Flaky.failures = []


def test_a_missing_file_and_one_that_may_not_be_opened(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        SteadyReader(str(tmp_path / "none"))

    def refuse(url: str):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "open_read", refuse)
    with pytest.raises(StoreError, match="cannot read .*: .*Permission denied"):
        SteadyReader(URL)
