"""Which character set bytes without a usable declaration are in.

uchardet (through resiliparse) tells scripts and multi-byte sets well. Between single-byte sets of Latin script it often errs, so its
answer there is weighed against the sets that it confuses or does not know, by how a reading looks: a capital inside a lower-case
word, a symbol between two letters, a letter of another language are signs of a wrong one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from resiliparse.parse.encoding import detect_encoding

from dataproc.charset_declared import python_encoding

DETECTION_BYTES = 200_000
_WIDE_SAMPLE = 4096
_WEIGHED_CHARACTERS = 3000
# Sets that uchardet knows and this Python cannot decode: their bytes become U+FFFD, which is honest, rather than wrong letters.
_UNDECODABLE = {"euc-tw", "iso-2022-cn", "viscii"}
_LATIN = frozenset(
    "cp1250 cp1252 cp1254 cp1257 cp1258 cp437 cp850 cp852 cp857 cp858 cp860 cp863 cp865 mac-roman mac-latin2"
    " iso8859-2 iso8859-3 iso8859-4 iso8859-9 iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16".split()
)
# The sets that most pages in Latin script are in: a guess at another one has to look clearly better than these.
_LIKELY = ("cp1252", "cp1250", "iso8859-2", "cp1254", "cp1257", "iso8859-15")
_ALTERNATIVES = ("cp1252", "mac-roman", "cp850", "cp1258")
# Letters that Icelandic, French or the Sami languages need, and that other languages' letters turn into when read wrongly.
_RARE_LETTERS = frozenset("\xd0\xde\xf0\xfe\xff\xb5\xaa\xba\u0192\u0178\u01a0\u01af\u0110\u0138\u0166\u0167\u014a\u014b")
# Box drawing in KOI8-R, the Ukrainian letters in KOI8-U, which has all other letters in common.
_UKRAINIAN = re.compile(rb"[\xa4\xa6\xa7\xad\xb4\xb6\xb7\xbd]")
_UKRAINIAN_IN_WORD = re.compile(rb"[\xc0-\xff][\xa4\xa6\xa7\xad\xb4\xb6\xb7\xbd]|[\xa4\xa6\xa7\xad\xb4\xb6\xb7\xbd][\xc0-\xff]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]{4,}")


def is_latin(encoding: str) -> bool:
    """Whether an encoding is a single-byte set of Latin script."""
    return encoding in _LATIN


def looks_latin(data: bytes) -> bool:
    """Whether bytes above 0x7F stand alone or in pairs, as in languages of Latin script, and not in whole words."""
    high = len(data) - len(data.translate(None, bytes(range(128, 256))))
    return sum(map(len, _HIGH_RUN.findall(data))) <= high / 2


def guess_encoding(data: bytes) -> str:
    """The encoding (Python's name) that the bytes most likely are in; `ascii` for bytes in a set that is unknown or cannot be decoded."""
    sample = data[:DETECTION_BYTES]
    label = (detect_encoding(sample, html5_compatible=False) or "").lower()
    if label in _UNDECODABLE or (not label and not looks_latin(sample)):
        return "ascii"
    found = python_encoding(label) or "cp1252"
    if found == "koi8-r" and 2 * len(_UKRAINIAN_IN_WORD.findall(sample)) > len(_UKRAINIAN.findall(sample)):
        return "koi8-u"
    return _best_latin(sample, found) if found in _LATIN else found


def _best_latin(data: bytes, guess: str) -> str:
    """The guess, or another set of Latin script in which the text looks clearly better."""
    readings = {name: oddness(data.decode(name, "replace")) for name in dict.fromkeys((guess, *_ALTERNATIVES))}
    best = min(readings, key=lambda name: readings[name])  # the first of equals: the guess
    if guess not in _LIKELY and readings["cp1252"] <= readings[guess]:
        guess = "cp1252"
    return best if readings[best] < readings[guess] / 2 else guess


def oddness(text: str) -> float:
    """How odd the characters beyond ASCII look where they stand; 0 for a sound text, about 1 a character for one read wrongly."""
    odd = 0.0
    for found in re.finditer(r"[^\x00-\x7f]", text[: 100 * _WEIGHED_CHARACTERS]):
        character, at = found[0], found.start()
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        if character == "\ufffd" or "\x80" <= character < "\xa0":
            odd += 2
        elif character.isalpha():
            odd += character.isupper() and before.islower()
            odd += 0.5 * (character in _RARE_LETTERS and (before.isalpha() or after.isalpha()))
        else:
            in_word = before.isalpha() and after.isalpha()
            odd += in_word and character not in "\u2019\xb7\xad\u2010\u2011\u2013\u2014" and not "\u0300" <= character <= "\u036f"
    return odd


def wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, told by where the bytes of one value stand: every other byte is 0 or the script's block."""
    head = data[: min(len(data), _WIDE_SAMPLE) // 4 * 4]
    if len(head) < 8 or not head.count(0):
        return None
    quarter = len(head) // 4
    zeros = [head[i::4].count(0) / quarter for i in range(4)]
    if min(zeros[2:]) > 0.9 and zeros[0] < 0.5:
        return "utf-32-le" if zeros[2] == zeros[3] == 1 else None
    if min(zeros[:2]) > 0.9 and zeros[3] < 0.5:
        return "utf-32-be" if zeros[0] == zeros[1] == 1 else None
    for encoding, high, low in (("utf-16-le", head[1::2], head[0::2]), ("utf-16-be", head[0::2], head[1::2])):
        if _is_block_and_zero(high) and low.count(0) < len(low) / 10:
            return encoding
    return None


def _is_block_and_zero(high: Sequence[int]) -> bool:
    """Whether the high bytes of 16-bit units are those of ASCII and of one other block of 256 characters."""
    common = dict(Counter(high).most_common(2))
    return common.get(0, 0) > 0.03 * len(high) and sum(common.values()) > 0.9 * len(high)
