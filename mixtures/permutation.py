"""A keyed permutation of [0, n) by arithmetic: any place can be asked at once, nothing is stored.

A Feistel network over the smallest even number of bits that holds n, cycle-walked back into range (Black and Rogaway 2002, "Ciphers
with arbitrary finite domains"). The round function is the 64-bit finaliser of splitmix64 (Steele, Lea, Flood 2014).
"""

from __future__ import annotations

import numpy as np
import xxhash

ROUNDS = 6


def mix(x: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser. x: uint64 array -> uint64 array."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Permutation:
    """A bijection of [0, n) chosen by `key` (any text). n from 1 to 2^62."""

    def __init__(self, n: int, key: str):
        if not 1 <= n <= 1 << 62:
            raise ValueError(f"a permutation needs from 1 to 2^62 places, not {n}")
        self.n = n
        half = max(1, ((n - 1).bit_length() + 1) // 2)
        self._half, self._mask = np.uint64(half), np.uint64((1 << half) - 1)
        self._keys = [np.uint64(xxhash.xxh3_64_intdigest(f"{key}\0{i}".encode())) for i in range(ROUNDS)]

    def __call__(self, places: np.ndarray) -> np.ndarray:
        """places: (k,) integers in [0, n) -> (k,) int64 in [0, n). Raises IndexError for a place outside."""
        x = np.asarray(places, np.int64)
        if x.size and (x.min() < 0 or x.max() >= self.n):
            raise IndexError(f"place outside [0, {self.n})")
        x = self._once(x.astype(np.uint64))
        outside = x >= np.uint64(self.n)
        while outside.any():
            x[outside] = self._once(x[outside])
            outside = x >= np.uint64(self.n)
        return x.astype(np.int64)

    def _once(self, x: np.ndarray) -> np.ndarray:
        left, right = x >> self._half, x & self._mask
        with np.errstate(over="ignore"):
            for key in self._keys:
                left, right = right, left ^ (mix(right + key) & self._mask)
        return (left << self._half) | right
