"""Rules: all signals first, then one verdict by the first rule that is broken."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pydantic import model_validator

from dataproc.documents import SIGNAL_PREFIX
from dataproc.rules.presets import select
from dataproc.rules.signals import compute
from dataproc.stages.base import Stage, StageResult, Verdict, set_column
from store.strict_yaml import StrictModel


class RulesConfig(StrictModel):
    """`use`: presets, in the order in which their rules are tried. `set`: thresholds by `preset.rule`."""

    use: tuple[str, ...] = ("gopher_quality", "gopher_repetition")
    set: dict[str, float] = {}

    @model_validator(mode="after")
    def _known(self) -> RulesConfig:
        select(self.use, self.set)
        return self


class Rules(Stage):
    """Computes every signal that the presets in use need, and drops a document by the first rule it breaks; `also` names the others."""

    name = "rules"
    Config = RulesConfig

    def __init__(self, config: RulesConfig):
        super().__init__(config)
        self.rules = select(config.use, config.set)
        self._signals = tuple(dict.fromkeys(rule.signal for rule in self.rules))

    def signals(self) -> tuple[str, ...]:
        return self._signals

    def thresholds(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for rule in self.rules:
            found.setdefault(rule.signal, []).append({"rule": rule.name, "min": rule.least, "max": rule.most})
        return found

    def process(self, batch):
        table = [compute(text or "", self._signals) for text in batch.column("text").to_pylist()]
        for position, name in enumerate(self._signals):
            batch = set_column(batch, SIGNAL_PREFIX + name, pa.array([row[position] for row in table], pa.float64()))
        verdicts = [v for row, values in enumerate(table) if (v := self._judge(row, dict(zip(self._signals, values, strict=True))))]
        return StageResult(batch, verdicts)

    def _judge(self, row: int, values: dict[str, float]) -> Verdict | None:
        broken = [(rule, limit) for rule in self.rules if (limit := rule.broken(values[rule.signal])) is not None]
        if not broken:
            return None
        rule, limit = broken[0]
        also = [other.name for other, _ in broken[1:]]
        return Verdict(row, rule.name, values[rule.signal], float(limit), {"also": also} if also else {})
