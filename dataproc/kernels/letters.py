"""Letters of spans of text by the script they are of, in ISO 15924's codes, and how many are in upper case.

The thirteen scripts of `unicode.SCRIPTS` are those that signals count; to check a language more are told apart.
"""

from __future__ import annotations

import functools
import sys
import unicodedata

import numpy as np

from dataproc.kernels.compiling import compiled_once, kept_arrays, kernel, ready
from dataproc.kernels.places import code_at

# How the names of letters begin, by ISO 15924's code. Hrkt is Hiragana with Katakana; Bopomofo is written beside Han.
SCRIPT_NAMES: dict[str, tuple[str, ...]] = {
    "Latn": ("LATIN", "FULLWIDTH LATIN"), "Cyrl": ("CYRILLIC",), "Grek": ("GREEK",), "Arab": ("ARABIC",), "Hebr": ("HEBREW",),
    "Armn": ("ARMENIAN",), "Geor": ("GEORGIAN",), "Deva": ("DEVANAGARI",), "Beng": ("BENGALI",), "Guru": ("GURMUKHI",),
    "Gujr": ("GUJARATI",), "Orya": ("ORIYA",), "Taml": ("TAMIL",), "Telu": ("TELUGU",), "Knda": ("KANNADA",), "Mlym": ("MALAYALAM",),
    "Sinh": ("SINHALA",), "Thai": ("THAI",), "Laoo": ("LAO",), "Tibt": ("TIBETAN",), "Mymr": ("MYANMAR",), "Khmr": ("KHMER",),
    "Ethi": ("ETHIOPIC",), "Hani": ("CJK", "IDEOGRAPHIC", "BOPOMOFO"), "Hrkt": ("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA"),
    "Hang": ("HANGUL", "HALFWIDTH HANGUL"), "Thaa": ("THAANA",), "Mong": ("MONGOLIAN",), "Syrc": ("SYRIAC",), "Cher": ("CHEROKEE",),
    "Cans": ("CANADIAN SYLLABICS",), "Tfng": ("TIFINAGH",), "Nkoo": ("NKO",), "Yiii": ("YI ",), "Java": ("JAVANESE",),
    "Sund": ("SUNDANESE",), "Bali": ("BALINESE",), "Olck": ("OL CHIKI",), "Copt": ("COPTIC",), "Goth": ("GOTHIC",), "Vaii": ("VAI ",),
}  # fmt: skip
SCRIPTS = (*SCRIPT_NAMES, "Zzzz")  # the last: letters of any other script, or of none (mathematical ones)
SCRIPT_NUMBERS = {code: number for number, code in enumerate(SCRIPTS)}
UPPER_CASE = len(SCRIPTS)  # the column after the scripts
COLUMNS = len(SCRIPTS) + 1

_UPPER = 128  # of a table entry; the bits below are 0 for what is no letter, else 1 + the script's number


def letter_entry(character: str) -> int:
    """What the table says of a character."""
    if not character.isalpha():
        return 0
    name = unicodedata.name(character, "")
    number = next((i for i, names in enumerate(SCRIPT_NAMES.values()) if name.startswith(names)), len(SCRIPT_NAMES))
    return 1 + number | (_UPPER if character.isupper() else 0)


def _make_table() -> tuple[np.ndarray, np.ndarray]:
    """(stage (4352,) uint16, blocks uint8), read as the tables of unicode.py."""
    blocks: dict[bytes, int] = {}
    stage = np.zeros((sys.maxunicode + 1) >> 8, np.uint16)
    for high in range(len(stage)):
        codes = range(high << 8, (high + 1) << 8)
        first, last = letter_entry(chr(codes[0])), letter_entry(chr(codes[-1]))
        # Blocks of nothing but ideographs or syllables, equal at both ends, are not asked letter by letter.
        whole = first == last and first and {unicodedata.category(chr(c)) for c in codes} == {"Lo"}
        entries = bytes([first]) * 256 if whole else bytes(letter_entry(chr(c)) for c in codes)
        stage[high] = blocks.setdefault(entries, len(blocks))
    return stage, np.frombuffer(b"".join(blocks), np.uint8).copy()


@functools.cache
def _table() -> tuple[np.ndarray, ...]:
    with compiled_once():
        return kept_arrays("letters", _make_table)


@kernel
def _count(data, starts, ends, stage, blocks, out):
    """Adds the letters of each span to its row of out (spans, COLUMNS) int64."""
    for row in range(len(starts)):
        i, end = starts[row], ends[row]
        script, letters, upper = 0, 0, 0  # a run of letters of one script is booked at its end
        while i < end:
            code = code_at(data, i, end)
            entry = np.int64(blocks[(np.int64(stage[code >> 8]) << 8) | (code & 255)])
            if entry:
                if (entry & 127) - 1 != script:
                    out[row, script] += letters
                    script, letters = (entry & 127) - 1, 0
                letters += 1
                upper += entry >> 7
            i += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        out[row, script] += letters
        out[row, UPPER_CASE] += upper


def count_letters(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """data: uint8, valid UTF-8; starts, ends: (spans,) int64. Returns (spans, COLUMNS) int64: letters by `SCRIPTS`, then those of them
    that are in upper case."""
    out = np.zeros((len(starts), COLUMNS), np.int64)
    stage, blocks = _table()
    with ready(_count):
        _count(data, starts, ends, stage, blocks, out)
    return out
