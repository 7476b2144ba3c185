"""Parquet: one record a row, cut into slices by row groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataproc.parquet import open_parquet
from dataproc.sources.base import Damaged, ReadReport, Record, Slice, Source
from dataproc.sources.streams import SliceStream, check_unchanged
from store.errors import ConfigError, StoreError
from store.files import FileInfo

# Rows that are held as Python objects at once: as many as fill BATCH_BYTES of decompressed columns, on average.
MOST_BATCH_ROWS = 1024
BATCH_BYTES = 16 << 20
_UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError)


class ParquetSource(Source):
    """Reads Parquet files. A slice's `start` and `stop` count row groups; a file whose footer is damaged has one slice without any,
    which gives one damaged entry.

    A text column may be binary if it holds UTF-8. Columns that the input does not name go into `meta`, without what is binary; points
    in time are kept to the microsecond.
    """

    format = "parquet"

    def plan(self, file: FileInfo, relative_path: str, unit_bytes: int) -> list[Slice]:
        try:
            with open_parquet(file.url) as reader:
                footer = reader.metadata
        except (FileNotFoundError, PermissionError) as error:
            raise StoreError(f"cannot read {file.url}: {error.strerror or error}") from error
        except _UNREADABLE:
            return [Slice(file.url, relative_path, file.size, 0, 0, group_bytes=file.size)]
        names = footer.schema.to_arrow_schema().names
        for field in filter(None, (self.spec.text_field, self.spec.id_field)):
            if field not in names:
                raise ConfigError(f'input {self.spec.name}: {file.url} has no column "{field}"; its columns: {", ".join(names)}')
        slices, first_row, start, size = [], 0, 0, 0
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            size += sum(group.column(i).total_compressed_size for i in range(group.num_columns))
            if size >= unit_bytes or number == footer.num_row_groups - 1:
                slices.append(Slice(file.url, relative_path, file.size, start, number + 1, first_row, size))
                first_row += sum(footer.row_group(i).num_rows for i in range(start, number + 1))
                start, size = number + 1, 0
        return slices or [Slice(file.url, relative_path, file.size, 0, 0, group_bytes=file.size)]

    def read(self, part: Slice, report: ReadReport) -> Iterator[Record | Damaged]:
        check_unchanged(part)
        try:
            with open_parquet(part.url) as reader:
                _hash(part, *_byte_range(reader.metadata, part), report)
                row = part.first_row
                for group in range(part.start, part.stop):
                    yield from self._read_group(reader, group, row, part.relative_path)
                    row += reader.metadata.row_group(group).num_rows
        except (FileNotFoundError, PermissionError) as error:
            raise StoreError(f"cannot read {part.url}: {error.strerror or error}") from error
        except _UNREADABLE as error:
            _hash(part, 0, part.file_bytes, report)
            locator = f"{part.relative_path}#0"
            yield Damaged(locator, locator, "unreadable", f"{part.relative_path}: not a readable Parquet file ({_short(error)})")

    def _read_group(self, reader: pq.ParquetFile, group: int, row: int, path: str) -> Iterator[Record | Damaged]:
        """The records of one row group; rows that cannot be read are damaged one by one, so that none is lost from the count."""
        footer = reader.metadata.row_group(group)
        after = row + footer.num_rows
        row_bytes = footer.total_byte_size // max(1, footer.num_rows)
        batch_rows = max(1, min(MOST_BATCH_ROWS, BATCH_BYTES // max(1, row_bytes)))
        why = "it ends early"  # Arrow takes some damaged pages for the end of the group, without a word
        try:
            for batch in reader.iter_batches(batch_rows, row_groups=[group], use_threads=False):
                for item in self._items(_plain(batch, self.spec.text_field), path, row):
                    yield item
                    row += 1
        except _UNREADABLE as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise
            why = _short(error)
        for lost in range(row, after):
            locator = f"{path}#{lost}"
            yield Damaged(locator, locator, "unreadable", f"{locator}: row group {group} of {footer.num_rows} rows cannot be read ({why})")

    def _items(self, batch: pa.RecordBatch, path: str, row: int) -> Iterator[Record | Damaged]:
        """The rows of a batch; one with a value that is no text or no date costs itself alone."""
        try:
            values = batch.to_pylist()
        except (ValueError, OverflowError):
            for i in range(batch.num_rows):
                yield self._single(batch.slice(i, 1), f"{path}#{row + i}")
            return
        for i, value in enumerate(values):
            yield self._record(value, f"{path}#{row + i}")

    def _single(self, batch: pa.RecordBatch, locator: str) -> Record | Damaged:
        try:
            return self._record(batch.to_pylist()[0], locator)
        except UnicodeDecodeError as error:
            return Damaged(locator, locator, "bad_encoding", f"{locator}: a text that is not UTF-8 at byte {error.start}")
        except (ValueError, OverflowError) as error:
            return Damaged(locator, locator, "bad_value", f"{locator}: {_short(error)}")

    def _record(self, value: dict[str, Any], locator: str) -> Record | Damaged:
        spec = self.spec
        text = value.pop(spec.text_field, None)
        key = locator
        if spec.id_field:
            name = value.pop(spec.id_field, None)
            if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
                return Damaged(locator, locator, "missing_id", f'{locator}: column "{spec.id_field}" is no text or whole number')
            key = str(name)
        if isinstance(text, bytes):
            try:
                text = text.decode("utf-8")
            except UnicodeDecodeError as error:
                return Damaged(key, locator, "bad_encoding", f'{locator}: column "{spec.text_field}" is not UTF-8 at byte {error.start}')
        if not isinstance(text, str):
            found = "null" if text is None else f"a {type(text).__name__}"
            return Damaged(key, locator, "missing_text", f'{locator}: column "{spec.text_field}" is {found}')
        named = {"url": spec.url_field, "language": spec.language_field, "timestamp": spec.timestamp_field}
        fields = {name: value.pop(column, None) for name, column in named.items() if column}
        return Record(key=key, locator=locator, text=text, meta=value, **{k: None if v is None else str(v) for k, v in fields.items()})


def _hash(part: Slice, start: int, stop: int, report: ReadReport) -> None:
    """Fills in the report with the hash of the bytes [start, stop) of the slice's file."""
    SliceStream(Slice(part.url, part.relative_path, part.file_bytes, start, stop)).finish(report)
    report.input_bytes = part.bytes


def _byte_range(footer: pq.FileMetaData, part: Slice) -> tuple[int, int]:
    """The bytes that the slice answers for: those of all slices together are the whole file, the header and the footer included."""

    def begin(number: int) -> int:
        columns = (footer.row_group(number).column(i) for i in range(footer.num_columns))
        return min((c.dictionary_page_offset or c.data_page_offset for c in columns), default=0)

    # Row groups may lie in any order; the largest beginning so far keeps the ranges apart all the same.
    begins = [0, *accumulate((min(begin(i), part.file_bytes) for i in range(1, footer.num_row_groups)), max)]
    start = begins[part.start] if part.start else 0
    return start, begins[part.stop] if part.stop < len(begins) and part.stop else part.file_bytes


def _plain(batch: pa.RecordBatch, text_field: str) -> pa.RecordBatch:
    """The columns that records are made of: none with binary values but the text, and no nanoseconds, which Python's times lack."""
    names, columns = [], []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if field.name == text_field or not _has_binary(field.type):
            names.append(field.name)
            columns.append(_in_microseconds(column))
    return pa.RecordBatch.from_arrays(columns, names=names) if columns else batch


def _has_binary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _has_binary(kind.value_type)
    if kind.num_fields:
        return any(_has_binary(kind.field(i).type) for i in range(kind.num_fields))
    return any(
        check(kind) for check in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    )


def _in_microseconds(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return column.cast(pa.duration("us"), safe=False)
    if pa.types.is_time64(kind) and kind.unit == "ns":
        return column.cast(pa.time64("us"), safe=False)
    return column


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
