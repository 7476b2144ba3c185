"""Presets: named lists of rules, read from presets.yaml, with thresholds that a pipeline may change, also for single languages."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from dataproc.kernels.lists import base_language
from dataproc.rules.signals import SIGNALS
from store.strict_yaml import unknown_key

# Signals that a line-editing stage before the rules gives.
EDIT_SIGNALS: dict[str, float] = {"cut_line_fraction": 1.0, "cut_character_fraction": 1.0, "cut_word_fraction": 1.0}


@dataclass(frozen=True)
class Rule:
    """Drops a document whose signal is below `least` or above `most`, unless its language is one of `not_for`. `name` is
    `preset.rule`. A rule with neither threshold is switched off."""

    name: str
    signal: str
    least: float | None = None
    most: float | None = None
    not_for: frozenset[str] = frozenset()
    source: str = ""

    def with_threshold(self, threshold: float | None) -> Rule:
        """The rule with another threshold on its side; None switches it off."""
        if threshold is None:
            return replace(self, least=None, most=None)
        return replace(self, least=threshold) if self.least is not None else replace(self, most=threshold)

    def can_fire(self) -> bool:
        """Whether some value of the signal breaks it. Signals are never below 0."""
        largest = SIGNALS[self.signal].most if self.signal in SIGNALS else EDIT_SIGNALS[self.signal]
        return (self.least is not None and self.least > 0) or (self.most is not None and self.most < largest)


@functools.cache
def presets() -> dict[str, tuple[Rule, ...]]:
    """Preset name -> its rules, in order. Raises ValueError when the file names a signal that is none, or a rule that cannot fire."""
    made: dict[str, tuple[Rule, ...]] = {}
    for preset, entry in yaml.safe_load((Path(__file__).parent / "presets.yaml").read_text()).items():
        # A variant has the rules of the preset it is like, with some replaced, left out (null) or added.
        rules = {rule.name.partition(".")[2]: rule for rule in made[entry["like"]]} if "like" in entry else {}
        for name, rule in entry.get("rules", {}).items():
            if rule is None:
                del rules[name]
            else:
                rules[name] = _rule(f"{preset}.{name}", rule, entry["source"])
        made[preset] = tuple(replace(rule, name=f"{preset}.{name}") for name, rule in rules.items())
    return made


def _rule(name: str, rule: Mapping[str, Any], source: str) -> Rule:
    signal = rule["signal"]
    if signal not in SIGNALS and signal not in EDIT_SIGNALS:
        raise ValueError(f"presets.yaml: {name} names no signal: {signal}")
    made = Rule(name, signal, rule.get("min"), rule.get("max"), frozenset(rule.get("not_for", ())), rule.get("source", source))
    if not made.can_fire():
        raise ValueError(f"presets.yaml: {name} can never fire")
    return made


@dataclass(frozen=True)
class RuleSet:
    """The rules in use, and for some languages their own form of them."""

    rules: tuple[Rule, ...]
    by_language: Mapping[str, tuple[Rule, ...]]

    def of(self, language: str | None) -> tuple[Rule, ...]:
        """The rules for a document of a language (`en`, or `en-gb`, which falls back to `en`)."""
        if language is None:
            return self.rules
        found = self.by_language.get(language) or self.by_language.get(base_language(language)) or self.rules
        return tuple(rule for rule in found if base_language(language) not in rule.not_for)

    def signals(self) -> tuple[str, ...]:
        """The signals that any of the rules looks at, in their order."""
        return tuple(dict.fromkeys(rule.signal for rule in self.rules))


def select(
    use: tuple[str, ...], changes: Mapping[str, float | None], by_language: Mapping[str, Mapping[str, float | None]] | None = None
) -> RuleSet:
    """The rules of the presets in use, with thresholds changed by `preset.rule` (None: switched off), for all or for one language.
    Raises ValueError for a name that is none, and for a threshold that no value of its signal can break."""
    rules: dict[str, Rule] = {}
    for preset in use:
        if preset not in presets():
            raise ValueError(unknown_key(preset, list(presets())).replace("unknown key", "unknown preset").replace("valid keys", "presets"))
        rules |= {rule.name: rule for rule in presets()[preset]}
    rules = _changed(rules, changes, use, "set")
    languages = {
        language: tuple(_changed(rules, own, use, f"by_language.{language}").values()) for language, own in (by_language or {}).items()
    }
    return RuleSet(tuple(rules.values()), languages)


def _changed(rules: dict[str, Rule], changes: Mapping[str, float | None], use: tuple[str, ...], where: str) -> dict[str, Rule]:
    made = dict(rules)
    for name, threshold in changes.items():
        if name not in rules:
            preset = name.rpartition(".")[0]
            hint = f' (add "{preset}" to use)' if preset in presets().keys() - set(use) else ""
            raise ValueError(unknown_key(name, list(rules), where) + hint)
        made[name] = rules[name].with_threshold(threshold)
        if threshold is not None and not made[name].can_fire():
            raise ValueError(f"{where}: {name}: with the threshold {threshold:g} the rule can never fire; write null to switch it off")
    return made
