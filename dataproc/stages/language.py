"""Language of documents and of their paragraphs: a model's best label whose scripts are those of the text.

The model (language_engines.py) sees a sample; what it answers is held against what is known of languages (language_facts.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field, model_validator

from dataproc.kernels.columns import TextBuffers, text_buffers
from dataproc.kernels.letters import count_letters
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from dataproc.stages.language_engines import LINGUA_MISSING, Engine, FastText, Lingua, lingua_installed
from dataproc.stages.language_facts import base_of, canonical
from dataproc.stages.language_labels import Label, Labeller
from dataproc.stages.language_paragraphs import SHARES, Shares, shares_of
from store.strict_yaml import ExistingFile, StrictModel

# Three windows over a long document tell its language as well as the whole does, at a cost that does not grow with the document.
WINDOWS, WINDOW_CHARACTERS = 3, 1000
_LEAST_PROBABILITY = 0.01
_CODE = re.compile(r"[a-z]{2,3}(_[a-z0-9]+)*")


def _code(value: str) -> str:
    if not value.strip():
        raise ValueError("a language code is empty")
    return canonical(value)


Code = Annotated[str, AfterValidator(_code)]
Share = Annotated[float, Field(ge=0, le=1)]


class LanguageConfig(StrictModel):
    """`keep`: codes to keep (`en`, or `en-gb` for that variant alone), empty keeps all and only labels. `engine`: fasttext or lingua.
    `model`: another fastText model, whose labels are then the codes. `min_letters`: a text with fewer has no language.
    `min_script_share`: a label whose scripts have a smaller share of the letters is passed over for the next best; 0: never.
    `paragraphs`: label them, too. `min_share`: least share of the letters in paragraphs that are in the document's language."""

    keep: tuple[Code, ...] = ()
    min_score: Share = 0.65
    min_score_by_language: dict[Code, Share] = {}
    engine: Literal["fasttext", "lingua"] = "fasttext"
    model: ExistingFile | None = None
    min_letters: int = Field(1, ge=1)
    min_script_share: Share = 0.25
    paragraphs: bool = False
    min_share: Share | None = None

    @model_validator(mode="after")
    def _sound(self) -> LanguageConfig:
        if self.min_share is not None and not self.paragraphs:
            raise ValueError("min_share needs paragraphs: true")
        if self.engine == "lingua" and self.model:
            raise ValueError("model is a model of fastText: leave it out with engine: lingua")
        for code in () if self.model else (*self.keep, *self.min_score_by_language):
            if not _CODE.fullmatch(code):
                raise ValueError(f'"{code}" is no language code: write ISO 639\'s, such as en or de')
        return self


class Language(Stage):
    """Sets `language` and `language_score`. A language that the source declared stands, without a score: it passes `min_score`, and
    `keep: [en]` keeps a declared `en-US` too.

    Rules, only when `keep` is given: too_short, wrong_script, language_not_kept, low_score; and mixed_language with `min_share`.
    """

    name = "language"
    Config = LanguageConfig
    outputs = ("language", "language_score")

    def __init__(self, config: LanguageConfig):
        super().__init__(config)
        if config.engine == "lingua" and not lingua_installed():
            raise ValueError(LINGUA_MISSING)

    def signals(self) -> tuple[str, ...]:
        return ("language_score", *(SHARES if self.config.paragraphs else ()))

    def thresholds(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        if self.config.keep:
            found["language_score"] = [{"rule": "low_score", "min": self.config.min_score, "max": None}]
        if self.config.min_share is not None:
            found["language_share"] = [{"rule": "mixed_language", "min": self.config.min_share, "max": None}]
        return found

    def open(self, context: StageContext) -> None:
        self._heartbeat = context.heartbeat
        engine: Engine = Lingua() if self.config.engine == "lingua" else FastText(self.config.model, context)
        self._labeller = Labeller(engine, self.config.min_letters, self.config.min_script_share)
        self.predict("a")  # compiles the kernels, or finds them compiled, before the clock of a batch runs

    def process(self, batch):
        column = pc.fill_null(batch.column("text"), "")
        declared = batch.column("language").to_pylist()
        labels = self._labels(column, declared)
        languages = [label.language for label in labels]
        scores = [label.score for label in labels]
        batch = set_column(batch, "language", pa.array(languages, pa.string()))
        batch = set_column(batch, "language_score", pa.array(scores, pa.float32()))
        batch = set_column(batch, "signals.language_score", pa.array(scores, pa.float64()))
        shares = [None] * len(labels)
        if self.config.paragraphs:
            shares = shares_of(column, languages, self._labeller, self._heartbeat)
            for name in SHARES:
                values = [getattr(found, name) if found else None for found in shares]
                batch = set_column(batch, f"signals.{name}", pa.array(values, pa.float64()))
        judged = (self._judge(row, label, found) for row, (label, found) in enumerate(zip(labels, shares, strict=True)))
        return StageResult(batch, [verdict for verdict in judged if verdict])

    def predict(self, text: str) -> tuple[str | None, float]:
        """(language code, score from 0 to 1) of a text; (None, 0) where it has none, as an empty text."""
        label = self._labels(pa.array([text], pa.large_string()), [None])[0]
        return label.language, label.score

    def probabilities(self, text: str) -> dict[str, float]:
        """Language code -> probability, the likeliest first, of all languages that have one percent or more in a short text."""
        return {label: score for label, score in self._labeller.engine.ranked(text) if score >= _LEAST_PROBABILITY}

    def keeps(self, language: str | None) -> bool:
        """Whether `keep` names a language or the one that it is a variant of."""
        code = canonical(language or "")
        return code in self.config.keep or base_of(code) in self.config.keep

    def _labels(self, column: pa.Array, declared: list[str | None]) -> list[Label]:
        """The label of each text: the declared one, or what the engine says of a sample of it."""
        labels = [Label(language, None) for language in declared]
        rows = np.array([row for row, language in enumerate(declared) if not language], np.int64)
        if not len(rows):
            return labels
        part: TextBuffers = text_buffers(column)
        letters = count_letters(part.data, part.offsets[rows], part.offsets[rows + 1])
        samples = [sample_of(text) for text in column.take(pa.array(rows)).to_pylist()]
        for row, label in zip(rows.tolist(), self._labeller.label(samples, letters, self._heartbeat), strict=True):
            labels[row] = label
        return labels

    def _judge(self, row: int, label: Label, shares: Shares | None) -> Verdict | None:
        config = self.config
        if config.keep and (verdict := self._judge_label(row, label)):
            return verdict
        share = shares.language_share if shares else None
        if config.min_share is not None and share is not None and share < config.min_share:
            return Verdict(row, "mixed_language", share, config.min_share, {"language": label.language, "second": shares.second})
        return None

    def _judge_label(self, row: int, label: Label) -> Verdict | None:
        config, detail = self.config, {"language": label.language}
        if label.problem == "too_short":
            return Verdict(row, "too_short", label.letters, config.min_letters, detail)
        if label.problem == "wrong_script":
            return Verdict(row, "wrong_script", label.script_share, config.min_script_share, {"language": label.refused})
        code = canonical(label.language or "")
        if not self.keeps(label.language):
            return Verdict(row, "language_not_kept", label.score, detail=detail)
        least = least_score(code, config.min_score, config.min_score_by_language)
        if label.score is not None and label.score < least:
            return Verdict(row, "low_score", label.score, least, detail)
        return None


def least_score(code: str, least: float, by_language: Mapping[str, float]) -> float:
    """The least score of a canonical code: its own, else that of its language, else the one for all."""
    return by_language.get(code, by_language.get(base_of(code), least))


def sample_of(text: str) -> str:
    """The part of a text that is shown to the model: all of a short one, else windows at its start, middle and end."""
    last = len(text) - WINDOW_CHARACTERS
    if len(text) <= WINDOWS * WINDOW_CHARACTERS:
        return text
    starts = [last * i // (WINDOWS - 1) for i in range(WINDOWS)]
    return " ".join(text[start : start + WINDOW_CHARACTERS] for start in starts)
