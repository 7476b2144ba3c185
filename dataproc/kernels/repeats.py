"""Repeated n-grams of words, all lengths from 2 to 10 in one chain.

An n-gram occurs twice only if both (n-1)-grams in it do. So each length looks at what was left of the one before: an n-gram is the pair
of the numbers of its two (n-1)-grams, equal pairs get equal numbers, and those that occur once are left out. No hash stands for an
n-gram, so two different ones are never taken for the same; and in ordinary text little is left after a few lengths.
"""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import Count
from dataproc.kernels.primitives import grow, intern, mix
from dataproc.kernels.scratch import GROUPS_FULL, OK

_FIRST_BITS = 10
NONE = np.uint32(0xFFFFFFFF)  # in the place of an n-gram that occurs once
LONGEST = 10
REPEAT = 5  # the n-gram length of longest_repeat
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@kernel(inline=True)
def span_length(ends, word, n):
    """Characters of n words from a word on. ends: (words + 1,) uint32, the characters of all words before each."""
    return np.int64(ends[word + n]) - np.int64(ends[word])


@kernel
def _keep_repeated(ids, counts, places):
    """Leaves the numbers that occur twice or more, NONE in the place of others; returns the place after the last that is left."""
    after = 0
    for k in range(places):
        number = ids[k]
        if number != NONE:
            if counts[number] > 1:
                after = k + 1
            else:
                ids[k] = NONE
    return after


@kernel
def _pair(ids, keys, first, counts, table, places, base):
    """Numbers for neighbours: those of the n-grams one word longer, in the place of their first word. Returns (code, groups, base);
    each number's count and first place go to counts and first."""
    bits = np.int64(_FIRST_BITS)
    groups = np.int64(0)
    for k in range(places - 1):
        if ids[k] == NONE:
            continue
        if ids[k + 1] == NONE:
            ids[k] = NONE
            continue
        if groups >= len(keys):
            return GROUPS_FULL, groups, base
        if 2 * groups > np.int64(1) << bits:
            bits, base = grow(table, bits, base, keys, groups)
        key = mix((np.uint64(ids[k]) << np.uint64(32) | np.uint64(ids[k + 1])) * _MULTIPLIER)
        number = intern(table, bits, base, key, keys, groups)
        if number == groups:
            first[number] = k
            counts[number] = 1
            groups += 1
        else:
            counts[number] += np.uint32(1)
        ids[k] = np.uint32(number)
    ids[places - 1] = NONE
    return OK, groups, base + groups


@kernel
def _top(first, counts, ends, groups, n, out):
    """The most frequent n-gram: by the paper the longest of equally frequent ones; by dolma and datatrove the first of them."""
    most = np.uint32(1)
    for g in range(groups):
        most = max(most, counts[g])
    if most < 2:
        return
    longest = np.int64(0)
    earliest = np.int64(-1)
    for g in range(groups):
        if counts[g] == most:
            size = span_length(ends, np.int64(first[g]), n)
            longest = max(longest, size)
            if earliest < 0:
                earliest = size
    out[Count.TOP_2 + n - 2] = longest * most
    out[Count.TOP_2_DOLMA + n - 2] = earliest * most
    out[Count.TOP_2_DATATROVE + n - 2] = (earliest + n - 1) * most  # the spaces between its words are counted


@kernel
def _duplicates(ids, first, counts, marks, ends, places, n, out):
    """Characters in n-grams that occur more than once, by four definitions."""
    covered = np.int64(0)  # words before this one are counted
    covered_copies = np.int64(0)
    paper = np.int64(0)
    copies = np.int64(0)
    dolma = np.int64(0)
    datatrove = np.int64(0)
    resume = np.int64(0)  # datatrove goes on here after a repeat
    run = np.int64(0)
    longest = np.int64(0)
    for k in range(places):
        number = ids[k]
        if number == NONE or counts[number] < 2:
            continue
        word = np.int64(k)
        size = span_length(ends, word, n)
        dolma += size
        begin = max(word, covered_copies)
        copies += span_length(ends, begin, word + n - begin)
        covered_copies = word + n
        if first[number] < word:
            begin = max(word, covered)
            paper += span_length(ends, begin, word + n - begin)
            run = run + word + n - begin if word <= covered else np.int64(n)
            longest = max(longest, run)
            covered = word + n
        if word >= resume:
            if marks[number]:
                datatrove += size
                resume = word + n
            else:
                marks[number] = 1
    out[Count.DUPLICATE_5 + n - 5] = paper
    out[Count.DUPLICATE_5_DCLM + n - 5] = copies
    out[Count.DUPLICATE_5_DOLMA + n - 5] = dolma
    out[Count.DUPLICATE_5_DATATROVE + n - 5] = datatrove
    if n == REPEAT:
        out[Count.LONGEST_REPEAT] = longest


@kernel
def repeats(ids, keys, first, counts, marks, table, ends, base, out):
    """Fills the n-gram counts of a document from what `walk` has left of it: ids, counts, ends. Returns (code, base): OK or
    GROUPS_FULL. Uses up ids."""
    words = out[Count.WORDS]
    _all_sizes(ends, words, out)
    if words < 2:
        return OK, base
    _firsts(ends, words, out)
    places = _keep_repeated(ids, counts, words)
    for n in range(2, LONGEST + 1):
        if places < 2:
            break
        code, groups, base = _pair(ids, keys, first, counts, table, places, base)
        if code != OK:
            return code, base
        if n <= 4:
            _top(first, counts, ends, groups, n, out)
        else:
            marks[:groups] = 0
            _duplicates(ids, first, counts, marks, ends, places, n, out)
        places = _keep_repeated(ids, counts, places)
    return OK, base


@kernel
def _firsts(ends, words, out):
    """What dolma and datatrove count when no n-gram repeats: the first one. `_top` overwrites it when one does."""
    for n in range(2, 5):
        if words >= n:
            size = span_length(ends, 0, n)
            out[Count.TOP_2_DOLMA + n - 2] = size
            out[Count.TOP_2_DATATROVE + n - 2] = size + n - 1


@kernel
def _all_sizes(ends, words, out):
    """Characters of all n-grams, repeated or not, for dolma's fractions."""
    for n in range(5, 11):
        if words < n:
            continue
        # A word is in as many n-grams as there are places for it: n of them, fewer near the ends.
        total = n * out[Count.WORD_CHARACTERS]
        for k in range(n - 1):
            total -= (n - 1 - k) * (span_length(ends, k, 1) + span_length(ends, words - 1 - k, 1))
        out[Count.ALL_5_DOLMA + n - 5] = total


@kernel
def twice_median_length(histogram, ends, words):
    """Twice the median of the words' lengths: the sum of the two in the middle."""
    if words == 0:
        return 0
    return _nth_length(histogram, ends, words, (words - 1) // 2) + _nth_length(histogram, ends, words, words // 2)


@kernel
def _nth_length(histogram, ends, words, place):
    seen = np.int64(0)
    last = len(histogram) - 1
    for length in range(last):
        seen += histogram[length]
        if seen > place:
            return length
    # Among the long ones: the least length that enough words do not exceed, by halving.
    low, high = np.int64(last), np.int64(ends[words])
    while low < high:
        middle = (low + high) >> 1
        below = np.int64(0)
        for k in range(words):
            below += span_length(ends, k, 1) <= middle
        if below > place:
            high = middle
        else:
            low = middle + 1
    return low
