"""What kernels work with besides the text: constant tables, and arrays that are used again for every document."""

from __future__ import annotations

import functools
import itertools
from collections import namedtuple
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from dataproc.kernels import unicode
from dataproc.kernels.compiling import kept_arrays
from dataproc.kernels.lists import LOREM_IPSUM, POLICY_PHRASES, STOP_WORDS

# Codes that a kernel returns for a document.
OK, INVALID, WORDS_FULL, GROUPS_FULL, LINES_FULL, PARAGRAPHS_FULL, GIANT = range(7)

# Class bits of bytes, beside those of characters in unicode.py.
NONASCII = 16384
STOP_BITS = 6  # 2 ** 6 slots for the stop words of a language
BATCH = 512  # words that are looked at together
GIANT_BYTES = 1 << 21  # a larger document is measured in parts; what a smaller one needs is no matter
PHRASES = (LOREM_IPSUM, *POLICY_PHRASES)
LOREM = 0  # its place in PHRASES

# Bit masks of a block of 64 bytes (blocks.py), by their place in `masks`; the second half of it holds those of the block before.
Mask = IntEnum(
    "Mask",
    (
        # What bytes and characters are.
        "SPACES", "NEWLINES", "BLANKS", "ALPHAS", "UPPERS", "DIGITS", "SYMBOLS", "PUNCTUATIONS", "PLAIN", "TERMINALS", "CLOSERS",
        "STRIPPED", "BEYOND", "INSIDE", "HASHES", "ELLIPSES", "DOTS", "CURLIES", "COLONS", "JS", "WS", "BEFORE_ANCHORS", "AFTER_ANCHORS",
        "IDEOGRAPHIC_ENDS",
        # What follows from them: bytes that are not white space; the first byte of a word; the byte after one; the first byte of a word
        # that begins without white space before it; bytes that are of the text at all.
        "VISIBLE", "STARTS", "ENDS", "BREAKS", "TEXT",
    ),
    start=0,
)  # fmt: skip
MASKS = len(Mask)
# What goes from one block of a text to the next beside the masks, by its place in `state`. EXTRA: bytes that are no character of their
# own; of lines and paragraphs, the number of different ones and where their tables stand.
State = IntEnum(
    "State",
    (
        "EXTRA", "SKIP", "SKIP_SPACE", "ALONE", "DOTS",
        "WORD_START", "WORD_INSIDE", "WORD_KIND", "WORDS", "WORD_BITS", "WORD_BASE",
        "LINE_START", "LINE_START_EXTRA", "LINE_END", "LINE_END_EXTRA", "LINES", "LINE_BITS", "LINE_BASE",
        "PARAGRAPH_START", "PARAGRAPH_START_EXTRA", "PARAGRAPH_END", "PARAGRAPH_END_EXTRA", "PARAGRAPHS", "PARAGRAPH_BITS",
        "PARAGRAPH_BASE",
    ),
    start=0,
)  # fmt: skip

Tables = namedtuple(
    "Tables",
    "ascii stage classes scripts lowers phrases phrase_lengths phrase_anchors phrase_pairs "
    "stop_keys stop_numbers stop_multipliers stop_longest",
)
Scratch = namedtuple(
    "Scratch",
    "ids spare lengths long_places long_lengths histogram keys first counts marks table line_keys line_counts line_table "
    "paragraph_keys paragraph_counts paragraph_table buffer masks state starts ends sizes kinds hashes bases split top matches",
)


@functools.cache
def languages() -> tuple[str, ...]:
    """The languages with stop words. The number of a language in the tables is its place here; the one after the last has none."""
    return tuple(STOP_WORDS)


@functools.cache
def tables() -> Tables:
    """The constant tables."""
    return Tables(*kept_arrays("tables", _make_tables))


def _make_tables() -> Tables:
    stage, classes, scripts, lowers = unicode.tables()
    ascii_classes = np.full(256, NONASCII, np.uint16)
    ascii_classes[:128] = [unicode.code_class(chr(code)) for code in range(128)]
    return Tables(ascii_classes, stage, classes, scripts, lowers, *_phrases(), *_stop_words())


def _phrases() -> tuple[np.ndarray, ...]:
    spelled = np.zeros((len(PHRASES), max(map(len, PHRASES))), np.uint8)
    anchors = np.zeros(len(PHRASES), np.int64)
    pairs = np.zeros(32, np.uint32)
    for row, phrase in enumerate(PHRASES):
        spelled[row, : len(phrase)] = list(phrase.encode())
        anchors[row] = max(phrase.find(" "), 0)
        if anchors[row]:
            before, after = ord(phrase[anchors[row] - 1]) & 31, ord(phrase[anchors[row] + 1]) & 31
            pairs[before] |= np.uint32(1 << after)
    return spelled, np.array([len(p) for p in PHRASES], np.int64), anchors, pairs


def _stop_words() -> tuple[np.ndarray, ...]:
    from dataproc.kernels.primitives import hash_span

    slots = 1 << STOP_BITS
    keys = np.zeros((len(STOP_WORDS) + 1, slots), np.uint64)
    numbers = np.zeros((len(STOP_WORDS) + 1, slots), np.int8)
    multipliers = np.ones(len(STOP_WORDS) + 1, np.uint64)
    longest = np.zeros(len(STOP_WORDS) + 1, np.int64)  # bytes of the longest; 0: there are none
    for row, words in enumerate(STOP_WORDS.values()):
        spelled = [np.frombuffer(word.encode(), np.uint8) for word in words]
        hashes = [int(hash_span(word, 0, len(word))) for word in spelled]
        # The first odd multiplier that sends every word to a slot of its own.
        found = next(
            (multiplier, places)
            for multiplier in itertools.count(1, 2)
            if len(places := {(key * multiplier % (1 << 64)) >> (64 - STOP_BITS): n for n, key in enumerate(hashes)}) == len(hashes)
        )
        multipliers[row] = found[0]
        keys[row] = hashes[0]  # a slot without a word has the key of one that is sent elsewhere: no key is found there
        for slot, number in found[1].items():
            keys[row, slot], numbers[row, slot] = hashes[number], number
        longest[row] = max(map(len, spelled))
    return keys, numbers, multipliers, longest


@dataclass
class Sizes:
    """Capacities: words of a document, groups (distinct words or n-grams), distinct lines and paragraphs, words of 255 characters or
    more; and words for which there is a second array of numbers, which only giants use."""

    words: int = 1 << 19
    groups: int = 1 << 18
    lines: int = 1 << 14
    paragraphs: int = 1 << 14
    longs: int = GIANT_BYTES // 255 + 1
    spare: int = 1

    @classmethod
    def giant(cls, size: int) -> Sizes:
        """Of a document of that many bytes: its words, and of all that is looked up in tables a fixed part. The part is such that
        arrays and tables stay under four times the document, and that the number of parts does not grow with the document."""

        def part(of: int, least: int) -> int:
            return max(least, 1 << max(0, (size // of).bit_length() - 1))

        words = size // 2 + 1
        return cls(words, part(64, cls.groups), part(32, cls.lines), part(128, cls.paragraphs), size // 255 + 1, words)


def make_scratch(sizes: Sizes) -> Scratch:
    """Arrays of these capacities. Tables have two slots or more for each group."""

    def table(count: int) -> np.ndarray:
        return np.zeros(1 << max(11, (2 * count - 1).bit_length()), np.uint32)

    return Scratch(
        ids=np.empty(sizes.words, np.uint32),
        spare=np.empty(sizes.spare, np.uint32),
        lengths=np.empty(sizes.words, np.uint8),
        long_places=np.empty(sizes.longs + 1, np.uint32),
        long_lengths=np.empty(sizes.longs + 1, np.uint32),
        histogram=np.zeros(256, np.int64),
        keys=np.empty(sizes.groups, np.uint64),
        first=np.empty(sizes.groups, np.uint32),
        counts=np.empty(sizes.groups, np.uint32),
        marks=np.empty(max(sizes.groups, sizes.spare) // 8 + 1, np.uint8),
        table=table(sizes.groups),
        line_keys=np.empty(sizes.lines, np.uint64),
        line_counts=np.empty(sizes.lines, np.uint32),
        line_table=table(sizes.lines),
        paragraph_keys=np.empty(sizes.paragraphs, np.uint64),
        paragraph_counts=np.empty(sizes.paragraphs, np.uint32),
        paragraph_table=table(sizes.paragraphs),
        buffer=np.empty(256, np.uint8),
        masks=np.zeros(2 * MASKS, np.uint64),
        state=np.zeros(len(State), np.int64),
        starts=np.empty(BATCH, np.int64),
        ends=np.empty(BATCH, np.int64),
        sizes=np.empty(BATCH, np.int64),
        kinds=np.empty(BATCH, np.int64),
        hashes=np.empty(BATCH, np.uint64),
        bases=np.ones(3, np.int64),
        split=np.zeros(3, np.int64),
        top=np.zeros(3, np.int64),
        matches=np.zeros(1 << 13, np.int64),
    )
