"""Parquet: one record a row, cut into slices by row groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataproc.parquet import open_parquet
from dataproc.sources.base import Damaged, ReadReport, Record, Slice, Source
from dataproc.sources.streams import SliceStream
from store.errors import ConfigError, StoreError
from store.files import FileInfo

BATCH_ROWS = 1024
_UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError)


class ParquetSource(Source):
    """Reads Parquet files. A slice's `start` and `stop` count row groups; a file whose footer is damaged has one slice without any,
    which gives one damaged entry. Columns that the input does not name go into `meta`, binary ones left out."""

    format = "parquet"

    def plan(self, file: FileInfo, relative_path: str, unit_bytes: int) -> list[Slice]:
        try:
            with open_parquet(file.url) as reader:
                footer = reader.metadata
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
        self._describe(part, report)
        try:
            with open_parquet(part.url) as reader:
                row = part.first_row
                for group in range(part.start, part.stop):
                    yield from self._read_group(reader, group, row, part.relative_path)
                    row += reader.metadata.row_group(group).num_rows
        except FileNotFoundError as error:
            raise StoreError(f"{part.url} has vanished since the plan was made: run the command again") from error
        except _UNREADABLE as error:
            locator = f"{part.relative_path}#0"
            yield Damaged(locator, locator, "unreadable", f"{part.relative_path}: not a readable Parquet file ({_short(error)})")

    def _describe(self, part: Slice, report: ReadReport) -> None:
        """The slice with a file's first row group hashes the whole file; the others say nothing of it."""
        if part.start == 0:
            SliceStream(Slice(part.url, part.relative_path, part.file_bytes, 0, part.file_bytes)).finish(report)
        report.input_bytes = part.bytes

    def _read_group(self, reader: pq.ParquetFile, group: int, row: int, path: str) -> Iterator[Record | Damaged]:
        """The records of one row group; rows that cannot be read are damaged one by one, so that none is lost from the count."""
        after = row + reader.metadata.row_group(group).num_rows
        try:
            for batch in reader.iter_batches(BATCH_ROWS, row_groups=[group], use_threads=False):
                for value in _without_binary(batch, self.spec.text_field).to_pylist():
                    yield self._record(value, f"{path}#{row}")
                    row += 1
        except _UNREADABLE as error:
            for lost in range(row, after):
                locator = f"{path}#{lost}"
                yield Damaged(locator, locator, "unreadable", f"{locator}: row group {group} cannot be read ({_short(error)})")

    def _record(self, value: dict[str, Any], locator: str) -> Record | Damaged:
        spec = self.spec
        text = value.pop(spec.text_field, None)
        key = locator
        if spec.id_field:
            name = value.pop(spec.id_field, None)
            if not isinstance(name, (str, int)) or name == "":
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


def _without_binary(batch: pa.RecordBatch, text_field: str) -> pa.RecordBatch:
    keep = [f.name for f in batch.schema if f.name == text_field or not (pa.types.is_binary(f.type) or pa.types.is_large_binary(f.type))]
    return batch.select(keep)


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
