"""WARC: every record once, whatever the cut; damage costs the record that it hits and no other."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import random
import tracemalloc

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.sources import warc, warc_frames
from dataproc.sources.base import Damaged
from tests.dataproc.sources.reading import http_message, member, page, read_input, read_lazily, warc_record


def bodies(seed: int, count: int) -> list[bytes]:
    """Bodies of very different lengths, some that do not compress: their members are nearly stored bytes."""
    generator = random.Random(seed)
    return [
        generator.randbytes(generator.randint(0, 900)) if i % 3 else b"<p>mill wheel</p>" * generator.randint(1, 90) for i in range(count)
    ]


def test_a_record_carries_what_the_crawler_said(tmp_path):
    request = warc_record("r", b"GET / HTTP/1.1\r\n\r\n", "request", "application/http; msgtype=request")
    response = warc_record("a", http_message(b"<p>\xe9</p>", 'Content-Type: Text/HTML; Charset="ISO-8859-1"', status="404 Not Found"))
    resource = warc_record("b", b"plain words", "resource", "text/plain; charset=utf-8")
    (tmp_path / "x.warc.gz").write_bytes(member(request) + member(response) + member(resource))
    reading = read_input("warc", tmp_path / "x.warc.gz")
    first, second = reading.records
    assert (first.key, first.url, first.timestamp) == ("urn:test:a", "https://example.org/a", "2024-05-18T01:58:10Z")
    assert (first.http_status, first.content_type, first.charset, first.payload) == (404, "text/html", "iso-8859-1", b"<p>\xe9</p>")
    assert (second.http_status, second.content_type, second.charset, second.payload) == (None, "text/plain", "utf-8", b"plain words")
    places = [len(member(request)), len(member(request)) + len(member(response))]
    assert [r.locator for r in reading.records] == [f"x.warc.gz#{place}" for place in places]
    assert reading.not_documents == {"request": 1}


def test_a_response_without_http_and_a_record_without_an_id(tmp_path):
    dns = warc_record("dns", b"20240518015810\nexample.org. 60 IN A 192.0.2.1\n", content_type="text/dns")
    nameless = page("n").replace(b"WARC-Record-ID: <urn:test:n>\r\n", b"")
    (tmp_path / "x.warc").write_bytes(dns + nameless)
    reading = read_input("warc", tmp_path / "x.warc")
    assert [r.key for r in reading.records] == [f"x.warc#{len(dns)}"]
    assert reading.not_documents == {"response": 1}


@pytest.mark.parametrize(
    "compress, suffix",
    [
        (lambda records: b"".join(records), ""),
        (lambda records: gzip.compress(b"".join(records)), ".gz"),
        (lambda records: b"".join(map(member, records)), ""),  # told by its first bytes
        (lambda records: b"".join(zstandard.compress(r) for r in records), ".zst"),
        (lambda records: zstandard.compress(b"".join(records)), ""),
        (lambda records: bz2.compress(b"".join(records)), ".bz2"),
        (lambda records: b"\0" * 512 + b"".join(member(r) + b"\0" * 100 for r in records), ".gz"),  # padded to blocks of a tape
    ],
)
def test_every_way_to_store_records(tmp_path, compress, suffix):
    wanted = bodies(1, 12)
    (tmp_path / f"x.warc{suffix}").write_bytes(compress([page(str(i), body) for i, body in enumerate(wanted)]))
    reading = read_input("warc", tmp_path / f"x.warc{suffix}")
    assert [(r.key, r.payload) for r in reading.items] == [(f"urn:test:{i}", body) for i, body in enumerate(wanted)]
    assert len({r.locator for r in reading.records}) == 12


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_zstd_file_may_bring_its_dictionary(tmp_path, is_compressed):
    wanted = bodies(5, 60)
    records = [page(str(i), body) for i, body in enumerate(wanted)]
    dictionary = zstandard.train_dictionary(4000, records * 5)
    data = zstandard.compress(dictionary.as_bytes()) if is_compressed else dictionary.as_bytes()
    compressor = zstandard.ZstdCompressor(dict_data=dictionary)
    frames = b"".join(map(compressor.compress, records))
    for name in ("x.warc.zst", "x.warc"):
        (tmp_path / name).write_bytes(b"\x5d\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data + frames)
        assert [r.payload for r in read_input("warc", tmp_path / name).items] == wanted
    (tmp_path / "x.warc.zst").write_bytes((tmp_path / "x.warc").read_bytes()[: len(data) // 2])
    assert read_input("warc", tmp_path / "x.warc.zst").reasons == ["truncated"]
    (tmp_path / "x.warc.zst").write_bytes(frames)  # the dictionary is missing
    assert read_input("warc", tmp_path / "x.warc.zst").reasons == ["bad_zstd"]


def test_members_cut_anywhere_are_joined(tmp_path):
    """Some writers fill gzip members by size: a record then runs over several."""
    wanted = bodies(2, 20)
    data = b"".join(page(str(i), body) for i, body in enumerate(wanted))
    (tmp_path / "x.warc.gz").write_bytes(b"".join(member(data[at : at + 700]) for at in range(0, len(data), 700)))
    for unit_bytes in (1 << 40, 2000):
        reading = read_input("warc", tmp_path / "x.warc.gz", unit_bytes)
        assert [(r.key, r.payload) for r in reading.items] == [(f"urn:test:{i}", body) for i, body in enumerate(wanted)]


@given(
    seed=st.integers(0, 1000),
    unit_bytes=st.integers(1, 4000),
    flips=st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 7)), max_size=3),
)
@settings(max_examples=60)
def test_slices_give_the_same_as_the_whole_file(tmp_path_factory, seed, unit_bytes, flips):
    """Records, keys, locators and damage do not depend on how a file is cut, sound or damaged."""
    data = bytearray(b"".join(member(page(str(i), body)) for i, body in enumerate(bodies(seed, 8))))
    for place, bit in flips:
        data[place % len(data)] ^= 1 << bit
    path = tmp_path_factory.mktemp("cut") / "x.warc.gz"
    path.write_bytes(data)
    whole, cut = read_input("warc", path), read_input("warc", path, max(unit_bytes, len(data) // 40))
    assert cut.items == whole.items
    assert cut.not_documents == whole.not_documents


@given(
    seed=st.integers(0, 1000),
    flips=st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 7)), max_size=3),
    cut=st.none() | st.integers(0, 1 << 30),
)
@settings(max_examples=150)
def test_damage_costs_no_neighbour(tmp_path_factory, seed, flips, cut):
    """Every record whose own bytes are whole is read right; a record that is missing left at least one damaged entry."""
    wanted = bodies(seed, 8)
    members = [member(page(str(i), body)) for i, body in enumerate(wanted)]
    data, hit = bytearray(b"".join(members)), set()
    starts = [sum(map(len, members[:i])) for i in range(9)]
    for place, bit in flips:
        place %= len(data)
        data[place] ^= 1 << bit
        hit.add(max(i for i in range(8) if starts[i] <= place))
    end = len(data) if cut is None else cut % (len(data) + 1)
    hit |= {i for i in range(8) if starts[i] < end < starts[i + 1]}
    path = tmp_path_factory.mktemp("rot") / "x.warc.gz"
    path.write_bytes(data[:end])
    reading = read_input("warc", path)
    found = {r.key: r.payload for r in reading.records}
    whole = {f"urn:test:{i}": wanted[i] for i in range(8) if starts[i + 1] <= end and i not in hit}
    assert len(found) == len(reading.records)
    assert whole.items() <= found.items()
    assert len(found) + len(reading.damaged) <= len(whole) + len(hit)
    lost = {f"urn:test:{i}" for i in hit if starts[i] < end} - found.keys()
    assert bool(lost) <= bool(reading.damaged)
    assert all(d.locator.startswith("x.warc.gz#") for d in reading.damaged)


@given(cut=st.integers(1, 1 << 30))
@settings(max_examples=60)
def test_a_cut_file_gives_whole_records_then_one_entry(tmp_path_factory, cut):
    for name, store in (("x.warc.gz", member), ("x.warc", bytes), ("x.warc.zst", zstandard.compress)):
        parts = [store(page(str(i), body)) for i, body in enumerate(bodies(3, 6))]
        ends = [sum(map(len, parts[: i + 1])) for i in range(6)]
        end = 1 + cut % (ends[-1] - 1)
        path = tmp_path_factory.mktemp("cut") / name
        path.write_bytes(b"".join(parts)[:end])
        reading = read_input("warc", path)
        # The two line ends after a plain record may be missing: its content is whole without them.
        whole = sum(e - (4 if name == "x.warc" else 0) <= end for e in ends)
        assert [r.key for r in reading.items[:whole]] == [f"urn:test:{i}" for i in range(whole)]
        rest = reading.items[whole:]
        if end in ends or not rest:
            assert not rest and (end in ends or name == "x.warc")
        else:
            assert [type(item) for item in rest] == [Damaged]
            assert rest[0].reason in ("truncated", "bad_record", "not_warc")


def test_a_member_whose_check_sum_is_wrong_gives_no_record(tmp_path):
    members = [member(page(str(i))) for i in range(3)]
    broken = members[1][:-8] + bytes(4) + members[1][-4:]
    (tmp_path / "x.warc.gz").write_bytes(members[0] + broken + members[2])
    reading = read_input("warc", tmp_path / "x.warc.gz")
    assert [(i.key if isinstance(i, Damaged) else i.url, getattr(i, "reason", None)) for i in reading.items] == [
        ("https://example.org/0", None),
        (f"x.warc.gz#{len(members[0])}", "bad_gzip"),
        ("https://example.org/2", None),
    ]


def test_garbage_between_records_is_one_entry(tmp_path):
    records = [page(str(i)) for i in range(3)]
    (tmp_path / "x.warc").write_bytes(records[0] + b"\xff\x00 garbage\r\nWARC/ not a header\r\n" * 50 + records[1] + records[2])
    reading = read_input("warc", tmp_path / "x.warc")
    assert [getattr(i, "reason", i.key) for i in reading.items] == ["urn:test:0", "bad_record", "urn:test:1", "urn:test:2"]
    assert reading.damaged[0].locator == f"x.warc#{len(records[0])}"


def test_a_record_that_states_too_many_bytes_ends_with_its_member(tmp_path):
    length = len(http_message(b"<p>text</p>", "Content-Type: text/html; charset=UTF-8"))
    short = page("1").replace(b"Content-Length: %d" % length, b"Content-Length: %d" % (length + 5))
    assert short != page("1")
    (tmp_path / "x.warc.gz").write_bytes(member(page("0")) + member(short) + member(page("2")))
    reading = read_input("warc", tmp_path / "x.warc.gz")
    assert [getattr(i, "reason", i.key) for i in reading.items] == ["urn:test:0", "truncated", "urn:test:2"]


@pytest.mark.parametrize(
    "content", [b"no archive " * 1000, b"%PDF-1.4\n" + bytes(range(256)) * 300, b"filedesc://x 0.0.0.0 20240101 text/plain 9\n1 0 x\n"]
)
@pytest.mark.parametrize("store", [bytes, gzip.compress, zstandard.compress])
def test_what_is_no_warc_is_one_entry(tmp_path, content, store):
    for name in ("x.warc", "x.warc.gz") if store is not bytes else ("x.warc",):
        if name == "x.warc.gz" and store is not gzip.compress:
            continue
        (tmp_path / name).write_bytes(store(content))
        for unit_bytes in (1 << 40, 20):
            assert read_input("warc", tmp_path / name, unit_bytes).reasons == ["not_warc"]


def test_what_is_named_gz_and_is_none_is_one_entry_however_it_is_cut(tmp_path):
    (tmp_path / "x.warc.gz").write_bytes(b"no gzip at all " * 5000)
    for unit_bytes in (1 << 40, 1000):
        assert read_input("warc", tmp_path / "x.warc.gz", unit_bytes).reasons == ["bad_gzip"]


@pytest.mark.parametrize("content", [b"", gzip.compress(b""), b"\r\n\r\n"])
def test_nothing_gives_nothing(tmp_path, content):
    (tmp_path / "x.warc").write_bytes(content)
    assert read_input("warc", tmp_path / "x.warc").items == []


def test_a_record_that_is_too_large_is_skipped_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(warc_frames, "MOST_RECORD_BYTES", 1 << 20)
    huge = page("huge", b"x" * (40 << 20))
    for name, store in (("x.warc.gz", member), ("x.warc", bytes)):
        (tmp_path / name).write_bytes(store(page("0")) + store(huge) + store(page("2")))
        tracemalloc.start()
        items = list(read_lazily("warc", tmp_path / name))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert [getattr(i, "reason", i.key) for i in items] == ["urn:test:0", "too_large", "urn:test:2"]
        assert peak < 8 << 20


def test_a_body_that_grows_too_large_when_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(warc, "MOST_RECORD_BYTES", 1000)
    record = warc_record("a", http_message(gzip.compress(b"x" * 2000), "Content-Encoding: gzip"))
    (tmp_path / "x.warc").write_bytes(record + page("b"))
    reading = read_input("warc", tmp_path / "x.warc")
    assert [getattr(i, "reason", i.key) for i in reading.items] == ["too_large", "urn:test:b"]
    assert reading.damaged[0].key == "urn:test:a"


@pytest.mark.parametrize("name, count", [("pages.warc.gz", 640), ("pages-transfer.warc.gz", 60)])
def test_real_pages_are_read_byte_for_byte(shared_data, name, count):
    """The gold file holds the SHA-1 of every page; in the second file the pages went through gzip, deflate and chunked transfer."""
    gold = (json.loads(line) for line in gzip.decompress((shared_data / "web" / "gold.jsonl.gz").read_bytes()).splitlines())
    wanted = {page["html_sha1"] for page in gold}
    whole = read_input("warc", shared_data / "web" / name)
    assert len(whole.records) == count and not whole.damaged
    assert {hashlib.sha1(r.payload).hexdigest() for r in whole.records} <= wanted
    assert read_input("warc", shared_data / "web" / name, 300_000).items == whole.items


def test_the_counts_of_real_samples_are_those_of_warcio(shared_data):
    """The manifest holds the counts that warcio gives; what is neither a response nor a resource is no document."""
    checked = 0
    for line in (shared_data / "warc_samples" / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["warcio_error"] or ".arc" in entry["file"]:
            continue
        counts = {kind: n for kind, n in entry["records_warcio"].items() if n}
        reading = read_input("wet" if ".wet" in entry["file"] else "warc", shared_data / "warc_samples" / entry["file"])
        documents = sum(counts.pop(kind, 0) for kind in ("response", "resource", "conversion"))
        assert (len(reading.records), reading.damaged, reading.not_documents) == (documents, [], counts), entry["file"]
        checked += 1
    assert checked > 8


def test_lz4_holds_the_same_records_as_gzip(shared_data):
    sample = shared_data / "warc_samples" / "cc-main-2020-34-cut.warc"
    one, other = (read_input("warc", f"{sample}{suffix}") for suffix in (".gz", ".lz4"))
    assert [(r.key, r.payload) for r in one.records] == [(r.key, r.payload) for r in other.records] and one.records
    assert one.not_documents == other.not_documents and not other.damaged


def test_a_cut_lz4_file_gives_its_whole_records(shared_data, tmp_path):
    data = (shared_data / "warc_samples" / "cc-main-2020-34-cut.warc.lz4").read_bytes()
    (tmp_path / "x.warc.lz4").write_bytes(data[: len(data) // 2])
    reading = read_input("warc", tmp_path / "x.warc.lz4")
    whole = read_input("warc", shared_data / "warc_samples" / "cc-main-2020-34-cut.warc.gz")
    count = len(reading.records)
    assert count > 3 and [r.key for r in reading.records] == [r.key for r in whole.records[:count]]
    assert reading.reasons == ["truncated"] and reading.items[-1] is reading.damaged[0]
