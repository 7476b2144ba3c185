"""The contract of a source: how its files are cut into work units and how a slice of a file is read into records.

A record is damaged or whole. Reading never stops at a damaged one: it is yielded as `Damaged`, and the rest of the slice is read.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from store import files
from store.files import FileInfo
from store.strict_yaml import StrictModel


class InputSpec(StrictModel):
    """One entry of `inputs:` in a pipeline file."""

    name: str
    format: Literal["warc", "wet", "jsonl", "parquet", "html", "text"]
    path: str
    domain: str = "web"
    language: str | None = None  # declared language of all records that do not state their own
    text_field: str = "text"
    id_field: str | None = None
    url_field: str | None = None
    language_field: str | None = None
    timestamp_field: str | None = None
    encoding: str | None = None  # character set of text and HTML files where it is known; detected otherwise


@dataclass(frozen=True)
class Slice:
    """A part of one file. `start` and `stop` count bytes of the stored file, or row groups for Parquet.

    A record belongs to the slice in which it starts. `first_row` is the row number of the slice's first record where it is known
    when the plan is made (0 at the start of a file); None asks for `Source.count_rows` on the slices before it.
    """

    url: str
    relative_path: str  # path below the fixed part of the input's pattern: the same on every filesystem
    file_bytes: int
    start: int
    stop: int
    first_row: int | None = 0
    group_bytes: int | None = None  # stored bytes of the row groups, where start and stop count those
    file_version: str = ""  # ETag or modification time when the plan was made: another one makes another plan

    @property
    def whole_file(self) -> bool:
        return self.start == 0 and self.stop == self.file_bytes

    @property
    def bytes(self) -> int:
        """Stored bytes that the slice covers."""
        return self.stop - self.start if self.group_bytes is None else self.group_bytes


@dataclass(slots=True)
class Record:
    """One whole record. Sources with text give `text`; sources of HTML give `payload` (raw bytes) for the extract stage."""

    key: str  # the source's own id, or relative_path#row
    locator: str
    text: str | None = None
    payload: bytes | None = None
    url: str | None = None
    timestamp: str | None = None  # as found; parsed when the batch is made
    language: str | None = None
    content_type: str | None = None
    charset: str | None = None
    robots: str | None = None  # what X-Robots-Tag headers say, a line each
    http_status: int | None = None
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Damaged:
    """One record, or the unreadable rest of a file, that could not be read. `reason` is a short fixed word (bad_json,
    truncated, ...) that reports group by; `error` says more: file, offset, what was found."""

    key: str
    locator: str
    reason: str
    error: str


@dataclass
class ReadReport:
    """What reading a slice found beside its records. Filled in while `Source.read` runs; complete when it is exhausted."""

    input_digest: str = ""  # xxh3-128 of the slice's stored bytes (of the whole file where the slice is the file)
    input_bytes: int = 0
    not_documents: dict[str, int] = field(default_factory=dict)  # WARC request, warcinfo, ...: read, but no documents


class Source(ABC):
    """Reads one format. Instances are cheap, hold no open files and are made in the worker."""

    format: ClassVar[str]
    gives_payload: ClassVar[bool] = False  # True: records carry HTML, the pipeline needs an extract stage

    def __init__(self, spec: InputSpec):
        self.spec = spec

    @abstractmethod
    def plan(self, file: FileInfo, relative_path: str, unit_bytes: int) -> list[Slice]:
        """Cuts one file into slices of about `unit_bytes` stored bytes, where the format allows it. Depends on nothing else."""

    @abstractmethod
    def read(self, part: Slice, report: ReadReport) -> Iterator[Record | Damaged]:
        """Yields the records that start inside the slice, in file order, as (whole or damaged) records."""

    def count_rows(self, part: Slice) -> int:
        """Number of rows (records, whole or damaged, and blank lines where the format counts them) that start in the slice.
        Called only for slices that are followed by a slice with `first_row=None`."""
        raise AssertionError(f"{self.format} slices always know their first row")


def fixed_base(pattern: str) -> str:
    """The folder part of a pattern before its first wildcard: relative paths count from here."""
    head = pattern
    for wildcard in "*?[":
        head = head.split(wildcard, 1)[0]
    return head if head.endswith("/") else head.rsplit("/", 1)[0] + "/" if "/" in head else ""


def relative_path(file_url: str, pattern: str) -> str:
    """Path of a file below the pattern's fixed base. A folder named as the path is the base itself."""
    pattern = files.local_path(pattern) if files.is_local(pattern) else pattern
    base = fixed_base(pattern)
    if file_url.startswith(pattern.rstrip("/") + "/"):
        base = pattern.rstrip("/") + "/"
    return file_url.removeprefix(base) if file_url.startswith(base) else os.path.basename(file_url)


def group_slices(slices: Sequence[Slice], unit_bytes: int, most_slices: int = 1000) -> list[list[Slice]]:
    """Groups consecutive small slices into units of about `unit_bytes`; a slice of that size or more stands alone."""
    units: list[list[Slice]] = []
    size = 0
    for part in slices:
        if not units or size + part.bytes > unit_bytes or len(units[-1]) >= most_slices:
            units.append([])
            size = 0
        units[-1].append(part)
        size += part.bytes
    return units
