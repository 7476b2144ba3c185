"""A mergeable summary of many numbers: bins of bounded relative width, with exact count, sum, minimum and maximum.

The bin of a double is the leading bits of its own encoding: sign, exponent and the first six bits of the fraction, so an octave is cut
into 64 bins of equal width. No logarithm is taken, so every machine puts a number into the same bin, and all state is integers (the sum
too), so sketches merge in any order to the same bits. The guarantee is that of DDSketch (Masson et al. 2019, arXiv 1908.10693) with a
relative error of at most 1/128.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

RELATIVE_ERROR = 1 / 128  # half a bin over its lower bound, at the start of an octave where it is largest
FRACTION_BITS = 6
SHIFT = 52 - FRACTION_BITS  # a double has 52 bits of fraction
SUM_SCALE = 1074  # every finite double is a whole multiple of 2^-1074
HELD = 16_384  # values kept as they are until they are worth a pass over the bins


class Sketch:
    """Counts of numbers by bin. Nulls, NaNs and infinities are counted apart and belong to no bin."""

    def __init__(self):
        self._bins: Counter[int] = Counter()  # 0 for zero, else sign x (1 + leading bits)
        self._nulls = self._nans = self._below = self._above = 0
        self._sum = 0  # in units of 2^-1074
        self._min: float | None = None
        self._max: float | None = None
        self._integral = True
        self._held: list[np.ndarray] = []
        self._held_count = 0

    def observe(self, values: pa.Array | pa.ChunkedArray | Sequence[float | None]) -> None:
        """Adds numbers of any numeric Arrow type (or a list); they are counted as float64."""
        array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, pa.float64())
        self._nulls += array.null_count
        numbers = array.drop_null().cast(pa.float64(), safe=False)
        # A copy: a view would hold the whole batch in memory.
        self._held.append(np.array(numbers.to_numpy(), dtype=np.float64))
        self._held_count += len(numbers)
        if self._held_count >= HELD:
            self._settle()

    def _settle(self) -> None:
        if not self._held_count:
            return
        values = np.concatenate(self._held) + 0.0  # makes -0.0 zero
        self._held, self._held_count = [], 0
        finite = values[np.isfinite(values)]
        if len(finite) < len(values):
            self._nans += int(np.isnan(values).sum())
            self._below += int((values == -np.inf).sum())
            self._above += int((values == np.inf).sum())
        if not len(finite):
            return
        keys, counts = np.unique(_keys(finite), return_counts=True)
        self._bins.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
        self._sum += _exact_sum(finite)
        self._integral = self._integral and bool((finite == np.floor(finite)).all())
        self._extend(float(finite.min()), float(finite.max()))

    def _extend(self, low: float, high: float) -> None:
        self._min = low if self._min is None else min(self._min, low)
        self._max = high if self._max is None else max(self._max, high)

    def merge(self, other: Sketch) -> None:
        """Adds all that `other` has seen. The order of merges never shows in the result."""
        self._settle()
        other._settle()
        self._bins.update(other._bins)
        self._nulls += other._nulls
        self._nans += other._nans
        self._below += other._below
        self._above += other._above
        self._sum += other._sum
        self._integral = self._integral and other._integral
        if other._min is not None:
            self._extend(other._min, other._max)

    @property
    def count(self) -> int:
        """Finite numbers seen."""
        self._settle()
        return self._bins.total()

    @property
    def zeros(self) -> int:
        """Zeros seen, of either sign."""
        self._settle()
        return self._bins[0]

    @property
    def nulls(self) -> int:
        return self._nulls

    @property
    def not_finite(self) -> int:
        """NaNs and infinities seen."""
        self._settle()
        return self._nans + self._below + self._above

    @property
    def min(self) -> float | None:
        self._settle()
        return self._min

    @property
    def max(self) -> float | None:
        self._settle()
        return self._max

    @property
    def integral(self) -> bool:
        """Whether every number seen was whole."""
        self._settle()
        return self._integral

    @property
    def sum(self) -> Fraction:
        """The exact sum of the finite numbers."""
        self._settle()
        return Fraction(self._sum, 1 << SUM_SCALE)

    @property
    def mean(self) -> float | None:
        """The mean, correctly rounded; None when nothing was seen."""
        count = self.count
        return float(self.sum / count) if count else None

    def quantile(self, q: float) -> float | None:
        """The number of rank floor(q (count - 1)), within RELATIVE_ERROR; exact for q = 0 and 1. None when nothing was seen.

        Raises ValueError for q outside [0, 1].
        """
        if not 0 <= q <= 1:
            raise ValueError(f"a quantile lies between 0 and 1, not at {q}")
        count = self.count
        if not count:
            return None
        rank = int(q * (count - 1))
        if rank in (0, count - 1):
            return self._min if rank == 0 else self._max
        keys = sorted(self._bins)
        position = np.searchsorted(np.cumsum([self._bins[key] for key in keys]), rank, side="right")
        return min(max(self._representative(keys[int(position)]), self._min), self._max)

    def _representative(self, key: int) -> float:
        """The middle of a bin; a whole number inside it when all numbers were whole."""
        if key == 0:
            return 0.0
        middle = _as_double(((abs(key) - 1) << SHIFT) + (1 << (SHIFT - 1)))
        return float(np.copysign(np.floor(middle) if self.integral else middle, key))

    def histogram(self, edges: Sequence[float]) -> list[int]:
        """Counts between ascending edges; `len(edges) - 1` integers that add up to `count`.

        What lies outside is counted in the first or the last of them. A bin that an edge cuts is shared in proportion.
        """
        count = self.count
        if not count:
            return [0] * (len(edges) - 1)
        keys = sorted(self._bins)
        lows, highs = self._bounds(keys)
        sizes = np.array([self._bins[key] for key in keys], dtype=np.int64)
        before = np.cumsum(sizes) - sizes
        inner = np.asarray(edges[1:-1], dtype=np.float64)
        position = np.searchsorted(lows, inner, side="left") - 1  # the last bin that begins below the edge
        at = np.maximum(position, 0)
        width = np.where(highs[at] > lows[at], highs[at] - lows[at], 1.0)
        part = np.where(highs[at] <= inner, 1.0, (np.clip(inner, lows[at], highs[at]) - lows[at]) / width)
        below = np.where(position < 0, 0, before[at] + np.floor(sizes[at] * part)).astype(np.int64)
        return np.diff(np.concatenate([[0], below, [count]])).tolist()

    def _bounds(self, keys: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of bins, cut to the range seen. A bin that holds one whole number alone is that number."""
        signed = np.array(keys, dtype=np.int64)
        bits = np.abs(signed) - 1
        inner = np.where(signed == 0, 0.0, (np.maximum(bits, 0) << SHIFT).view(np.float64))
        outer = np.where(signed == 0, 0.0, (np.abs(signed) << SHIFT).view(np.float64))
        if self._integral:
            outer = np.where(outer - inner <= 1.0, np.ceil(inner), outer)
        lows, highs = np.where(signed < 0, -outer, inner), np.where(signed < 0, -inner, outer)
        return np.clip(lows, self._min, self._max), np.clip(highs, self._min, self._max)

    def to_json(self) -> dict[str, Any]:
        """A small JSON object without NaN or infinity: `bins` alternates the distance to the bin before and the bin's count."""
        self._settle()
        bins, last = [], 0
        for key in sorted(self._bins):
            bins += [key - last, self._bins[key]]
            last = key
        return {
            "nulls": self._nulls,
            "nans": self._nans,
            "below": self._below,
            "above": self._above,
            "sum": _hexadecimal(self._sum),
            "min": self._min,
            "max": self._max,
            "integral": self._integral,
            "bins": bins,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Sketch:
        """The sketch that `to_json` described."""
        sketch = cls()
        sketch._nulls, sketch._nans = value["nulls"], value["nans"]
        sketch._below, sketch._above = value["below"], value["above"]
        sketch._sum = _from_hexadecimal(value["sum"])
        sketch._min, sketch._max = value["min"], value["max"]
        sketch._integral = value["integral"]
        sketch._bins.update(dict(zip(accumulate(value["bins"][::2]), value["bins"][1::2], strict=True)))
        return sketch


def _keys(finite: np.ndarray) -> np.ndarray:
    """(n,) float64 -> (n,) int64 bin keys."""
    leading = np.abs(finite).view(np.int64) >> SHIFT
    return np.where(finite == 0, 0, np.where(finite < 0, -leading - 1, leading + 1))


def _as_double(bits: int) -> float:
    return float(np.array([bits], dtype=np.int64).view(np.float64)[0])


def _exact_sum(finite: np.ndarray) -> int:
    """The sum of (n,) float64 in units of 2^-1074.

    Mantissas are added by exponent in two halves, so that every partial sum is a whole number below 2^53, which doubles hold exactly
    (for up to 2^26 numbers at a time).
    """
    mantissas, exponents = np.frexp(finite)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    first = int(exponents.min())
    high = np.bincount(exponents - first, weights=whole >> 27)
    low = np.bincount(exponents - first, weights=whole & ((1 << 27) - 1))
    total = sum(((int(h) << 27) + int(x)) << shift for shift, (h, x) in enumerate(zip(high, low, strict=True)) if h or x)
    shift = first - 53 + SUM_SCALE
    return total << shift if shift >= 0 else total >> -shift  # exact: a subnormal's mantissa ends in as many zeros


def _hexadecimal(scaled: int) -> str:
    """A sum in units of 2^-1074 as `-0x1a3p-40`: whole mantissa, binary exponent."""
    if scaled == 0:
        return "0x0p0"
    zeros = (scaled & -scaled).bit_length() - 1
    return f"{hex(scaled >> zeros)}p{zeros - SUM_SCALE}"


def _from_hexadecimal(text: str) -> int:
    mantissa, _, exponent = text.partition("p")
    return int(mantissa, 16) << (int(exponent) + SUM_SCALE) if mantissa != "0x0" else 0
