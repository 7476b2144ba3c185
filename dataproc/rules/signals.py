"""Signals: numbers computed from a text. Each is a formula over what the kernels count (dataproc/kernels/counts.py).

docs/signals.md defines every signal with a worked example. Fractions of nothing are 0.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dataproc.kernels.counts import (
    CODE,
    COMPRESSION,
    DISTINCT,
    FORMULA,
    LINE_COPIES,
    PARAGRAPH_COPIES,
    PHRASES,
    REPEATS,
    SENTENCES,
    SHAPES,
    STOPS,
)
from dataproc.kernels.lists import STOP_WORDS, base_language

if TYPE_CHECKING:
    from dataproc.kernels.measure import Counts

ROWS_AT_ONCE = 4096
_SCRIPTS = ("latin", "cyrillic", "greek", "arabic", "hebrew", "devanagari", "bengali", "tamil", "thai", "han", "kana", "hangul", "other")


@dataclass(frozen=True)
class Signal:
    """`formula`: from Counts to (rows,) float64. `most`: the largest value there can be; the least is always 0. `needs`: what must be
    counted for it, as flags of counts.py; with STOPS the signal is null for a language without stop words."""

    formula: Callable[[Counts], np.ndarray]
    most: float = math.inf
    needs: int = 0


def _count(name: str) -> Callable[[Counts], np.ndarray]:
    return lambda counts: counts[name].astype(np.float64)


def _ratio(part: str | tuple[str, ...], whole: str, limit: float = math.inf) -> Callable[[Counts], np.ndarray]:
    """Sum of the parts over the whole; 0 where the whole is 0."""
    names = (part,) if isinstance(part, str) else part

    def formula(counts: Counts) -> np.ndarray:
        parts = sum(counts[name] for name in names).astype(np.float64)
        whole_count = counts[whole].astype(np.float64)
        return np.minimum(np.divide(parts, whole_count, out=np.zeros_like(parts), where=whole_count > 0), limit)

    return formula


def _marks(name: str) -> Callable[[Counts], np.ndarray]:
    """A share of the characters that are not white space."""

    def formula(counts: Counts) -> np.ndarray:
        parts, visible = counts[name].astype(np.float64), (counts["CHARACTERS"] - counts["SPACES"]).astype(np.float64)
        return np.divide(parts, visible, out=np.zeros_like(parts), where=visible > 0)

    return formula


def _mean_line_length(counts: Counts) -> np.ndarray:
    """Characters that are no line feeds over lines, blank ones too."""
    characters, lines = (counts["CHARACTERS"] - counts["NEWLINES"]).astype(np.float64), counts["ALL_LINES"].astype(np.float64)
    return np.divide(characters, lines, out=np.zeros_like(characters), where=lines > 0)


def _made() -> dict[str, Signal]:
    made = {
        "bytes": Signal(_count("BYTES")),
        "characters": Signal(_count("CHARACTERS")),
        "words": Signal(_count("WORDS")),
        "mean_word_length": Signal(_ratio("WORD_CHARACTERS", "WORDS")),
        "median_word_length": Signal(lambda counts: counts["TWICE_MEDIAN_WORD"] / 2.0, needs=SHAPES),
        "longest_word": Signal(_count("LONGEST_WORD"), needs=SHAPES),
        "non_symbol_words": Signal(_count("NON_SYMBOL_WORDS"), needs=SHAPES),
        "mean_non_symbol_word_length": Signal(_ratio("NON_SYMBOL_WORD_CHARACTERS", "NON_SYMBOL_WORDS"), needs=SHAPES),
        "distinct_word_fraction": Signal(_ratio("DISTINCT_WORDS", "WORDS"), 1, DISTINCT),
        "word_entropy": Signal(lambda counts: counts.entropy, needs=DISTINCT),
        "hash_per_word": Signal(_ratio("HASHES", "WORDS")),
        "ellipsis_per_word": Signal(_ratio("ELLIPSES", "WORDS")),
        "symbol_word_fraction": Signal(_ratio("SYMBOL_WORDS", "WORDS"), 1, SHAPES),
        "url_per_word": Signal(_ratio("URLS", "WORDS")),
        "alphabetic_word_fraction": Signal(_ratio("ALPHABETIC_WORDS", "WORDS"), 1, SHAPES),
        "stop_words": Signal(_count("STOP_WORDS"), 8, STOPS),
        "stop_word_occurrences": Signal(_count("STOP_WORD_OCCURRENCES"), needs=STOPS),
        "stop_word_fraction": Signal(_ratio("STOP_WORD_OCCURRENCES", "WORDS"), 1, STOPS),
        "cased_stop_words": Signal(_count("CASED_STOP_WORDS"), 8, STOPS),
        "cased_stop_word_occurrences": Signal(_count("CASED_STOP_WORD_OCCURRENCES"), needs=STOPS),
        "bullet_line_fraction": Signal(_ratio("BULLET_LINES", "LINES"), 1),
        "ascii_bullet_line_fraction": Signal(_ratio("ASCII_BULLET_LINES", "LINES"), 1),
        "ellipsis_line_fraction": Signal(_ratio("ELLIPSIS_LINES", "LINES"), 1),
        "ellipsis_character_line_fraction": Signal(_ratio("ELLIPSIS_CHARACTER_LINES", "LINES"), 1),
        "terminal_line_fraction": Signal(_ratio("TERMINAL_LINES", "LINES"), 1),
        "short_line_fraction": Signal(_ratio("SHORT_LINES", "LINES"), 1),
        "newlines_per_word": Signal(_ratio("NEWLINES", "WORDS")),
        "sentences": Signal(_count("SENTENCES"), needs=SENTENCES),
        "curly_brackets": Signal(_count("CURLY_BRACKETS")),
        "lorem_ipsum": Signal(_count("LOREM_IPSUM"), needs=PHRASES),
        "policy_phrases": Signal(_count("POLICY_PHRASES"), needs=PHRASES),
        "whitespace_fraction": Signal(_ratio("SPACES", "CHARACTERS"), 1),
        "alphabetic_fraction": Signal(_marks("ALPHAS"), 1),
        "digit_fraction": Signal(_marks("DIGITS"), 1),
        "symbol_fraction": Signal(_marks("SYMBOLS"), 1),
        "punctuation_fraction": Signal(_marks("PUNCTUATIONS"), 1),
        "uppercase_fraction": Signal(_ratio("UPPERS", "ALPHAS", 1.0), 1),
        "compression_ratio": Signal(_ratio("COMPRESSED", "BYTES"), 1, COMPRESSION),
        "longest_repeat": Signal(_count("LONGEST_REPEAT"), needs=REPEATS),
        "alphabetic_character_fraction": Signal(_ratio("ALPHAS", "CHARACTERS"), 1),
        "alphanumeric_character_fraction": Signal(_ratio(("ALPHAS", "DIGITS"), "CHARACTERS"), 1),
        "all_lines": Signal(_count("ALL_LINES"), needs=CODE),
        "longest_line": Signal(_count("LONGEST_LINE"), needs=CODE),
        "mean_line_length": Signal(_mean_line_length, needs=CODE),
        "comment_line_fraction": Signal(_ratio("COMMENT_LINES", "LINES"), 1, CODE),
        "generated_marks": Signal(_count("GENERATED_MARKS"), needs=CODE),
        "generated_marks_starcoder": Signal(_count("STARCODER_GENERATED_MARKS"), needs=CODE),
        "xml_declarations": Signal(_count("XML_DECLARATIONS"), needs=CODE),
        "encoded_fraction": Signal(_ratio("ENCODED_BYTES", "BYTES"), 1, CODE),
        "longest_encoded": Signal(_count("LONGEST_ENCODED"), needs=CODE),
        "formulas": Signal(_count("FORMULAS"), needs=FORMULA),
        "formula_fraction": Signal(_ratio("FORMULA_CHARACTERS", "CHARACTERS"), 1, FORMULA),
    }
    for unit, needs in (("LINE", LINE_COPIES), ("PARAGRAPH", PARAGRAPH_COPIES)):
        for kind in ("DUPLICATE", "COPIED"):
            name = f"{kind}_{unit}".lower()
            made[f"{name}_fraction"] = Signal(_ratio(f"{kind}_{unit}S", f"{unit}S"), 1, needs)
            made[f"{name}_character_fraction"] = Signal(_ratio(f"{kind}_{unit}_CHARACTERS", f"{unit}_CHARACTERS"), 1, needs)
        of_all_characters = _ratio(f"DUPLICATE_{unit}_CHARACTERS", "CHARACTERS")
        made[f"duplicate_{unit.lower()}_character_fraction_datatrove"] = Signal(of_all_characters, 1, needs)
    made["copied_line_character_fraction_dolma"] = Signal(_ratio("COPIED_LINE_CHARACTERS", "WORD_CHARACTERS"), needs=LINE_COPIES)
    for n in (2, 3, 4):
        made[f"top_{n}gram_character_fraction"] = Signal(_ratio(f"TOP_{n}", "WORD_CHARACTERS", 1.0), 1, REPEATS)
        made[f"top_{n}gram_character_fraction_dolma"] = Signal(_ratio(f"TOP_{n}_DOLMA", "WORD_CHARACTERS"), needs=REPEATS)
        made[f"top_{n}gram_character_fraction_datatrove"] = Signal(_ratio(f"TOP_{n}_DATATROVE", "CHARACTERS"), needs=REPEATS)
    for n in range(5, 11):
        made[f"duplicate_{n}gram_character_fraction"] = Signal(_ratio(f"DUPLICATE_{n}", "WORD_CHARACTERS"), 1, REPEATS)
        made[f"duplicate_{n}gram_character_fraction_dclm"] = Signal(_ratio(f"DUPLICATE_{n}_DCLM", "WORD_CHARACTERS"), 1, REPEATS)
        made[f"duplicate_{n}gram_character_fraction_datatrove"] = Signal(_ratio(f"DUPLICATE_{n}_DATATROVE", "CHARACTERS"), 1, REPEATS)
        made[f"duplicate_{n}gram_character_fraction_dolma"] = Signal(_ratio(f"DUPLICATE_{n}_DOLMA", f"ALL_{n}_DOLMA"), 1, REPEATS)
    for script in _SCRIPTS:
        made[f"script_{script}_fraction"] = Signal(_ratio(f"SCRIPT_{script.upper()}", "ALPHAS"), 1)
    return made


SIGNALS: dict[str, Signal] = _made()


@functools.cache
def _measurer() -> Any:
    """One for the process: its arrays are used again by every stage. (Workers run one batch at a time.)"""
    from dataproc.kernels.measure import Measurer

    return Measurer()


def compute(column: pa.Array | pa.ChunkedArray, names: Iterable[str], languages: list[str | None] | None = None) -> dict[str, pa.Array]:
    """The named signals of a column of texts as float64 arrays, null where the text is null (or a signal has no meaning for the row's
    language). languages: of each row, None where unknown; stop words are then English ones. Raises KeyError for an unknown name,
    TypeError for a column that is not text, ValueError for invalid UTF-8."""
    wanted = {name: SIGNALS[name] for name in names}
    flags = functools.reduce(operator.or_, (signal.needs for signal in wanted.values()), 0)
    # What is counted of a document takes a hundred numbers, so it is held for some of them at a time.
    parts: dict[str, list[pa.Array]] = {name: [] for name in wanted}
    for start in range(0, max(1, len(column)), ROWS_AT_ONCE):
        some = languages[start : start + ROWS_AT_ONCE] if languages is not None else None
        counts = _measurer().count(column.slice(start, ROWS_AT_ONCE), some, flags, start)
        foreign = counts.null if some is None else counts.null | np.array([_has_no_stop_words(language) for language in some], bool)
        for name, signal in wanted.items():
            missing = foreign if signal.needs & STOPS else counts.null
            parts[name].append(pa.array(signal.formula(counts), pa.float64(), mask=missing))
    return {name: pa.concat_arrays(made) for name, made in parts.items()}


def _has_no_stop_words(language: str | None) -> bool:
    return language is not None and base_language(language) not in STOP_WORDS
