"""Files of a few arrays of fixed-width records, read whole, in parts, or row by row: what dedup keeps beside a unit and beside a shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from store import files
from store.errors import StoreError

_MAGIC = b"HRARRAYS"
_HEAD = np.dtype([("magic", "S8"), ("arrays", "<u8")])
_ENTRY = np.dtype([("count", "<u8"), ("width", "<u8")])
_AT_ONCE = 64_000_000  # bytes of a remote file that are looked through at a time


def write_arrays(path: str, *arrays: np.ndarray | tuple[int, np.dtype, Iterable[np.ndarray]]) -> None:
    """Writes one-dimensional arrays to a local path. One that would not fit into memory is given as (records, dtype, its parts)."""
    parts = [array if isinstance(array, tuple) else (len(array), array.dtype, [array]) for array in arrays]
    head, entries = np.zeros(1, _HEAD), np.zeros(len(parts), _ENTRY)
    head["magic"], head["arrays"] = _MAGIC, len(parts)
    entries["count"], entries["width"] = [count for count, _, _ in parts], [dtype.itemsize for _, dtype, _ in parts]
    with open(path, "wb") as stream:
        stream.write(head.tobytes() + entries.tobytes())
        for count, _, pieces in parts:
            written = 0
            for piece in pieces:
                # Through a view of bytes: a copy of them all would double the memory.
                stream.write(np.ascontiguousarray(piece).view(np.uint8).data)
                written += len(piece)
            if written != count:
                raise ValueError(f"{written} records instead of {count}")


class Column:
    """One array of a file. What is read is a copy; nothing stays open."""

    def __init__(self, url: str, dtype: np.dtype, start: int, count: int):
        self.url, self.dtype, self._start, self._count = url, dtype, start, count

    def __len__(self) -> int:
        return self._count

    def read(self, first: int = 0, after: int | None = None) -> np.ndarray:
        """Records [first, after). Raises StoreError where the file ends before."""
        after = self._count if after is None else after
        out = np.empty(after - first, self.dtype)
        with files.open_read(self.url) as stream:
            stream.seek(self._start + first * self.dtype.itemsize)
            view = memoryview(out.view(np.uint8)) if len(out) else memoryview(b"")
            read = 0
            while read < len(view):
                got = stream.readinto(view[read:])
                if not got:
                    raise StoreError(f"{self.url} is shorter than it says")
                read += got
        return out

    def parts(self, records: int) -> Iterator[np.ndarray]:
        """All records, so many at a time."""
        for first in range(0, self._count, records):
            yield self.read(first, min(self._count, first + records))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Single records. Of a local file only those are read, of a remote one the parts that have some. rows: ascending."""
        if files.is_local(self.url):
            return np.array(self._mapped()[rows]) if len(rows) else np.empty(0, self.dtype)
        out, step = np.empty(len(rows), self.dtype), max(1, _AT_ONCE // self.dtype.itemsize)
        for first in range(0, self._count, step):
            begin, end = np.searchsorted(rows, (first, first + step))
            if end > begin:
                out[begin:end] = self.read(first, min(self._count, first + step))[rows[begin:end] - first]
        return out

    def find(self, values: np.ndarray, side: str = "left") -> np.ndarray:
        """Where values would stand in this array, which is one of sorted numbers. Of a local file only what a binary search looks at is
        read. values: ascending."""
        if files.is_local(self.url):
            return np.searchsorted(self._mapped(), values, side) if self._count else np.zeros(len(values), np.int64)
        out, step = np.zeros(len(values), np.int64), max(1, _AT_ONCE // self.dtype.itemsize)
        for first in range(0, self._count, step):
            out += np.searchsorted(self.read(first, min(self._count, first + step)), values, side)
        return out

    def _mapped(self) -> np.ndarray:
        return np.memmap(files.local_path(self.url), self.dtype, "r", self._start, (self._count,))


def open_arrays(url: str, *dtypes: np.dtype | None) -> list[Column]:
    """The arrays of a file; records of a type that is not given are plain bytes. Raises StoreError for a file that is damaged or holds
    other arrays."""
    with files.open_read(url) as stream:
        head = stream.read(_HEAD.itemsize)
        if len(head) != _HEAD.itemsize or not head.startswith(_MAGIC):
            raise StoreError(f"{url} is damaged, or no file of arrays")
        count = int(np.frombuffer(head, _HEAD)["arrays"][0])
        table = stream.read(count * _ENTRY.itemsize)
        if count != len(dtypes) or len(table) != count * _ENTRY.itemsize:
            raise StoreError(f"{url} is damaged, or holds {count} arrays instead of {len(dtypes)}")
    entries = np.frombuffer(table, _ENTRY)
    columns, start = [], len(head) + len(table)
    for dtype, entry in zip(dtypes, entries, strict=True):
        dtype = np.dtype((np.void, int(entry["width"]))) if dtype is None else dtype
        if dtype.itemsize != entry["width"]:
            raise StoreError(f"{url} holds records of {entry['width']} bytes instead of {dtype.itemsize}")
        columns.append(Column(url, dtype, start, int(entry["count"])))
        start += int(entry["count"]) * dtype.itemsize
    return columns
