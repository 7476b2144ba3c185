"""Rules: all signals first, then one verdict by the first rule that is broken."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, model_validator

from dataproc.documents import SIGNAL_PREFIX
from dataproc.rules.presets import EDIT_SIGNALS, Rule, RuleSet, Selection, select
from dataproc.rules.signals import SIGNALS, compute
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from store.strict_yaml import StrictModel, unknown_key

ALL = "all"


def _known_signal(name: str) -> str:
    if name != ALL and name not in SIGNALS:
        raise ValueError(unknown_key(name, [ALL, *SIGNALS]).replace("unknown key", "unknown signal").replace("valid keys", "signals"))
    return name


EDITED_BEFORE = "put clean before it with drop_lines, for example `- clean: {drop_lines: [refinedweb]}`"


class DomainRules(StrictModel):
    """The rules of one domain. `use`: its own presets, with nothing of what is set for the others; without it the others' presets, with
    what `set` and `by_language` change in them."""

    use: tuple[str, ...] | None = None
    set: dict[str, float | None] = {}
    by_language: dict[str, dict[str, float | None]] = {}


class RulesConfig(StrictModel):
    """`use`: presets, in the order in which their rules are tried. `set`: thresholds by `preset.rule`, null switches a rule off;
    `by_language`: the same for documents of one language. `by_domain`: rules for the documents of one domain label. `signals`: signals
    to keep beside those that the rules look at, or `all`."""

    use: tuple[str, ...] = ("gopher_quality", "gopher_repetition")
    set: dict[str, float | None] = {}
    by_language: dict[str, dict[str, float | None]] = {}
    by_domain: dict[str, DomainRules] = {}
    signals: tuple[Annotated[str, AfterValidator(_known_signal)], ...] = ()

    @model_validator(mode="after")
    def _known(self) -> RulesConfig:
        self.selected()
        return self

    def selected(self) -> RuleSet:
        """The rules that are meant. Raises ValueError for what names nothing or can never fire."""
        domains = {name: Selection(own.use, own.set, own.by_language) for name, own in self.by_domain.items()}
        return select(self.use, self.set, self.by_language, domains)


class Rules(Stage):
    """Computes every signal that the presets in use need, and drops a document by the first rule it breaks; `also` names the others."""

    name = "rules"
    Config = RulesConfig
    inputs = ("text", "language", "domain")

    def __init__(self, config: RulesConfig):
        super().__init__(config)
        self.rules = config.selected()
        wanted = [name for name in self.rules.signals() if name not in EDIT_SIGNALS]
        self._signals = tuple(dict.fromkeys([*wanted, *(SIGNALS if ALL in config.signals else config.signals)]))

    def signals(self) -> tuple[str, ...]:
        return self._signals

    def needed_signals(self) -> dict[str, str]:
        return {name: EDITED_BEFORE for name in self.rules.signals() if name in EDIT_SIGNALS}

    def thresholds(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for rule in self.rules.every():
            if rule.least is not None or rule.most is not None:
                found.setdefault(rule.signal, []).append({"rule": rule.name, "min": rule.least, "max": rule.most})
        return found

    def open(self, context: StageContext) -> None:
        compute(pa.array([""]), self._signals)  # compiles the kernels, or finds them compiled, before the clock of a batch runs

    def process(self, batch):
        languages = batch.column("language").to_pylist()
        columns = compute(pc.fill_null(batch.column("text"), ""), self._signals, languages)
        for name, values in columns.items():
            batch = set_column(batch, SIGNAL_PREFIX + name, values)
        return StageResult(batch, judge(self.rules, languages, batch.column("domain").to_pylist(), batch))


def judge(rules: RuleSet, languages: list[str | None], domains: list[str | None], batch: pa.RecordBatch | pa.Table) -> list[Verdict]:
    """A verdict for each row that breaks a rule, from the columns `signals.<name>`. languages, domains: of each row."""
    verdicts = []
    by_kind: dict[tuple[str | None, str | None], list[int]] = {}
    for row, kind in enumerate(zip(languages, domains, strict=True)):
        by_kind.setdefault(kind, []).append(row)
    groups: dict[tuple[Rule, ...], list[int]] = {}  # kinds of documents that have the same rules are looked at together
    for kind, rows in by_kind.items():
        groups.setdefault(rules.of(*kind), []).extend(rows)
    signals = dict.fromkeys(rule.signal for own in groups for rule in own)
    columns = {name: batch.column(SIGNAL_PREFIX + name).to_numpy(zero_copy_only=False) for name in signals}  # null as NaN, breaks nothing
    for own, rows in groups.items():
        chosen = np.array(sorted(rows))
        broken: dict[int, list[tuple[Rule, float, float]]] = {}
        for rule in own:
            values = columns[rule.signal][chosen]
            for bad, limit in ((np.less, rule.least), (np.greater, rule.most)):
                if limit is not None:
                    for place in np.flatnonzero(bad(values, limit)).tolist():
                        broken.setdefault(int(chosen[place]), []).append((rule, float(values[place]), float(limit)))
        for row, found in broken.items():
            rule, value, limit = found[0]
            also = [other.name for other, _, _ in found[1:]]
            verdicts.append(Verdict(row, rule.name, value, limit, {"also": also} if also else {}))
    return sorted(verdicts, key=lambda verdict: verdict.row)
