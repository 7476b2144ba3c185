"""How many bands of how many rows find pairs above a similarity and leave those below."""

from __future__ import annotations

import functools

import numpy as np

_POINTS = 64  # of a Gauss-Legendre rule: exact for polynomials of degree 127, and far below 1e-9 for the smooth ones here


def chance(similarity: np.ndarray, bands: int, rows: int) -> np.ndarray:
    """The probability that two sets of a Jaccard similarity share a band (Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, 3.4)."""
    return 1 - (1 - similarity**rows) ** bands


@functools.cache
def best_bands(threshold: float, permutations: int) -> tuple[int, int]:
    """(bands, rows) with bands * rows <= permutations and the least sum of false positives below the threshold and false negatives above
    it, both as areas under the curve of `chance`: the choice of datasketch's MinHashLSH with equal weights."""
    nodes, weights = np.polynomial.legendre.leggauss(_POINTS)
    below = (nodes + 1) / 2 * threshold
    above = threshold + (nodes + 1) / 2 * (1 - threshold)
    least, best = np.inf, (1, 1)
    for bands in range(1, permutations + 1):
        for rows in range(1, permutations // bands + 1):
            wrong = weights @ chance(below, bands, rows) * threshold / 2
            missed = weights @ (1 - chance(above, bands, rows)) * (1 - threshold) / 2
            if (wrong + missed) / 2 < least:
                least, best = (wrong + missed) / 2, (bands, rows)
    return best
