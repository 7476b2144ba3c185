"""Arrow string columns as the plain arrays that kernels read: no copy, no Python string."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class TextBuffers:
    """One contiguous string array. data: (bytes,) uint8, valid UTF-8 is not checked here; offsets: (rows + 1,) int64 into data;
    null: (rows,) bool."""

    data: np.ndarray
    offsets: np.ndarray
    null: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1


def text_buffers(array: pa.Array) -> TextBuffers:
    """The buffers of a `string` or `large_string` array, sliced or not; a null row is an empty span. Raises TypeError for other types."""
    if pa.types.is_string(array.type):
        width = np.int32
    elif pa.types.is_large_string(array.type):
        width = np.int64
    else:
        raise TypeError(f"a column of text is wanted (string or large_string), this one is {array.type}")
    rows = len(array)
    _, offsets_buffer, data_buffer = array.buffers()
    if rows == 0 or offsets_buffer is None:
        return TextBuffers(np.zeros(0, np.uint8), np.zeros(rows + 1, np.int64), np.ones(rows, bool))
    offsets = np.frombuffer(offsets_buffer, width)[array.offset : array.offset + rows + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None and data_buffer.size else np.zeros(0, np.uint8)
    null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else np.zeros(rows, bool)
    return TextBuffers(data, offsets, null)


def chunks(column: pa.Array | pa.ChunkedArray) -> Iterator[TextBuffers]:
    """The contiguous parts of a column, in order."""
    for array in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        yield text_buffers(array)


def from_buffers(data: np.ndarray, offsets: np.ndarray, null: np.ndarray) -> pa.Array:
    """A `large_string` array of what a kernel wrote. data: uint8, used up to offsets[-1]; offsets: (rows + 1,) int64 from 0."""
    used = pa.py_buffer(data[: int(offsets[-1])])
    valid = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    return pa.LargeStringArray.from_buffers(len(null), pa.py_buffer(offsets), used, valid, int(null.sum()))
