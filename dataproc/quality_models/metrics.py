"""How well scores tell two labels apart: ROC-AUC, precision and recall, calibration, and the threshold for a wanted keep rate."""

from __future__ import annotations

from typing import Any

import numpy as np

CURVE_POINTS = 101
CALIBRATION_BINS = 10


def roc_auc(scores: np.ndarray, positive: np.ndarray) -> float | None:
    """The chance that a positive scores above another one, ties counting half (Mann-Whitney). scores: (rows,); positive: (rows,) bool.
    None where one of the two is missing."""
    wanted = int(positive.sum())
    others = len(positive) - wanted
    if not wanted or not others:
        return None
    _, number, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[number]  # the mean rank of equal scores, from 1
    return float((ranks[positive].sum() - wanted * (wanted + 1) / 2) / (wanted * others))


def precision_recall(scores: np.ndarray, positive: np.ndarray) -> dict[str, Any]:
    """{average_precision, points: [{threshold, precision, recall, kept}]}: a document is kept when its score reaches the threshold. The
    average is the sum of precision times the gain in recall over falling thresholds; points: at most CURVE_POINTS of them, by kept."""
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.r_[scores[order][1:] != scores[order][:-1], True])  # equal scores are kept together
    hits, kept = np.cumsum(positive[order])[last], last + 1
    precision, recall = hits / kept, hits / max(1, int(positive.sum()))
    average = float((precision * np.diff(np.r_[0.0, recall])).sum())
    chosen = np.unique(np.linspace(0, len(last) - 1, min(CURVE_POINTS, len(last))).round().astype(int))
    points = [
        {
            "threshold": float(scores[order][last[k]]),
            "precision": float(precision[k]),
            "recall": float(recall[k]),
            "kept": float(kept[k] / len(scores)),
        }
        for k in chosen
    ]
    return {"average_precision": average, "points": points}


def calibration(scores: np.ndarray, positive: np.ndarray) -> dict[str, Any]:
    """{expected_error, brier, bins: [{from, to, documents, score, share}]}: the mean difference, over documents, between a bin's mean score
    and its share of positives (Guo et al. 2017, arXiv 1706.04599), in CALIBRATION_BINS bins of equal width."""
    place = np.minimum((scores * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    counts = np.bincount(place, minlength=CALIBRATION_BINS)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(place, scores, CALIBRATION_BINS) / counts
        share = np.bincount(place, positive, CALIBRATION_BINS) / counts
    held = counts > 0
    bins = [
        {
            "from": k / CALIBRATION_BINS,
            "to": (k + 1) / CALIBRATION_BINS,
            "documents": int(counts[k]),
            "score": float(mean[k]),
            "share": float(share[k]),
        }
        for k in np.flatnonzero(held)
    ]
    error = float((np.abs(mean - share)[held] * counts[held]).sum() / len(scores))
    return {"expected_error": error, "brier": float(((scores - positive) ** 2).mean()), "bins": bins}


def keep_thresholds(scores: np.ndarray, positive: np.ndarray, rates: tuple[float, ...]) -> list[dict[str, float]]:
    """For each wanted share the threshold that keeps at least it and the least more, what it keeps, and how much of that is positive."""
    found = []
    ordered = np.sort(scores)[::-1]
    for rate in rates:
        threshold = ordered[max(1, int(np.ceil(rate * len(scores)))) - 1]
        kept = scores >= threshold
        hits = int((kept & positive).sum())
        found.append(
            {
                "keep_rate": rate,
                "threshold": float(threshold),
                "kept": float(kept.mean()),
                "precision": hits / int(kept.sum()),
                "recall": hits / max(1, int(positive.sum())),
            }
        )
    return found


def best_threshold(scores: np.ndarray, positive: np.ndarray) -> dict[str, float]:
    """The score at which F1 is largest, the higher one of equals."""
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.r_[scores[order][1:] != scores[order][:-1], True])
    hits = np.cumsum(positive[order])[last]
    f1 = 2 * hits / (last + 1 + positive.sum())
    best = int(np.argmax(f1))
    return {"threshold": float(scores[order][last[best]]), "f1": float(f1[best])}


def judged(scores: np.ndarray, positive: np.ndarray, rates: tuple[float, ...]) -> dict[str, Any]:
    """All of these for one set of documents; accuracy: at the score 0.5."""
    return {
        "documents": len(scores),
        "positive": int(positive.sum()),
        "roc_auc": roc_auc(scores, positive),
        "accuracy": float(((scores >= 0.5) == positive).mean()),
        "precision_recall": precision_recall(scores, positive),
        "calibration": calibration(scores, positive),
        "best_f1": best_threshold(scores, positive),
        "keep_rates": keep_thresholds(scores, positive, rates),
    }
