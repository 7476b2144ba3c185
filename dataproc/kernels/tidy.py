"""Cleaning on the buffers: which texts need a closer look at their Unicode, and white space and control characters put in order."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
import unicodedata

import numpy as np
import pyarrow as pa

from dataproc.kernels import scratch
from dataproc.kernels.columns import chunks, from_buffers
from dataproc.kernels.compiling import kept_arrays, kernel, ready
from dataproc.kernels.places import code_at, previous
from dataproc.kernels.primitives import class_of, decode
from dataproc.kernels.unicode import SPACE

# What becomes of a character, and what it says of its text. Bits of a table.
REMOVED, AS_SPACE, LINE_END, SUSPICIOUS, PAIRED = 1, 2, 4, 8, 16
LINE_ENDS = "\r\x0b\x0c\x85\u2028\u2029"  # and \r\n as one
SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
# C0 and C1 control characters but tab and line ends, byte order marks, interlinear marks, non-characters of the basic plane.
CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff]")
_ENTITY_CHARACTERS = 24


def tidy_class(code: int) -> int:
    """What becomes of a character: REMOVED, AS_SPACE, LINE_END, or none of them."""
    character = chr(code)
    if character in LINE_ENDS:
        return LINE_END
    if character in SPACES:
        return AS_SPACE
    return REMOVED if CONTROLS.match(character) else 0


@functools.cache
def _composing() -> frozenset[str]:
    """Characters that composition may join to the one before them."""
    seconds = set()
    for code in range(0x30000):  # no character beyond is composed
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    return frozenset(seconds | {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))})


@functools.cache
def tables(always: str = "", paired: str = "") -> tuple[np.ndarray, np.ndarray]:
    """(stage (4352,) uint16, classes uint8) of all code points, in blocks of 256. always, paired: sets of characters as a regular
    expression writes them between brackets."""
    digest = hashlib.sha256(repr((always, paired)).encode()).hexdigest()[:16]
    stage, classes = kept_arrays(f"tidy-{digest}", lambda: _make_tables(always, paired))
    return stage, classes


def _make_tables(always: str, paired: str) -> tuple[np.ndarray, np.ndarray]:
    suspects = re.compile(f"[{always}]") if always else None
    pairs = re.compile(f"[{paired}]") if paired else None
    composing = _composing() if suspects else frozenset()
    stage = np.zeros((sys.maxunicode + 1) >> 8, np.uint16)
    blocks: dict[bytes, int] = {}
    special = re.compile("|".join([f"[{LINE_ENDS}{SPACES}]", CONTROLS.pattern, *(p.pattern for p in (suspects, pairs) if p)]))
    for high in range(len(stage)):
        characters = [chr((high << 8) | low) for low in range(256)]
        classes = np.zeros(256, np.uint8)
        # Most blocks hold nothing of interest, which one look at all of their characters tells.
        if special.search("".join(characters)) or (suspects and any(c in composing or _not_composed(c) for c in characters)):
            for low, character in enumerate(characters):
                classes[low] = tidy_class(ord(character))
                if suspects and (suspects.match(character) or character in composing or _not_composed(character)):
                    classes[low] |= SUSPICIOUS
                if pairs and pairs.match(character):
                    classes[low] |= PAIRED
        stage[high] = blocks.setdefault(classes.tobytes(), len(blocks))
    return stage, np.frombuffer(b"".join(blocks), np.uint8)


def _not_composed(character: str) -> bool:
    return unicodedata.combining(character) != 0 or not unicodedata.is_normalized("NFC", character)


def may_compose(character: str) -> bool:
    """Whether a text with this character may not be composed (NFC)."""
    return character in _composing() or _not_composed(character)


@kernel
def _entity(data, i, end):
    """Whether an HTML entity begins at the & at byte i: &, perhaps #, 1 to 24 letters or digits, a semicolon."""
    i += 1
    if i < end and data[i] == 35:
        i += 1
    count = 0
    while i < end and count <= _ENTITY_CHARACTERS:
        b = data[i]
        if b == 59:
            return count > 0
        if not (48 <= b <= 57 or 65 <= b <= 90 or 97 <= b <= 122):
            return False
        count += 1
        i += 1
    return False


@kernel
def look(data, offsets, stage, classes, out):
    """For each text whether mending might change it: 1 or 0 in out (rows,) uint8. Returns the row of the first one that is not valid
    UTF-8, or -1."""
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        found = False
        before = False  # whether the character before could be one of a pair
        while i < end and not found:
            b = np.int64(data[i])
            if b < 128:
                c = classes[b]
                found = c & SUSPICIOUS != 0 or (b == 38 and _entity(data, i, end))
                before = False
                i += 1
            else:
                code, size = decode(data, i, end)
                if size == 0:
                    return row
                c = classes[(np.int64(stage[code >> 8]) << 8) | (code & 255)]
                found = c & SUSPICIOUS != 0 or (before and c & PAIRED != 0)
                before = c & PAIRED != 0
                i += size
        out[row] = found
    return -1


@kernel
def tidy(data, offsets, tidy_stage, tidy_classes, space_stage, space_classes, out, out_offsets):
    """Writes the texts in order to out (as long as data) and their ends to out_offsets: line ends as line feeds, control characters
    out, Unicode spaces as spaces, no white space before a line feed or around the text, at most one blank line in a row. Returns the
    row of the first text that is not valid UTF-8, or -1."""
    o = np.int64(0)
    out_offsets[0] = 0
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        first = o
        while i < end:
            b = np.int64(data[i])
            size = 1
            code = b
            if b >= 128:
                code, size = decode(data, i, end)
                if size == 0:
                    return row
            c = tidy_classes[(np.int64(tidy_stage[code >> 8]) << 8) | (code & 255)]
            if c & REMOVED:
                i += size
                continue
            if c & LINE_END or b == 10:
                while o > first and (out[o - 1] == 32 or out[o - 1] == 9):
                    o -= 1
                if o > first and not (o - first >= 2 and out[o - 1] == 10 and out[o - 2] == 10):
                    out[o] = 10
                    o += 1
                i += size + (b == 13 and i + 1 < end and data[i + 1] == 10)
                continue
            if o == first and class_of(space_stage, space_classes, code) & SPACE:
                i += size
                continue
            if c & AS_SPACE:
                out[o] = 32
                o += 1
            else:
                for k in range(size):
                    out[o + k] = data[i + k]
                o += size
            i += size
        while o > first:
            at = previous(out, first, o)
            if not class_of(space_stage, space_classes, code_at(out, at, o)) & SPACE:
                break
            o = at
        out_offsets[row + 1] = o
    return -1


@kernel
def collapse(data, starts, ends, stage, classes, space_stage, space_classes, out, out_offsets, certain):
    """Writes each text data[starts[k]:ends[k]] with every run of white space as one space and none at its ends. certain: (rows,) uint8,
    whether it is plain that the text is composed (NFC). Returns the row of the first one that is not valid UTF-8, or -1."""
    o = np.int64(0)
    out_offsets[0] = 0
    for row in range(len(starts)):
        i, end = starts[row], ends[row]
        first = o
        gap = False
        composed = True
        while i < end:
            b = np.int64(data[i])
            size = np.int64(1)
            if b < 128:
                space = space_classes[b] & SPACE
            else:
                b, size = decode(data, i, end)
                if size == 0:
                    return row
                space = class_of(space_stage, space_classes, b) & SPACE
                composed &= not classes[(np.int64(stage[b >> 8]) << 8) | (b & 255)] & SUSPICIOUS
            if space:
                gap = o > first
                i += size
                continue
            if gap:
                out[o] = 32
                o += 1
                gap = False
            for k in range(size):
                out[o + k] = data[i + k]
            o += size
            i += size
        out_offsets[row + 1] = o
        certain[row] = composed
    return -1


def collapsed(column: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of an array of texts (data uint8, offsets (rows + 1,), certain (rows,) bool), as `collapse` has them; null is an empty text. Raises
    ValueError for invalid UTF-8, naming the row."""
    (part,) = chunks(column)
    return collapsed_spans(part.data, part.offsets[:-1], part.offsets[1:])


def collapsed_spans(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of parts of a text buffer, data[starts[k]:ends[k]]."""
    t = scratch.tables()
    out = np.empty(int((ends - starts).sum()), np.uint8)
    offsets, certain = np.empty(len(starts) + 1, np.int64), np.empty(len(starts), np.uint8)
    with ready(collapse):
        bad = collapse(data, starts, ends, *tables("\x00"), t.stage, t.classes, out, offsets, certain)
    if bad >= 0:
        raise ValueError(f"row {bad} is not valid UTF-8")
    return out, offsets, certain.astype(bool)


def suspicious(column: pa.Array | pa.ChunkedArray, always: str, paired: str) -> np.ndarray:
    """(rows,) bool: texts that hold one of the characters `always`, two of `paired` side by side, an HTML entity, or a character for
    which it is not plain that the text is composed (NFC). Raises ValueError for invalid UTF-8, naming the row."""
    flags = np.zeros(len(column), np.uint8)
    row = 0
    for part in chunks(column):
        with ready(look):
            bad = look(part.data, part.offsets, *tables(always, paired), flags[row : row + len(part)])
        if bad >= 0:
            raise ValueError(f"row {row + bad} is not valid UTF-8")
        row += len(part)
    return flags.astype(bool)


def tidied(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The texts in order, as `large_string`; null stays null. Raises ValueError for invalid UTF-8, naming the row."""
    made, row = [], 0
    t = scratch.tables()
    for part in chunks(column):
        start, end = int(part.offsets[0]), int(part.offsets[-1])
        out, offsets = np.empty(end - start, np.uint8), np.empty(len(part) + 1, np.int64)
        with ready(tidy):
            bad = tidy(part.data, part.offsets, *tables(), t.stage, t.classes, out, offsets)
        if bad >= 0:
            raise ValueError(f"row {row + bad} is not valid UTF-8")
        made.append(from_buffers(out, offsets, part.null))
        row += len(part)
    return pa.concat_arrays(made) if made else pa.array([], pa.large_string())
