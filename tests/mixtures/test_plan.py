"""Exact weights at every prefix, by arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixtures.plan import SamplingPlan, block_order, block_quotas

weight_lists = st.lists(st.integers(1, 60), min_size=1, max_size=8).map(lambda parts: [Fraction(p, sum(parts)) for p in parts])


@given(weights=weight_lists)
def test_every_prefix_is_within_one_sample_of_its_share(weights):
    plan = SamplingPlan(weights)
    sources, _ = plan.locate(np.arange(3 * plan.block))
    for source, weight in enumerate(weights):
        seen = np.cumsum(sources == source)
        share = np.arange(1, len(sources) + 1) * float(weight)
        assert np.abs(seen - share).max() < 1
        assert seen[plan.block - 1] == weight * plan.block


@given(weights=weight_lists, start=st.integers(0, 10**12))
def test_samples_of_a_source_come_in_order_without_gaps(weights, start):
    plan = SamplingPlan(weights)
    sources, within = plan.locate(np.arange(start, start + 2 * plan.block))
    for source in range(len(weights)):
        numbers = within[sources == source]
        assert (np.diff(numbers) == 1).all()


def test_the_first_sample_of_each_source_is_its_sample_0():
    sources, within = SamplingPlan([Fraction(7, 10), Fraction(3, 10)]).locate(np.arange(10))
    assert within[sources == 0].tolist() == list(range(7)) and within[sources == 1].tolist() == list(range(3))


@pytest.mark.parametrize("weights", [["0.5", "0.4"], ["0.7", "0.30001"], ["1", "0.1"]])
def test_weights_that_do_not_sum_to_one_are_refused(weights):
    with pytest.raises(ValueError, match="not to 1"):
        block_quotas([Fraction(w) for w in weights])


def test_a_weight_of_one_millionth_is_exact_and_finer_ones_are_refused():
    quotas = block_quotas([Fraction("0.000001"), Fraction("0.999999")])
    assert quotas == [1, 999_999]
    assert (block_order(quotas) == 0).sum() == 1
    with pytest.raises(ValueError, match="six decimals"):
        block_quotas([Fraction("0.0000001"), Fraction("0.9999999")])
