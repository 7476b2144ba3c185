r"""Where formulas stand in a text: `$..$`, `$$..$$`, `\(..\)`, `\[..\]` and `\begin{..}..\end{..}` of displayed mathematics.

A dollar sign opens a formula where no white space follows it, and the next one closes it where no white space stands before it and no
digit after it (pandoc's manual, tex_math_dollars), so prices are none. A formula that is written in a line ends with its paragraph.
"""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel, ready
from dataproc.kernels.counts import Count

# Environments of LaTeX and amsmath that are mathematics as a whole; with a star after the name, too.
ENVIRONMENTS = (
    "equation align gather multline eqnarray math displaymath alignat flalign split aligned gathered array cases matrix pmatrix bmatrix"
    " vmatrix Vmatrix Bmatrix smallmatrix subequations"
).split()
_LONGEST_INLINE, _LONGEST_DISPLAY = 2_000, 20_000  # bytes
_BEGIN, _END = np.frombuffer(b"\\begin{", np.uint8), np.frombuffer(b"\\end{", np.uint8)
_NAMES = np.array([list(name.encode().ljust(12, b"\0")) for name in ENVIRONMENTS], np.uint8)
_NAME_LENGTHS = np.array([len(name) for name in ENVIRONMENTS], np.int64)
_FEED, _SPACE, _DOLLAR, _BACKSLASH, _STAR, _CLOSE = (ord(c) for c in "\n $\\*}")


@kernel
def _stands(data, i, end, word):
    """Whether the bytes of a word stand at byte i."""
    if i + len(word) > end:
        return False
    same = True
    for k in range(len(word)):
        same = same and data[i + k] == word[k]
    return same


@kernel
def _name_at(data, i, end):
    """Bytes of the name and the brace after it, where an environment of mathematics is named at byte i; else 0."""
    for row in range(len(_NAMES)):
        size = _NAME_LENGTHS[row]
        if _stands(data, i, end, _NAMES[row, :size]):
            size += i + size < end and data[i + size] == _STAR
            if i + size < end and data[i + size] == _CLOSE:
                return size + 1
    return 0


@kernel
def _dollars(data, i, end):
    """End of the formula that the dollar sign at byte i opens; 0 where it opens none."""
    size = 2 if i + 1 < end and data[i + 1] == _DOLLAR else 1
    k = i + size
    if k >= end or (size == 1 and data[k] <= _SPACE):
        return 0
    stop = min(end, k + (_LONGEST_INLINE if size == 1 else _LONGEST_DISPLAY))
    while k < stop:
        b = data[k]
        if b == _BACKSLASH:
            k += 1
        elif size == 1 and b == _FEED and k + 1 < end and data[k + 1] == _FEED:
            return 0
        elif b == _DOLLAR:
            if size == 2:
                if k + 1 < end and data[k + 1] == _DOLLAR:
                    return k + 2 if k > i + 2 else 0
            else:
                follows = data[k + 1] if k + 1 < end else _SPACE
                return 0 if data[k - 1] <= _SPACE or 48 <= follows <= 57 else k + 1
        k += 1
    return 0


@kernel
def _bracketed(data, i, end, opener, closer):
    r"""End of the formula that a \( or \[ at byte i opens; 0 where another one opens before it is closed, or it is not closed."""
    inline = opener == 40
    k = i + 2
    stop = min(end, k + (_LONGEST_INLINE if inline else _LONGEST_DISPLAY))
    while k < stop:
        if data[k] == _BACKSLASH and k + 1 < end:
            if data[k + 1] == closer:
                return k + 2
            if data[k + 1] == opener:
                return 0
            k += 1
        elif inline and data[k] == _FEED and k + 1 < end and data[k + 1] == _FEED:
            return 0
        k += 1
    return 0


@kernel
def _environment(data, i, end):
    r"""End of the environment that a \begin at byte i opens; 0 where it is none of mathematics, or not closed."""
    if not _stands(data, i, end, _BEGIN):
        return 0
    name = i + len(_BEGIN)
    size = _name_at(data, name, end)
    if size == 0:
        return 0
    k = name + size
    stop = min(end, k + _LONGEST_DISPLAY)
    while k < stop:
        if data[k] == _BACKSLASH:
            if _stands(data, k, end, _END) and _stands(data, k + len(_END), end, data[name : name + size]):
                return k + len(_END) + size
            if _stands(data, k, end, _BEGIN) and _stands(data, k + len(_BEGIN), end, data[name : name + size]):
                return 0
            k += 1
        k += 1
    return 0


@kernel
def next_formula(data, start, i, end):
    """(first byte, end) of the first formula of the text data[start:end] that begins at byte i or later; (end, end) where none does.
    Over a whole text the time is linear: no search for an end goes past the next opener of its kind."""
    while i < end:
        b = data[i]
        if b in (_DOLLAR, _BACKSLASH) and not (i > start and (data[i - 1] == _BACKSLASH or (data[i - 1] == b == _DOLLAR))):
            found = 0
            if b == _DOLLAR:
                found = _dollars(data, i, end)
            elif i + 1 < end:
                follows = data[i + 1]
                if follows == 40:
                    found = _bracketed(data, i, end, 40, 41)
                elif follows == 91:
                    found = _bracketed(data, i, end, 91, 93)
                elif follows == 98:
                    found = _environment(data, i, end)
            if found:
                return i, found
        i += 1
    return end, end


@kernel
def count_formulas(data, start, end, out):
    """Counts the formulas of a document and their characters, marks included."""
    first, after = next_formula(data, start, start, end)
    while first < end:
        out[Count.FORMULAS] += 1
        for k in range(first, after):
            out[Count.FORMULA_CHARACTERS] += data[k] & 192 != 128
        first, after = next_formula(data, start, after, end)


def formula_spans(text: bytes) -> list[tuple[int, int]]:
    """(first byte, end) of every formula of a UTF-8 text, in order."""
    data = np.frombuffer(text, np.uint8)
    spans, i = [], 0
    with ready(next_formula):
        while i < len(data):
            first, i = next_formula(data, 0, i, len(data))
            if first < len(data):
                spans.append((int(first), int(i)))
    return spans
