"""Signals against values derived by hand from their definitions, and a slow reference for n-grams."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.rules.presets import presets
from dataproc.rules.signals import SIGNALS, TextUnits, compute

# Eight distinct lines of twelve distinct words of one length, the first two once more: the text on which published tools disagree.
LINES = [" ".join(f"w{i}{chr(97 + j)}" for j in range(12)) for i in range(8)]
REPEATED = "\n".join(LINES + LINES[:2])


def signal(name: str, text: str) -> float:
    return compute(text, (name,))[0]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("duplicate_line_fraction", REPEATED, 2 / 10),
        ("duplicate_line_character_fraction", REPEATED, 2 / 10),
        ("duplicate_5gram_character_fraction", REPEATED, 24 / 120),
        ("duplicate_10gram_character_fraction", REPEATED, 24 / 120),
        ("top_2gram_character_fraction", REPEATED, 2 * 2 / 120),
        ("duplicate_paragraph_fraction", "a b\n\nc d\n\na b", 1 / 3),
        ("duplicate_paragraph_character_fraction", "ab\n\nc\n\nab", 2 / 5),
        ("duplicate_line_fraction", "a\n\n\nb\n\na", 1 / 3),
        ("top_2gram_character_fraction", "hello big world", 0.0),
        ("top_2gram_character_fraction", "a b a b", 1.0),
        ("mean_word_length", "ab abcd", 3.0),
        ("hash_per_word", "# a b c", 0.25),
        ("ellipsis_per_word", "wait... no", 0.5),
        ("bullet_line_fraction", "- a\nb", 0.5),
        ("ellipsis_line_fraction", "a…\nb", 0.5),
        ("alphabetic_word_fraction", "a 1 b2", 2 / 3),
        ("stop_words", "The cat and the dog.", 2.0),
        ("stop_words", "That, with; BE!", 3.0),
        ("sentences", "Yes. No! (Why?) e.g.this 3.5", 3.0),
        ("sentences", "水が流れる。止まる。", 2.0),
        ("curly_brackets", "f() { return; }", 2.0),
        ("lorem_ipsum", "Lorem Ipsum dolor", 1.0),
        ("terminal_line_fraction", 'One.\ntwo\n"Three!"', 2 / 3),
        ("short_line_fraction", "short\n" + "x" * 31, 0.5),
        ("newlines_per_word", "a\nb", 0.5),
    ],
)
def test_values_derived_by_hand(name, text, value):
    assert signal(name, text) == pytest.approx(value)


def test_one_ten_word_phrase_twice_in_190_words():
    """Ten of 190 words of equal length lie in a 10-gram that occurred before."""
    words = [f"x{i:03d}" for i in range(180)]
    text = " ".join(words[:90] + words[40:50] + words[90:])
    assert signal("duplicate_10gram_character_fraction", text) == pytest.approx(10 / 190)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000"])
@pytest.mark.parametrize("name", list(SIGNALS))
def test_an_empty_text_has_every_signal(name, text):
    assert signal(name, text) >= 0


@given(st.lists(st.sampled_from(["a", "bb", "ccc", "d"]), max_size=40), st.integers(5, 10))
def test_duplicate_ngrams_equal_a_plain_count(words, n):
    seen, covered = set(), set()
    for i in range(len(words) - n + 1):
        gram = tuple(words[i : i + n])
        if gram in seen:
            covered |= set(range(i, i + n))
        seen.add(gram)
    total = sum(map(len, words))
    expected = sum(len(words[i]) for i in covered) / total if total else 0.0
    assert signal(f"duplicate_{n}gram_character_fraction", " ".join(words)) == pytest.approx(expected)


@given(st.lists(st.sampled_from(["a", "bb", "ccc", "d"]), max_size=40), st.integers(2, 4))
def test_top_ngrams_equal_a_plain_count(words, n):
    grams = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    most = max(grams.values(), default=0)
    total = sum(map(len, words))
    longest = max((sum(map(len, g)) for g, c in grams.items() if c == most), default=0)
    expected = min(1.0, most * longest / total) if most > 1 else 0.0
    assert signal(f"top_{n}gram_character_fraction", " ".join(words)) == pytest.approx(expected)


@given(st.text())
def test_fractions_are_fractions(text):
    for name, value in zip(SIGNALS, compute(text, tuple(SIGNALS)), strict=True):
        assert value >= 0
        if name.endswith("fraction"):
            assert value <= 1


def test_units_are_as_documented():
    units = TextUnits(" one\u00a0two \n\n  three\n \nfour ")
    assert units.words == ["one", "two", "three", "four"]
    assert units.lines == ["one\u00a0two", "three", "four"] and units.paragraphs == ["one\u00a0two", "three", "four"]


def test_every_preset_rule_can_fire():
    for preset, rules in presets().items():
        for rule in rules:
            assert rule.signal in SIGNALS, f"{preset}: {rule.name}"
            assert rule.broken(-1.0) is not None or rule.broken(1e12) is not None
