"""Places of a text where personal data may stand: one pass over the bytes, so that a text without any costs almost nothing.

What is found here is only a candidate; `dataproc/pii/` looks at each. Cards alone are checked to the end, because rows of numbers are full
of what might be one.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dataproc.kernels.columns import chunks
from dataproc.kernels.compiling import kernel, ready


class At(IntEnum):
    """What may stand at a candidate. EMAIL: start is the @. SECRET: end is the number of the prefix. NUMBER: a run of groups of digits."""

    EMAIL = 0
    CARD = 1
    IPV4 = 2
    IPV6 = 3
    IBAN = 4
    PHONE = 5
    NUMBER = 6
    MIXED = 7
    SECRET = 8


class Want(IntFlag):
    """What is looked for. NUMBERS: runs of digits and words of digits and letters, for national numbers."""

    EMAIL = 1
    CARD = 2
    IP = 4
    IBAN = 8
    PHONE = 16
    NUMBERS = 32
    SECRET = 64


# Plain numbers, which kernels read faster than members of an enumeration.
EMAIL_AT, CARD_AT, IPV4_AT, IPV6_AT, IBAN_AT, PHONE_AT, NUMBER_AT, MIXED_AT, SECRET_AT = map(int, At)
EMAIL_WANTED, CARD_WANTED, IP_WANTED, IBAN_WANTED, PHONE_WANTED, NUMBERS_WANTED, SECRET_WANTED = map(int, Want)
_DIGIT, _AT, _COLON, _ANCHOR, _WIDE, _LETTER, _HEX = 1, 2, 4, 8, 16, 32, 64
_TRIGGER = _DIGIT | _AT | _COLON | _ANCHOR | _WIDE
_GROUPS = 64  # of digits in one run; a longer run is cut
_LEAST_DIGITS = 6  # of a NUMBER
_LONGEST_TOKEN = 24


class Prefixes(NamedTuple):
    """How secrets begin: spelled (n, 16) uint8, lengths (n,), anchors (n,): the place of the byte that is looked for, a rare one."""

    spelled: np.ndarray
    lengths: np.ndarray
    anchors: np.ndarray


class Candidates(NamedTuple):
    """(n,) arrays: what, row, and bytes from the start of the row's text; ascending by row."""

    what: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def prefixes(found: tuple[tuple[str, int], ...]) -> Prefixes:
    """found: (prefix in ASCII, place of its anchor)."""
    spelled = np.zeros((max(1, len(found)), 16), np.uint8)
    for row, (prefix, _) in enumerate(found):
        spelled[row, : len(prefix)] = list(prefix.encode())
    return Prefixes(spelled, np.array([len(p) for p, _ in found], np.int64), np.array([a for _, a in found], np.int64))


def _classes(known: Prefixes) -> np.ndarray:
    """Class bits of bytes. Digits beyond ASCII begin with a byte of WIDE."""
    made = np.zeros(256, np.uint8)
    made[48:58] |= _DIGIT | _HEX
    for first, last in ((65, 91), (97, 123)):
        made[first:last] |= _LETTER
        made[first : first + 6] |= _HEX
    made[ord("@")] |= _AT
    made[ord(":")] |= _COLON
    made[[0xD9, 0xDB, 0xE0, 0xEF]] |= _WIDE
    for row in range(len(known.lengths)):
        made[known.spelled[row, known.anchors[row]]] |= _ANCHOR
    return made


@kernel(inline=True)
def _digit(data, i, end):
    """(value, bytes) of the digit at byte i: ASCII, Arabic, Persian, Devanagari, Bengali, full width; (0, 0) where there is none."""
    b = data[i]
    if 48 <= b <= 57:
        return np.int64(b) - 48, 1
    if b == 0xD9 and i + 1 < end and 0xA0 <= data[i + 1] <= 0xA9:
        return np.int64(data[i + 1]) - 0xA0, 2
    if b == 0xDB and i + 1 < end and 0xB0 <= data[i + 1] <= 0xB9:
        return np.int64(data[i + 1]) - 0xB0, 2
    if i + 2 < end:
        if b == 0xEF and data[i + 1] == 0xBC and 0x90 <= data[i + 2] <= 0x99:
            return np.int64(data[i + 2]) - 0x90, 3
        if b == 0xE0 and (data[i + 1] == 0xA5 or data[i + 1] == 0xA7) and 0xA6 <= data[i + 2] <= 0xAF:
            return np.int64(data[i + 2]) - 0xA6, 3
    return np.int64(0), 0


@kernel(inline=True)
def _separator(data, i, end):
    """Bytes of the mark at byte i that may stand between digits: space - . / ( ), their typographic forms, marks of no width and of
    direction; 0: none."""
    b = data[i]
    if b == 32 or b == 45 or b == 46 or b == 47 or b == 40 or b == 41:
        return 1
    if b == 0xC2 and i + 1 < end and data[i + 1] == 0xA0:
        return 2
    if b == 0xE2 and i + 2 < end and data[i + 1] == 0x80:
        c = data[i + 2]
        if 0x80 <= c <= 0x93 or c == 0xAF:
            return 3
    return 0


@kernel
def _groups(data, i, end, first, last, marks):
    """The run of digits from byte i on, as groups: first and last (GROUPS,) their bytes, marks (GROUPS,) the one mark after each, 0 for
    several or one beyond ASCII. Returns (groups, digits)."""
    count = np.int64(0)
    digits = np.int64(0)
    while i < end and count < _GROUPS:
        first[count] = i
        while i < end:
            width = _digit(data, i, end)[1]
            if width == 0:
                break
            digits += 1
            i += width
        last[count] = i
        marks[count] = 0
        count += 1
        between = 0
        k = i
        while k < end and between <= 3:
            width = _separator(data, k, end)
            if width == 0:
                break
            k += width
            between += 1
        if between == 0 or between > 3 or k >= end or _digit(data, k, end)[1] == 0:
            break
        marks[count - 1] = data[i] if k == i + 1 else 0
        i = k
    return count, digits


@kernel(inline=True)
def _issued(digits, size):
    """Whether cards that begin so are issued with this many digits (ISO/IEC 7812 ranges of the large networks)."""
    two = digits[0] * 10 + digits[1]
    four = two * 100 + digits[2] * 10 + digits[3]
    if digits[0] == 4:
        return size == 13 or size == 16 or size == 19
    if 51 <= two <= 55 or 2221 <= four <= 2720:
        return size == 16
    if two == 34 or two == 37:
        return size == 15
    if two == 36 or two == 38 or two == 39 or 3000 <= four <= 3059:
        return 14 <= size <= 19
    if four == 6011 or two == 65 or 6440 <= four <= 6499 or 3528 <= four <= 3589 or two == 62 or two == 60 or two == 81:
        return 16 <= size <= 19
    return (two == 50 or 56 <= two <= 58 or two == 63 or two == 67) and (size == 16 or size == 18 or size == 19)


@kernel
def _is_card(data, first, last, g, h, digits):
    """Whether the groups g to h are a card number by its beginning, length and check digit. digits: (19,) scratch."""
    size = np.int64(0)
    for k in range(g, h + 1):
        i = first[k]
        while i < last[k]:
            value, width = _digit(data, i, last[k])
            if size == 19:
                return False
            digits[size] = value
            size += 1
            i += width
    if size < 13 or not _issued(digits, size):
        return False
    total = np.int64(0)
    same = True
    for k in range(size):
        value = digits[size - 1 - k]
        same = same and value == digits[0]
        if k % 2:
            value = 2 * value - 9 if value > 4 else 2 * value
        total += value
    return total % 10 == 0 and not same


@kernel(inline=True)
def _width_of(data, first, last, k):
    """Digits of group k, each of them of one width."""
    return (last[k] - first[k]) // max(1, _digit(data, first[k], last[k])[1])


@kernel
def _card_end(data, first, last, marks, count, g, digits):
    """The last group of the card that begins with group g; -1: none. In one group, or as cards are written: 4-4-4-4 and more, 4-6-5, 4-6-4,
    with one kind of mark, and not inside a longer row of groups of four."""
    if _width_of(data, first, last, g) >= 13:
        return g if _is_card(data, first, last, g, g, digits) else -1
    mark = marks[g]
    if _width_of(data, first, last, g) != 4 or (mark != 32 and mark != 45):
        return -1
    if g > 0 and marks[g - 1] == mark and _width_of(data, first, last, g - 1) == 4:
        return -1
    h = g
    while h + 1 < count and marks[h] == mark and h - g < 4:
        h += 1
    if h - g == 4 and _width_of(data, first, last, h) <= 4 and not (h + 1 < count and marks[h] == mark):
        fours = all_four(data, first, last, g, h)
        if fours and _is_card(data, first, last, g, h, digits):
            return h
    if h - g >= 3 and all_four(data, first, last, g, g + 3):
        more = h > g + 3 and _width_of(data, first, last, g + 4) == 4
        if not more and _is_card(data, first, last, g, g + 3, digits):
            return g + 3
    if h - g >= 2 and _width_of(data, first, last, g + 1) == 6 and _is_card(data, first, last, g, g + 2, digits):
        return g + 2
    return -1


@kernel(inline=True)
def all_four(data, first, last, g, h):
    """Whether the groups g to h - 1 have four digits each, and group h at most four."""
    fours = True
    for k in range(g, h):
        fours = fours and _width_of(data, first, last, k) == 4
    return fours and _width_of(data, first, last, h) <= 4


@kernel(inline=True)
def _alnum(b):
    return 48 <= b <= 57 or 65 <= b <= 90 or 97 <= b <= 122


@kernel(inline=True)
def _joined(b):
    """Whether a byte before or after a number makes it part of something longer: letters, digits, _ . - / # + $."""
    return _alnum(b) or b == 95 or b == 46 or b == 45 or b == 47 or b == 35 or b == 43 or b == 36


@kernel(inline=True)
def _add(out, count, what, row, start, end):
    """Books a candidate where there is room; returns how many there are."""
    if count < len(out.what):
        out.what[count] = what
        out.rows[count] = row
        out.starts[count] = start
        out.ends[count] = end
    return count + 1


@kernel(inline=True)
def _begins_00(data, i, end):
    """Whether the group of digits data[i:end] begins with two zeros."""
    value, width = _digit(data, i, end)
    if value != 0 or i + width >= end:
        return False
    value, width = _digit(data, i + width, end)
    return value == 0 and width > 0


@kernel
def _numbers(data, start, i, end, row, wanted, first, last, marks, digits, out, count):
    """Books what may stand in the run of digits at byte i. Returns (candidates, byte after the run)."""
    groups, total = _groups(data, i, end, first, last, marks)
    stop = last[groups - 1]
    before = data[i - 1] if i > start else np.uint8(32)
    if wanted & IP_WANTED:
        for g in range(groups - 3):
            if marks[g] == 46 and marks[g + 1] == 46 and marks[g + 2] == 46:
                inside = g > 0 and marks[g - 1] == 46 or g + 3 < groups - 1 and marks[g + 3] == 46
                if not inside and not (g == 0 and (_alnum(before) or before == 95 or before == 46)):
                    count = _add(out, count, IPV4_AT, row, first[g] - start, last[g + 3] - start)
    if wanted & CARD_WANTED and total >= 13:
        g = 0
        while g < groups:
            h = np.int64(-1) if g == 0 and _joined(before) else _card_end(data, first, last, marks, groups, g, digits)
            if h >= 0 and not (h == groups - 1 and stop < end and (_alnum(data[stop]) or data[stop] == 95)):
                count = _add(out, count, CARD_AT, row, first[g] - start, last[h] - start)
                g = h
            g += 1
    if wanted & PHONE_WANTED and total >= 8:
        plus = i
        if plus > start and data[plus - 1] == 40:  # +(49) 30
            plus -= 1
        if plus > start and data[plus - 1] == 43:
            plus -= 1
        elif plus > start + 2 and data[plus - 3] == 0xEF and data[plus - 2] == 0xBC and data[plus - 1] == 0x8B:  # full width
            plus -= 3
        else:
            plus = np.int64(-1)
        if plus >= 0 and not (plus > start and (_alnum(data[plus - 1]) or data[plus - 1] == 43)):
            count = _add(out, count, PHONE_AT, row, plus - start, stop - start)
        elif plus < 0 and total >= 10 and _begins_00(data, i, last[0]) and not _joined(before):
            count = _add(out, count, PHONE_AT, row, i - start, stop - start)
    if wanted & NUMBERS_WANTED and total >= _LEAST_DIGITS:
        count = _add(out, count, NUMBER_AT, row, i - start, stop - start)
    return count, stop


@kernel
def _letters_around(data, start, i, end, row, wanted, classes, out, count):
    """Books an IBAN or a word of letters and digits that has its first digit at byte i."""
    if wanted & IBAN_WANTED and i - start >= 2 and i + 1 < end and classes[data[i + 1]] & _DIGIT:
        two = classes[data[i - 1]] & classes[data[i - 2]] & _LETTER
        if two and not (i - start >= 3 and (_alnum(data[i - 3]) or data[i - 3] == 95)):
            count = _add(out, count, IBAN_AT, row, i - 2 - start, min(end, i + 60) - start)
    if wanted & NUMBERS_WANTED:
        first = i
        while first > start and i - first <= _LONGEST_TOKEN and classes[data[first - 1]] & (_DIGIT | _LETTER):
            if classes[data[first - 1]] & _DIGIT:
                return count  # booked at its first digit
            first -= 1
        last = i
        digits, letters = 0, i - first
        while last < end and last - first <= _LONGEST_TOKEN and classes[data[last]] & (_DIGIT | _LETTER):
            digits += classes[data[last]] & _DIGIT != 0
            letters += classes[data[last]] & _LETTER != 0
            last += 1
        if letters > 0 and digits >= 4 and last - first <= _LONGEST_TOKEN:
            count = _add(out, count, MIXED_AT, row, first - start, last - start)
    return count


@kernel
def _colons(data, start, i, end, row, classes, out, count):
    """Books the run of hexadecimal digits, colons and dots around the colon at byte i, where it may be an IPv6 address. Returns
    (candidates, byte after the run)."""
    first, last = i, i
    while first > start and i - first < 46 and (classes[data[first - 1]] & (_HEX | _COLON) or data[first - 1] == 46):
        first -= 1
    colons, doubled = 0, False
    while last < end and last - i < 46 and (classes[data[last]] & (_HEX | _COLON) or data[last] == 46):
        last += 1
    for k in range(first, last):
        colons += data[k] == 58
        doubled |= data[k] == 58 and k > first and data[k - 1] == 58
    apart = not (first > start and (_alnum(data[first - 1]) or data[first - 1] == 95)) and not (
        last < end and (_alnum(data[last]) or data[last] == 95)
    )
    if apart and last - first >= 6 and (doubled or colons >= 6):
        count = _add(out, count, IPV6_AT, row, first - start, last - start)
    return count, last


@kernel
def _secrets(data, start, i, end, row, known, out, count):
    """Books the secrets whose anchor is at byte i."""
    for p in range(len(known.lengths)):
        first = i - known.anchors[p]
        if known.spelled[p, known.anchors[p]] != data[i] or first < start or first + known.lengths[p] > end:
            continue
        same = True
        for k in range(known.lengths[p]):
            if data[first + k] != known.spelled[p, k]:
                same = False
                break
        if same and not (first > start and (_alnum(data[first - 1]) or data[first - 1] == 95)):
            count = _add(out, count, SECRET_AT, row, first - start, p)
    return count


@kernel
def look(data, offsets, wanted, classes, known, first, last, marks, digits, out):
    """Fills out with the candidates of the texts data[offsets[k]:offsets[k + 1]]. Returns how many there are, perhaps more than fit."""
    count = np.int64(0)
    for row in range(len(offsets) - 1):
        start, end = offsets[row], offsets[row + 1]
        i = start
        after_colons = start
        while i < end:
            c = classes[data[i]] & _TRIGGER
            if c == 0:
                i += 1
                continue
            if c & _AT and wanted & EMAIL_WANTED and i > start and i + 1 < end:
                count = _add(out, count, EMAIL_AT, row, i - start, i + 1 - start)
            if c & _ANCHOR:
                count = _secrets(data, start, i, end, row, known, out, count)
            if c & _COLON and wanted & IP_WANTED and i >= after_colons:
                count, after_colons = _colons(data, start, i, end, row, classes, out, count)
            if c & (_DIGIT | _WIDE) and _digit(data, i, end)[1]:
                if c & _DIGIT and wanted & (IBAN_WANTED | NUMBERS_WANTED):
                    count = _letters_around(data, start, i, end, row, wanted, classes, out, count)
                count, i = _numbers(data, start, i, end, row, wanted, first, last, marks, digits, out, count)
                continue
            i += 1
    return count


class Finder:
    """Finds the candidates for what is wanted; secrets by their prefixes, none without Want.SECRET."""

    def __init__(self, wanted: Want, known: Prefixes):
        self._wanted = int(wanted)
        self._known = known if wanted & Want.SECRET else Prefixes(known.spelled, known.lengths[:0], known.anchors[:0])
        self._classes = _classes(self._known)
        self._scratch = (np.zeros(_GROUPS, np.int64), np.zeros(_GROUPS, np.int64), np.zeros(_GROUPS, np.int64), np.zeros(19, np.int64))
        self._room = 1 << 12

    def candidates(self, column: pa.Array) -> Candidates:
        """Of a column of texts (null: none)."""
        (part,) = chunks(column)
        while True:
            out = Candidates(*(np.empty(self._room, np.int64) for _ in range(4)))
            with ready(look):
                count = look(part.data, part.offsets, self._wanted, self._classes, self._known, *self._scratch, out)
            if count <= self._room:
                return Candidates(*(values[:count] for values in out))
            self._room = 2 * int(count)
