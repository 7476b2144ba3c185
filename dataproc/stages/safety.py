"""Safety: lists of words and phrases by language, and fastText classifiers of toxic or adult text."""

from __future__ import annotations

import gzip
import re
import zlib
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BeforeValidator, Field, field_validator, model_validator

from dataproc.documents import SIGNAL_PREFIX
from dataproc.fasttext_model import label_scores, load_model
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from store import files
from store.errors import ConfigError
from store.strict_yaml import ExistingFile, StrictModel

ALL = "all"
_LIST_SIGNALS = ("safety_matches", "safety_distinct", "safety_share")
_NAME = re.compile(r"[a-z][a-z0-9_]*")

ListFiles = Annotated[tuple[ExistingFile, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]


class SafetyModel(StrictModel):
    """`label` of a fastText `model`: its score is the signal `safety_<name>`, and a document above `max_score` is dropped."""

    name: str
    model: ExistingFile
    label: str
    max_score: float | None = Field(None, ge=0, le=1)

    @field_validator("name")
    @classmethod
    def _spelled(cls, value: str) -> str:
        if not _NAME.fullmatch(value) or f"safety_{value}" in _LIST_SIGNALS or value in ("max_matches", "max_distinct", "max_share"):
            raise ValueError(
                f"{value!r} cannot name a signal: use lower-case letters, digits and '_', and none of matches, distinct, share"
            )
        return value


class SafetyConfig(StrictModel):
    """`words`: files of words and phrases by language code, `all` for every language. A threshold that is left out drops nothing."""

    words: dict[str, ListFiles] = {}
    max_matches: int | None = Field(None, ge=0)
    max_distinct: int | None = Field(None, ge=0)
    max_share: float | None = Field(None, ge=0, le=1)
    models: tuple[SafetyModel, ...] = ()

    @field_validator("words")
    @classmethod
    def _codes(cls, value: dict[str, ListFiles]) -> dict[str, ListFiles]:
        return {code.strip().lower().replace("-", "_"): paths for code, paths in value.items()}

    @model_validator(mode="after")
    def _whole(self) -> SafetyConfig:
        names = [model.name for model in self.models]
        if repeated := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f'two models are named "{repeated}": names must differ')
        if not self.words and any(limit is not None for limit in (self.max_matches, self.max_distinct, self.max_share)):
            raise ValueError("a threshold on words needs lists of them: add `words: {en: lists/en.txt}`")
        if not self.words and not self.models:
            raise ValueError("there is nothing to look for: add `words` or `models`")
        return self


class Safety(Stage):
    """Signals: matches of the lists, different entries among them, share of the document's words that are inside matches; a score for each
    model. Rules, in this order: max_matches, max_distinct, max_share, and the name of each model with a `max_score`.

    An entry is found as whole words, whatever their case and Unicode form; each letter of a script without spaces is a word.
    """

    name = "safety"
    Config = SafetyConfig
    inputs = ("text", "language")

    def signals(self) -> tuple[str, ...]:
        lists = _LIST_SIGNALS if self.config.words else ()
        return (*lists, *(f"safety_{model.name}" for model in self.config.models))

    def thresholds(self) -> dict[str, list[dict[str, Any]]]:
        return {signal: [{"rule": rule, "min": None, "max": limit}] for rule, signal, limit in self._rules()}

    def _rules(self) -> list[tuple[str, str, float]]:
        """(rule, signal, most) of each threshold that is set."""
        c = self.config
        limits = zip(("max_matches", "max_distinct", "max_share"), _LIST_SIGNALS, (c.max_matches, c.max_distinct, c.max_share), strict=True)
        found = [*limits, *((model.name, f"safety_{model.name}", model.max_score) for model in c.models)]
        return [(rule, signal, float(limit)) for rule, signal, limit in found if limit is not None]

    def open(self, context: StageContext) -> None:
        from dataproc.kernels.wordlist import WordList

        self._heartbeat = context.heartbeat
        entries = {code: [entry for path in paths for entry in read_list(path)] for code, paths in self.config.words.items()}
        everywhere = entries.get(ALL, [])
        self._lists = {code: WordList([*everywhere, *found]) for code, found in entries.items() if code != ALL}
        self._lists[ALL] = WordList(everywhere)
        if self.config.words:
            self._look(pa.array(["a"], pa.large_string()), [None])  # compiles the kernels before the clock of a batch runs
        self._models = []
        for spec in self.config.models:
            model = load_model(spec.model, context.scratch, "stage safety")
            labels = label_scores(model, "a")
            if spec.label not in labels:
                raise ConfigError(f'stage safety: {spec.model} has no label "{spec.label}": it has {", ".join(sorted(labels)[:20])}')
            self._models.append((f"safety_{spec.name}", spec.label, model))

    def process(self, batch):
        column = pc.fill_null(batch.column("text"), "")
        shown: list[tuple[str, ...]] = [()] * len(column)
        signals: dict[str, np.ndarray] = {}
        if self.config.words:
            signals, shown = self._look(column, batch.column("language").to_pylist())
        if self._models:
            signals |= self._scores(column)
        for name, values in signals.items():
            batch = set_column(batch, SIGNAL_PREFIX + name, pa.array(values, pa.float64(), from_pandas=True))
        return StageResult(batch, self._verdicts(signals, shown))

    def _look(self, column: pa.Array, languages: list[str | None]) -> tuple[dict[str, np.ndarray], list[tuple[str, ...]]]:
        """Signals of the lists, and the entries that are named of each document."""
        from dataproc.kernels.columns import chunks

        (part,) = chunks(column)
        found = np.zeros((4, len(column)))
        shown: list[tuple[str, ...]] = [()] * len(column)
        rows_of: dict[str, list[int]] = {}
        for row, language in enumerate(languages):
            rows_of.setdefault(self._list_of(language), []).append(row)
        for code, rows in rows_of.items():
            result = self._lists[code].search(part, np.array(rows, np.int64))
            found[:, rows] = result.matches, result.distinct, result.covered, result.words
            for row, names in zip(rows, result.shown, strict=True):
                shown[row] = names
        matches, distinct, covered, words = found
        share = np.divide(covered, words, out=np.zeros_like(covered), where=words > 0)
        return dict(zip(_LIST_SIGNALS, (matches, distinct, share), strict=True)), shown

    def _list_of(self, language: str | None) -> str:
        """The list for a document: `en_gb` before `en`, and the one for every language where there is none of its own."""
        code = (language or "").lower().replace("-", "_")
        return next((name for name in (code, code.partition("_")[0]) if name in self._lists), ALL)

    def _scores(self, column: pa.Array) -> dict[str, np.ndarray]:
        """A score for each document and model; NaN for a text without a word."""
        scores: dict[str, list[float]] = {name: [] for name, _, _ in self._models}
        for text in column.to_pylist():
            for name, label, model in self._models:
                scores[name].append(label_scores(model, text).get(label, np.nan))
            self._heartbeat()
        return {name: np.array(values, np.float64) for name, values in scores.items()}

    def _verdicts(self, signals: dict[str, np.ndarray], shown: list[tuple[str, ...]]) -> list[Verdict]:
        broken: dict[int, list[tuple[str, float, float]]] = {}
        for rule, signal, limit in self._rules():
            for row in np.flatnonzero(signals[signal] > limit).tolist():  # NaN breaks nothing
                broken.setdefault(row, []).append((rule, float(signals[signal][row]), limit))
        verdicts = []
        for row, ((rule, value, limit), *others) in sorted(broken.items()):
            detail: dict[str, Any] = {"also": [name for name, _, _ in others]} if others else {}
            verdicts.append(Verdict(row, rule, value, limit, detail | ({"matched": list(shown[row])} if shown[row] else {})))
        return verdicts


def read_list(path: str) -> list[str]:
    """The entries of a list: one a line, `#` begins a comment where it stands first or after white space, .gz too. Raises ConfigError for
    a file that is no text and an entry that cannot be found in any text, with its line."""
    from dataproc.kernels.wordlist import check_entry

    data = files.read_bytes(path)
    try:
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise ConfigError(f"stage safety: {path} is not a list of words (UTF-8 text or gzip): {error}") from error
    entries = []
    for number, line in enumerate(text.split("\n"), 1):
        entry = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
        if not entry:
            continue
        try:
            check_entry(entry)
        except ValueError as error:
            raise ConfigError(f"stage safety: {path}, line {number}: {error}") from error
        entries.append(entry)
    return entries
