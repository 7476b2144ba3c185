"""Lines and paragraphs: where they begin and end, what each counts for, and which of them occurred before."""

from __future__ import annotations

import numpy as np

from dataproc.kernels.blocks import ALL, BLOCK, above_highest, below, lowest, popcount
from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import LINE_COPIES, PARAGRAPH_COPIES, Count
from dataproc.kernels.lists import SHORT_LINE_CHARACTERS
from dataproc.kernels.places import code_at, last_unclosed, previous
from dataproc.kernels.primitives import class_of, hash_span, number_of
from dataproc.kernels.scratch import LINES_FULL, OK, PARAGRAPHS_FULL, Mask, State
from dataproc.kernels.unicode import BULLET, CLOSER, TERMINAL

_1 = np.uint64(1)
# Of a span in State, counted from its first name: where it begins and ends, each in bytes and in bytes that are no character, how many
# different ones there were, and how their table stands.
_START, _START_EXTRA, _END, _END_EXTRA, _DISTINCT, _BITS, _BASE = range(7)


@kernel(inline=True)
def _book_copy(data, span, part, mask, keys, counts, table, state, characters, out, duplicates, copies):
    """Numbers the line or paragraph that state holds from `span` on, if its hash is of this part, and books it where it was there before:
    in two columns each, count, then characters. Returns whether there was room."""
    key = hash_span(data, state[span + _START], state[span + _END])
    if key & mask != part:
        return True
    distinct = state[span + _DISTINCT]
    number, state[span + _BITS], state[span + _BASE] = number_of(key, keys, table, state[span + _BITS], state[span + _BASE], distinct)
    if number < 0:
        return False
    if number == distinct:
        counts[number] = 1
        state[span + _DISTINCT] += 1
        return True
    out[duplicates] += 1
    out[duplicates + 1] += characters
    again = 2 if counts[number] == 1 else 1
    counts[number] += np.uint32(1)
    out[copies] += again
    out[copies + 1] += again * characters
    return True


@kernel(inline=True)
def _book_line(data, start, end, characters, stage, classes, out):
    """What a line counts for by its length, its first character and its last ones."""
    out[Count.LINES] += 1
    out[Count.LINE_CHARACTERS] += characters
    out[Count.SHORT_LINES] += characters <= SHORT_LINE_CHARACTERS
    first = code_at(data, start, end)
    out[Count.BULLET_LINES] += (class_of(stage, classes, first) & BULLET) != 0
    out[Count.ASCII_BULLET_LINES] += first == 45 or first == 42
    last = np.int64(data[end - 1])
    if last < 128:
        c = class_of(stage, classes, last)
    else:
        last = code_at(data, previous(data, start, end), end)
        c = np.uint16(CLOSER)  # or whatever it is
        out[Count.ELLIPSIS_CHARACTER_LINES] += last == 0x2026
    out[Count.ELLIPSIS_LINES] += last == 0x2026 or (last == 46 and end - start >= 3 and data[end - 2] == 46 and data[end - 3] == 46)
    if c & CLOSER:
        c = last_unclosed(data, stage, classes, start, end)
    out[Count.TERMINAL_LINES] += (c & TERMINAL) != 0


@kernel(inline=True)
def _characters(state, span):
    return (state[span + _END] - state[span + _START]) - (state[span + _END_EXTRA] - state[span + _START_EXTRA])


@kernel(inline=True)
def _feed(data, ended, stage, classes, x, part, mask, wanted, state, out):
    """A line feed or the end of the text: it ends a line, and where there was none a paragraph. Returns OK or what was too small."""
    blank = state[State.LINE_START] < 0
    if not blank:
        size = _characters(state, State.LINE_START)
        _book_line(data, state[State.LINE_START], state[State.LINE_END], size, stage, classes, out)
        if wanted & LINE_COPIES and not _book_copy(
            data, State.LINE_START, part, mask, x.line_keys, x.line_counts, x.line_table, state, size, out,
            Count.DUPLICATE_LINES, Count.COPIED_LINES,
        ):  # fmt: skip
            return LINES_FULL
        if state[State.PARAGRAPH_START] < 0:
            state[State.PARAGRAPH_START] = state[State.LINE_START]
            state[State.PARAGRAPH_START_EXTRA] = state[State.LINE_START_EXTRA]
        state[State.PARAGRAPH_END] = state[State.LINE_END]
        state[State.PARAGRAPH_END_EXTRA] = state[State.LINE_END_EXTRA]
        state[State.LINE_START] = -1
    if (blank or ended) and state[State.PARAGRAPH_START] >= 0:
        size = _characters(state, State.PARAGRAPH_START)
        out[Count.PARAGRAPHS] += 1
        out[Count.PARAGRAPH_CHARACTERS] += size
        if wanted & PARAGRAPH_COPIES and not _book_copy(
            data, State.PARAGRAPH_START, part, mask, x.paragraph_keys, x.paragraph_counts, x.paragraph_table, state, size, out,
            Count.DUPLICATE_PARAGRAPHS, Count.COPIED_PARAGRAPHS,
        ):  # fmt: skip
            return PARAGRAPHS_FULL
        state[State.PARAGRAPH_START] = -1
    return OK


@kernel(inline=True)
def count_lines(data, i, ended, stage, classes, x, part, mask, wanted, m, state, out):
    """Counts the lines and paragraphs that end in the block at byte i; `ended`: it is the last one. Returns OK or what was too small."""
    visible, inside, feeds, extra = m[Mask.VISIBLE], m[Mask.INSIDE], m[Mask.NEWLINES], state[State.EXTRA]
    rest = ALL
    while True:
        feed = feeds & (~feeds + _1)
        seen = visible & rest & (feed - _1)  # without a feed: all of the rest
        if seen:
            if state[State.LINE_START] < 0:
                place = lowest(seen)
                state[State.LINE_START] = i + place
                state[State.LINE_START_EXTRA] = extra + popcount(inside & below(place))
            place = BLOCK - above_highest(seen)
            state[State.LINE_END] = i + place
            state[State.LINE_END_EXTRA] = extra + popcount(inside & below(place))
        if not feed and not ended:
            return OK
        code = _feed(data, not feed, stage, classes, x, part, mask, wanted, state, out)
        if not feed or code != OK:
            return code
        feeds ^= feed
        rest = ~(feed | (feed - _1))
