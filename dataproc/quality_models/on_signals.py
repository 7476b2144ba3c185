"""A linear model on signals: logistic regression on what the text kernels count. It sees the form of a text, not its words.

Its file is JSON: {"format": "headrace-signals", "version": 1, "labels": [other, positive], "intercept": number,
"signals": [{"name", "log", "mean", "scale", "weight"}]}. The probability of `positive` is the logistic function of intercept + the sum of
weight * (value - mean) / scale, where value is log(1 + signal) if `log` says so; a missing value counts as the mean.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa

from dataproc.kernels import logistic
from dataproc.kernels.compiling import ready
from dataproc.rules.signals import SIGNALS, compute
from store.digests import canonical_json

FORMAT, VERSION = "headrace-signals", 1
# Variants of a signal that differ only in a peer's way of counting it say nothing new.
_VARIANTS = ("_datatrove", "_dolma", "_dclm")
DEFAULT_SIGNALS = tuple(name for name in SIGNALS if not name.endswith(_VARIANTS) and name != "bytes")
MOST_STEPS = 50
SMALL_SLOPE = 1e-8  # per unit of weight: no further step is taken below it


class SignalScorer:
    """Scores texts by a model on signals."""

    def __init__(self, model: dict[str, Any]):
        """Raises ValueError for what is no such model."""
        try:
            if (model["format"], model["version"]) != (FORMAT, VERSION):
                raise ValueError(f"its format is {model['format']} {model['version']}, {FORMAT} {VERSION} is read here")
            self.labels = [str(label) for label in model["labels"]]
            self.names = [entry["name"] for entry in model["signals"]]
            self._log = np.array([entry["log"] for entry in model["signals"]], bool)
            self._mean, self._scale, self._weight = (
                np.array([float(entry[key]) for entry in model["signals"]]) for key in ("mean", "scale", "weight")
            )
            self._intercept = float(model["intercept"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"it lacks what such a model has ({error})") from error
        if unknown := [name for name in self.names if name not in SIGNALS]:
            raise ValueError(f"it needs the signal {unknown[0]}, which there is none of")
        if len(self.labels) != 2:
            raise ValueError("it has not two labels")

    def scores(self, texts: pa.Array | pa.ChunkedArray, languages: list[str | None] | None = None) -> np.ndarray:
        """(rows, 2) float64: the probabilities of the other label and of the positive one."""
        values = (transformed(texts, self.names, self._log, languages) - self._mean) / self._scale
        terms = np.where(np.isnan(values), 0.0, values) * self._weight
        z = np.full(len(texts), self._intercept)
        for column in range(terms.shape[1]):  # one after the other: a matrix product sums in an order of its own
            z += terms[:, column]
        positive = 1 / (1 + np.exp(-np.clip(z, -700, 700)))
        return np.stack([1 - positive, positive], 1)


def transformed(texts: Any, names: list[str], log: np.ndarray, languages: list[str | None] | None) -> np.ndarray:
    """(rows, names) float64: the signals, counts as log(1 + count); NaN where a signal has no value."""
    found = compute(texts, names, languages)
    columns = [found[name].to_numpy(zero_copy_only=False) for name in names]
    return np.stack([np.log1p(values) if as_log else values for values, as_log in zip(columns, log, strict=True)], 1)


def train(
    texts: pa.Array, languages: list[str | None], positive: np.ndarray, weights: np.ndarray, names: tuple[str, ...], l2: float, labels: list
) -> bytes:
    """The file of a model. positive: (rows,) bool; weights: (rows,) of a text in the sum; labels: the other one's name, the positive's."""
    log = np.array([SIGNALS[name].most == math.inf for name in names])
    values = transformed(texts, list(names), log, languages)
    known = np.maximum((~np.isnan(values)).sum(axis=0), 1)
    mean = np.nansum(values, axis=0) / known
    spread = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / known)
    scale = np.where(spread > 1e-12, spread, 1.0)
    scaled = np.ascontiguousarray(np.nan_to_num((values - mean) / scale))
    beta = fit(scaled, positive.astype(np.float64), weights.astype(np.float64), l2)
    entries = [
        {"name": name, "log": bool(as_log), "mean": float(m), "scale": float(s), "weight": float(w)}
        for name, as_log, m, s, w in zip(names, log, mean, scale, beta[:-1], strict=True)
    ]
    model = {"format": FORMAT, "version": VERSION, "labels": labels, "intercept": float(beta[-1]), "signals": entries}
    return json.dumps(json.loads(canonical_json(model)), indent=1).encode() + b"\n"


def fit(features: np.ndarray, targets: np.ndarray, weights: np.ndarray, l2: float) -> np.ndarray:
    """(columns + 1,): the weights of a logistic regression by Newton's method with halved steps, the intercept last. l2: of the penalty
    l2 / 2 * |weights|^2 beside the summed loss."""
    size = features.shape[1] + 1
    beta, step, hessian = np.zeros(size), np.zeros(size), np.zeros((size, size))
    with ready(logistic.newton_step):
        loss = logistic.loss_of(features, targets, weights, beta, l2)
        for _ in range(MOST_STEPS):
            slope = logistic.newton_step(features, targets, weights, beta, l2, hessian, step)
            if slope <= SMALL_SLOPE * max(1.0, weights.sum()):
                break
            part = 1.0
            while part > 1e-6 and not (after := logistic.loss_of(features, targets, weights, beta - part * step, l2)) < loss:
                part /= 2
            if part <= 1e-6:
                break
            beta, loss = beta - part * step, after
    return beta
