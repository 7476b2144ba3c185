"""The file that says how a quality model is made: `headrace data train-quality CONFIG.yaml`."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from dataproc.quality_models.on_signals import DEFAULT_SIGNALS
from dataproc.rules.signals import SIGNALS
from store import files
from store.artefacts import NAME_PATTERN
from store.strict_yaml import StrictModel, load_strict, locate, unknown_key

Share = Annotated[float, Field(gt=0, lt=1)]


class LabelledData(StrictModel):
    """One input of labelled documents. `url_field` or `domain_field`: what says which site a document is from; without one each document
    is its own site. `language_field`: its language, guessed where there is none."""

    path: str
    format: Literal["jsonl", "parquet"] = "jsonl"
    text_field: str = "text"
    label_field: str = "label"
    id_field: str | None = None
    url_field: str | None = None
    domain_field: str | None = None
    language_field: str | None = None

    @model_validator(mode="after")
    def _fields(self) -> LabelledData:
        if self.url_field and self.domain_field:
            raise ValueError("url_field and domain_field both say what a document's site is: name one")
        return self


class FastTextSettings(StrictModel):
    """Settings of fastText's supervised model, with its meaning; the file that is written holds them."""

    dim: int = Field(16, ge=1, le=1024)
    epochs: int = Field(25, ge=1, le=1000)
    rate: float = Field(0.5, gt=0, le=100)
    word_ngrams: int = Field(2, ge=1, le=10)
    bucket: int = Field(1 << 18, ge=1, le=1 << 26)
    min_count: int = Field(1, ge=1)
    min_n: int = Field(2, ge=0, le=20)
    max_n: int = Field(5, ge=0, le=20)

    @model_validator(mode="after")
    def _characters(self) -> FastTextSettings:
        if self.min_n > self.max_n or (self.max_n and not self.min_n):
            raise ValueError(f"min_n {self.min_n} and max_n {self.max_n} are no lengths of character n-grams: write both, or neither")
        return self


def _known(name: str) -> str:
    if name not in SIGNALS:
        raise ValueError(unknown_key(name, list(SIGNALS)).replace("unknown key", "unknown signal").replace("valid keys", "signals"))
    return name


class SignalSettings(StrictModel):
    """`use`: signals of docs/signals.md; `l2`: of the penalty on standardised weights."""

    use: tuple[Annotated[str, AfterValidator(_known)], ...] = Field(DEFAULT_SIGNALS, min_length=1)
    l2: float = Field(1.0, gt=0)


class TrainingFile(StrictModel):
    """A training file as written."""

    name: str
    version: str
    owner: str
    engine: Literal["fasttext", "signals"] = "fasttext"
    data: tuple[LabelledData, ...] = Field(min_length=1)
    labels: dict[str, tuple[str, ...]] = Field(min_length=2)
    positive: str = ""  # the label whose probability is the score; the first when it is not named
    holdout: Share = 0.2
    seed: int = Field(1, ge=0, lt=1 << 32)
    balance: Literal["none", "undersample", "weight"] = "none"
    near_similarity: Share | None = 0.7  # texts as alike as that count as one; null: only equal ones
    near_ngram: int = Field(5, ge=1, le=64)
    keep_rates: tuple[Share, ...] = (0.1, 0.2, 0.5)
    max_damaged_fraction: float = Field(0.01, ge=0, le=1)
    fasttext: FastTextSettings = FastTextSettings()
    signals: SignalSettings = SignalSettings()

    @field_validator("name", "version", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    @field_validator("name", "version")
    @classmethod
    def _name(cls, value: str) -> str:
        if not NAME_PATTERN.fullmatch(value):
            raise ValueError(f"{value!r} is not a name: use letters, digits, '.', '_' and '-', starting with a letter or digit")
        return value

    @field_validator("labels", mode="before")
    @classmethod
    def _raw_labels(cls, value: Any) -> Any:
        """A label in the data may be a number or a truth value: they are compared as JSON writes them."""
        if not isinstance(value, dict):
            return value
        lists = {str(name): raw if isinstance(raw, (list, tuple)) else [raw] for name, raw in value.items()}
        return {name: tuple(raw_label(item) for item in raw) for name, raw in lists.items()}

    @model_validator(mode="after")
    def _consistent(self) -> TrainingFile:
        every = [raw for raws in self.labels.values() for raw in raws]
        if twice := next((raw for raw in every if every.count(raw) > 1), None):
            raise ValueError(f'labels: "{twice}" stands for two labels')
        if bad := next((name for name in self.labels if not name or any(c.isspace() or c == "\0" for c in name)), None):
            raise ValueError(f"labels: {bad!r} is no name for a label: white space ends a word in a fastText model")
        if self.positive and self.positive not in self.labels:
            raise ValueError(f"positive: {unknown_key(self.positive, list(self.labels)).replace('key', 'label')}")
        if self.engine == "signals" and len(self.labels) != 2:
            raise ValueError("a model on signals tells two labels apart: map the others to one of two")
        return self

    @property
    def wanted(self) -> str:
        """The label whose probability is the score."""
        return self.positive or next(iter(self.labels))


def raw_label(value: Any) -> str | None:
    """A label as it stands in the data, as text: 1 and "1" are the same, true is "true". None for what is no label."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, (str, int, float)) else None


def load_training(path: str) -> TrainingFile:
    """Reads a training file; relative paths of its data are located. Raises ConfigError with the line and the nearest valid key."""
    config = load_strict(path, TrainingFile)
    base = os.path.dirname(files.local_path(path)) if files.is_local(path) else None
    return config.model_copy(update={"data": tuple(d.model_copy(update={"path": locate(d.path, base)}) for d in config.data)})
