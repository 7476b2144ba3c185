"""Signals against values derived by hand from their definitions, and a slow reference for n-grams."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.rules.signals import SIGNALS, compute

# Eight distinct lines of twelve distinct words of one length, the first two once more: the text on which published tools disagree.
LINES = [" ".join(f"w{i}{chr(97 + j)}" for j in range(12)) for i in range(8)]
REPEATED = "\n".join(LINES + LINES[:2])


def signal(name: str, text: str) -> float:
    return compute(pa.array([text]), (name,))[name][0].as_py()


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
        ("words", "漢字 カタカナ abc", 4.0),
        ("words", "สวัสดี", 4.0),
        ("median_word_length", "a bb ccc dddd", 2.5),
        ("longest_word", "a bbb", 3.0),
        ("distinct_word_fraction", "a b a a", 0.5),
        ("word_entropy", "a a b b c c d d", 2.0),
        ("symbol_word_fraction", "#a b… c d", 0.5),
        ("url_per_word", "see http://x.org or www.y.org", 0.5),
        ("stop_word_fraction", "the cat and dog", 0.5),
        ("stop_word_occurrences", "The cat and the dog.", 3.0),
        ("cased_stop_words", "The cat and the dog.", 2.0),
        ("cased_stop_word_occurrences", "The cat and the dog.", 2.0),
        ("non_symbol_words", "a -- b !!", 2.0),
        ("mean_non_symbol_word_length", "ab -- c !!", 1.5),
        ("ascii_bullet_line_fraction", "• a\n- b", 0.5),
        ("ellipsis_character_line_fraction", "a...\nb…", 0.5),
        ("policy_phrases", "Our Terms of Use and JavaScript", 2.0),
        ("whitespace_fraction", "a b ", 0.5),
        ("alphabetic_fraction", "ab 1!", 0.5),
        ("digit_fraction", "ab 12", 0.5),
        ("symbol_fraction", "a +", 0.5),
        ("punctuation_fraction", "a !", 0.5),
        ("uppercase_fraction", "Ab 12", 0.5),
        ("compression_ratio", "abcdefgh" * 8, 11 / 64),
        ("longest_repeat", "a b c d e f a b c d e f", 6.0),
        ("script_latin_fraction", "aж", 0.5),
        ("script_han_fraction", "漢字カナ", 0.5),
        ("copied_line_fraction", "a\nb\na", 2 / 3),
        ("copied_paragraph_character_fraction", "ab\n\nc\n\nab", 4 / 5),
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


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_values_stay_within_what_the_signal_says(text):
    for name, values in compute(pa.array([text]), SIGNALS).items():
        assert 0 <= values[0].as_py() <= SIGNALS[name].most, name


def test_a_missing_text_has_no_signals_and_a_foreign_language_no_stop_words():
    found = compute(pa.array([None, "der Hund", "ulu the of"]), ("words", "stop_words"), ["de", "de_AT", "xx"])
    assert found["words"].to_pylist() == [None, 2.0, 3.0]
    assert found["stop_words"].to_pylist() == [None, 1.0, None]


def test_the_table_on_which_published_tools_disagree():
    """Eight distinct lines of twelve words, the first two once more: what each tool's formula gives, derived by hand. Words have three
    characters, lines 47, all ten lines 470, the text 479 with its line feeds; 120 words have 360 characters."""
    text = "\n".join(LINES + LINES[:2])
    expected = {
        "duplicate_line_fraction": 2 / 10,  # the paper, datatrove, NeMo Curator: copies after the first
        "copied_line_fraction": 4 / 10,  # dolma, DCLM: every copy
        "duplicate_line_character_fraction": 94 / 470,
        "duplicate_line_character_fraction_datatrove": 94 / 479,
        "copied_line_character_fraction": 188 / 470,
        "copied_line_character_fraction_dolma": 188 / 360,
        # Words 96 to 119 repeat words 0 to 23: all 24 lie in a 5-gram that occurred before.
        "duplicate_5gram_character_fraction": 24 / 120,
        "duplicate_5gram_character_fraction_dclm": 48 / 120,
        # 20 5-grams occur twice, of 116; all have 15 characters.
        "duplicate_5gram_character_fraction_dolma": 40 / 116,
        # Each repeat skips five words: at words 96, 101, 106 and 111 four repeats of 15 characters; at 116 too few words are left.
        "duplicate_5gram_character_fraction_datatrove": 60 / 479,
        # Nothing occurs more often than twice; a 2-gram has 6 characters, 7 with its space.
        "top_2gram_character_fraction": 12 / 360,
        "top_2gram_character_fraction_dolma": 12 / 360,
        "top_2gram_character_fraction_datatrove": 14 / 479,
        "longest_repeat": 24,
    }
    assert {name: signal(name, text) for name in expected} == pytest.approx(expected)


def test_a_text_in_which_nothing_repeats():
    text = "hello big world"  # the first 2-gram, "hello big", has 8 characters of 13, 9 of 15 with white space
    assert signal("top_2gram_character_fraction", text) == 0
    assert signal("top_2gram_character_fraction_dolma", text) == pytest.approx(8 / 13)
    assert signal("top_2gram_character_fraction_datatrove", text) == pytest.approx(9 / 15)


def test_a_ten_word_phrase_twice_by_every_formula():
    words = [f"x{i:03d}" for i in range(180)]
    text = " ".join(words[:90] + words[40:50] + words[90:])
    expected = {"": 10 / 190, "_dclm": 20 / 190, "_dolma": 2 / 181, "_datatrove": 40 / (190 * 5 - 1)}
    for suffix, value in expected.items():
        assert signal(f"duplicate_10gram_character_fraction{suffix}", text) == pytest.approx(value)


def test_a_signal_asked_for_alone_is_what_it_is_among_all():
    """Only what the wanted signals need is counted."""
    lines = "The wheel of the mill, and the water #1… {x}\nThe wheel of the mill, and the water #1… {x}\n\nsee https://a.b lorem ipsum privacy policy\n"
    text = pa.array(["Two + two. And so on…\n" + lines * 3 + "- Привет 漢字\n" + "one two three four five six seven eight nine ten " * 4])
    among = compute(text, SIGNALS)
    different = [name for name in SIGNALS if compute(text, [name])[name] != among[name]]
    zero = {name for name in SIGNALS if not among[name][0].as_py()}
    assert not different and zero <= {name for name in SIGNALS if name.startswith("script_")}, (different, zero)
