"""Presets: named lists of rules, read from presets.yaml, with thresholds that a pipeline may change, also for single languages
and domains."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
    """The rules in use, and for some languages and domains their own form of them."""

    rules: tuple[Rule, ...]
    by_language: Mapping[str, tuple[Rule, ...]]
    by_domain: Mapping[str, RuleSet] = field(default_factory=dict)

    def of(self, language: str | None, domain: str | None = None) -> tuple[Rule, ...]:
        """The rules for a document of a language (`en`, or `en-gb`, which falls back to `en`) and a domain label."""
        if domain in self.by_domain:
            return self.by_domain[domain].of(language)
        if language is None:
            return self.rules
        found = self.by_language.get(language) or self.by_language.get(base_language(language)) or self.rules
        return tuple(rule for rule in found if base_language(language) not in rule.not_for)

    def every(self) -> tuple[Rule, ...]:
        """All rules of all domains, each once, as they are for no language in particular."""
        return tuple(dict.fromkeys([*self.rules, *(rule for rules in self.by_domain.values() for rule in rules.rules)]))

    def languages(self) -> set[str]:
        """Languages for which some rule is another one, or none."""
        own = (set(rules.by_language) for rules in (self, *self.by_domain.values()))
        return set().union(*own, *(rule.not_for for rule in self.every()))

    def signals(self) -> tuple[str, ...]:
        """The signals that any of the rules looks at, in their order."""
        return tuple(dict.fromkeys(rule.signal for rule in self.every()))


@dataclass(frozen=True)
class Selection:
    """Presets by name, thresholds by `preset.rule` (None: switched off), and the same for single languages. use: None for the presets
    that other documents have."""

    use: tuple[str, ...] | None
    changes: Mapping[str, float | None] = field(default_factory=dict)
    by_language: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


def select(
    use: tuple[str, ...],
    changes: Mapping[str, float | None],
    by_language: Mapping[str, Mapping[str, float | None]] | None = None,
    by_domain: Mapping[str, Selection] | None = None,
) -> RuleSet:
    """The rules of the presets in use, with thresholds changed for all, for one language or for the documents of one domain. A domain
    with presets of its own has nothing of the others' changes. Raises ValueError for a name that is none, for a threshold that no value
    of its signal can break, and for a domain that changes nothing."""
    whole = _select(Selection(use, changes, by_language or {}), "")
    domains = {}
    for domain, own in (by_domain or {}).items():
        where = f"by_domain.{domain}"
        if own.use is None and not own.changes and not own.by_language:
            raise ValueError(f"{where}: nothing is changed: give it use, set or by_language, or leave it out")
        if own.use is None:
            languages = {
                language: {**(by_language or {}).get(language, {}), **own.changes, **own.by_language.get(language, {})}
                for language in {**(by_language or {}), **own.by_language}
            }
            _select(Selection(use, own.changes, own.by_language), where)  # so that an error says where it was written
            own = Selection(use, {**changes, **own.changes}, languages)
        domains[domain] = _select(own, where)
    return RuleSet(whole.rules, whole.by_language, domains)


def _select(selection: Selection, where: str) -> RuleSet:
    rules: dict[str, Rule] = {}
    place = f"{where}." if where else ""
    for preset in selection.use:
        if preset not in presets():
            message = unknown_key(preset, list(presets()), where)
            raise ValueError(message.replace("unknown key", "unknown preset").replace("valid keys", "presets"))
        rules |= {rule.name: rule for rule in presets()[preset]}
    rules = _changed(rules, selection.changes, selection.use, f"{place}set")
    languages = {
        language: tuple(_changed(rules, own, selection.use, f"{place}by_language.{language}").values())
        for language, own in selection.by_language.items()
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
