"""The domain label of a document (web, code, books, math, ...), by which mixtures weigh and statistics group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import orjson
import pyarrow as pa
from pydantic import AfterValidator, Field, model_validator

from dataproc.documents import meta_json
from dataproc.fasttext_model import label_scores, load_model
from dataproc.stages.base import Stage, StageContext, StageResult, set_column
from dataproc.stages.url_filter import DomainList, UrlWord, domain_lists, load_words
from dataproc.stages.url_index import open_index
from dataproc.stages.url_words import UrlWords, word_text
from dataproc.urls import Address, parse
from store.strict_yaml import ExistingFile, StrictModel

LABELLED_BY = "domain_by"  # in a document's meta: the rule that labelled it
_LEAST_SCORE = 0.5
DEFAULT, INPUT = "default", "input"
_URL_KINDS = ("domains", "url_words", "url_pattern")
_KINDS = ("sources", *_URL_KINDS, "model")


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from error
    return value


def _label(value: str) -> str:
    if not value.strip():
        raise ValueError("a label is empty")
    return value.strip()


Label = Annotated[str, AfterValidator(_label)]


class LabelRule(StrictModel):
    """One way to a label: names of inputs, domains (or files of them), words in the URL, a regular expression that is searched in the
    URL, or a fastText model, whose best label counts from `min_score` on and is translated by `labels` (others decide nothing)."""

    label: Label | None = None
    sources: tuple[str, ...] = ()
    domains: tuple[DomainList, ...] = ()
    url_words: tuple[UrlWord, ...] = ()
    url_pattern: Annotated[str, AfterValidator(_pattern)] | None = None
    model: ExistingFile | None = None
    min_score: float = Field(_LEAST_SCORE, ge=0, le=1)
    labels: dict[str, Label] = {}  # the model's label -> ours; none: its labels are ours

    @model_validator(mode="after")
    def _one_way(self) -> LabelRule:
        if len(self.ways) != 1:
            raise ValueError(f"a rule goes by one of {', '.join(_KINDS)}; this one has {' and '.join(self.ways) or 'none'}")
        if self.model and self.label:
            raise ValueError("a model gives the label itself: leave label out and translate its labels by labels")
        if not self.model and not self.label:
            raise ValueError(f"which label do these {self.ways[0]} have? Give the rule a label")
        if not self.model and (self.labels or self.min_score != _LEAST_SCORE):
            raise ValueError("labels and min_score belong to a rule with a model")
        return self

    @property
    def ways(self) -> list[str]:
        """The kinds of look that the rule takes; one in a checked rule."""
        return [name for name in _KINDS if getattr(self, name)]


class LabelDomainConfig(StrictModel):
    """`rules`: the first that decides gives the label. `default`: the label of all other documents; none leaves them their input's."""

    rules: tuple[LabelRule, ...] = ()
    default: Label | None = None

    @model_validator(mode="after")
    def _decides(self) -> LabelDomainConfig:
        if not self.rules and not self.default:
            raise ValueError("neither rules nor a default: every document would keep its label")
        return self


class LabelDomain(Stage):
    """Sets `domain`, and `domain_by` in the document's meta: the rule that decided, by its place (from 1) and its kind (`2 domains`),
    `default` or `input`. Refuses nothing. The signal `domain_score` is the model's score where a model decided."""

    name = "label_domain"
    Config = LabelDomainConfig
    inputs = ("source", "url")  # and the text, where a model reads it: else the stage may stand before extraction
    outputs = ("domain",)

    def __init__(self, config: LabelDomainConfig):
        super().__init__(config)
        names = [*(_name(number, rule) for number, rule in enumerate(config.rules, 1)), DEFAULT, INPUT]
        self._counts: Counter[str] = Counter(dict.fromkeys(names, 0))
        self._by_url = any(rule.ways[0] in _URL_KINDS for rule in config.rules)
        self._by_text = any(rule.model for rule in config.rules)
        if self._by_text:
            self.inputs = (*self.inputs, "text")

    def named_inputs(self) -> tuple[str, ...]:
        return tuple(name for rule in self.config.rules for name in rule.sources)

    def signals(self) -> tuple[str, ...]:
        return ("domain_score",) if self._by_text else ()

    def measures(self) -> dict[str, float]:
        """Documents by the rule that decided."""
        return {name: float(count) for name, count in self._counts.items()}

    def open(self, context: StageContext) -> None:
        self._rules = [_made(number, rule, context.scratch) for number, rule in enumerate(self.config.rules, 1)]

    def process(self, batch):
        columns = ("source", "url", "domain", "meta")
        texts = batch.column("text").to_pylist() if self._by_text else [None] * batch.num_rows
        labels, scores, metas = [], [], []
        for source, url, given, meta, text in zip(*(batch.column(name).to_pylist() for name in columns), texts, strict=True):
            label, by, score = self._decide(source, url or "", text or "", given)
            labels.append(label)
            scores.append(score)
            metas.append(meta_json({**orjson.loads(meta or "{}"), LABELLED_BY: by}))
            self._counts[by] += 1
        batch = set_column(batch, "domain", pa.array(labels, pa.string()))
        batch = set_column(batch, "meta", pa.array(metas, pa.string()))
        if self._by_text:
            batch = set_column(batch, "signals.domain_score", pa.array(scores, pa.float64()))
        return StageResult(batch)

    def _decide(self, source: str, url: str, text: str, given: str | None) -> tuple[str | None, str, float | None]:
        """(label, what decided, score of a model that did)."""
        address = parse(url) if self._by_url and url else Address("", "", "")
        for rule in self._rules:
            label, score = rule.look(source, url, address, text)
            if label:
                return label, rule.name, score
        return (self.config.default, DEFAULT, None) if self.config.default else (given, INPUT, None)


class _Rule:
    """A rule ready to look at documents. name: as it is counted."""

    def __init__(self, name: str, label: str | None):
        self.name, self.label = name, label

    def look(self, source: str, url: str, address: Address, text: str) -> tuple[str | None, float | None]:
        """(label, score of a model) where the rule decides, else (None, None)."""
        return (self.label if self.holds(source, url, address) else None), None

    def holds(self, source: str, url: str, address: Address) -> bool:
        """Whether a rule with a label of its own decides."""
        raise NotImplementedError


class _BySource(_Rule):
    def __init__(self, name: str, label: str | None, sources: Sequence[str]):
        super().__init__(name, label)
        self._sources = frozenset(sources)

    def holds(self, source, url, address):
        return source in self._sources


class _ByDomain(_Rule):
    def __init__(self, name: str, label: str | None, domains: tuple[str, ...]):
        super().__init__(name, label)
        self._index = open_index(domain_lists(name, domains))

    def holds(self, source, url, address):
        return self._index.match(address) is not None


class _ByWords(_Rule):
    def __init__(self, name: str, label: str | None, words: tuple[str, ...]):
        super().__init__(name, label)
        self._words = UrlWords(load_words(words))

    def holds(self, source, url, address):
        return self._words.find(word_text(url)) is not None


class _ByPattern(_Rule):
    def __init__(self, name: str, label: str | None, pattern: str):
        super().__init__(name, label)
        self._pattern = re.compile(pattern)

    def holds(self, source, url, address):
        return self._pattern.search(url) is not None


class _ByModel(_Rule):
    def __init__(self, name: str, rule: LabelRule, scratch: str | None):
        super().__init__(name, None)
        self._model = load_model(rule.model, scratch, "stage label_domain")
        self._least, self._labels = rule.min_score, rule.labels

    def look(self, source, url, address, text):
        label, score = next(iter(label_scores(self._model, text, self._least).items()), (None, None))
        ours = self._labels.get(label) if self._labels else label
        return (ours, score) if ours else (None, None)


def _name(number: int, rule: LabelRule) -> str:
    return f"{number} {rule.ways[0]}"


def _made(number: int, rule: LabelRule, scratch: str | None) -> _Rule:
    way, name = rule.ways[0], _name(number, rule)
    if way == "model":
        return _ByModel(name, rule, scratch)
    kinds = {"sources": _BySource, "domains": _ByDomain, "url_words": _ByWords, "url_pattern": _ByPattern}
    return kinds[way](name, rule.label, getattr(rule, way))
