"""Plots draw the figures: depths and heights in proportion, thresholds at their place, a spike cut and labelled."""

from __future__ import annotations

import re

import pytest

from dataproc.report import plots
from dataproc.report.histograms import histogram
from dataproc.sketch import Sketch


def sketch_of(values) -> Sketch:
    sketch = Sketch()
    sketch.observe([float(v) for v in values])
    return sketch


def bar_heights(drawn: str, series: str) -> list[float]:
    path = re.search(rf'<path d="([^"]*)" class="bars {series}">', drawn).group(1)
    return [-float(height) for height in re.findall(r"v(-[\d.]+)h", path)]


def test_the_river_is_as_deep_as_what_is_left():
    stages = [
        {"name": "read", "entered": 1000, "dropped": 100, "quarantined": 150, "left": 750},
        {"name": "clean", "entered": 750, "dropped": 0, "quarantined": 0, "left": 750},
        {"name": "a" * 40, "entered": 750, "dropped": 500, "quarantined": 0, "left": 250},
    ]
    drawn = plots.river(stages, 1000)
    ends = [float(y) for y in re.findall(r'C[\d. ]+ [\d.]+ [\d.]+ ([\d.]+)L\d+ \d+L\d+ \d+Z" class="water"', drawn)]
    assert [(y - plots.RIVER_TOP) / plots.RIVER_DEPTH for y in ends] == pytest.approx([0.75, 0.75, 0.25], abs=1e-3)
    assert re.findall(r'class="(fall \w+)"', drawn) == ["fall quarantined", "fall dropped"]
    assert "aaaa…" in drawn and "1\u202f000 records entered, 250 are kept" in drawn
    assert plots.river([], 0).startswith("<svg")


def test_heights_are_in_proportion_to_counts():
    values = [v for v, count in {1: 30, 2: 60, 3: 90, 4: 45}.items() for _ in range(count)]
    drawn = plots.signal_plot("n", histogram(sketch_of(values), sketch_of(values[::3]), []), [])
    heights = bar_heights(drawn, "all")
    assert [h / heights[2] for h in heights] == pytest.approx([1 / 3, 2 / 3, 1, 1 / 2], abs=2e-3)
    assert bar_heights(drawn, "kept") == pytest.approx([h / 3 for h in heights], abs=0.1)


def test_a_spike_is_cut_and_labelled_and_kept_stays_in_proportion():
    values = [0] * 900 + [1] * 50 + [2] * 50
    drawn = plots.signal_plot("n", histogram(sketch_of(values), sketch_of(values[::2]), []), [])
    heights = bar_heights(drawn, "all")
    assert heights[0] == pytest.approx(plots.TALLEST * heights[1], rel=0.01) and "90.0%" in drawn and 'class="cut"' in drawn
    assert bar_heights(drawn, "kept")[0] == pytest.approx(heights[0] / 2, rel=0.01)


def test_thresholds_are_lines_at_their_value_and_arrows_beyond_the_axis():
    limits = [{"rule": "family.low", "min": 25.0, "max": None}, {"rule": "far", "min": None, "max": 1e6}]
    bars = histogram(sketch_of(v + 0.5 for v in range(100)), None, limits)
    drawn = plots.signal_plot("x", bars, limits)
    (x,) = re.findall(r'<line x1="([\d.]+)"[^>]*class="limit"', drawn)
    left, right = plots.LEFT, plots.WIDTH - plots.LEFT
    edges = bars["edges"]
    assert float(x) == pytest.approx(left + (right - left) * (25 - edges[0]) / (edges[-1] - edges[0]), abs=0.1)
    assert "low ≥ 25<" in drawn and "far ≤ 1\u202f000\u202f000 →" in drawn
    (shaded,) = re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)"', drawn)
    assert float(shaded[0]) == left and float(shaded[0]) + float(shaded[1]) == pytest.approx(float(x), abs=0.1)


def test_a_threshold_of_zero_lies_beside_the_zeros_of_a_logarithmic_axis():
    limits = [{"rule": "none_at_all", "min": None, "max": 0.0}]
    bars = histogram(sketch_of([0] * 50 + [10, 100, 1000]), None, limits)
    assert bars["axis"] == "log"
    drawn = plots.signal_plot("n", bars, limits)
    (x,) = re.findall(r'<line x1="([\d.]+)"[^>]*class="limit"', drawn)
    assert plots.LEFT + plots.ZERO_WIDTH < float(x) < plots.LEFT + plots.ZERO_WIDTH + plots.ZERO_GAP
    assert "none_at_all ≤ 0<" in drawn
