"""Readers of all formats: damage costs its own place, cuts into units change no record, every input is accounted for."""

from __future__ import annotations

import bz2
import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataproc.sources.base import Damaged, InputSpec, ReadReport, Record
from dataproc.sources.registry import make_source, plan_input
from store import files
from store.digests import bytes_digest
from store.errors import ConfigError, StoreError

Items = list[Record | Damaged]


def read_all(kind: str, path: str, unit_bytes: int = 1 << 30, **options) -> tuple[Items, list[ReadReport]]:
    """All items of an input, in order, its unknown first rows counted as the pipeline counts them."""
    source = make_source(InputSpec(name="made", format=kind, path=path, **options))
    items, reports, next_row = [], [], {}
    for unit in plan_input(source.spec, unit_bytes):
        for part in unit:
            first = part.first_row if part.first_row is not None else next_row[part.url]
            if kind == "jsonl" and not part.whole_file:
                next_row[part.url] = first + source.count_rows(part)
            report = ReadReport()
            items += source.read(replace(part, first_row=first), report)
            reports.append(report)
    return items, reports


def summary(items: Items) -> list[tuple]:
    return [(i.key, i.locator, i.text, i.payload) if isinstance(i, Record) else (i.key, i.locator, i.reason) for i in items]


def reasons(items: Items) -> Counter:
    return Counter(i.reason for i in items if isinstance(i, Damaged))


LINES = [
    b'{"id": 1, "text": "one", "url": "http://a.example", "n": 5}',
    b"",
    b'{"text": "no id"}',
    b'{"id": 2, "text": null}',
    b'{"id": 3, "text": 7}',
    b"[1, 2]",
    b"null",
    b'{"id": 4, "text": "cut',
    b'{"id": 5, "text": "bad \xff byte"}',
    b'{"id": 6, "text": "lone \\ud800 surrogate"}',
    b'{"id": true, "text": "x"}',
    b'{"id": "7", "text": "last"}',
]


@pytest.mark.parametrize("codec", ["", ".gz", ".zst", ".bz2"])
def test_damaged_lines_cost_themselves_alone(tmp_path, codec):
    data = b"\n".join(LINES)
    packed = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress, ".bz2": bz2.compress}[codec](data)
    (tmp_path / f"a.jsonl{codec}").write_bytes(packed)
    items, (report,) = read_all("jsonl", str(tmp_path / f"a.jsonl{codec}"), id_field="id", url_field="url")
    good = [i for i in items if isinstance(i, Record)]
    assert [(r.key, r.text) for r in good] == [("1", "one"), ("7", "last")]
    assert good[0].url == "http://a.example" and good[0].meta == {"n": 5}
    wanted = {"missing_id": 2, "missing_text": 2, "not_object": 2, "bad_json": 1, "bad_encoding": 2}
    assert {k: v for k, v in reasons(items).items()} == wanted
    assert report.not_documents == {"blank_line": 1} and len(items) + 1 == len(LINES)
    assert report.input_digest == bytes_digest(packed) and report.input_bytes == len(packed)
    assert [i.locator for i in items if isinstance(i, Damaged)][0] == f"a.jsonl{codec}#2"


@pytest.mark.parametrize("codec", [".gz", ".zst", ".bz2"])
def test_a_cut_file_gives_its_whole_lines_and_one_entry_for_the_rest(tmp_path, codec):
    data = b"".join(json.dumps({"text": f"line {i} " + "x" * (i * 7919 % 200)}).encode() + b"\n" for i in range(4000))
    packed = {".gz": gzip.compress, ".zst": zstandard.compress, ".bz2": bz2.compress}[codec](data)
    (tmp_path / f"a.jsonl{codec}").write_bytes(packed[: len(packed) * 2 // 3])
    items, _ = read_all("jsonl", str(tmp_path))
    good = [i.text for i in items if isinstance(i, Record)]
    assert good == [f"line {i} " + "x" * (i * 7919 % 200) for i in range(len(good))]
    assert reasons(items) == {"truncated": 1} and isinstance(items[-1], Damaged)


@given(
    lines=st.lists(st.sampled_from(LINES), max_size=20), unit=st.integers(1, 200), end=st.sampled_from([b"\n", b"\r\n"]), last=st.booleans()
)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cutting_a_line_file_changes_no_record(tmp_path_factory, lines, unit, end, last):
    folder = tmp_path_factory.mktemp("cut")
    (folder / "a.jsonl").write_bytes(end.join(lines) + (end if last else b""))
    whole, _ = read_all("jsonl", str(folder / "a.jsonl"))
    cut, _ = read_all("jsonl", str(folder / "a.jsonl"), unit)
    assert summary(cut) == summary(whole)


def warc(count: int, size: int = 300) -> list[bytes]:
    """WARC records as gzip members."""
    members = []
    for i in range(count):
        http = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
            + f"<p>page {i} </p>".encode()
            + bytes((i * 7 + j) % 251 for j in range(size))
        )
        head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{i:032x}>\r\nWARC-Target-URI: http://x.example/{i}\r\n"
        head += (
            f"WARC-Date: 2024-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
        )
        members.append(gzip.compress(head.encode() + http + b"\r\n\r\n", mtime=0))
    return members


@given(unit=st.integers(1, 3000))
@settings(max_examples=40)
def test_cutting_a_warc_changes_no_record(tmp_path_factory, unit):
    folder = tmp_path_factory.mktemp("warc")
    (folder / "a.warc.gz").write_bytes(b"".join(warc(12)))
    whole, _ = read_all("warc", str(folder / "a.warc.gz"))
    cut, _ = read_all("warc", str(folder / "a.warc.gz"), unit)
    assert len(whole) == 12 and summary(cut) == summary(whole)


@given(at=st.integers(0, 10**6), value=st.integers(0, 255), cut=st.integers(0, 10**6))
@settings(max_examples=150)
def test_damage_in_a_member_costs_no_other_member(tmp_path_factory, at, value, cut):
    folder = tmp_path_factory.mktemp("rot")
    members = warc(8)
    data = bytearray(b"".join(members))
    starts = [sum(map(len, members[:i])) for i in range(9)]
    at %= len(data)
    data[at] = value
    length = len(data) - cut % 400
    (folder / "a.warc.gz").write_bytes(bytes(data[:length]))
    items, _ = read_all("warc", str(folder / "a.warc.gz"))
    untouched = [i for i in range(8) if not starts[i] <= at < starts[i + 1] and starts[i + 1] <= length]
    keys = [i.key for i in items if isinstance(i, Record)]
    assert set(keys) >= {f"urn:uuid:{i:032x}" for i in untouched} and len(keys) == len(set(keys))


def test_every_odd_warc_is_read_or_said_to_be_damaged(shared_data):
    found = {}
    for path in sorted((shared_data / "nasty" / "warc").iterdir()):
        items, _ = read_all("warc", str(path))
        found[path.name] = (sum(isinstance(i, Record) for i in items), dict(reasons(items)))
    assert found["cut-in-member.warc.gz"] == (10, {"truncated": 1})
    assert found["empty.gz"] == (0, {})
    assert found["example-wrong-chunks.warc.gz"] == (1, {})
    assert found["example-trunc.warc"][0] == 1
    assert found["bit-rot.warc.gz"][0] >= 6 and sum(found["bit-rot.warc.gz"][1].values()) == 2
    assert sum(found["double-single-inflate-error.gz"][1].values()) == 1
    assert found["resiliparse-clipped.warc.gz"] == (0, {"truncated": 1})


@pytest.mark.parametrize(
    ("name", "documents"),
    [("cc-main-2020-34-cut.warc.gz", 16), ("whirlwind.warc.gz", 1), ("dolma-sample-0000.warc.gz", 24), ("warcio-iana-chunked.warc", 1)],
)
def test_real_crawls(shared_data, name, documents):
    items, _ = read_all("warc", str(shared_data / "warc_samples" / name))
    assert [type(i) for i in items] == [Record] * documents and all(i.url and i.timestamp and i.payload for i in items)


def test_a_zstd_warc_gives_what_the_gzip_one_gives(shared_data, tmp_path):
    source = shared_data / "web" / "pages-transfer.warc.gz"
    (tmp_path / "pages.warc.zst").write_bytes(zstandard.compress(gzip.decompress(source.read_bytes())))
    (tmp_path / "pages.warc").write_bytes(gzip.decompress(source.read_bytes()))
    expected = [(i.key, i.payload) for i in read_all("warc", str(source))[0]]
    for name in ("pages.warc.zst", "pages.warc"):
        assert [(i.key, i.payload) for i in read_all("warc", str(tmp_path / name))[0]] == expected and len(expected) == 60


def test_wet_texts(shared_data):
    items, _ = read_all("wet", str(shared_data / "warc_samples" / "whirlwind.warc.wet.gz"))
    assert len(items) == 1 and "Escopete" in items[0].text and items[0].language is None


def test_parquet_rows_and_damage(tmp_path):
    table = pa.table({"id": ["a", "b", "c", "d"], "body": ["one", None, "three", "four"], "n": [1, 2, 3, 4], "raw": [b"x"] * 4})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    items, _ = read_all("parquet", str(tmp_path / "a.parquet"), 1, text_field="body", id_field="id")
    assert [i.key for i in items] == ["a", "b", "c", "d"] and reasons(items) == {"missing_text": 1}
    assert items[0].meta == {"n": 1} and items[2].locator == "a.parquet#2"
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(data[:-20])
    items, _ = read_all("parquet", str(tmp_path / "b.parquet"), text_field="body")
    assert [type(i) for i in items] == [Damaged]
    with pytest.raises(ConfigError, match='no column "txt"'):
        read_all("parquet", str(tmp_path / "a.parquet"), text_field="txt")


def test_folders_of_pages_and_texts(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_bytes(b"<p>a")
    (tmp_path / "sub" / "b.html.gz").write_bytes(gzip.compress(b"<p>b"))
    items, _ = read_all("html", str(tmp_path))
    assert [(i.key, i.payload) for i in items] == [("a.html#0", b"<p>a"), ("sub/b.html.gz#0", b"<p>b")]
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "1.txt").write_bytes("Mühle".encode("latin-1") * 20)
    (texts / "2.txt").write_bytes(b"")
    items, _ = read_all("text", str(texts / "*.txt"))
    assert [i.text for i in items] == ["Mühle" * 20, ""]


@pytest.mark.parametrize("folder", ["html", "encoding", "unicode", "text", "empty", "jsonl"])
def test_every_odd_file_is_one_record(shared_data, folder):
    count = len(list((shared_data / "nasty" / folder).iterdir()))
    for kind in ("html", "text"):
        items, _ = read_all(kind, str(shared_data / "nasty" / folder))
        assert len(items) == count


def test_json_of_the_test_suite_is_accepted_and_refused_as_it_says(shared_data):
    source = make_source(InputSpec(name="made", format="jsonl", path="made"))
    for path in sorted((shared_data / "nasty" / "jsonl").glob("[yn]_*")):
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        if b"\n" in data.strip() or not data.strip():
            continue
        item = source.parse(data, "made#0", 0)
        refused = isinstance(item, Damaged) and item.reason in ("bad_json", "bad_encoding")
        assert refused == path.name.startswith("n_"), path.name


def test_a_file_that_changed_since_the_plan_stops_the_run(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n')
    source = make_source(InputSpec(name="made", format="jsonl", path=str(tmp_path / "a.jsonl")))
    ((part,),) = plan_input(source.spec, 1 << 20)
    (tmp_path / "a.jsonl").write_text('{"text": "another"}\n')
    with pytest.raises(StoreError, match="changed since the plan"):
        list(source.read(part, ReadReport()))
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(StoreError, match="changed|vanished|gone"):
        list(source.read(part, ReadReport()))


def test_other_filesystems_and_relative_paths(tmp_path: Path):
    files.write_bytes("memory://place/in/a.jsonl", b'{"text": "one"}\n')
    items, _ = read_all("jsonl", "memory://place/in/*.jsonl")
    assert [(i.key, i.text) for i in items] == [("a.jsonl#0", "one")]
    with pytest.raises(ConfigError, match="matches no file"):
        read_all("jsonl", str(tmp_path / "*.none"))
