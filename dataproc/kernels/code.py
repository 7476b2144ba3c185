"""What is counted of source code beside words: lines as they are written, comments, marks of generated files, encoded data.

A line is here what stands between two line feeds, blank or not, with the white space around it, as those who filter code count it.
"""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import Count
from dataproc.kernels.lists import GENERATED_MARKS, STARCODER_GENERATED_MARKS

HEADER_LINES = 40  # as the convention of Go and linguist look
STARCODER_HEADER_LINES = 5
_HEADER_BYTES = 10_000
_XML_BYTES = 100  # of the beginning, in which StarCoder looks for an XML declaration
LEAST_ENCODED_BYTES = 64  # of base64 or hexadecimal digits in one piece (StarCoder2)
LEAST_ENCODED_ITEMS = 8  # of bytes or characters written one by one (StarCoder2)
_XML = np.frombuffer(b"<?xml version=", np.uint8)
_FEED, _SPACE, _BACKSLASH = (ord(c) for c in "\n \\")
# Kinds of bytes, as bits.
_WORD, _HEX, _BASE64, _LOWER, _UPPER, _DIGIT, _BETWEEN, _OF_ITEMS = 1, 2, 4, 8, 16, 32, 64, 128
_LEAST_ITEMS_BYTES = 3 * LEAST_ENCODED_ITEMS - 1  # two digits each and one byte between them


def _kinds() -> np.ndarray:
    kinds = np.zeros(256, np.uint8)
    for code in range(128):
        c = chr(code)
        kinds[code] |= _WORD if c.isalnum() or c == "_" else 0
        kinds[code] |= _HEX if c in "0123456789abcdefABCDEF" else 0
        kinds[code] |= _BASE64 if c.isalnum() or c in "+/=" else 0
        kinds[code] |= _LOWER * c.islower() | _UPPER * c.isupper() | _DIGIT * c.isdigit()
        kinds[code] |= _OF_ITEMS if kinds[code] & _HEX or code <= _SPACE or c in ",xu\\" else 0
        kinds[code] |= _BETWEEN if c in " \t\r\n,\"'+\\" else 0
    return kinds


def _spelled(phrases: tuple[str, ...]) -> np.ndarray:
    """(phrases, bytes of the longest) uint8, zeros after each."""
    return np.array([list(phrase.encode().ljust(max(map(len, phrases)), b"\0")) for phrase in phrases], np.uint8)


def _pairs(marks: np.ndarray) -> np.ndarray:
    """(32,) uint32: which second letters follow a first one in some phrase, both by their last five bits."""
    pairs = np.zeros(32, np.uint32)
    for first, second in marks[:, :2] & 31:
        pairs[first] |= np.uint32(1 << int(second))
    return pairs


_KINDS = _kinds()
_MARKS, _STARCODER_MARKS = _spelled(GENERATED_MARKS), _spelled(STARCODER_GENERATED_MARKS)
_PAIRS, _STARCODER_PAIRS = _pairs(_MARKS), _pairs(_STARCODER_MARKS)


@kernel
def _is_comment(data, i, end):
    """Whether a line whose first visible byte is the i-th is a comment, as far as its beginning tells without knowing the language."""
    first = data[i]
    second = data[i + 1] if i + 1 < end else np.uint8(_SPACE)
    third = data[i + 2] if i + 2 < end else np.uint8(_SPACE)
    if first == 47:  # //, /*
        return second == 47 or second == 42
    if first == 35:  # "# text", "##", "#!", but no #include and no #define
        return not _KINDS[second] & _WORD
    if first == 42:  # within /* */
        return second <= _SPACE or second == 47
    if first == 45:  # --
        return second == 45 and (third <= _SPACE or third == 45)
    if first == 37:  # %
        return second == 37 or second <= _SPACE
    if first == 60:  # <!--
        return second == 33 and third == 45
    if first == 34 or first == 39:  # three quotation marks
        return second == first and third == first
    return first == 59  # ;


@kernel
def _count_lines(data, start, end, out):
    i = start
    while i < end:
        characters, visible = np.int64(0), np.int64(-1)
        while i < end and data[i] != _FEED:
            characters += data[i] & 192 != 128
            if visible < 0 and data[i] > _SPACE:
                visible = i
            i += 1
        out[Count.ALL_LINES] += 1
        out[Count.LONGEST_LINE] = max(out[Count.LONGEST_LINE], characters)
        if visible >= 0:
            out[Count.COMMENT_LINES] += _is_comment(data, visible, i)
        i += 1


@kernel
def _marks_in(data, start, end, lines, marks, pairs):
    """How often one of the marks, which are in lower case, stands in the first lines."""
    found = 0
    for i in range(start, min(end, start + _HEADER_BYTES)):
        b = data[i]
        if b == _FEED:
            lines -= 1
            if lines == 0:
                break
        if i + 1 == end or not (pairs[b & 31] >> np.uint32(data[i + 1] & 31)) & np.uint32(1):
            continue
        lower = b | 32 if 65 <= b <= 90 else b
        for row in range(len(marks)):
            if marks[row, 0] != lower:
                continue
            k = 1
            while k < marks.shape[1] and marks[row, k] != 0:
                c = data[i + k] if i + k < end else np.uint8(0)
                if (c | 32 if 65 <= c <= 90 else c) != marks[row, k]:
                    break
                k += 1
            found += k == marks.shape[1] or marks[row, k] == 0
    return found


@kernel
def _item(data, start, i, end):
    r"""Bytes of one byte or character that is written in hexadecimal at byte i (`1f`, `0x1f`, `\x1f`, `\u1f3a`); 0 where none is."""
    digits, k, bounded = 2, i, True
    if data[i] == _BACKSLASH and i + 1 < end and (data[i + 1] == 120 or data[i + 1] == 117):
        digits, k, bounded = 2 if data[i + 1] == 120 else 4, i + 2, False
    elif i > start and _KINDS[data[i - 1]] & _WORD:
        return 0
    elif data[i] == 48 and i + 1 < end and data[i + 1] == 120:
        k = i + 2
    if k + digits > end:
        return 0
    for d in range(k, k + digits):
        if not _KINDS[data[d]] & _HEX:
            return 0
    k += digits
    return 0 if bounded and k < end and _KINDS[data[k]] & _WORD else k - i


@kernel
def _items(data, start, i, end):
    """Bytes of a run of such items, apart by commas and white space, from byte i on; 0 where it has less than eight."""
    k, found, after = i, 0, i
    while k < end:
        size = _item(data, start, k, end)
        if size == 0:
            break
        found += 1
        k += size
        after = k
        while k < end and (data[k] <= _SPACE or data[k] == 44):
            k += 1
    return after - i if found >= LEAST_ENCODED_ITEMS else 0


@kernel
def _run(data, i, end):
    """(bytes of the run of base64 characters from byte i on, whether it is encoded data: long, with digits, and of letters in both cases
    or of hexadecimal digits alone)."""
    k = i
    while k < end and _KINDS[data[k]] & _BASE64:
        k += 1
    if k - i < LEAST_ENCODED_BYTES:
        return k - i, False
    every, some = np.uint8(_HEX), np.uint8(0)
    for place in range(i, k):
        every &= _KINDS[data[place]]
        some |= _KINDS[data[place]]
    mixed = some & _LOWER and some & _UPPER
    return k - i, bool(some & _DIGIT and (mixed or every))


@kernel
def _has_stretch(data, i, end, kind, size):
    """Whether so many bytes in a row are of a kind, from one on that is above a blank and no comma. Most texts are told by few of their
    bytes: the last of a stretch that could begin here is looked at first, and what is not of the kind is begun after."""
    while i + size <= end:
        if data[i] <= _SPACE or data[i] == 44:
            i += 1
            continue
        k = i + size - 1
        while k >= i and _KINDS[data[k]] & kind:
            k -= 1
        if k < i:
            return True
        i = k + 1
    return False


@kernel
def _count_encoded(data, start, end, out):
    """Pieces with nothing but white space, quotation marks, commas, + and backslashes between them are one."""
    i, piece = start, 0
    while i < end:
        kind = _KINDS[data[i]]
        size, encoded = 0, False
        if kind & _HEX or data[i] == _BACKSLASH:
            size = _items(data, start, i, end)
            encoded = size > 0
        if not encoded and kind & _BASE64:
            size, encoded = _run(data, i, end)
        if encoded:
            piece += size
            out[Count.ENCODED_BYTES] += size
            out[Count.LONGEST_ENCODED] = max(out[Count.LONGEST_ENCODED], piece)
        elif size > 1 or not kind & _BETWEEN:
            piece = 0
        i += max(size, 1)


@kernel
def count_code(data, start, end, out):
    """Counts one document, data[start:end], into out (COUNTS,) int64: the counts of CODE. Time is linear in the document."""
    _count_lines(data, start, end, out)
    out[Count.GENERATED_MARKS] = _marks_in(data, start, end, HEADER_LINES, _MARKS, _PAIRS)
    out[Count.STARCODER_GENERATED_MARKS] = _marks_in(data, start, end, STARCODER_HEADER_LINES, _STARCODER_MARKS, _STARCODER_PAIRS)
    for i in range(start, min(end, start + _XML_BYTES)):
        same = i + len(_XML) <= min(end, start + _XML_BYTES)
        for k in range(len(_XML)):
            same = same and data[i + k] == _XML[k]
        out[Count.XML_DECLARATIONS] += same
    if _has_stretch(data, start, end, _BASE64, LEAST_ENCODED_BYTES) or _has_stretch(data, start, end, _OF_ITEMS, _LEAST_ITEMS_BYTES):
        _count_encoded(data, start, end, out)
