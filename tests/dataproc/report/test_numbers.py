"""Numbers for readers: right to the digits shown, and never zero or all when they are not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.report.numbers import THIN, compact, number, seconds, share, size, whole


@given(st.integers(0, 10**18))
def test_whole_numbers_read_back(n):
    assert int(whole(n).replace(THIN, "")) == n
    assert all(len(group) == 3 for group in whole(n).split(THIN)[1:])


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_shares_read_back_and_only_extremes_look_extreme(a, b):
    part, total = min(a, b), max(a, b)
    text = share(part, total)
    if part == total:
        assert text == "100%"
    elif text[0] not in "<>":
        assert float(text[:-1]) > 0 and abs(float(text[:-1]) - 100 * part / total) <= 0.05 + 1e-9
    else:
        assert part / total < 1e-4 or part / total >= 0.9995
    assert share(0, total) == "0%" and share(0, 0) == "–"


@given(st.integers(0, 10**20))
def test_sizes_have_three_digits_and_read_back(n):
    figure, unit = size(n).split(THIN)
    value = float(figure) * 1000 ** ("B", "kB", "MB", "GB", "TB", "PB", "EB").index(unit)
    assert abs(value - n) <= 0.006 * n
    assert len(figure.replace(".", "")) <= 3


@given(st.floats(-1e300, 1e300, allow_subnormal=False))
def test_numbers_read_back(x):
    assert float(number(x).replace(THIN, "")) == pytest.approx(x, rel=6e-4)
    assert len(number(x)) <= 12


@given(st.floats(-1e12, 1e12, allow_subnormal=False))
def test_compact_numbers_read_back(x):
    text = compact(x).replace(THIN, "")
    scale = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1.0)
    assert float(text.rstrip("kMG")) * scale == pytest.approx(x, rel=6e-3)
    assert len(text) <= 10


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00 s"),
        (9.994, "9.99 s"),
        (9.996, "10.0 s"),
        (99.9, "99.9 s"),
        (99.96, "1 min 40 s"),
        (125, "2 min 05 s"),
        (3599.9, "1 h 00 min"),
    ],
)
def test_seconds(value, text):
    assert seconds(value).replace(THIN, " ") == text


@given(st.floats(100, 1e9))
def test_long_times_read_back(value):
    found = {unit: int(n.replace(THIN, "")) for n, unit in re.findall(rf"([\d{THIN}]+){THIN}(h|min|s)\b", seconds(value))}
    assert 3600 * found.get("h", 0) + 60 * found.get("min", 0) + found.get("s", 0) == pytest.approx(value, abs=60 if "h" in found else 1)


def test_nothing_and_names():
    assert (number(None), number("inf"), number(0.0), number(1234567.0)) == ("–", "inf", "0", "1\u202f234\u202f567")
