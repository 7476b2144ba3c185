"""The walk that finds the words and phrases of a list in texts, in one pass whatever the length of the list.

Each word of a text is folded and hashed; a table tells whether an entry begins with it, a second one whether a phrase begins with it and
the word after it. What the hashes find is then compared with the text, character by character, so no hash stands for a match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.folding import COMPOSING, GAP, IGNORED, MANY, MARK, UNSPACED, WORD, character_at, entry_of
from dataproc.kernels.primitives import encode, hash_lowered, hash_span, mix

LONGEST = 200  # bytes of an entry, folded
SHOWN = 5  # entries that are named of a text
BUFFER = 512  # bytes of a folded word; a longer one is in no list
_GAP_BYTES = 12  # between two words of a phrase
_PAIR = np.uint64(0x9E3779B97F4A7C15)
_1, _6, _63 = np.uint64(1), np.uint64(6), np.uint64(63)


class Entries(NamedTuple):
    """A list made ready. words, pairs: open tables of hashes, of an entry's first word and of a phrase's first two; word_spans, pair_spans
    (slots, 2): the entries that have this word alone, or begin with these two, the longest first; phrases (slots,): whether phrases begin
    with the word. Entry k is spelled[spans[k, 0]:spans[k, 1]], folded, a space for each gap; leads (n,): bytes of it before its first word;
    sizes (n,): its words. bits: a small filter before the tables."""

    bits: np.ndarray
    words: np.ndarray
    word_spans: np.ndarray
    phrases: np.ndarray
    pairs: np.ndarray
    pair_spans: np.ndarray
    spans: np.ndarray
    spelled: np.ndarray
    leads: np.ndarray
    sizes: np.ndarray


@kernel(inline=True)
def pair_key(first, second):
    """Hash of two words in a row."""
    return mix((first * _PAIR) ^ second) | _1


@kernel(inline=True)
def _probe(keys, key):
    """The slot of a key, or -1. keys: a power of two of them, 0 is free."""
    mask = len(keys) - 1
    slot = np.int64(key) & mask
    while keys[slot] != 0:
        if keys[slot] == key:
            return slot
        slot = (slot + 1) & mask
    return -1


@kernel
def _folded_word(data, i, end, stage, kinds, values, spans, spelled, buffer):
    """The word that begins at byte i: (byte after it, hash, whether its text may not be composed); a byte below 0 for invalid UTF-8, the
    hash 0 for a word that is longer than any entry."""
    size = np.int64(0)
    composing = False
    first = True
    ideograph = False
    while i < end:
        code, width = character_at(data, i, end)
        if width == 0:
            return np.int64(-1), np.uint64(0), False
        place = entry_of(stage, code)
        kind = kinds[place]
        if first:
            ideograph = kind & UNSPACED != 0
        elif ideograph:
            if not kind & (MARK | IGNORED):
                break
        elif not kind & (WORD | IGNORED) or kind & UNSPACED:
            break
        first = False
        composing |= kind & COMPOSING != 0
        if not kind & IGNORED and size < BUFFER - 64:
            if kind & MANY:
                for k in range(spans[values[place], 0], spans[values[place], 1]):
                    buffer[size] = spelled[k]
                    size += 1
            else:
                size = encode(code + values[place], buffer, size)
        i += width
    return i, hash_span(buffer, 0, size) if 0 < size <= LONGEST else np.uint64(0), composing


@kernel(inline=True)
def _word(data, i, end, ascii, stage, kinds, values, spans, spelled, buffer):
    """The same, fast where the word is ASCII and what follows it, too."""
    j = i
    while j < end and ascii[data[j]]:
        j += 1
    if j > i and (j == end or data[j] < 128):
        return j, hash_lowered(data, i, j), False
    return _folded_word(data, i, end, stage, kinds, values, spans, spelled, buffer)


@kernel
def _matches(data, i, end, stage, kinds, values, spans, spelled, buffer, pattern, p, last):
    """The byte after the entry pattern[p:last] where it stands at byte i, as whole words; -1 where it does not."""
    ends_in_word = False
    while p < last:
        if i >= end:
            return -1
        code, width = character_at(data, i, end)
        place = entry_of(stage, code)
        kind = kinds[place]
        if width == 0:
            return -1
        if kind & IGNORED:
            i += width
            continue
        if pattern[p] == 32:
            begin = i
            while kind & (GAP | IGNORED):
                i += width
                if i >= end or i - begin > _GAP_BYTES:
                    return -1
                code, width = character_at(data, i, end)
                if width == 0:
                    return -1
                kind = kinds[entry_of(stage, code)]
            if i == begin:
                return -1
            p += 1
            continue
        if kind & MANY:
            size = spans[values[place], 1] - spans[values[place], 0]
            for k in range(size):
                buffer[k] = spelled[spans[values[place], 0] + k]
        else:
            size = encode(code + values[place], buffer, 0)
        if p + size > last:
            return -1
        for k in range(size):
            if buffer[k] != pattern[p + k]:
                return -1
        p += size
        i += width
        ends_in_word = kind & WORD != 0
        ends_in_ideograph = kind & UNSPACED != 0
    after = i
    while ends_in_word and i < end:  # the last word must end here
        code, width = character_at(data, i, end)
        if width == 0:
            return -1
        kind = kinds[entry_of(stage, code)]
        if kind & MARK or kind & WORD and not (ends_in_ideograph or kind & UNSPACED):
            return -1
        if not kind & IGNORED:
            break
        i += width
    return after


@kernel
def _lead(data, start, i, pattern, first, size):
    """Whether the `size` bytes before a word's byte i are those an entry begins with, and no letter or digit of ASCII is before them."""
    if i - size < start:
        return False
    for k in range(size):
        if data[i - size + k] != pattern[first + k]:
            return False
    if i - size == start:
        return True
    b = data[i - size - 1]
    return not (48 <= b <= 57 or 65 <= b <= 90 or 97 <= b <= 122)


@kernel
def _standing(data, start, i, end, f, e, buffer, first, last):
    """(entry, byte after it) of the first of the entries first to last that stands with its first word at byte i; (-1, -1): none."""
    for n in range(first, last):
        lead = e.leads[n]
        if lead and not _lead(data, start, i, e.spelled, e.spans[n, 0], lead):
            continue
        after = _matches(
            data, i, end, f.stage, f.kinds, f.values, f.spans, f.spelled, buffer, e.spelled, e.spans[n, 0] + lead, e.spans[n, 1]
        )
        if after >= 0:
            return n, after
    return -1, -1


@kernel
def _next_word(data, i, end, ascii, f, buffer):
    """Hash of the word that begins at byte i or after a short gap; 0 where there is none."""
    k = i
    while k < end and k - i <= _GAP_BYTES:
        code, width = character_at(data, k, end)
        if width == 0:
            break
        if f.kinds[entry_of(f.stage, code)] & WORD:
            return _word(data, k, end, ascii, f.stage, f.kinds, f.values, f.spans, f.spelled, buffer)[1]
        k += width
    return np.uint64(0)


@kernel
def _entry_at(data, start, i, after, end, h, ascii, f, e, buffer):
    """(entry, byte after it) of the longest entry whose first word, with hash h, is data[i:after]; (-1, -1): none."""
    slot = _probe(e.words, h)
    if slot < 0:
        return -1, -1
    if e.phrases[slot]:
        pair = _probe(e.pairs, pair_key(h, _next_word(data, after, end, ascii, f, buffer)))
        if pair >= 0:
            found, stop = _standing(data, start, i, end, f, e, buffer, e.pair_spans[pair, 0], e.pair_spans[pair, 1])
            if found >= 0:
                return found, stop
    return _standing(data, start, i, end, f, e, buffer, e.word_spans[slot, 0], e.word_spans[slot, 1])


@kernel
def find(data, starts, ends, ascii, f, e, buffer, stamps, stamp, counts, shown, composing):
    """Counts the matches in the texts data[starts[k]:ends[k]]. counts (rows, 4) int64: words, matches, different entries, words in
    matches; shown (rows, SHOWN) int32: the first different entries; composing (rows,) uint8: whether a text may not be in NFC. stamps
    (entries,) int64: the text in which each was last found, numbered from `stamp`. Returns the row of the first text that is not valid
    UTF-8, or -1."""
    stage, kinds, values, spans, spelled, bits = f.stage, f.kinds, f.values, f.spans, f.spelled, e.bits
    filter_mask = np.uint64(64 * len(bits) - 1)
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        i = start
        words = np.int64(0)
        while i < end:
            if data[i] < 128:
                if not ascii[data[i]]:
                    i += 1
                    continue
            else:
                code, width = character_at(data, i, end)
                if width == 0:
                    return row
                kind = kinds[entry_of(stage, code)]
                if not kind & WORD:
                    composing[row] |= kind & COMPOSING != 0
                    i += width
                    continue
            after, h, odd = _word(data, i, end, ascii, stage, kinds, values, spans, spelled, buffer)
            if after < 0:
                return row
            composing[row] |= odd
            words += 1
            place = h & filter_mask
            if (bits[np.int64(place >> _6)] >> (place & _63)) & _1:
                found, stop = _entry_at(data, start, i, after, end, h, ascii, f, e, buffer)
                if found >= 0:
                    words += e.sizes[found] - 1
                    counts[row, 1] += 1
                    counts[row, 3] += e.sizes[found]
                    if stamps[found] != stamp + row:
                        stamps[found] = stamp + row
                        if counts[row, 2] < SHOWN:
                            shown[row, counts[row, 2]] = found
                        counts[row, 2] += 1
                    after = stop
            i = after
        counts[row, 0] = words
    return -1


@kernel
def split(data, starts, ends, ascii, f, buffer, places, hashes, sizes):
    """Of each entry data[starts[k]:ends[k]]: places (n,) where its first word begins, -1 if it has none; hashes (n, 2) uint64: of its
    first word, and `pair_key` of its first two; sizes (n,) its words."""
    for row in range(len(starts)):
        i, end = starts[row], ends[row]
        places[row] = -1
        while i < end:
            code, width = character_at(data, i, end)
            if not f.kinds[entry_of(f.stage, code)] & WORD:
                i += width
                continue
            if places[row] < 0:
                places[row] = i
            after, h, _ = _word(data, i, end, ascii, f.stage, f.kinds, f.values, f.spans, f.spelled, buffer)
            if sizes[row] < 2:
                hashes[row, sizes[row]] = h if sizes[row] == 0 else pair_key(hashes[row, 0], h)
            sizes[row] += 1
            i = after
