"""Learning rates against closed forms."""

from __future__ import annotations

import math

import pytest

from trainer.schedule import Schedule


@pytest.mark.parametrize("decay", ["cosine", "linear", "wsd", "constant"])
def test_warm_up_is_linear_and_ends_at_the_peak(decay):
    schedule = Schedule(warmup_steps=10, decay=decay)
    assert [schedule.ratio(i, 100) for i in range(10)] == pytest.approx([(i + 1) / 10 for i in range(10)])


def test_cosine_meets_its_ends_and_its_middle():
    schedule = Schedule(warmup_steps=0, decay="cosine", min_ratio=0.1)
    assert schedule.ratio(99, 100) == pytest.approx(0.1)
    assert schedule.ratio(49, 100) == pytest.approx(0.1 + 0.9 * (1 + math.cos(math.pi / 2)) / 2)


def test_linear_falls_evenly():
    schedule = Schedule(warmup_steps=20, decay="linear", min_ratio=0.0)
    assert [schedule.ratio(s, 120) for s in (20, 69, 119)] == pytest.approx([0.99, 0.5, 0.0])


def test_wsd_holds_the_peak_until_its_decay():
    schedule = Schedule(warmup_steps=5, decay="wsd", decay_fraction=0.2, min_ratio=0.0)
    assert [schedule.ratio(s, 100) for s in (5, 50, 79)] == [1.0, 1.0, 1.0]
    assert [schedule.ratio(s, 100) for s in (80, 99)] == pytest.approx([0.95, 0.0])
