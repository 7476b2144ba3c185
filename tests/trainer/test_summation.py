"""A tree of sums: the total's bits do not depend on how many hold the parts."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.summation import PairwiseSum, sum_over_workers


def parts(count: int, seed: int = 0) -> list[torch.Tensor]:
    """Tensors whose sum depends on the order: their sizes span eight powers of ten."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(50, generator=generator) * 10.0 ** torch.randint(-4, 4, (50,), generator=generator) for _ in range(count)]


def tree(tensors: list[torch.Tensor]) -> torch.Tensor:
    total = PairwiseSum()
    for tensor in tensors:
        total.add(tensor.clone())
    return total.total()


@given(each=st.sampled_from([1, 2, 4, 8]), workers=st.integers(1, 9), seed=st.integers(0, 100))
def test_any_number_of_workers_with_a_power_of_two_of_parts_has_the_same_bits(each, workers, seed):
    made = parts(each * workers, seed)
    shared = tree([tree(made[i * each : (i + 1) * each]) for i in range(workers)])
    assert torch.equal(tree(made), shared)


def test_the_order_matters_to_a_plain_sum():
    """Else the test above would say nothing."""
    made = parts(8)
    one_by_one = made[0].clone()
    for tensor in made[1:]:
        one_by_one += tensor
    assert not torch.equal(tree(made), one_by_one)


@given(count=st.integers(1, 40))
def test_it_is_the_sum_and_holds_few_parts(count):
    made, total = parts(count), PairwiseSum()
    for tensor in made:
        total.add(tensor.clone())
        assert len(total._waiting) <= count.bit_length()
    exact = torch.stack(made).double().sum(0)
    assert torch.allclose(total.total().double(), exact, rtol=1e-4, atol=1e-2)


def test_nothing_has_no_sum():
    with pytest.raises(IndexError):
        PairwiseSum().total()


def test_one_worker_has_the_sum_already():
    part = torch.arange(3.0)
    assert sum_over_workers(part, 1) is part
