"""How well a text compresses, by a plain definition of our own: the answer of a library changes with its version.

Greedy Lempel-Ziv over bytes: at each place the last earlier place where the same four bytes (by a table of 8,192 entries) began a literal
or a match is looked up; a match of four bytes or more counts as three bytes and is taken as far as it goes, anything else as one byte.
"""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.primitives import load

MATCH_BYTES = 3
LEAST = 4
BITS = 13
_MULTIPLIER = np.uint64(2654435761)  # Knuth's, for 32-bit keys
_MASK32 = np.uint64(0xFFFFFFFF)


@kernel
def compressed_size(data, start, end, table):
    """Bytes after compression of data[start:end]. table: (2**BITS,) int64; what it holds of other documents does not matter."""
    table[:] = -1
    cost = np.int64(0)
    i = start
    while i + LEAST <= end:
        four = load(data, i, i + 4)
        slot = np.int64(((four * _MULTIPLIER) & _MASK32) >> np.uint64(32 - BITS))
        earlier = table[slot]
        table[slot] = i
        if earlier >= 0 and load(data, earlier, earlier + 4) == four:
            k = i + LEAST
            earlier += LEAST
            while k + 8 <= end and load(data, k, k + 8) == load(data, earlier, earlier + 8):
                k += 8
                earlier += 8
            while k < end and data[k] == data[earlier]:
                k += 1
                earlier += 1
            i = k
            cost += MATCH_BYTES
        else:
            i += 1
            cost += 1
    return cost + end - i
