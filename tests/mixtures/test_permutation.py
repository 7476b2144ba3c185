"""The keyed permutation is a bijection of any range, and the same for ever."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from mixtures.permutation import Permutation, mix


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


def slow_permutation(n: int, key: str, place: int) -> int:
    """The same network in plain Python integers, written from its description."""
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    mask = 2**half - 1
    keys = [xxhash.xxh3_64_intdigest(f"{key}\0{i}".encode()) for i in range(6)]
    while True:
        left, right = place >> half, place & mask
        for round_key in keys:
            x = (right + round_key) % 2**64
            x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
            left, right = right, left ^ ((x ^ (x >> 31)) & mask)
        place = (left << half) | right
        if place < n:
            return place


@given(n=st.integers(1, 10**12), key=st.text(max_size=5), share=st.floats(0, 1, exclude_max=True))
def test_it_is_the_network_that_is_described(n, key, share):
    place = int(n * share)
    assert Permutation(n, key)(np.array([place]))[0] == slow_permutation(n, key, place)


def test_the_mixer_is_splitmix64():
    """First outputs of splitmix64 for seed 0, as published with the generator: the finaliser of multiples of the golden gamma."""
    gamma = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        states = np.arange(1, 4, dtype=np.uint64) * gamma
    assert [hex(int(x)) for x in mix(states)] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]


def test_orders_stay_what_they_were():
    """A run that goes on after an update must see the same samples: these orders may never change."""
    assert Permutation(10, "17\0web\x000")(np.arange(10)).tolist() == [6, 0, 1, 9, 5, 4, 2, 8, 3, 7]
    assert Permutation(10**12, "17\0web\x001")(np.array([0, 1, 10**12 - 1])).tolist() == [67931183085, 331164766629, 483066901753]
