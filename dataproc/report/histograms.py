"""From sketches to bars: the axis a signal is shown on, its edges, and the counts between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dataproc.sketch import Sketch

BINS = 40
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TAIL = 0.005  # of a linear axis at each end: what lies beyond is counted in the last bar
LARGEST = 1e300  # the ends of a linear axis: the distance between two doubles may not be a double
LOG_SPREAD = 20  # a signal whose largest value is this many medians is shown on a logarithmic axis


def summary(sketch: Sketch) -> dict[str, Any]:
    """Count, nulls, extremes, mean and quantiles. Values are None when nothing was seen."""
    return {
        "count": sketch.count,
        "nulls": sketch.nulls,
        "not_finite": sketch.not_finite,
        "min": sketch.min,
        "max": sketch.max,
        "mean": sketch.mean,
        "quantiles": {f"{q:g}": sketch.quantile(q) for q in QUANTILES},
    }


def histogram(everything: Sketch | None, kept: Sketch | None, thresholds: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The bars of a signal, or None when no number was seen.

    {axis: linear|log, edges: (n + 1) ascending numbers, all, kept: n counts or None, zeros_all, zeros_kept}. On a logarithmic axis
    zeros have no place, and are counted apart; elsewhere `zeros_*` is 0. Counts beyond the edges are in the first and the last bar.
    """
    present = [sketch for sketch in (everything, kept) if sketch is not None and sketch.count]
    if not present:
        return None
    whole = Sketch()
    for sketch in present:
        whole.merge(sketch)
    limits = [limit for t in thresholds for limit in (t.get("min"), t.get("max")) if limit is not None]
    axis = "log" if _is_wide(present[0]) else "linear"
    edges = _log_edges(whole, limits) if axis == "log" else _linear_edges(whole, limits)
    value: dict[str, Any] = {"axis": axis, "edges": edges}
    for name, sketch in (("all", everything), ("kept", kept)):
        counts = None if sketch is None else sketch.histogram([0.0, *edges] if axis == "log" else edges)
        zeros = counts.pop(0) if counts is not None and axis == "log" else 0
        value |= {name: counts, f"zeros_{name}": zeros}
    return value


def _is_wide(sketch: Sketch) -> bool:
    return sketch.min >= 0 and sketch.max >= LOG_SPREAD and sketch.max > LOG_SPREAD * max(sketch.quantile(0.5), 1.0)


def _log_edges(sketch: Sketch, limits: list[float]) -> list[float]:
    """Edges at equal ratios from the smallest positive number (or 1, for whole numbers) to the largest; whole for whole numbers."""
    high = max([sketch.max, *(x for x in limits if sketch.max < x <= 10 * sketch.max)])
    low = 1.0 if sketch.integral else max(_smallest_positive(sketch), high * 1e-9)
    low = min([low, *(x for x in limits if low / 10 <= x < low and x > 0)])
    if sketch.integral:
        return np.unique(np.ceil(np.geomspace(low, np.floor(high) + 1, BINS + 1))).tolist()
    return _ascending(np.geomspace(low, high, BINS + 1))


def _smallest_positive(sketch: Sketch) -> float:
    """The smallest positive number seen, within the sketch's bound. Needs that none is negative and one is positive."""
    if sketch.min > 0:
        return sketch.min
    zeros = sketch.zeros
    return sketch.quantile(min(1.0, (zeros + 0.5) / (sketch.count - 1)))


def _linear_edges(sketch: Sketch, limits: list[float]) -> list[float]:
    """Edges at equal distances over all but the tails; halfway between whole numbers for whole numbers."""
    last = max(sketch.count - 1, 1)
    beyond = int(TAIL * last)  # the same number of documents at either end
    ends = ((beyond + 0.5) / last, (last - beyond + 0.5) / last) if beyond else (0, 1)
    low, high = (sketch.quantile(q) for q in ends)
    if low == high:
        low, high = sketch.min, sketch.max
    low, high = (min(max(x, -LARGEST), LARGEST) for x in (low, high))
    room = (high - low) or max(abs(high), 1.0)
    low = min([low, *(x for x in limits if low - room <= x < low)])
    high = max([high, *(x for x in limits if high < x <= high + room)])
    if sketch.integral and max(-low, high) < 2**52:  # beyond, doubles have no halves
        low, high = np.floor(low), np.ceil(high)
        step = max(1.0, np.ceil((high - low + 1) / BINS))
        return (low - 0.5 + step * np.arange(int((high - low) // step) + 2)).tolist()
    if low == high:
        low, high = low - room / 2, high + room / 2
    return _ascending(np.linspace(low, high, BINS + 1))


def _ascending(edges: np.ndarray) -> list[float]:
    """Edges without repeats, which arise when the range is narrower than what doubles can part."""
    distinct = np.unique(edges)
    if len(distinct) == 1:
        distinct = np.array([distinct[0], np.nextafter(distinct[0], np.inf)])
    return distinct.tolist()
