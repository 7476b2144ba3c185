"""Folders of pages and texts: one record a file, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import os
import random

import pytest
import zstandard

from dataproc.sources import streams
from tests.dataproc.sources.reading import read_input

COMPRESS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_page_keeps_its_bytes(tmp_path, suffix):
    body = b"\x00\xff<p>M\xfchle</p>\r\n"
    (tmp_path / f"a.html{suffix}").write_bytes(COMPRESS[suffix](body))
    (record,) = read_input("html", tmp_path, encoding="latin-1").items
    assert (record.key, record.payload, record.text) == (f"a.html{suffix}#0", body, None)
    assert (record.content_type, record.charset) == ("text/html", "latin-1")


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1", "koi8-r"])
def test_a_text_is_decoded(tmp_path, suffix, encoding):
    text = "Речная мельница стоит у запруды и мелет зерно\n" if encoding == "koi8-r" else "Die Mühle am rauschenden Bach\n"
    (tmp_path / f"a.txt{suffix}").write_bytes(COMPRESS[suffix](text.encode(encoding)))
    (record,) = read_input("text", tmp_path / "*.txt*", encoding=encoding).items
    assert (record.key, record.text) == (f"a.txt{suffix}#0", text)


def test_files_come_in_the_order_of_their_paths_however_they_are_grouped(tmp_path):
    names = ["b.html", "a/z.html", "a/b/c.html", "B.html", "ä.html"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode() * 50)
    for unit_bytes in (1 << 40, 1, 500):
        reading = read_input("html", tmp_path, unit_bytes)
        assert [r.key for r in reading.items] == [f"{name}#0" for name in sorted(names)]
        assert [r.payload for r in reading.items] == [name.encode() * 50 for name in sorted(names)]


@pytest.mark.parametrize("format", ["html", "text"])
@pytest.mark.parametrize("suffix, reason", [(".gz", "bad_gzip"), (".zst", "bad_zstd"), (".bz2", "bad_bz2")])
def test_a_damaged_file_is_one_entry(tmp_path, format, suffix, reason):
    stored = COMPRESS[suffix](os.urandom(3000).hex().encode())
    (tmp_path / f"cut{suffix}").write_bytes(stored[: len(stored) // 2])
    (tmp_path / f"other{suffix}").write_bytes(b"something else entirely")
    (tmp_path / f"whole{suffix}").write_bytes(COMPRESS[suffix](b"words"))
    cut, other, whole = read_input(format, tmp_path).items
    assert (cut.reason, cut.locator) == ("truncated", f"cut{suffix}#0")
    assert (other.reason, whole.payload or whole.text.encode()) == (reason, b"words")


def test_what_is_no_text_is_one_entry(tmp_path):
    generator = random.Random(3)
    contents = {
        "binary": generator.randbytes(5000),
        "zeros": bytes(1000),
        "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + generator.randbytes(3000),
        "elf": b"\x7fELF\x02\x01\x01" + bytes(9) + generator.randbytes(200) * 9,
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    assert read_input("text", tmp_path).reasons == ["bad_encoding"] * 4


def test_a_few_bad_bytes_leave_a_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"the wheel of the mill turns \xff slowly\0 " + b"in the water of the channel " * 20)
    (record,) = read_input("text", tmp_path, encoding="utf-8").items
    assert record.text.startswith("the wheel of the mill turns ") and record.text.count("in the water") == 20


def test_an_empty_file_is_a_record_without_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b""))
    assert [r.text for r in read_input("text", tmp_path).items] == ["", ""]


def test_a_file_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "MOST_RECORD_BYTES", 1000)
    (tmp_path / "a.html").write_bytes(b"x" * 1001)
    (tmp_path / "b.html.gz").write_bytes(gzip.compress(b"x" * 100_000))
    (tmp_path / "c.html").write_bytes(b"x" * 1000)
    items = read_input("html", tmp_path).items
    assert [getattr(i, "reason", None) for i in items] == ["too_large", "too_large", None]
