"""Words: where they begin and end, and what each counts for. They are found block by block and then looked at a batch at a time, one
question after the other: short loops over many words keep a processor busier than one long loop that asks everything of each."""

from __future__ import annotations

import numpy as np

from dataproc.kernels.blocks import ALL, below, lowest, popcount
from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import Count
from dataproc.kernels.places import stop_number, stop_word
from dataproc.kernels.primitives import hash_lowered, hash_span, number_of
from dataproc.kernels.scratch import Mask, State
from dataproc.kernels.unicode import STRIP

LONG = 255  # characters from which on a word's length does not stand in `lengths`
NONE = np.uint32(0xFFFFFFFF)  # in the place of a word that has no number, or of an n-gram that occurs once
_0, _1 = np.uint64(0), np.uint64(1)
# What a word has among its characters.
_ALPHA, _PLAIN, _SIGN, _STRIPPED, _BEYOND = 1, 2, 4, 8, 16


@kernel(inline=True)
def _kind(m, within):
    return (
        np.int64(m[Mask.ALPHAS] & within != _0) * _ALPHA
        | np.int64(m[Mask.PLAIN] & within != _0) * _PLAIN
        | np.int64((m[Mask.HASHES] | m[Mask.ELLIPSES]) & within != _0) * _SIGN
        | np.int64(m[Mask.STRIPPED] & within != _0) * _STRIPPED
        | np.int64(m[Mask.BEYOND] & within != _0) * _BEYOND
    )


@kernel
def find_words(i, m, state, starts, ends, sizes, kinds, found):
    """Appends the words that end in the block at byte i: their bytes, their characters, what they have. Returns how many there are now.
    The word that goes on in the next block is left in state."""
    starting, ending = m[Mask.STARTS], m[Mask.ENDS]
    inside = m[Mask.INSIDE]
    if state[State.WORD_START] >= 0:
        if not ending:
            state[State.WORD_INSIDE] += popcount(inside)
            state[State.WORD_KIND] |= _kind(m, ALL)
            return found
        place = lowest(ending)
        ending &= ending - _1
        within = below(place)
        starts[found] = state[State.WORD_START]
        ends[found] = i + place
        sizes[found] = i + place - state[State.WORD_START] - state[State.WORD_INSIDE] - popcount(inside & within)
        kinds[found] = state[State.WORD_KIND] | _kind(m, within)
        found += 1
        state[State.WORD_START] = -1
    while ending:
        first, place = lowest(starting), lowest(ending)
        starting &= starting - _1
        ending &= ending - _1
        within = below(place) & ~below(first)
        starts[found] = i + first
        ends[found] = i + place
        sizes[found] = place - first - popcount(inside & within)
        kinds[found] = _kind(m, within)
        found += 1
    if starting:
        first = lowest(starting)
        within = ~below(first)
        state[State.WORD_START] = i + first
        state[State.WORD_INSIDE] = popcount(inside & within)
        state[State.WORD_KIND] = _kind(m, within)
    return found


@kernel
def hash_words(data, starts, ends, found, hashes):
    for k in range(found):
        hashes[k] = hash_span(data, starts[k], ends[k])


@kernel
def number_words(hashes, found, before, part, mask, offset, ids, keys, counts, table, state):
    """Gives the words with a hash of this part numbers from offset on, equal ones the same, into ids from `before` on. Returns whether
    there was room."""
    distinct, bits, base = state[State.WORDS], state[State.WORD_BITS], state[State.WORD_BASE]
    for k in range(found):
        key = hashes[k]
        if key & mask == part:
            number, bits, base = number_of(key, keys, table, bits, base, distinct)
            if number < 0:
                return False
            if number == distinct:
                counts[number] = 0
                distinct += 1
            counts[number] += np.uint32(1)
            ids[before + k] = np.uint32(offset + number)
        elif part == 0:
            ids[before + k] = NONE
    state[State.WORDS], state[State.WORD_BITS], state[State.WORD_BASE] = distinct, bits, base
    return True


@kernel
def size_words(sizes, found, before, lengths, histogram, long_places, long_lengths):
    """Keeps the words' lengths, in long_lengths those that a byte does not hold. long_places[0]: how many these are."""
    for k in range(found):
        short = min(sizes[k], LONG)
        lengths[before + k] = np.uint8(short)
        histogram[short] += 1
        if short == LONG:
            longs = np.int64(long_places[0]) + 1
            long_places[0] = np.uint32(longs)
            long_places[longs] = np.uint32(before + k)
            long_lengths[longs] = np.uint32(sizes[k])


@kernel
def shape_words(sizes, kinds, found, out):
    for k in range(found):
        kind, size = kinds[k], sizes[k]
        plain = (kind & _PLAIN) >> 1
        out[Count.ALPHABETIC_WORDS] += kind & _ALPHA
        out[Count.NON_SYMBOL_WORDS] += plain
        out[Count.NON_SYMBOL_WORD_CHARACTERS] += size * plain
        out[Count.SYMBOL_WORDS] += (kind & _SIGN) >> 2
        out[Count.LONGEST_WORD] = max(out[Count.LONGEST_WORD], size)


@kernel
def count_stop_words(
    data, starts, ends, kinds, hashes, found, ascii, stage, classes, lowers, keys, numbers, multiplier, longest, buffer, out
):
    """Which stop words occur, as bits of STOP_WORDS, and how often; CASED: those that are written as the list has them."""
    stops, cased = np.int64(0), np.int64(0)
    occurrences, cased_occurrences = np.int64(0), np.int64(0)
    for k in range(found):
        start, end = starts[k], ends[k]
        if kinds[k] & _BEYOND:
            number = stop_word(data, start, end, stage, classes, lowers, keys, numbers, multiplier, longest, buffer)
            as_written = stop_number(keys, numbers, multiplier, hashes[k]) >= 0
        else:
            if kinds[k] & _STRIPPED:
                while start < end and ascii[data[start]] & STRIP:
                    start += 1
                while end > start and ascii[data[end - 1]] & STRIP:
                    end -= 1
            lowered = hash_lowered(data, start, end)
            number = stop_number(keys, numbers, multiplier, lowered)
            as_written = lowered == hashes[k]
        # Counted without a branch: whether the next word is a stop word cannot be foretold.
        hit = np.int64(number >= 0)
        place = number & 63
        occurrences += hit
        stops |= hit << place
        hit &= np.int64(as_written)
        cased_occurrences += hit
        cased |= hit << place
    out[Count.STOP_WORDS] |= stops
    out[Count.CASED_STOP_WORDS] |= cased
    out[Count.STOP_WORD_OCCURRENCES] += occurrences
    out[Count.CASED_STOP_WORD_OCCURRENCES] += cased_occurrences
