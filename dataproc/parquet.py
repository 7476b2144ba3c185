"""The one way Parquet is written: a single thread, fixed codec level, explicit schema, so equal rows give equal bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from store import files
from store.steady import SteadyReader

ZSTD_LEVEL = 3
# A row group is what a reader must hold at once.
GROUP_ROWS = 8192
GROUP_TEXT_BYTES = 32_000_000


@dataclass(frozen=True)
class GroupStamp:
    """A written row group: its rows and its compressed bytes."""

    rows: int
    bytes: int


class RowGroupWriter:
    """Writes rows to a local Parquet file; where row groups end depends on the rows alone, not on how they were handed over.

    A group ends at GROUP_ROWS rows, or with the row that takes its texts to GROUP_TEXT_BYTES.
    """

    def __init__(self, path: str, schema: pa.Schema, compression: str = "zstd", text_column: str | None = "text"):
        """`compression` is zstd, snappy or none."""
        level = ZSTD_LEVEL if compression == "zstd" else None
        self.path = path
        self.schema = schema
        self.rows = 0
        self._text = text_column
        self._out = pq.ParquetWriter(path, schema, compression=compression, compression_level=level, store_schema=False)
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0

    def add(self, table: pa.Table) -> None:
        """Appends rows. Raises ValueError when the schema differs."""
        if not table.schema.equals(self.schema):
            raise ValueError(f"rows of another schema: {table.schema} instead of {self.schema}")
        self.rows += table.num_rows
        while table.num_rows:
            count, size, full = self._room(table)
            self._waiting.append(table.slice(0, count))
            self._waiting_rows += count
            self._waiting_bytes += size
            table = table.slice(count)
            if full:
                self._end_group()

    def _room(self, table: pa.Table) -> tuple[int, int, bool]:
        """(rows that still belong to the open group, their text bytes, whether they fill it)."""
        count = min(table.num_rows, GROUP_ROWS - self._waiting_rows)
        if self._text is None:
            return count, 0, self._waiting_rows + count == GROUP_ROWS
        lengths = pc.fill_null(pc.binary_length(table.column(self._text).slice(0, count)), 0).to_numpy()
        total = self._waiting_bytes + np.cumsum(lengths, dtype=np.int64)
        over = int(np.searchsorted(total, GROUP_TEXT_BYTES))
        if over < count:
            return over + 1, int(total[over]) - self._waiting_bytes, True
        return count, int(total[-1]) - self._waiting_bytes, self._waiting_rows + count == GROUP_ROWS

    def _end_group(self) -> None:
        group = pa.concat_tables(self._waiting).combine_chunks()
        self._out.write_table(group, row_group_size=max(1, group.num_rows))
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def close(self) -> list[GroupStamp]:
        """Writes what waits and the footer; returns the groups of the file."""
        if self._waiting:
            self._end_group()
        self._out.close()
        footer = pq.read_metadata(self.path)
        groups = (footer.row_group(i) for i in range(footer.num_row_groups))
        return [GroupStamp(g.num_rows, sum(g.column(c).total_compressed_size for c in range(g.num_columns))) for g in groups]

    def abandon(self) -> None:
        """Closes the file after a failure; what is in it is of no use."""
        with contextlib.suppress(OSError):  # the disk that was full is full for the footer, too; the first error is told
            self._out.close()


def write_table(path: str, table: pa.Table, compression: str = "zstd") -> None:
    """Writes one table to a local file."""
    out = RowGroupWriter(path, table.schema, compression, None)
    out.add(table)
    out.close()


@contextmanager
def open_parquet(url: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file for reading. Local files are read by Arrow itself: its threads must not hold Python objects when Python ends.
    For the same reason nothing is read ahead from a remote file. Page check sums are verified where a file has them."""
    if files.is_local(url):
        with pq.ParquetFile(files.local_path(url), page_checksum_verification=True) as reader:
            yield reader
        return
    with SteadyReader(url) as stream, pq.ParquetFile(stream, pre_buffer=False, page_checksum_verification=True) as reader:
        yield reader


def read_table(url: str, columns: list[str] | None = None) -> pa.Table:
    """A whole Parquet file."""
    with open_parquet(url) as reader:
        return reader.read(columns=columns, use_threads=False)


def iterate_batches(url: str, columns: list[str] | None = None, batch_rows: int = 8192) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file in order, in batches."""
    with open_parquet(url) as reader:
        yield from reader.iter_batches(batch_rows, columns=columns, use_threads=False)


def iterate_groups(url: str, schema: pa.Schema, start: int = 0, stop: int | None = None) -> Iterator[pa.Table]:
    """The row groups [start, stop) of a Parquet file, one table each, in the column types of `schema` (Parquet forgets 64-bit
    offsets)."""
    with open_parquet(url) as reader:
        for number in range(start, reader.num_row_groups if stop is None else stop):
            yield reader.read_row_group(number, use_threads=False).cast(schema)
