"""The keyed permutation is a bijection of any range, and the same for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixtures.permutation import Permutation


@given(n=st.integers(1, 3000), key=st.text(max_size=5))
def test_it_is_a_bijection(n, key):
    assert sorted(Permutation(n, key)(np.arange(n))) == list(range(n))


def test_large_ranges_are_asked_in_any_place():
    n = 10**15 + 37
    places = np.array([0, 1, 10**9, n - 1])
    found = Permutation(n, "k")(places)
    assert len(set(found.tolist())) == 4 and found.min() >= 0 and found.max() < n
    assert (Permutation(n, "k")(places[::-1])[::-1] == found).all()


def test_keys_give_unlike_orders():
    orders = {tuple(Permutation(50, key)(np.arange(50))) for key in ("a", "b", "c", "d")}
    assert len(orders) == 4


def test_a_place_outside_is_refused():
    with pytest.raises(IndexError):
        Permutation(5, "k")(np.array([5]))
    with pytest.raises(ValueError):
        Permutation(0, "k")


def test_it_shuffles_well():
    """Displacement of a random permutation of n is n/3 on average; neighbours end up as far apart."""
    n = 20_000
    order = Permutation(n, "k")(np.arange(n))
    assert abs(np.abs(order - np.arange(n)).mean() / (n / 3) - 1) < 0.03
    assert abs(np.abs(np.diff(order)).mean() / (n / 3) - 1) < 0.03
