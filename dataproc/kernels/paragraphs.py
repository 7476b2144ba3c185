"""Where the paragraphs of texts are, how many words each has, and a hash of 128 bits of each.

A paragraph is a run of lines without a blank one between them; in a text that has only one such run every line is one. White space and
composition do not count: two paragraphs are equal when their texts are after NFC, with runs of white space as one space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dataproc.kernels import scratch
from dataproc.kernels.columns import text_buffers
from dataproc.kernels.compiling import kernel, ready
from dataproc.kernels.places import code_at
from dataproc.kernels.primitives import class_of, hash_span, load, mix
from dataproc.kernels.tidy import collapsed_spans
from dataproc.kernels.unicode import SPACE, UNSPACED
from dataproc.text_hash import normalise

_OTHER = np.uint64(0xA24BAED4963EE407)  # of the second half of a hash: an odd number that the first one does not use


@kernel
def _blank(data, start, end, stage, classes):
    i = start
    while i < end:
        code = code_at(data, i, end)
        if not class_of(stage, classes, code) & SPACE:
            return False
        i += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    return True


@kernel
def split(data, offsets, by_line, stage, classes, rows, starts, ends):
    """Fills (paragraphs,) rows, starts and ends as far as they go; returns how many there are."""
    made = np.int64(0)
    for row in range(len(offsets) - 1):
        first, end = offsets[row], offsets[row + 1]
        # A first look tells whether a blank line stands between two others.
        lines = by_line
        if not by_line:
            runs = 0
            inside = False
            i = first
            while i < end:
                stop = i
                while stop < end and data[stop] != 10:
                    stop += 1
                blank = _blank(data, i, stop, stage, classes)
                runs += not blank and not inside
                inside = not blank
                i = stop + 1
            lines = runs < 2
        i = first
        start = np.int64(-1)
        last = first
        while i < end:
            stop = i
            while stop < end and data[stop] != 10:
                stop += 1
            blank = _blank(data, i, stop, stage, classes)
            if start >= 0 and (blank or lines):
                if made < len(rows):
                    rows[made], starts[made], ends[made] = row, start, last
                made += 1
                start = -1
            if not blank:
                start = i if start < 0 else start
                last = stop
            i = stop + 1
        if start >= 0:
            if made < len(rows):
                rows[made], starts[made], ends[made] = row, start, last
            made += 1
    return made


@kernel
def count_words(data, offsets, stage, classes, words):
    """Words of texts with single spaces between them; a letter of a script without spaces is one."""
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        total = 0
        inside = False
        while i < end:
            code = code_at(data, i, end)
            c = class_of(stage, classes, code)
            if c & SPACE:
                inside = False
            elif c & UNSPACED:
                total += 1
                inside = False
            else:
                total += not inside
                inside = True
            i += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        words[row] = total


@kernel
def hash_both(data, offsets, high, low):
    """Two hashes of each text that have nothing to do with each other."""
    for row in range(len(offsets) - 1):
        start, end = offsets[row], offsets[row + 1]
        high[row] = hash_span(data, start, end)
        h = np.uint64(end - start) * _OTHER
        i = start
        while i < end:
            h = mix((h ^ load(data, i, end)) * _OTHER)
            i += 8
        low[row] = mix(h)


@dataclass(frozen=True)
class Paragraphs:
    """The paragraphs of a column, in order. rows: (paragraphs,) int64, the text that each is of; starts, ends: (paragraphs,) int64, its
    bytes in `data`; offsets: (rows + 1,) of the texts themselves."""

    data: np.ndarray
    offsets: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @property
    def numbers(self) -> np.ndarray:
        """(paragraphs,) the place of each among those of its text."""
        firsts = np.searchsorted(self.rows, np.arange(len(self.offsets)))
        return np.arange(len(self.rows)) - firsts[self.rows]

    def texts(self, chosen: np.ndarray) -> list[str]:
        return [bytes(self.data[a:b]).decode() for a, b in zip(self.starts[chosen], self.ends[chosen], strict=True)]


def paragraphs_of(texts: pa.Array, by_line: bool) -> Paragraphs:
    """texts: `string` or `large_string`, valid UTF-8."""
    part = text_buffers(texts)
    t = scratch.tables()
    with ready(split):
        room = np.empty(max(16, len(part.data) // 64), np.int64)
        while True:
            rows, starts, ends = np.empty_like(room), np.empty_like(room), np.empty_like(room)
            count = split(part.data, part.offsets, by_line, t.stage, t.classes, rows, starts, ends)
            if count <= len(rows):
                return Paragraphs(part.data, part.offsets, rows[:count], starts[:count], ends[:count])
            room = np.empty(count, np.int64)


def measured(found: Paragraphs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(words int64, high uint64, low uint64), (paragraphs,) each: how many words each has, and the halves of its hash."""
    data, offsets, certain = collapsed_spans(found.data, found.starts, found.ends)
    count = len(found.rows)
    words, high, low = np.empty(count, np.int64), np.empty(count, np.uint64), np.empty(count, np.uint64)
    t = scratch.tables()
    with ready(hash_both):
        hash_both(data, offsets, high, low)
        count_words(data, offsets, t.stage, t.classes, words)
        for place in np.flatnonzero(~certain):
            text = np.frombuffer(normalise(bytes(data[offsets[place] : offsets[place + 1]]).decode()).encode(), np.uint8)
            hash_both(text, np.array([0, len(text)]), high[place : place + 1], low[place : place + 1])
    return words, high, low


def without(found: Paragraphs, row: int, numbers: set[int]) -> str:
    """A text without some of its paragraphs, each given by its place. What stood before a paragraph goes with it, but what stands before
    the first of the text and after the last one stays."""
    first, after = np.searchsorted(found.rows, (row, row + 1))
    data = found.data
    begin, end = int(found.offsets[row]), int(found.offsets[row + 1])
    if first == after:
        return bytes(data[begin:end]).decode()
    pieces = [data[begin : found.starts[first]]]
    for number, place in enumerate(range(first, after)):
        if number in numbers:
            continue
        if len(pieces) > 1:
            pieces.append(data[found.ends[place - 1] : found.starts[place]])
        pieces.append(data[found.starts[place] : found.ends[place]])
    pieces.append(data[found.ends[after - 1] : end])
    return b"".join(piece.tobytes() for piece in pieces).decode()
