"""Classes, scripts and lower case of every code point, as tables for the kernels. Built from `unicodedata`, once in a process.

A table has two stages: `stage[code >> 8]` is the number of a block of 256 entries, `block[(number << 8) | (code & 255)]` the value.
"""

from __future__ import annotations

import functools
import sys
import unicodedata

import numpy as np

from dataproc.kernels.lists import BULLETS, CLOSERS, STRIPPED, TERMINALS

SPACE = 1  # str.isspace
ALPHA = 2  # str.isalpha
DIGIT = 4  # category Nd
UPPER = 8  # str.isupper
SYMBOL = 16  # category S*
PUNCTUATION = 32  # category P*
MARK = 64  # category M*
UNSPACED = 128  # a letter of a script that is written without spaces between words
TERMINAL = 256  # ends a sentence
CLOSER = 512  # may stand between a sentence's end and the white space after it
BULLET = 1024
STRIP = 2048  # stripped from a word before it is compared with stop words
IDEOGRAPHIC_END = 4096  # ends a sentence wherever it stands
PLAIN = 32768  # neither white space nor punctuation nor symbol (16384 is taken in scratch.py)

# How the names of letters begin, by script. The order is the order of the script signals.
SCRIPTS: dict[str, tuple[str, ...]] = {
    "latin": ("LATIN", "FULLWIDTH LATIN"),
    "cyrillic": ("CYRILLIC",),
    "greek": ("GREEK",),
    "arabic": ("ARABIC",),
    "hebrew": ("HEBREW",),
    "devanagari": ("DEVANAGARI",),
    "bengali": ("BENGALI",),
    "tamil": ("TAMIL",),
    "thai": ("THAI",),
    "han": ("CJK", "IDEOGRAPHIC"),
    "kana": ("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA"),
    "hangul": ("HANGUL", "HALFWIDTH HANGUL"),
}
# Katakana is not among them: a run of it is one word, as a rule a borrowed one.
UNSPACED_NAMES = ("CJK", "IDEOGRAPHIC", "HIRAGANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "TAI ", "NEW TAI", "JAVANESE", "BALINESE")
OTHER_SCRIPT = len(SCRIPTS)
_IDEOGRAPHIC_ENDS = frozenset("。！？।؟۔")


def code_class(character: str) -> int:
    """The class bits of one character."""
    category = unicodedata.category(character)
    bits = SPACE if character.isspace() else 0
    bits |= ALPHA if character.isalpha() else 0
    bits |= UPPER if character.isupper() else 0
    bits |= DIGIT if category == "Nd" else 0
    bits |= {"S": SYMBOL, "P": PUNCTUATION, "M": MARK}.get(category[0], 0)
    bits |= TERMINAL if character in TERMINALS else 0
    bits |= CLOSER if character in CLOSERS else 0
    bits |= BULLET if character in BULLETS else 0
    bits |= STRIP if character in STRIPPED else 0
    bits |= IDEOGRAPHIC_END if character in _IDEOGRAPHIC_ENDS else 0
    bits |= 0 if bits & (SPACE | SYMBOL | PUNCTUATION) else PLAIN
    if bits & ALPHA and unicodedata.name(character, "").startswith(UNSPACED_NAMES):
        bits |= UNSPACED
    return bits


def code_script(character: str) -> int:
    """The position in `SCRIPTS` of a letter's script, or OTHER_SCRIPT."""
    if not character.isalpha():
        return OTHER_SCRIPT
    name = unicodedata.name(character, "")
    return next((i for i, names in enumerate(SCRIPTS.values()) if name.startswith(names)), OTHER_SCRIPT)


def simple_lower(character: str) -> str:
    """The lower case of one character where it is one character; otherwise the character itself."""
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character


@functools.cache
def tables() -> tuple[np.ndarray, ...]:
    """(stage (4352,) uint16, classes uint16, scripts uint8, shifts int32): one stage for all three, which are cut into the same blocks.
    A shift is what must be added to a code point to make it lower case."""
    blocks: dict[bytes, int] = {}
    stage = np.zeros((sys.maxunicode + 1) >> 8, np.uint16)
    classes, scripts, lowers = [], [], []
    for high in range(len(stage)):
        block = _block([chr(code) for code in range(high << 8, (high + 1) << 8)])
        key = b"".join(part.tobytes() for part in block)
        number = blocks.setdefault(key, len(blocks))
        if number == len(classes):
            classes.append(block[0])
            scripts.append(block[1])
            lowers.append(block[2])
        stage[high] = number
    return stage, np.concatenate(classes), np.concatenate(scripts), np.concatenate(lowers)


def _block(characters: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(classes, scripts, lower-case shifts) of 256 characters."""
    categories = set(map(unicodedata.category, characters))
    if len(categories) == 1 and categories <= {"Lo", "Cn", "Co", "Cs"}:
        # A block of ideographs or syllables, or one of nothing: all 256 are as the first and the last.
        first, last = ((code_class(c), code_script(c)) for c in (characters[0], characters[-1]))
        if first == last:
            return np.full(256, first[0], np.uint16), np.full(256, first[1], np.uint8), np.zeros(256, np.int32)
    classed = [code_class(c) for c in characters]
    scripts = [code_script(c) for c in characters]
    shifts = [ord(simple_lower(c)) - ord(c) for c in characters]
    return np.array(classed, np.uint16), np.array(scripts, np.uint8), np.array(shifts, np.int32)
