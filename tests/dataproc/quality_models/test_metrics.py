"""The figures against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.quality_models.metrics import best_threshold, calibration, keep_thresholds, precision_recall, roc_auc

SCORES = np.array([0.9, 0.8, 0.7, 0.6])
POSITIVE = np.array([True, False, True, False])


def test_roc_auc_is_the_share_of_pairs_in_order():
    assert roc_auc(SCORES, POSITIVE) == 0.75  # of four pairs, 0.7 against 0.8 is wrong
    assert roc_auc(np.array([0.5, 0.5]), np.array([True, False])) == 0.5
    assert roc_auc(SCORES, np.ones(4, bool)) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_roc_auc_equals_counting_the_pairs(rows):
    scores, positive = np.array([s for s, _ in rows], float), np.array([p for _, p in rows])
    pairs = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    assert roc_auc(scores, positive) == (pytest.approx(np.mean(pairs)) if pairs else None)


def test_precision_and_recall_at_every_threshold():
    found = precision_recall(SCORES, POSITIVE)
    assert [(p["threshold"], p["precision"], p["recall"], p["kept"]) for p in found["points"]] == [
        (0.9, 1.0, 0.5, 0.25),
        (0.8, 0.5, 0.5, 0.5),
        (0.7, pytest.approx(2 / 3), 1.0, 0.75),
        (0.6, 0.5, 1.0, 1.0),
    ]
    assert found["average_precision"] == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)


def test_equal_scores_are_kept_together():
    found = precision_recall(np.array([0.5, 0.5, 0.1]), np.array([True, False, True]))
    assert [(p["kept"], p["precision"]) for p in found["points"]] == [(pytest.approx(2 / 3), 0.5), (1.0, pytest.approx(2 / 3))]


def test_calibration_weighs_bins_by_their_documents():
    found = calibration(np.array([0.05, 0.05, 0.95, 1.0]), np.array([False, True, True, True]))
    low, high = found["bins"]
    assert (low["documents"], low["score"], low["share"]) == (2, pytest.approx(0.05), 0.5)
    assert (high["from"], high["to"], high["documents"], high["score"], high["share"]) == (0.9, 1.0, 2, pytest.approx(0.975), 1.0)
    assert found["expected_error"] == pytest.approx((2 * 0.45 + 2 * 0.025) / 4)
    assert found["brier"] == pytest.approx((0.05**2 + 0.95**2 + 0.05**2) / 4)


def test_the_threshold_of_a_keep_rate_keeps_at_least_it():
    (half, most) = keep_thresholds(SCORES, POSITIVE, (0.5, 0.6))
    assert (half["threshold"], half["kept"], half["precision"], half["recall"]) == (0.8, 0.5, 0.5, 0.5)
    assert (most["threshold"], most["kept"], most["recall"]) == (0.7, 0.75, 1.0)


def test_the_best_threshold_has_the_largest_f1():
    assert best_threshold(SCORES, POSITIVE) == {"threshold": 0.7, "f1": pytest.approx(0.8)}
