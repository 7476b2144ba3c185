"""Fixed-width keys of a unit's survivors, sorted and cut into 256 buckets, so that a global step reads only its range of keys.

Two arrays per file: by content hash and by document id. Text never leaves its unit.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from store import files
from store.errors import StoreError

Kind = Literal["content", "id"]
KINDS: tuple[Kind, ...] = ("content", "id")
BUCKETS = 256
# 128-bit values as two big-endian halves: they sort as their hex digits do.
KEY = np.dtype([("high", ">u8"), ("low", ">u8"), ("other_high", ">u8"), ("other_low", ">u8"), ("row", "<i8")])
_MAGIC = b"HRKEYS01"
_HEADER = np.dtype([("magic", "S8"), ("count", "<u8"), ("offsets", "<u8", (len(KINDS), BUCKETS + 1))])


class KeyCollector:
    """Collects (content hash, id, row) of survivors; 40 bytes each."""

    def __init__(self):
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, survivors: pa.Table) -> None:
        """Adds rows with the columns `content_hash`, `id` (32 hex digits) and `row`."""
        content, ids = (_halves(survivors.column(name).to_pylist()) for name in ("content_hash", "id"))
        self._parts.append((content, ids, survivors.column("row").to_numpy()))

    def write(self, path: str) -> None:
        """Writes the sorted key file to a local path."""
        content, ids, rows = (np.concatenate(parts) for parts in zip(*self._parts, strict=True)) if self._parts else _nothing()
        header = np.zeros(1, _HEADER)
        header["magic"], header["count"] = _MAGIC, len(rows)
        arrays = [_sorted_keys(content, ids, rows), _sorted_keys(ids, content, rows)]
        bounds = (np.arange(1, BUCKETS, dtype=np.uint64) << np.uint64(56)).astype(">u8")
        for number, keys in enumerate(arrays):
            header["offsets"][0, number] = [0, *np.searchsorted(keys["high"], bounds), len(keys)]
        with open(path, "wb") as stream:
            stream.write(header.tobytes())
            for keys in arrays:
                stream.write(keys.tobytes())


def _nothing() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((0, 2), ">u8"), np.zeros((0, 2), ">u8"), np.zeros(0, np.int64)


def _halves(values: list[str]) -> np.ndarray:
    """Hex digests -> (n, 2) big-endian halves."""
    return np.frombuffer(bytes.fromhex("".join(values)), ">u8").reshape(-1, 2)


def _sorted_keys(key: np.ndarray, other: np.ndarray, rows: np.ndarray) -> np.ndarray:
    keys = np.empty(len(rows), KEY)
    keys["high"], keys["low"], keys["other_high"], keys["other_low"], keys["row"] = key[:, 0], key[:, 1], other[:, 0], other[:, 1], rows
    return keys[np.lexsort((rows, other[:, 1], other[:, 0], key[:, 1], key[:, 0]))]


def read_keys(url: str, kind: Kind, first_bucket: int, after_bucket: int) -> np.ndarray:
    """The keys of buckets [first_bucket, after_bucket) of one unit, sorted: an array of dtype KEY."""
    with files.open_read(url) as stream:
        header = np.frombuffer(stream.read(_HEADER.itemsize), _HEADER)
        if len(header) != 1 or header["magic"][0] != _MAGIC:
            raise StoreError(f"{url} is not a key file")
        number = KINDS.index(kind)
        offsets = header["offsets"][0, number]
        start, stop = int(offsets[first_bucket]), int(offsets[after_bucket])
        stream.seek(_HEADER.itemsize + (number * int(header["count"][0]) + start) * KEY.itemsize)
        data = stream.read((stop - start) * KEY.itemsize)
    if len(data) != (stop - start) * KEY.itemsize:
        raise StoreError(f"{url} is cut short")
    return np.frombuffer(data, KEY)


def hexadecimal(high: int, low: int) -> str:
    return f"{high:016x}{low:016x}"
