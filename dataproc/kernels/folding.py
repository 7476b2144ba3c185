"""Folded text for the matching of words: what a character is compared as, and which characters make a word.

Folding is Unicode's NFKC and case folding of each character (full-width and ligature forms, ß as ss), without the invisible characters
that may stand inside a word. Accents stay: in many languages a letter without its accent is another word.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from typing import NamedTuple

import numpy as np

from dataproc.kernels import unicode
from dataproc.kernels.compiling import kept_arrays, kernel
from dataproc.kernels.primitives import decode
from dataproc.kernels.tidy import may_compose

# What a character is. IGNORED: not there at all; GAP: may part the words of a phrase; COMPOSING: its text may not be in NFC;
# MANY: folded to several characters.
WORD, UNSPACED, IGNORED, GAP, COMPOSING, MANY, MARK = 1, 2, 4, 8, 16, 32, 64
_WORD_CLASS = unicode.ALPHA | unicode.DIGIT | unicode.MARK
# Soft hyphen, joiners, directions, variation selectors, byte order mark: what Unicode calls default ignorable, as far as it is in use.
_IGNORED = frozenset(
    chr(code)
    for first, last in (
        (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F),
        (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    )
    for code in range(first, last + 1)
)  # fmt: skip
DASHES = frozenset("-_\u2010\u2011\u2012\u2013")


class Folding(NamedTuple):
    """stage (4352,) uint16; kinds uint8 and values int32 in blocks of 256: a value is what must be added to a code point to fold it or,
    where its kind has MANY, its place in spans; spans (n, 2) int32 into spelled, uint8 UTF-8."""

    stage: np.ndarray
    kinds: np.ndarray
    values: np.ndarray
    spans: np.ndarray
    spelled: np.ndarray


def fold_character(character: str) -> str:
    """What one character is compared as; nothing for an invisible one."""
    if character in _IGNORED:
        return ""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    return unicodedata.normalize("NFKC", folded.casefold())


def character_kind(character: str) -> int:
    """The bits of one character, MANY left out."""
    if character in _IGNORED:
        return IGNORED
    bits = GAP if character.isspace() or character in DASHES else 0
    folded = fold_character(character)
    if folded and all(unicode.code_class(c) & _WORD_CLASS for c in folded):
        bits |= WORD
    own = unicode.code_class(character)
    bits |= UNSPACED if own & unicode.UNSPACED else 0
    bits |= MARK if own & unicode.MARK else 0
    if may_compose(character):
        bits |= COMPOSING
    return bits


def fold(text: str) -> str:
    """A text as it is compared: NFC, then character by character."""
    return "".join(map(fold_character, unicodedata.normalize("NFC", text)))


@functools.cache
def tables() -> Folding:
    """Of all code points."""
    return Folding(*kept_arrays("folding", _make))


def _make() -> Folding:
    stage = np.zeros((sys.maxunicode + 1) >> 8, np.uint16)
    kinds, values, blocks = [], [], {}
    spelled = bytearray()
    spans: list[tuple[int, int]] = []
    for high in range(len(stage)):
        characters = [chr((high << 8) | low) for low in range(256)]
        kind, value = np.zeros(256, np.uint8), np.zeros(256, np.int32)
        if not set(map(unicodedata.category, characters)) <= {"Cn", "Co", "Cs"}:
            for low, character in enumerate(characters):
                folded = fold_character(character) if unicodedata.category(character) != "Cs" else character
                kind[low] = character_kind(character)
                if len(folded) == 1:
                    value[low] = ord(folded) - ord(character)
                elif folded:
                    kind[low] |= MANY
                    value[low] = len(spans)
                    spans.append((len(spelled), len(spelled) + len(folded.encode())))
                    spelled += folded.encode()
        number = blocks.setdefault((kind.tobytes(), value.tobytes()), len(blocks))
        if number == len(kinds):
            kinds.append(kind)
            values.append(value)
        stage[high] = number
    return Folding(
        stage, np.concatenate(kinds), np.concatenate(values), np.array(spans, np.int32), np.frombuffer(bytes(spelled), np.uint8).copy()
    )


@kernel(inline=True)
def character_at(data, i, end):
    """(code point, bytes) at byte i; (0, 0) where it is not valid UTF-8."""
    b = np.int64(data[i])
    return (b, 1) if b < 128 else decode(data, i, end)


@kernel(inline=True)
def entry_of(stage, code):
    """The place of a code point in kinds and values."""
    return (np.int64(stage[code >> 8]) << 8) | (code & 255)
