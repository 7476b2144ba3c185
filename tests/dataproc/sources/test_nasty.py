"""Every damaged or odd file of the shared collection goes through the reader of its kind and gives what its manifest expects."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path

import pytest

from dataproc.sources.base import Damaged
from dataproc.sources.jsonl import parse_json
from tests.dataproc.sources.reading import page, read_input

DECOMPRESS = {".gz": gzip.decompress, ".bz2": bz2.decompress}


def entries(shared_data: Path, category: str) -> list[tuple[Path, dict]]:
    rows = map(json.loads, (shared_data / "nasty" / "manifest.jsonl").read_text().splitlines())
    found = [(shared_data / "nasty" / row["file"], row) for row in rows if row["category"] == category]
    assert found
    return found


def content(path: Path) -> bytes:
    return DECOMPRESS.get(path.suffix, bytes)(path.read_bytes())


def test_json_that_must_be_read_and_json_that_must_not(shared_data):
    """JSONTestSuite: y_ must be accepted, n_ refused, i_ may be either and must not crash."""
    counts = {"y": 0, "n": 0, "i": 0}
    for path, _ in entries(shared_data, "jsonl"):
        kind = path.name.split("_", 1)[0]
        if kind not in counts or path.suffix != ".json":
            continue
        counts[kind] += 1
        try:
            parse_json(path.read_bytes())
            accepted = True
        except ValueError:
            accepted = False
        assert accepted == (kind == "y") or kind == "i", path.name
    assert counts["y"] > 30 and counts["n"] > 60 and counts["i"] > 10


def test_every_json_file_as_lines(shared_data, tmp_path):
    """Each line of each file is one item or blank, and good lines around the file stand."""
    for path, _ in entries(shared_data, "jsonl"):
        if path.suffix == ".gz":
            continue
        data = path.read_bytes()
        (tmp_path / "x.jsonl").write_bytes(b'{"text": "before"}\n' + data + b'\n{"text": "after"}')
        reading = read_input("jsonl", tmp_path / "x.jsonl")
        assert (reading.items[0].text, reading.items[-1].text) == ("before", "after"), path.name
        assert len(reading.items) + reading.not_documents["blank_line"] == data.count(b"\n") + 3, path.name


def test_a_cut_gzip_of_lines(shared_data):
    path = shared_data / "nasty" / "jsonl" / "cut.jsonl.gz"
    *whole, last = read_input("jsonl", path).items
    assert len(whole) > 100 and not any(isinstance(item, Damaged) for item in whole)
    assert last.reason == "truncated" and "cut.jsonl.gz" in last.error


# Records that are whole, damaged entries. In double-single-inflate-error the only member is damaged, in resiliparse-clipped it is cut.
WARC = {
    "example-bad.warc.gz.bad": (2, []),
    "example-trunc.warc": (1, []),
    "example-wrong-chunks.warc.gz": (1, []),
    "example-space-in-target-uri.warc.gz": (1, []),
    "resiliparse-clipped.warc.gz": (0, ["truncated"]),
    "resiliparse-block-sized.warc.gz": (0, []),
    "empty.gz": (0, []),
    "double-single-inflate-error.gz": (0, ["bad_gzip"]),
    "missing-status-text.warc": (1, []),
    "cut-in-member.warc.gz": (10, ["truncated"]),
    "bit-rot.warc.gz": (6, ["bad_gzip", "truncated"]),
}


def test_warc_files(shared_data):
    paths = [path for path, _ in entries(shared_data, "warc")]
    assert {path.name for path in paths} == WARC.keys()
    for path in paths:
        whole = read_input("warc", path)
        assert (len(whole.records), whole.reasons) == WARC[path.name], path.name
        assert read_input("warc", path, 5000).items == whole.items, path.name


def test_cut_and_rotten_files_keep_the_pages_of_the_file_they_were_made_from(shared_data):
    good = {r.key: r.payload for r in read_input("warc", shared_data / "web" / "pages-transfer.warc.gz").records}
    for name in ("cut-in-member.warc.gz", "bit-rot.warc.gz"):
        reading = read_input("warc", shared_data / "nasty" / "warc" / name)
        assert {r.key: r.payload for r in reading.records}.items() <= good.items()


def test_a_body_with_wrong_chunk_sizes_and_a_status_without_words(shared_data):
    (record,) = read_input("warc", shared_data / "nasty" / "warc" / "example-wrong-chunks.warc.gz").records
    assert record.http_status == 200 and b"</html>" in record.payload
    (record,) = read_input("warc", shared_data / "nasty" / "warc" / "missing-status-text.warc").records
    assert record.http_status == 302


@pytest.mark.parametrize("category", ["html", "encoding"])
def test_pages_keep_their_bytes(shared_data, tmp_path, category):
    """As files of a folder and as responses of a WARC."""
    pages = [(path, content(path)) for path, _ in entries(shared_data, category)]
    (tmp_path / "x.warc").write_bytes(b"".join(page(str(i), data) for i, (_, data) in enumerate(pages)))
    assert [r.payload for r in read_input("warc", tmp_path / "x.warc").items] == [data for _, data in pages]
    reading = read_input("html", shared_data / "nasty" / category)
    assert {r.key: r.payload for r in reading.items} == {f"{path.name}#0": data for path, data in pages}


def test_texts_of_unusual_characters(shared_data):
    read = {}
    for path, _ in entries(shared_data, "unicode"):
        if path.suffix != ".jsonl":
            (read[path.name],) = read_input("text", path).records
            if path.name != "UTF-8-test.txt":
                assert read[path.name].text == content(path).decode("utf-8"), path.name
    assert len(read) == 5
    # Kuhn's test ends every line but those of the header at the same column with "|": invalid bytes became single characters.
    stress = read["UTF-8-test.txt"].text
    assert "\ufffd" in stress and stress.count("|\n") == content(shared_data / "nasty" / "unicode" / "UTF-8-test.txt").count(b"|\n")


def test_lines_of_unusual_characters(shared_data):
    for name, field, count in (("ftfy_mojibake.jsonl", "original", 81), ("rtl_udhr.jsonl", "text", 60)):
        path = shared_data / "nasty" / "unicode" / name
        wanted = [json.loads(line)[field] for line in path.read_text().split("\n") if line]
        assert [r.text for r in read_input("jsonl", path, text_field=field).items] == wanted and len(wanted) == count


def test_texts_that_are_one_line_or_a_binary(shared_data):
    reading = read_input("text", shared_data / "nasty" / "text")
    kept = {r.key: r.text for r in reading.records}
    path = shared_data / "nasty" / "text" / "one-line.txt.gz"
    assert kept == {"one-line.txt.gz#0": content(path).decode()}
    assert [(d.key, d.reason) for d in reading.damaged] == [("garbage-a.txt.gz#0", "bad_encoding")]


def test_empty_files(shared_data):
    for path, _ in entries(shared_data, "empty"):
        (record,) = read_input("text", path).items
        assert record.text == "", path.name
        assert read_input("jsonl", path).items == []
        assert read_input("warc", path).items == []
        assert read_input("parquet", path).reasons == ["unreadable"]
