"""Presets are data: every rule names a signal and can fire, variants say what they are like, changes are checked."""

from __future__ import annotations

import pytest

from dataproc.rules.presets import EDIT_SIGNALS, Selection, presets, select
from dataproc.rules.signals import SIGNALS


def test_every_rule_names_a_signal_has_a_source_and_can_fire():
    for preset, rules in presets().items():
        for rule in rules:
            assert rule.signal in SIGNALS or rule.signal in EDIT_SIGNALS
            assert rule.name.rpartition(".")[0] == preset and rule.source and rule.can_fire()


def test_a_variant_differs_where_its_peer_does_and_only_there():
    paper = {rule.name.partition(".")[2]: rule.signal for rule in presets()["gopher_quality"]}
    dolma = {rule.name.partition(".")[2]: rule.signal for rule in presets()["gopher_quality@dolma"]}
    assert dolma["min_mean_word_length"] == "median_word_length" and "max_ellipsis_per_word" not in dolma
    assert dolma["min_words"] == paper["min_words"]


def test_thresholds_change_for_all_and_for_one_language():
    rules = select(
        ("gopher_quality",), {"gopher_quality.min_words": 30, "gopher_quality.max_words": None}, {"de": {"gopher_quality.min_words": 40}}
    )
    least = {
        language: next(r.least for r in rules.of(language) if r.name.endswith("min_words")) for language in (None, "en", "de", "de_at")
    }
    assert least == {None: 30, "en": 30, "de": 40, "de_at": 40}
    assert next(r for r in rules.of("en") if r.name.endswith("max_words")).most is None


def test_word_length_is_no_rule_where_a_word_is_a_letter():
    rules = select(("gopher_quality",), {})
    assert "gopher_quality.min_mean_word_length" in {r.name for r in rules.of("en")}
    assert "gopher_quality.min_mean_word_length" not in {r.name for r in rules.of("zh")}
    assert "gopher_quality.min_mean_word_length" not in {r.name for r in rules.of("zh-tw")}


@pytest.mark.parametrize(
    ("use", "changes", "by_language", "says"),
    [
        (("gopher_qualty",), {}, {}, 'unknown preset "gopher_qualty": did you mean "gopher_quality"'),
        (("gopher_quality",), {"gopher_quality.min_word": 3}, {}, "min_word"),
        (("gopher_quality",), {"gopher_quality.min_words": 0}, {}, "can never fire"),
        (("gopher_quality",), {"gopher_quality.max_bullet_lines": 1}, {}, "can never fire"),
        (("gopher_quality",), {}, {"de": {"c4.min_sentences": 1}}, r'by_language.de.*add "c4" to use'),
    ],
)
def test_a_change_that_means_nothing_is_refused(use, changes, by_language, says):
    with pytest.raises(ValueError, match=says):
        select(use, changes, by_language)


def test_a_domain_has_presets_of_its_own_or_changes_those_of_all():
    rules = select(
        ("gopher_quality",),
        {"gopher_quality.min_words": 30},
        {"de": {"gopher_quality.min_words": 40}},
        {
            "code": Selection(("code",), {"code.max_longest_line": 500}),
            "books": Selection(None, {"gopher_quality.max_words": 5_000_000}, {"de": {"gopher_quality.min_words": 70}}),
            "raw": Selection(()),
        },
    )

    def limits(language, domain):
        found = {rule.name: rule for rule in rules.of(language, domain)}
        return [(found[name].least, found[name].most) for name in ("gopher_quality.min_words", "gopher_quality.max_words")]

    assert limits("en", "web") == [(30, None), (None, 100_000)] and limits("de", None) == [(40, None), (None, 100_000)]
    assert limits("en", "books") == [(30, None), (None, 5_000_000)] and limits("de_at", "books") == [(70, None), (None, 5_000_000)]
    code = rules.of("en", "code")
    assert {rule.name.partition(".")[0] for rule in code} == {"code"} and rules.of("de", "code") == code
    assert next(rule.most for rule in code if rule.name == "code.max_longest_line") == 500
    assert rules.of("en", "raw") == ()
    assert {"words", "longest_line"} <= set(rules.signals())


def test_what_a_domain_sets_counts_after_what_a_language_sets_for_all():
    rules = select(("c4",), {}, {"de": {"c4.min_sentences": 9}}, {"books": Selection(None, {"c4.min_sentences": 2})})
    assert [rules.of("de", domain)[0].least for domain in ("web", "books")] == [9, 2]


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (Selection(("cod",)), 'unknown preset "cod" in by_domain.code: did you mean "code"'),
        (Selection(("code",), {"code.max_longest": 3}), "by_domain.code.set"),
        (Selection(("code",), {"gopher_quality.min_words": 3}), r'by_domain.code.set.*add "gopher_quality" to use'),
        (Selection(("code",), {"code.min_lines": 0}), "by_domain.code.set: code.min_lines: with the threshold 0 the rule can never fire"),
        (Selection(None, {}, {"de": {"c4.min_sentences": 1}}), r'by_domain.code.by_language.de.*add "c4" to use'),
        (Selection(None), "by_domain.code: nothing is changed"),
    ],
)
def test_a_domain_that_means_nothing_is_refused(own, says):
    with pytest.raises(ValueError, match=says):
        select(("gopher_quality",), {}, {}, {"code": own})
