"""From an input to its slices: sorted, grouped, on any filesystem, and checked again when they are read."""

from __future__ import annotations

import gzip
import json

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.sources.base import InputSpec, ReadReport
from dataproc.sources.registry import SOURCES, make_source, plan_input
from store import files
from store.errors import ConfigError, StoreError
from tests.dataproc.sources.reading import member, page, read_input


def lines(count: int) -> bytes:
    return b"".join(json.dumps({"text": f"text {i}"}).encode() + b"\n" for i in range(count))


@pytest.fixture
def memory():
    """An empty remote filesystem."""
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()


@pytest.mark.parametrize("format", SOURCES)
def test_a_path_that_matches_nothing(tmp_path, format):
    with pytest.raises(ConfigError, match=r'input crawl: path ".*/none/\*" matches no file'):
        plan_input(InputSpec(name="crawl", format=format, path=f"{tmp_path}/none/*"), 1000)


@given(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=20), unit_bytes=st.integers(1, 500))
@settings(max_examples=50)
def test_units_cover_every_byte_once_and_stay_near_their_size(tmp_path_factory, sizes, unit_bytes):
    folder = tmp_path_factory.mktemp("plan")
    for i, size in enumerate(sizes):
        (folder / f"{i:02d}.jsonl").write_bytes(b"x" * size)
    units = plan_input(InputSpec(name="x", format="jsonl", path=f"{folder}/*.jsonl"), unit_bytes)
    covered = {}
    for part in (part for unit in units for part in unit):
        assert part.start == covered.get(part.relative_path, 0)
        covered[part.relative_path] = part.stop
    assert covered == {f"{i:02d}.jsonl": size for i, size in enumerate(sizes)}
    assert list(covered) == sorted(covered)
    assert all(sum(part.bytes for part in unit) <= unit_bytes or len(unit) == 1 for unit in units)
    for unit, following in zip(units, units[1:], strict=False):  # no unit could have taken in the next one's first slice
        assert sum(part.bytes for part in unit) + following[0].bytes > unit_bytes


def test_where_files_lie_changes_neither_keys_nor_cuts(tmp_path, memory):
    contents = {
        "jsonl": {"in/a/x.jsonl": lines(40), "in/b.jsonl": lines(3), "in/c.jsonl.gz": gzip.compress(lines(9))},
        "warc": {"in/a/x.warc.gz": b"".join(member(page(str(i))) for i in range(9))},
        "html": {"in/a/x.html": b"<p>a</p>", "in/b.html": b"<p>b</p>"},
        "text": {"in/x.txt": b"words"},
    }
    for format, stored in contents.items():
        for name, data in stored.items():
            (tmp_path / format / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / format / name).write_bytes(data)
            memory.pipe_file(f"/{format}/{name}", data)
        for pattern in ("in", "in/**"):
            local = read_input(format, f"{tmp_path}/{format}/{pattern}", 300)
            remote = read_input(format, f"memory://{format}/{pattern}", 300)
            assert remote.items == local.items and local.items and not local.damaged
            assert [(p.relative_path, p.start, p.stop) for p in remote.slices] == [(p.relative_path, p.start, p.stop) for p in local.slices]


class FailingFile:
    """Every second read or so of it fails, as a dropped connection does."""

    reads = 0

    def __init__(self, raw):
        self.raw = raw

    def read(self, size: int = -1) -> bytes:
        FailingFile.reads += 1
        if FailingFile.reads % 2:
            self.raw.seek(0)
            raise ConnectionResetError("dropped")
        return self.raw.read(size)

    def __getattr__(self, name: str):
        return getattr(self.raw, name)


class FailingFileSystem(MemoryFileSystem):
    protocol = "failing"

    @classmethod
    def _strip_protocol(cls, path):
        return MemoryFileSystem._strip_protocol(path.split("://")[-1])

    def open(self, path, mode="rb", **options):
        return FailingFile(super().open(path, mode, **options))


@pytest.mark.parametrize("format", ["jsonl", "warc", "parquet"])
def test_reads_that_fail_in_passing_are_tried_again(tmp_path, memory, monkeypatch, format):
    import pyarrow as pa
    import pyarrow.parquet as pq

    fsspec.register_implementation("failing", FailingFileSystem, clobber=True)
    monkeypatch.setattr(files, "FIRST_DELAY_S", 0.0)
    if format == "parquet":
        pq.write_table(pa.table({"text": [f"text {i}" for i in range(5000)]}), tmp_path / "x", row_group_size=1000)
    else:
        (tmp_path / "x").write_bytes(lines(20_000) if format == "jsonl" else b"".join(member(page(str(i))) for i in range(900)))
    memory.pipe_file("/x", (tmp_path / "x").read_bytes())
    FailingFile.reads = 0
    assert read_input(format, "failing://x", 100_000).items == read_input(format, tmp_path / "x", 100_000).items
    assert FailingFile.reads > 5


class DeadFileSystem(FailingFileSystem):
    protocol = "dead"

    def open(self, path, mode="rb", **options):
        raw = super().open(path, mode, **options)
        raw.read = lambda size=-1: (_ for _ in ()).throw(ConnectionResetError("dropped"))
        return raw


@pytest.mark.parametrize("format", ["jsonl", "warc", "parquet", "html"])
def test_an_outage_stops_the_run_and_is_no_damage(memory, monkeypatch, format):
    fsspec.register_implementation("dead", DeadFileSystem, clobber=True)
    monkeypatch.setattr(files, "FIRST_DELAY_S", 0.0)
    memory.pipe_file("/x", b"PAR1" * 100)
    with pytest.raises(StoreError, match="cannot read dead://x"):
        spec = InputSpec(name="x", format=format, path="dead://x")
        for part in (part for unit in plan_input(spec, 1 << 40) for part in unit):
            list(make_source(spec).read(part, ReadReport()))


@pytest.mark.parametrize("format", ["jsonl", "warc", "html", "text"])
def test_a_file_that_changed_or_vanished_stops_the_run(tmp_path, format):
    path = tmp_path / "x"
    path.write_bytes(b"one")
    spec = InputSpec(name="x", format=format, path=str(path))
    ((part,),) = plan_input(spec, 1 << 40)
    path.write_bytes(b"another")
    with pytest.raises(StoreError, match="has changed since the plan was made"):
        list(make_source(spec).read(part, ReadReport()))
    path.unlink()
    with pytest.raises(StoreError, match="has vanished since the plan was made"):
        list(make_source(spec).read(part, ReadReport()))
