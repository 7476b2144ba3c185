"""Histograms: edges ascend, nothing is lost, thresholds lie on the axis, heavy tails are logarithmic."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.report.histograms import BINS, histogram, summary
from dataproc.report.plots import _Axis, signal_plot
from dataproc.sketch import Sketch
from tests.dataproc.report.test_markup import Seen

VALUES = st.lists(st.one_of(st.floats(allow_nan=True), st.integers(-5, 10**6).map(float), st.just(0.0)), max_size=60)
LIMIT = st.one_of(st.none(), st.floats(-1e9, 1e9), st.floats(allow_nan=False, allow_infinity=False))
LIMITS = st.lists(st.fixed_dictionaries({"rule": st.text(max_size=60), "min": LIMIT, "max": LIMIT}), max_size=4)


def sketch_of(values) -> Sketch:
    sketch = Sketch()
    sketch.observe(pa.array(values, pa.float64()))
    return sketch


@given(VALUES, VALUES, LIMITS)
def test_whatever_is_seen_can_be_drawn_and_nothing_is_lost(everything, kept, limits):
    a, k = sketch_of(everything), sketch_of(kept)
    bars = histogram(a, k, limits)
    if not a.count and not k.count:
        assert bars is None
        return
    edges = bars["edges"]
    assert 2 <= len(edges) <= BINS + 2 and all(math.isfinite(e) for e in edges)
    assert all(x < y for x, y in zip(edges, edges[1:], strict=False))
    assert sum(bars["all"]) + bars["zeros_all"] == a.count and sum(bars["kept"]) + bars["zeros_kept"] == k.count
    if bars["axis"] == "log":
        assert edges[0] > 0
    seen = Seen(signal_plot("signal", bars, limits))
    assert seen.tags[0] == "svg"
    assert not any(word in str(value) for _, value in seen.attributes for word in ("nan", "inf"))


@pytest.mark.parametrize(
    ("values", "axis"),
    [
        (np.random.default_rng(0).lognormal(5, 2, 5000), "log"),
        (np.round(np.random.default_rng(0).lognormal(5, 2, 5000)), "log"),
        (np.random.default_rng(0).beta(1, 9, 5000), "linear"),
        (np.random.default_rng(0).normal(5, 1, 5000), "linear"),
        (np.random.default_rng(0).normal(0, 1e5, 5000), "linear"),
        (np.random.default_rng(0).poisson(3, 5000).astype(float), "linear"),
    ],
)
def test_the_axis_fits_the_shape(values, axis):
    assert histogram(sketch_of(values), None, [])["axis"] == axis


def test_zeros_of_a_logarithmic_axis_are_exact():
    values = [0.0] * 70 + [float(2**k) for k in range(14)]
    bars = histogram(sketch_of(values), sketch_of(values[69:]), [])
    assert (bars["axis"], bars["zeros_all"], bars["zeros_kept"]) == ("log", 70, 1)
    assert bars["edges"][0] == 1 and sum(bars["all"]) == 14


def test_small_whole_numbers_have_a_bar_each():
    bars = histogram(sketch_of([float(i % 7) for i in range(700)]), None, [{"rule": "r", "min": 2, "max": None}])
    assert bars["edges"] == [i - 0.5 for i in range(8)] and bars["all"] == [100] * 7 and bars["kept"] is None


@given(st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=50, unique=True), st.floats(0, 1))
def test_a_threshold_among_the_values_is_on_the_axis(values, part):
    low, high = min(values), max(values)
    limit = min(max(low + part * (high - low), low), high)
    bars = histogram(sketch_of(values), None, [{"rule": "r", "min": limit, "max": None}])
    assert _Axis(bars).place(limit) is not None


@given(VALUES)
def test_ticks_are_few_round_and_on_the_axis(values):
    bars = histogram(sketch_of(values), None, [])
    if bars is None or len(bars["edges"]) < 3:
        return
    axis = _Axis(bars)
    places = [axis.place(tick) for tick in axis.ticks()]
    shown = [x for x in places if x is not None]
    assert len(shown) <= 8 and shown == sorted(shown)


def test_summary_of_known_numbers():
    found = summary(sketch_of([float(i) for i in range(101)] + [None, math.nan]))
    assert found["count"] == 101 and found["nulls"] == 1 and found["not_finite"] == 1
    assert found["mean"] == 50 and found["quantiles"] == {"0.01": 1, "0.05": 5, "0.25": 25, "0.5": 50, "0.75": 75, "0.95": 95, "0.99": 99}
