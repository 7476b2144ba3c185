"""A language for each of some samples: the engine's best label, unless the sample is too short or in a script of another language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dataproc.kernels.letters import SCRIPT_NUMBERS, UPPER_CASE
from dataproc.stages.language_engines import Engine
from dataproc.stages.language_facts import scripts_of

_AT_ONCE = 64  # samples between two signs of life


@dataclass(frozen=True)
class Label:
    """language: a code, or None for no language; score: the engine's for it, None where the source declared it. problem: why there is
    none, with what it was judged by: the number of letters, or the share of them in the scripts of the label that was refused."""

    language: str | None
    score: float | None
    problem: Literal["too_short", "wrong_script"] | None = None
    letters: int = 0
    script_share: float = 1.0
    refused: str | None = None


@dataclass(frozen=True)
class Labeller:
    """min_letters: a sample with fewer letters gets no language. min_script_share: of the letters, that a label's scripts must have."""

    engine: Engine
    min_letters: int
    min_script_share: float

    def label(self, samples: list[str], letters: np.ndarray, heartbeat: Callable[[], None]) -> list[Label]:
        """letters: (samples, COLUMNS) of kernels/letters.py, of what the samples stand for."""
        totals = letters[:, :UPPER_CASE].sum(axis=1)
        labels = [Label(None, 0.0, "too_short", letters=int(total)) for total in totals]
        shown = np.flatnonzero(totals >= self.min_letters).tolist()
        for first in range(0, len(shown), _AT_ONCE):
            rows = shown[first : first + _AT_ONCE]
            # Models learned from texts in mixed case: what is written in capitals is shown to them in lower case.
            texts = [samples[row].lower() if 2 * letters[row, UPPER_CASE] > totals[row] else samples[row] for row in rows]
            for row, text, (language, score) in zip(rows, texts, self.engine.best(texts), strict=True):
                labels[row] = self._checked(text, language, score, letters[row], int(totals[row]))
            heartbeat()
        return labels

    def _checked(self, text: str, language: str | None, score: float, letters: np.ndarray, total: int) -> Label:
        """The best label, or the best of the others whose scripts are the text's. The score stays the engine's own."""
        if language is None:
            return Label(None, 0.0)
        share = script_share(language, letters, total)
        if share >= self.min_script_share:
            return Label(language, score)
        for other, its_score in self.engine.ranked(text):
            if script_share(other, letters, total) >= self.min_script_share:
                return Label(other, its_score)
        return Label(None, 0.0, "wrong_script", script_share=share, refused=language)


def script_share(language: str, letters: np.ndarray, total: int) -> float:
    """Share of the letters that are of the language's scripts; 1 for a language whose scripts are not known."""
    scripts = scripts_of(language)
    if scripts is None:
        return 1.0
    return sum(int(letters[SCRIPT_NUMBERS[code]]) for code in scripts if code in SCRIPT_NUMBERS) / total
