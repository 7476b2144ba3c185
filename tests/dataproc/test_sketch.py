"""Sketches: any order of merges gives the same bits, quantiles are within the bound, sums and extremes are exact."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.sketch import HELD, RELATIVE_ERROR, Sketch

ANY = st.floats(allow_nan=True, allow_infinity=True)
NORMAL = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
LISTS = st.lists(st.one_of(ANY, st.none(), st.integers(-1000, 1000).map(float)), max_size=40)


def sketch_of(values) -> Sketch:
    sketch = Sketch()
    sketch.observe(values)
    return sketch


def merged(*parts: Sketch) -> dict:
    whole = Sketch()
    for part in parts:
        whole.merge(Sketch.from_json(part.to_json()))
    return whole.to_json()


@given(LISTS, LISTS, LISTS)
def test_merging_is_associative_commutative_and_the_same_as_seeing_all(a, b, c):
    x, y, z = sketch_of(a), sketch_of(b), sketch_of(c)
    whole = sketch_of(a + b + c).to_json()
    assert merged(x, y, z) == merged(z, x, y) == merged(y, z, x) == whole
    left = sketch_of(a)
    left.merge(y)
    right = sketch_of(b)
    right.merge(z)
    left.merge(z)
    x.merge(right)
    assert json.dumps(left.to_json()) == json.dumps(x.to_json()) == json.dumps(whole)


@given(LISTS)
def test_json_gives_the_sketch_back_and_is_strict(values):
    sketch = sketch_of(values)
    text = json.dumps(sketch.to_json(), allow_nan=False)
    assert json.dumps(Sketch.from_json(json.loads(text)).to_json()) == text


@given(st.lists(st.one_of(ANY, st.none()), max_size=60))
def test_counts_extremes_and_sum_are_exact(values):
    sketch = sketch_of(values)
    finite = [v for v in values if v is not None and math.isfinite(v)]
    assert sketch.count == len(finite)
    assert sketch.nulls == values.count(None)
    assert sketch.not_finite == len(values) - len(finite) - values.count(None)
    assert sketch.sum == sum(map(Fraction, finite), Fraction(0))
    assert sketch.min == min(finite, default=None) and sketch.max == max(finite, default=None)
    if finite:
        assert sketch.mean == float(sum(map(Fraction, finite)) / len(finite))


@given(st.lists(NORMAL, min_size=1, max_size=200), st.floats(0, 1))
def test_quantiles_are_within_the_bound(values, q):
    exact = float(np.sort(values)[int(q * (len(values) - 1))])
    estimate = sketch_of(values).quantile(q)
    assert abs(estimate - exact) <= RELATIVE_ERROR * abs(exact) * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 3e9])
def test_quantiles_against_numpy(scale):
    values = np.random.default_rng(3).lognormal(0, 2.5, 50_001) * scale
    sketch = sketch_of(pa.array(values))
    for q in np.linspace(0, 1, 101):
        assert sketch.quantile(q) == pytest.approx(np.quantile(values, q, method="lower"), rel=0.01)


@given(st.lists(st.integers(-127, 127), min_size=1, max_size=100), st.floats(0, 1))
def test_small_whole_numbers_come_back_exactly(values, q):
    assert sketch_of([float(v) for v in values]).quantile(q) == sorted(values)[int(q * (len(values) - 1))]


@given(st.lists(st.integers(128, 10**12), min_size=1, max_size=50), st.floats(0, 1))
def test_quantiles_of_whole_numbers_are_whole(values, q):
    assert sketch_of([float(v) for v in values]).quantile(q).is_integer()


@settings(max_examples=300)
@given(st.lists(NORMAL, max_size=80), st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20, unique=True))
def test_a_histogram_loses_nothing_and_is_near_the_truth(values, edges):
    edges = sorted(edges)
    counts = sketch_of(values).histogram(edges)
    assert sum(counts) == len(values) and min(counts) >= 0 and len(counts) == len(edges) - 1
    below = np.cumsum([0, *counts])
    for edge, estimate in zip(edges[1:-1], below[1:-1], strict=True):
        slack = 2 * RELATIVE_ERROR * abs(edge)
        assert sum(v < edge - slack for v in values) <= estimate <= sum(v <= edge + slack for v in values)


def test_a_smooth_distribution_has_no_comb():
    values = np.random.default_rng(0).uniform(0, 1, 400_000)
    counts = np.array(sketch_of(pa.array(values)).histogram(list(np.linspace(0, 1, 41))))
    assert np.abs(counts / 10_000 - 1).max() < 0.06  # 6 sigma of chance alone


def test_histogram_of_whole_numbers_puts_each_where_it_is():
    values = [0.0] * 5 + [1.0] * 4 + [2.0] * 3 + [3.0] * 2 + [4.0]
    assert sketch_of(values).histogram([-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]) == [5, 4, 3, 2, 1]
    assert sketch_of(values).histogram([0, 1, 2, 3, 5]) == [5, 4, 3, 3]


def test_long_input_is_the_same_in_pieces():
    values = np.random.default_rng(1).normal(size=3 * HELD + 17)
    pieces = Sketch()
    for start in range(0, len(values), 1000):
        pieces.observe(pa.array(values[start : start + 1000]))
    assert pieces.to_json() == sketch_of(pa.array(values)).to_json()
    assert pieces.sum == sum(map(Fraction, values.tolist()))


def test_empty_and_out_of_range():
    empty = Sketch()
    assert (empty.count, empty.mean, empty.quantile(0.5), empty.min, empty.sum) == (0, None, None, None, 0)
    assert empty.histogram([0, 1, 2]) == [0, 0]
    with pytest.raises(ValueError, match="between 0 and 1"):
        empty.quantile(1.5)


def test_every_numeric_type_and_chunks():
    sketch = Sketch()
    sketch.observe(pa.array([1, None, 3], pa.int32()))
    sketch.observe(pa.chunked_array([pa.array([0.5], pa.float32()), pa.array([2.5], pa.float32())]))
    assert (sketch.count, sketch.nulls, sketch.sum, sketch.integral) == (4, 1, Fraction(7), False)
