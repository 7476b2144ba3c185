"""Signals: numbers computed from a text. Defined with worked examples in docs/signals.md; each function here is the definition.

A word is a maximal run of characters that are not white space. A line is a part between line feeds that is not blank, without the
white space around it. A paragraph is a maximal run of lines without a blank line between them. Fractions of an empty text are 0.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import numpy as np

# Rae et al. 2021: at least two of these English words.
STOP_WORDS = frozenset({"the", "be", "to", "of", "and", "that", "have", "with"})
BULLETS = ("•", "‣", "▶", "◀", "◦", "■", "□", "▪", "▫", "–", "-", "*", "●", "○")
ELLIPSES = ("...", "…")
# Characters that end a sentence (Unicode property Sentence_Terminal, the ones in common use), and closing marks that may follow them.
TERMINALS = frozenset(".!?。！？．؟۔।॥…‽⁇⁈⁉")
CLOSERS = "\"'”’»）)]」』"
SHORT_LINE_CHARACTERS = 30  # Penedo et al. 2024
_SENTENCE_END = re.compile(rf"[.!?](?=[{re.escape(CLOSERS)}]*(?:\s|$))|[。！？।؟۔]")
_BLANK_LINES = re.compile(r"\n\s*\n")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class TextUnits:
    """The units of one text, found once and shared by all signals."""

    def __init__(self, text: str):
        self.text = text
        self._ngrams: dict[int, np.ndarray] = {}

    @functools.cached_property
    def words(self) -> list[str]:
        return self.text.split()

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """(words,) int64: characters of each word."""
        return np.fromiter(map(len, self.words), np.int64, len(self.words))

    @functools.cached_property
    def lines(self) -> list[str]:
        return [line for line in map(str.strip, self.text.split("\n")) if line]

    @functools.cached_property
    def paragraphs(self) -> list[str]:
        return [p for p in map(str.strip, _BLANK_LINES.split(self.text)) if p]

    @functools.cached_property
    def word_hashes(self) -> np.ndarray:
        """(words,) uint64: equal for equal words, mixed so that sums of multiples of them stay apart."""
        ids: dict[str, int] = {}
        numbers = np.fromiter((ids.setdefault(word, len(ids) + 1) for word in self.words), np.uint64, len(self.words))
        with np.errstate(over="ignore"):
            x = numbers * _MULTIPLIER
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    def ngram_hashes(self, n: int) -> np.ndarray:
        """(max(0, words - n + 1),) uint64: one hash for each word n-gram."""
        if n not in self._ngrams:
            self._ngrams[n] = self._hash_ngrams(n)
        return self._ngrams[n]

    def _hash_ngrams(self, n: int) -> np.ndarray:
        count = len(self.words) - n + 1
        total = np.zeros(max(0, count), np.uint64)
        with np.errstate(over="ignore"):
            for i in range(n if count > 0 else 0):
                total = total * _MULTIPLIER + self.word_hashes[i : i + count]
        return total


def _fraction(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def words(units: TextUnits) -> float:
    return float(len(units.words))


def mean_word_length(units: TextUnits) -> float:
    return _fraction(float(units.lengths.sum()), len(units.words))


def hash_per_word(units: TextUnits) -> float:
    return _fraction(units.text.count("#"), len(units.words))


def ellipsis_per_word(units: TextUnits) -> float:
    return _fraction(sum(units.text.count(mark) for mark in ELLIPSES), len(units.words))


def bullet_line_fraction(units: TextUnits) -> float:
    return _fraction(sum(line.startswith(BULLETS) for line in units.lines), len(units.lines))


def ellipsis_line_fraction(units: TextUnits) -> float:
    return _fraction(sum(line.endswith(ELLIPSES) for line in units.lines), len(units.lines))


def alphabetic_word_fraction(units: TextUnits) -> float:
    return _fraction(sum(any(map(str.isalpha, word)) for word in units.words), len(units.words))


def stop_words(units: TextUnits) -> float:
    """How many different of the eight stop words occur, in any case, punctuation around them left out."""
    return float(len(STOP_WORDS & {word.lower().strip(".,;:!?\"'()[]{}“”‘’«»") for word in units.words}))


def _duplicates(parts: list[str]) -> tuple[int, int]:
    """(parts that occurred before in the text, their characters)."""
    seen: set[str] = set()
    count = characters = 0
    for part in parts:
        if part in seen:
            count += 1
            characters += len(part)
        seen.add(part)
    return count, characters


def duplicate_line_fraction(units: TextUnits) -> float:
    return _fraction(_duplicates(units.lines)[0], len(units.lines))


def duplicate_line_character_fraction(units: TextUnits) -> float:
    return _fraction(_duplicates(units.lines)[1], sum(map(len, units.lines)))


def duplicate_paragraph_fraction(units: TextUnits) -> float:
    return _fraction(_duplicates(units.paragraphs)[0], len(units.paragraphs))


def duplicate_paragraph_character_fraction(units: TextUnits) -> float:
    return _fraction(_duplicates(units.paragraphs)[1], sum(map(len, units.paragraphs)))


def top_ngram_character_fraction(units: TextUnits, n: int) -> float:
    """Characters in all occurrences of the most frequent n-gram (of equally frequent ones the longest), at most 1; 0 if none repeats."""
    hashes = units.ngram_hashes(n)
    if len(hashes) < 2:
        return 0.0
    _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    most = counts.max()
    if most < 2:
        return 0.0
    ends = np.cumsum(units.lengths)
    starts = first[counts == most]
    sizes = ends[starts + n - 1] - ends[starts] + units.lengths[starts]
    return min(1.0, float(sizes.max() * most) / float(ends[-1]))


def duplicate_ngram_character_fraction(units: TextUnits, n: int) -> float:
    """Characters of words that lie in an n-gram that occurred earlier in the text, each word counted once."""
    hashes = units.ngram_hashes(n)
    if len(hashes) < 2:
        return 0.0
    _, first = np.unique(hashes, return_index=True)
    if len(first) == len(hashes):
        return 0.0
    repeated = np.ones(len(hashes), bool)
    repeated[first] = False
    covered = np.zeros(len(units.words) + 1, np.int64)
    covered[: len(hashes)] += repeated
    covered[n : n + len(hashes)] -= repeated
    inside = np.cumsum(covered[:-1]) > 0
    return float(units.lengths[inside].sum()) / float(units.lengths.sum())


def sentences(units: TextUnits) -> float:
    """Sentence ends: a terminal mark before white space or the end of the text; ideographic marks anywhere."""
    return float(len(_SENTENCE_END.findall(units.text)))


def curly_brackets(units: TextUnits) -> float:
    return float(units.text.count("{") + units.text.count("}"))


def lorem_ipsum(units: TextUnits) -> float:
    return float(units.text.lower().count("lorem ipsum"))


def ends_with_terminal(line: str) -> bool:
    """Whether a line ends a sentence, closing quotes and brackets after the mark allowed."""
    return line.rstrip(CLOSERS)[-1:] in TERMINALS


def terminal_line_fraction(units: TextUnits) -> float:
    return _fraction(sum(map(ends_with_terminal, units.lines)), len(units.lines))


def short_line_fraction(units: TextUnits) -> float:
    return _fraction(sum(len(line) <= SHORT_LINE_CHARACTERS for line in units.lines), len(units.lines))


def newlines_per_word(units: TextUnits) -> float:
    return _fraction(units.text.count("\n"), len(units.words))


def _ngram_signals() -> dict[str, Callable[[TextUnits], float]]:
    made: dict[str, Callable[[TextUnits], float]] = {}
    for n in (2, 3, 4):
        made[f"top_{n}gram_character_fraction"] = functools.partial(top_ngram_character_fraction, n=n)
    for n in range(5, 11):
        made[f"duplicate_{n}gram_character_fraction"] = functools.partial(duplicate_ngram_character_fraction, n=n)
    return made


SIGNALS: dict[str, Callable[[TextUnits], float]] = {
    function.__name__: function
    for function in (
        words,
        mean_word_length,
        hash_per_word,
        ellipsis_per_word,
        bullet_line_fraction,
        ellipsis_line_fraction,
        alphabetic_word_fraction,
        stop_words,
        duplicate_line_fraction,
        duplicate_line_character_fraction,
        duplicate_paragraph_fraction,
        duplicate_paragraph_character_fraction,
        sentences,
        curly_brackets,
        lorem_ipsum,
        terminal_line_fraction,
        short_line_fraction,
        newlines_per_word,
    )
} | _ngram_signals()


def compute(text: str, names: tuple[str, ...]) -> list[float]:
    """The named signals of a text, in order."""
    units = TextUnits(text)
    return [SIGNALS[name](units) for name in names]
