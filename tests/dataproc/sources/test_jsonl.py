"""JSON lines: every line is a record, a blank, or one damaged entry, whatever the cut."""

from __future__ import annotations

import bz2
import gzip
import json
import tracemalloc
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.sources import jsonl
from dataproc.sources.base import Damaged, Record
from dataproc.sources.jsonl import parse_json
from tests.dataproc.sources.reading import read_input, read_lazily

COMPRESS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress, ".bz2": bz2.compress}
# Every file format may be several compressed files one after the other.
JOINED = {suffix: (lambda data, c=c: c(data[: len(data) // 2]) + c(data[len(data) // 2 :])) for suffix, c in COMPRESS.items()}

TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40)
LINES = st.one_of(
    TEXTS.map(lambda text: json.dumps({"text": text, "n": len(text)}, ensure_ascii=False)),
    st.sampled_from(["", "  ", "null", "{", '{"text": 3}', '{"text": "\\ud800"}', '{"txt": "a"}', '{"text": "twice", "text": "last"}']),
).map(str.encode) | st.sampled_from([b'{"text": "\xff"}', b"\xef\xbb\xbf", b"\r"])


def one(tmp_path, line: bytes, **fields: str) -> Record | Damaged:
    (tmp_path / "x.jsonl").write_bytes(line)
    (item,) = read_input("jsonl", tmp_path / "x.jsonl", **fields).items
    return item


@given(lines=st.lists(LINES, max_size=30), ends=st.sampled_from([b"\n", b"\r\n"]), last=st.booleans(), unit_bytes=st.integers(1, 200))
@settings(max_examples=150)
def test_slices_give_the_same_as_the_whole_file(tmp_path_factory, lines, ends, last, unit_bytes):
    path = tmp_path_factory.mktemp("cut") / "x.jsonl"
    path.write_bytes(ends.join(lines) + (ends if last else b""))
    whole, cut = read_input("jsonl", path), read_input("jsonl", path, unit_bytes)
    assert cut.items == whole.items
    assert cut.not_documents == whole.not_documents
    rows = path.read_bytes().split(b"\n")
    assert len(whole.items) + whole.not_documents["blank_line"] == len(rows) - (not rows[-1])
    texts = [json.loads(line.removeprefix(b"\xef\xbb\xbf")) for line in rows if b'"n":' in line]
    assert [r.text for r in whole.records if "n" in r.meta] == [value["text"] for value in texts]


@given(lines=st.lists(LINES, max_size=30), suffix=st.sampled_from(list(COMPRESS)))
@settings(max_examples=60)
def test_compressed_files_give_the_same_as_plain_ones(tmp_path_factory, lines, suffix):
    folder, data = tmp_path_factory.mktemp("same"), b"\n".join(lines)
    for name, stored in {"p/x.jsonl": data, f"c/x.jsonl{suffix}": JOINED[suffix](data), "s/x.jsonl": COMPRESS[suffix](data)}.items():
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(stored)
    plain = read_input("jsonl", folder / "p/x.jsonl")
    named = read_input("jsonl", folder / f"c/x.jsonl{suffix}", 10)
    assert [(type(i), getattr(i, "text", None), getattr(i, "reason", None)) for i in named.items] == [
        (type(i), getattr(i, "text", None), getattr(i, "reason", None)) for i in plain.items
    ]
    if suffix in (".gz", ".zst"):  # told by its first bytes, and then not cut
        assert read_input("jsonl", folder / "s/x.jsonl", 10).items == plain.items


def test_a_record_carries_its_named_fields(tmp_path):
    line = json.dumps({"body": "words", "nr": 7, "link": "https://e.org", "lang": None, "date": "2024-01-01", "score": 0.5, "tags": ["a"]})
    fields = {"text_field": "body", "id_field": "nr", "url_field": "link", "language_field": "lang", "timestamp_field": "date"}
    record = one(tmp_path, line.encode(), **fields)
    assert (record.key, record.locator, record.text, record.url) == ("7", "x.jsonl#0", "words", "https://e.org")
    assert (record.language, record.timestamp, record.meta) == (None, "2024-01-01", {"score": 0.5, "tags": ["a"], "lang": None})


@pytest.mark.parametrize(
    "line, reason",
    [
        (b"{", "bad_json"),
        (b"words", "bad_json"),
        (b'{"text": "a"} {"text": "b"}', "bad_json"),
        (b'{"text": "a", "n": NaN}', "bad_json"),
        (b'{"text": "a", "n": -Infinity}', "bad_json"),
        (b'{"text": "a\x01"}', "bad_json"),
        (b"[" * 100_000, "bad_json"),
        (b'{"text": "a", "n": ' + b"[" * 5000 + b"]" * 5000 + b"}", "bad_json"),
        (b'{"text": "a", "big": 123456789012345678901234567890, "n": ' + b"[" * 1010 + b"]" * 1010 + b"}", "bad_json"),
        (b"[1]", "not_object"),
        (b'"text"', "not_object"),
        (b"{}", "missing_text"),
        (b'{"text": null}', "missing_text"),
        (b'{"text": ["a"]}', "missing_text"),
        (b'{"text": "\xe9"}', "bad_encoding"),
        (b'{"text": "\xed\xa0\x80"}', "bad_encoding"),
        (b'{"text": "\\ud800"}', "bad_encoding"),
        (b'{"text": "a", "other": "\\udc00"}', "bad_encoding"),
        ('{"text": "a"}'.encode("utf-16"), "bad_encoding"),
    ],
)
def test_a_bad_line_is_one_entry_and_its_neighbours_stand(tmp_path, line, reason):
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "before"}\n' + line + b'\n{"text": "after"}\n')
    before, bad, after = read_input("jsonl", tmp_path / "x.jsonl").items
    assert (before.text, after.text, after.locator) == ("before", "after", "x.jsonl#2")
    assert (bad.reason, bad.key, bad.locator) == (reason, "x.jsonl#1", "x.jsonl#1")
    assert "x.jsonl#1 (byte 19)" in bad.error


@pytest.mark.parametrize("value", ["null", "1.5", "true", '""', "[1]"])
def test_an_id_must_be_text_or_a_whole_number(tmp_path, value):
    assert one(tmp_path, f'{{"text": "a", "id": {value}}}'.encode(), id_field="id").reason == "missing_id"
    assert one(tmp_path, b'{"text": "a"}', id_field="id").reason == "missing_id"


def test_long_whole_numbers_lose_no_digit(tmp_path):
    digits = "123456789012345678901234567890"
    line = f'{{"text": "a", "id": {digits}, "n": -9223372036854775809, "most": 18446744073709551615, "x": 0.12345678901234567890123}}'
    record = one(tmp_path, line.encode(), id_field="id")
    assert record.key == digits
    assert record.meta == {"n": "-9223372036854775809", "most": 2**64 - 1, "x": 0.12345678901234568}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
        max_leaves=20,
    )
)
def test_json_means_what_the_standard_library_reads(value):
    text = json.dumps(value, ensure_ascii=False)
    assert parse_json(text.encode()) == json.loads(text)


def test_a_byte_order_mark_may_begin_the_file_only(tmp_path):
    bom, line = b"\xef\xbb\xbf", b'{"text": "a"}\n'
    (tmp_path / "x.jsonl").write_bytes(bom + line + bom + line)
    first, second = read_input("jsonl", tmp_path / "x.jsonl").items
    assert first.text == "a" and second.reason == "bad_json"


@given(cut=st.integers(0, 1 << 30), suffix=st.sampled_from([".gz", ".zst", ".bz2"]))
@settings(max_examples=60)
def test_a_cut_file_gives_whole_lines_then_one_entry(tmp_path_factory, cut, suffix):
    lines = [json.dumps({"text": f"{i} " + str(i * 7919**3) * 9}).encode() + b"\n" for i in range(300)]
    stored = COMPRESS[suffix](b"".join(lines))
    cut = 1 + cut % (len(stored) - 1)
    path = tmp_path_factory.mktemp("cut") / f"x.jsonl{suffix}"
    path.write_bytes(stored[:cut])
    *whole, last = read_input("jsonl", path).items
    assert [r.text for r in whole] == [json.loads(line)["text"] for line in lines[: len(whole)]]
    assert (last.reason, last.locator) == ("truncated", f"x.jsonl{suffix}#{len(whole)}")
    assert f"line {len(whole)} on, byte {sum(map(len, lines[: len(whole)]))} " in last.error
    if suffix == ".gz":  # as many lines as any reader can get out of what is left
        assert len(whole) == zlib.decompressobj(31).decompress(stored[:cut]).count(b"\n")


@given(
    flips=st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 7)), min_size=1, max_size=4),
    suffix=st.sampled_from([".gz", ".zst", ".bz2"]),
)
@settings(max_examples=100)
def test_flipped_bits_never_crash_and_cost_no_line_before_them(tmp_path_factory, flips, suffix):
    lines = [json.dumps({"text": f"{i} " + str(i * 7919**3) * 9}).encode() + b"\n" for i in range(300)]
    stored = bytearray(COMPRESS[suffix](b"".join(lines)))
    for place, bit in flips:
        stored[place % len(stored)] ^= 1 << bit
    path = tmp_path_factory.mktemp("rot") / f"x.jsonl{suffix}"
    path.write_bytes(stored)
    reading = read_input("jsonl", path)
    assert len(reading.items) + reading.not_documents["blank_line"] <= sum(map(len, lines)) + 1
    if suffix == ".gz":
        first = min(place % len(stored) for place, _ in flips)
        sound = 0 if first < 10 else zlib.decompressobj(31).decompress(bytes(stored[:first])).count(b"\n")
        assert [getattr(i, "text", None) for i in reading.items[:sound]] == [json.loads(line)["text"] for line in lines[:sound]]


def test_a_wrong_check_sum_is_told(tmp_path):
    stored = bytearray(gzip.compress(b'{"text": "a"}\n'))
    stored[-8] ^= 1
    (tmp_path / "x.jsonl.gz").write_bytes(stored)
    assert read_input("jsonl", tmp_path / "x.jsonl.gz").reasons == ["bad_gzip"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_line_that_is_too_long_is_skipped_in_bounded_memory(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(jsonl, "MOST_RECORD_BYTES", 1 << 20)
    long = b'{"text": "' + b"x" * (40 << 20) + b'"}\n'
    (tmp_path / f"x.jsonl{suffix}").write_bytes(COMPRESS[suffix](b'{"text": "a"}\n' + long + b'{"text": "b"}\n'))
    tracemalloc.start()
    items = list(read_lazily("jsonl", tmp_path / f"x.jsonl{suffix}"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [getattr(i, "reason", None) or i.text for i in items] == ["a", "too_large", "b"]
    assert peak < 8 << 20


def test_empty_files_give_nothing(tmp_path):
    for suffix, compress in COMPRESS.items():
        (tmp_path / f"x.jsonl{suffix}").write_bytes(compress(b""))
        assert read_input("jsonl", tmp_path / f"x.jsonl{suffix}").items == []
