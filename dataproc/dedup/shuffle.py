"""Files of fixed-width records, sorted and cut into ranges: how a global step hands each task of the next one its share.

Every task of a step writes one file; task r of the next step reads range r of all of them. Text is never in these records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import numpy as np

from store import files
from store.errors import StoreError

_MAGIC = b"HRRANGE1"
_HEADER = np.dtype([("magic", "S8"), ("ranges", "<u8"), ("width", "<u8")])


def even_bounds(ranges: int) -> np.ndarray:
    """(ranges - 1,) uint64: where hashes are cut into that many ranges of equal width."""
    return np.array([(number << 64) // ranges for number in range(1, ranges)], np.uint64)


def write_ranges(path: str, records: np.ndarray, field: str, bounds: np.ndarray) -> None:
    """Writes records (n,) of a structured dtype, which are sorted by a uint64 field, to a local path. bounds: (ranges - 1,) uint64,
    ascending: the first values of all ranges but the first."""
    offsets = np.array([0, *np.searchsorted(records[field], bounds, "left"), len(records)], "<u8")
    header = np.zeros(1, _HEADER)
    header["magic"], header["ranges"], header["width"] = _MAGIC, len(bounds) + 1, records.dtype.itemsize
    with open(path, "wb") as stream:
        stream.write(header.tobytes())
        stream.write(offsets.tobytes())
        stream.write(records.tobytes())


def read_range(url: str, dtype: np.dtype, number: int) -> np.ndarray:
    """The records of one range. Raises StoreError for a file that is not of this kind."""
    with files.open_read(url) as stream:
        header = read_header(stream, url, _HEADER, _MAGIC)
        if header["width"][0] != dtype.itemsize:
            raise StoreError(f"{url} holds records of another kind")
        ranges = int(header["ranges"][0])
        offsets = read_array(stream, url, np.dtype("<u8"), ranges + 1)
        stream.seek(_HEADER.itemsize + 8 * (ranges + 1) + int(offsets[number]) * dtype.itemsize)
        wanted = int(offsets[number + 1] - offsets[number])
        return read_array(stream, url, dtype, wanted)


def read_header(stream: BinaryIO, url: str, dtype: np.dtype, magic: bytes) -> np.ndarray:
    """(1,) of dtype, the start of a file. Raises StoreError where it does not begin with `magic`."""
    data = stream.read(dtype.itemsize)
    if len(data) != dtype.itemsize or not data.startswith(magic):
        raise StoreError(f"{url} is damaged, or no file of this kind")
    return np.frombuffer(data, dtype)


def read_array(stream: BinaryIO, url: str, dtype: np.dtype, count: int) -> np.ndarray:
    """The next `count` records of a stream. Raises StoreError where it ends before."""
    data = stream.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise StoreError(f"{url} is shorter than it says")
    return np.frombuffer(data, dtype)


def gather(urls: Iterable[str], dtype: np.dtype, number: int) -> np.ndarray:
    """One range of many files, one after the other."""
    parts = [read_range(url, dtype, number) for url in urls]
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
