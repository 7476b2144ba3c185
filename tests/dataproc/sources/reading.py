"""What the tests of sources share: reading an input as a run does, and making WARC records."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import xxhash

from dataproc.sources.base import Damaged, InputSpec, ReadReport, Record, Slice
from dataproc.sources.registry import make_source, plan_input
from store import files

Item = Record | Damaged


@dataclass
class Reading:
    """All that reading an input gave, slice by slice in order."""

    items: list[Item] = field(default_factory=list)
    not_documents: Counter[str] = field(default_factory=Counter)
    slices: list[Slice] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)

    @property
    def records(self) -> list[Record]:
        return [item for item in self.items if isinstance(item, Record)]

    @property
    def damaged(self) -> list[Damaged]:
        return [item for item in self.items if isinstance(item, Damaged)]

    @property
    def reasons(self) -> list[str]:
        return [item.reason for item in self.damaged]


def read_input(format: str, path: object, unit_bytes: int = 1 << 40, **fields: str) -> Reading:
    """Plans and reads an input; first rows that the plan does not know are counted, as a run does."""
    spec = InputSpec(name="x", format=format, path=str(path), **fields)
    source, reading, next_row = make_source(spec), Reading(), 0
    for part in (part for unit in plan_input(spec, unit_bytes) for part in unit):
        if part.first_row is None:
            next_row += source.count_rows(reading.slices[-1])
            part = replace(part, first_row=next_row)
        else:
            next_row = part.first_row
        report = ReadReport()
        reading.items += source.read(part, report)
        reading.slices.append(part)
        reading.digests.append(report.input_digest)
        reading.not_documents.update(report.not_documents)
        if format != "parquet":
            stored = files.read_bytes(part.url)[part.start : part.stop]
            assert report.input_digest == xxhash.xxh3_128_hexdigest(stored)
            assert report.input_bytes == len(stored)
    return reading


def read_lazily(format: str, path: object) -> Iterator[Item]:
    """The items of an input one at a time: for tests that measure memory."""
    spec = InputSpec(name="x", format=format, path=str(path))
    for unit in plan_input(spec, 1 << 40):
        for part in unit:
            yield from make_source(spec).read(part, ReadReport())


def warc_record(name: str, block: bytes, kind: str = "response", content_type: str | None = None, headers: tuple[str, ...] = ()) -> bytes:
    """A WARC/1.0 record with its two line ends; a response's block is an HTTP message."""
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:test:{name}>",
        f"WARC-Target-URI: https://example.org/{name}",
        "WARC-Date: 2024-05-18T01:58:10Z",
        f"Content-Type: {content_type or 'application/http; msgtype=response'}",
        *headers,
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def http_message(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers]).encode() + b"\r\n\r\n" + body


def page(name: str, body: bytes = b"<p>text</p>") -> bytes:
    """A response record with an HTML page."""
    return warc_record(name, http_message(body, "Content-Type: text/html; charset=UTF-8"))


def member(data: bytes) -> bytes:
    """A gzip member; the same bytes every time."""
    return gzip.compress(data, 6, mtime=0)
