"""Presets: named lists of rules, read from presets.yaml, with thresholds that a pipeline may change."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from dataproc.rules.signals import SIGNALS
from store.strict_yaml import unknown_key


@dataclass(frozen=True)
class Rule:
    """Drops a document whose signal is below `least` or above `most`. `name` is `preset.rule`."""

    name: str
    signal: str
    least: float | None = None
    most: float | None = None

    def broken(self, value: float) -> float | None:
        """The threshold that a value breaks, or None."""
        if self.least is not None and value < self.least:
            return self.least
        if self.most is not None and value > self.most:
            return self.most
        return None


@functools.cache
def presets() -> dict[str, tuple[Rule, ...]]:
    """Preset name -> its rules, in order. Raises ValueError when the file names a signal that is none."""
    content = yaml.safe_load((Path(__file__).parent / "presets.yaml").read_text())
    made = {}
    for preset, entry in content.items():
        rules = []
        for name, rule in entry["rules"].items():
            if rule["signal"] not in SIGNALS:
                raise ValueError(f"presets.yaml: {preset}.{name} names no signal: {rule['signal']}")
            rules.append(Rule(f"{preset}.{name}", rule["signal"], rule.get("min"), rule.get("max")))
        made[preset] = tuple(rules)
    return made


def select(use: tuple[str, ...], changes: dict[str, float]) -> tuple[Rule, ...]:
    """The rules of the presets in use, with thresholds changed by `preset.rule`. Raises ValueError for a name that is none."""
    rules: dict[str, Rule] = {}
    for preset in use:
        if preset not in presets():
            raise ValueError(unknown_key(preset, list(presets())).replace("unknown key", "unknown preset").replace("valid keys", "presets"))
        rules |= {rule.name: rule for rule in presets()[preset]}
    for name, threshold in changes.items():
        if name not in rules:
            hint = f' (add "{name.partition(".")[0]}" to use)' if name.partition(".")[0] in presets().keys() - set(use) else ""
            raise ValueError(unknown_key(name, list(rules), "set") + hint)
        rule = rules[name]
        rules[name] = replace(rule, least=threshold) if rule.least is not None else replace(rule, most=threshold)
    return tuple(rules.values())
