"""Parquet: every row is a record or one damaged entry, whatever the cut and the damage."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.documents import meta_json
from store.errors import ConfigError, StoreError
from tests.dataproc.sources.reading import read_input


def write(path, columns: dict, group_rows: int = 10, **options: object) -> None:
    pq.write_table(pa.table(columns), path, row_group_size=group_rows, **options)


@given(rows=st.integers(0, 60), group_rows=st.integers(1, 20), unit_bytes=st.integers(1, 5000))
@settings(max_examples=40)
def test_slices_give_the_same_as_the_whole_file(tmp_path_factory, rows, group_rows, unit_bytes):
    path = tmp_path_factory.mktemp("cut") / "x.parquet"
    write(path, {"text": [f"text {i} " * i for i in range(rows)]}, group_rows)
    whole, cut = read_input("parquet", path), read_input("parquet", path, unit_bytes)
    assert cut.items == whole.items
    assert [(r.text, r.locator) for r in whole.items] == [(f"text {i} " * i, f"x.parquet#{i}") for i in range(rows)]


@given(group_rows=st.integers(1, 20), unit_bytes=st.integers(1, 3000))
@settings(max_examples=30)
def test_the_hashes_of_the_slices_cover_the_file(tmp_path_factory, group_rows, unit_bytes):
    """Flipping any one byte changes the hash of exactly one slice; one slice has the hash of the file."""
    path = tmp_path_factory.mktemp("hash") / "x.parquet"
    write(path, {"text": [f"text {i}" for i in range(40)]}, group_rows)
    before = read_input("parquet", path, unit_bytes)
    if len(before.slices) == 1:
        assert before.digests == [xxhash.xxh3_128_hexdigest(path.read_bytes())]
    data = path.read_bytes()
    for at in range(4, data.index(b"schema") - 40, 97):  # before the footer, so that the plan stays the same
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        after = read_input("parquet", path, unit_bytes)
        assert sum(a != b for a, b in zip(before.digests, after.digests, strict=True)) == 1


def test_a_record_carries_its_named_columns(tmp_path):
    columns = {
        "body": ["a"],
        "nr": [7],
        "link": ["https://e.org"],
        "lang": pa.array([None], pa.string()),
        "date": pa.array([datetime(2024, 1, 2, 3, 4, 5, 678901, UTC)], pa.timestamp("ns", "UTC")),
        "raw": [b"\x00"],
        "both": [{"score": 0.5, "raw": b"\x01"}],
        "tags": [["x", "y"]],
    }
    write(tmp_path / "x.parquet", columns)
    fields = {"text_field": "body", "id_field": "nr", "url_field": "link", "language_field": "lang", "timestamp_field": "date"}
    (record,) = read_input("parquet", tmp_path / "x.parquet", **fields).items
    assert (record.key, record.locator, record.text, record.url, record.language) == ("7", "x.parquet#0", "a", "https://e.org", None)
    assert datetime.fromisoformat(record.timestamp) == datetime(2024, 1, 2, 3, 4, 5, 678901, UTC)
    assert meta_json(record.meta) == '{"tags":["x","y"]}'


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()])
def test_text_may_have_any_type_that_holds_utf8(tmp_path, kind):
    texts = ["Mühle", "", "水車", "Mühle"]
    values = [t.encode() for t in texts] if kind == pa.binary() else texts
    write(tmp_path / "x.parquet", {"text": pa.array(values, pa.string() if pa.types.is_dictionary(kind) else kind).cast(kind)})
    assert [r.text for r in read_input("parquet", tmp_path / "x.parquet").items] == texts


def test_bad_values_cost_their_own_row(tmp_path):
    offsets, data = pa.py_buffer(b"".join(i.to_bytes(4, "little") for i in (0, 1, 3, 4))), pa.py_buffer(b"a\xff\xfeb")
    text = pa.Array.from_buffers(pa.string(), 3, [None, offsets, data])
    write(tmp_path / "encoding.parquet", {"text": text})
    items = read_input("parquet", tmp_path / "encoding.parquet").items
    assert [getattr(i, "reason", None) or i.text for i in items] == ["a", "bad_encoding", "b"]
    assert [i.locator for i in items] == [f"encoding.parquet#{i}" for i in range(3)]

    far = pa.array([0, 1 << 60, 1], pa.int64()).cast(pa.timestamp("ms"))
    write(tmp_path / "date.parquet", {"text": ["a", "b", "c"], "seen": far})
    assert read_input("parquet", tmp_path / "date.parquet").reasons == ["bad_value"]

    write(tmp_path / "null.parquet", {"text": ["a", None, "c"], "id": ["x", "y", None]})
    items = read_input("parquet", tmp_path / "null.parquet", id_field="id").items
    assert [(i.key, getattr(i, "reason", None)) for i in items] == [("x", None), ("y", "missing_text"), ("null.parquet#2", "missing_id")]
    write(tmp_path / "binary.parquet", {"text": [b"a", b"\xff"]})
    assert read_input("parquet", tmp_path / "binary.parquet").reasons == ["bad_encoding"]


def test_a_missing_column_is_told_before_any_work(tmp_path):
    write(tmp_path / "x.parquet", {"content": ["a"]})
    with pytest.raises(ConfigError, match='input x: .* has no column "text"; its columns: content'):
        read_input("parquet", tmp_path / "x.parquet")
    with pytest.raises(ConfigError, match='no column "nr"'):
        read_input("parquet", tmp_path / "x.parquet", text_field="content", id_field="nr")


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_a_file_without_its_footer_is_one_entry(tmp_path, keep):
    write(tmp_path / "x.parquet", {"text": ["a"] * 100})
    (tmp_path / "x.parquet").write_bytes((tmp_path / "x.parquet").read_bytes()[:keep])
    reading = read_input("parquet", tmp_path / "x.parquet")
    assert [(d.reason, d.locator) for d in reading.items] == [("unreadable", "x.parquet#0")]
    assert reading.digests == [xxhash.xxh3_128_hexdigest((tmp_path / "x.parquet").read_bytes())]


@given(flips=st.lists(st.integers(0, 1 << 30), min_size=1, max_size=3), compression=st.sampled_from(["zstd", "snappy", "none", "gzip"]))
@settings(max_examples=60)
def test_damaged_pages_lose_no_row_from_the_count(tmp_path_factory, flips, compression):
    """With page check sums every row is right or an entry of its own, and other row groups stand."""
    path = tmp_path_factory.mktemp("rot") / "x.parquet"
    texts = [f"text {i * 7919}" for i in range(40)]
    write(path, {"text": texts}, compression=compression, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    footer = pq.read_metadata(path)
    begins = [
        min(c for c in (footer.row_group(g).column(0).dictionary_page_offset, footer.row_group(g).column(0).data_page_offset) if c)
        for g in range(4)
    ]
    end = begins[3] + footer.row_group(3).column(0).total_compressed_size
    hit = set()
    for flip in flips:
        at = begins[0] + flip % (end - begins[0])
        data[at] ^= 1
        hit.add(max(g for g in range(4) if begins[g] <= at))
    path.write_bytes(data)
    items = read_input("parquet", path).items
    assert [i.locator for i in items] == [f"x.parquet#{i}" for i in range(40)]
    for i, item in enumerate(items):
        if i // 10 in hit:
            assert getattr(item, "reason", "unreadable") == "unreadable"
        else:
            assert item.text == texts[i]


def test_a_file_that_changed_or_vanished_stops_the_run(tmp_path):
    from dataproc.sources.base import InputSpec, ReadReport
    from dataproc.sources.registry import make_source, plan_input

    spec = InputSpec(name="x", format="parquet", path=str(tmp_path / "x.parquet"))
    write(tmp_path / "x.parquet", {"text": ["a", "b"]})
    ((part,),) = plan_input(spec, 1 << 40)
    write(tmp_path / "x.parquet", {"text": ["a", "b", "c" * 1000]})
    with pytest.raises(StoreError, match="changed since the plan"):
        list(make_source(spec).read(part, ReadReport()))
    (tmp_path / "x.parquet").unlink()
    with pytest.raises(StoreError, match="vanished since the plan"):
        list(make_source(spec).read(part, ReadReport()))


def test_real_rows(shared_data):
    paths = sorted((shared_data / "corpus_sample").glob("*.parquet"))
    reading = read_input("parquet", shared_data / "corpus_sample" / "*.parquet", 100_000, id_field="id", url_field="url")
    wanted = [row for path in paths for row in pq.read_table(path, columns=["id", "url", "text"]).to_pylist()]
    assert [i.key for i in reading.items] == [row["id"] for row in wanted] and wanted
    assert [getattr(i, "text", None) for i in reading.items] == [row["text"] for row in wanted]
