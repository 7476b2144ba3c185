"""A model file, of whatever kind, as one that scores columns of text."""

from __future__ import annotations

import json
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dataproc.fasttext_model import label_scores, load_model
from dataproc.quality_models import fasttext_file
from dataproc.quality_models.on_signals import SignalScorer
from dataproc.quality_models.supervised import FastTextScorer
from store import files
from store.errors import ConfigError


class Scorer(Protocol):
    """Scores texts. labels: names of the columns of `scores`."""

    labels: list[str]

    def scores(self, texts: pa.Array, languages: list[str | None] | None = None) -> np.ndarray:
        """(rows, labels) float64 from 0 to 1; NaN where the model sees nothing in a text."""


class LibraryScorer:
    """Models that only the fasttext library reads: of other versions of its format."""

    def __init__(self, model: Any):
        self._model = model
        # Every model knows the end of a line; the labels are those of an empty text.
        self.labels = sorted(label_scores(model, "")) or sorted(label_scores(model, "a"))

    def scores(self, texts: pa.Array, languages: list[str | None] | None = None) -> np.ndarray:
        made = np.full((len(texts), len(self.labels)), np.nan)
        for row, text in enumerate(texts.to_pylist()):
            if found := label_scores(self._model, text or ""):
                made[row] = [found.get(label, 0.0) for label in self.labels]
        return made


def open_fasttext(path: str, scratch: str | None, who: str) -> Scorer:
    """Opens a fastText model. scratch: a local folder for copies; who: names the stage in an error. Raises ConfigError for another file."""
    try:
        return FastTextScorer(fasttext_file.read(path))
    except fasttext_file.Unsupported:
        return LibraryScorer(load_model(path, scratch, who))
    except ValueError as error:
        raise ConfigError(f"{who}: {path} is not a fastText model: {error}") from error


def open_scorer(path: str, scratch: str | None, who: str) -> Scorer:
    """Opens a model file of any kind, as `open_fasttext` does."""
    with files.open_read(path) as stream:
        beginning = stream.read(64)
    if fasttext_file.is_fasttext(beginning):
        return open_fasttext(path, scratch, who)
    if beginning.lstrip().startswith(b"{"):
        try:
            return SignalScorer(json.loads(files.read_bytes(path)))
        except ValueError as error:
            raise ConfigError(f"{who}: {path} is not a model on signals: {error}") from error
    raise ConfigError(f"{who}: {path} is no quality model: neither a fastText model (.bin, .ftz) nor a model on signals (.json)")
