"""Repeated n-grams of words, all lengths from 2 to 10 in one chain.

An n-gram occurs twice only if both (n-1)-grams in it do. So each length looks at what was left of the one before: an n-gram is the pair
of the numbers of its two (n-1)-grams, equal pairs get equal numbers, and those that occur once are left out. No hash stands for an
n-gram, so two different ones are never taken for the same; and in ordinary text little is left after a few lengths.

A document's n-grams may be more than the tables of a giant hold. Then those whose hash is of one part are numbered at a time, into a
second array.
"""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import Count
from dataproc.kernels.primitives import mix, number_of, unmix
from dataproc.kernels.scratch import GROUPS_FULL, OK
from dataproc.kernels.words import LONG, NONE

_FIRST_BITS = 10
LONGEST = 10
REPEAT = 5  # the n-gram length of longest_repeat
WRAP = 1 << 31  # stamps of interning tables begin anew here
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_FIRST = np.uint32(0x80000000)  # this bit of a number says: its n-gram was not there before
_NUMBER = np.uint32(0x7FFFFFFF)
_32 = np.uint64(32)


@kernel
def _long_length(long_places, long_lengths, word):
    low, high = np.int64(1), np.int64(long_places[0])
    while low < high:
        middle = (low + high) >> 1
        if long_places[middle] < word:
            low = middle + 1
        else:
            high = middle
    return np.int64(long_lengths[low])


@kernel(inline=True)
def span_length(lengths, long_places, long_lengths, word, n):
    """Characters of n words from a word on."""
    total = np.int64(0)
    for k in range(word, word + n):
        one = np.int64(lengths[k])
        total += one if one < LONG else _long_length(long_places, long_lengths, k)
    return total


@kernel
def keep_repeated(ids, counts, words, offset):
    """Puts NONE in the place of words that occur once. counts: of the numbers from offset on; lower ones stay."""
    for k in range(words):
        number = ids[k]
        if number != NONE and number >= offset and counts[number - offset] == 1:
            ids[k] = NONE


@kernel
def _pair(ids, out, keys, first, counts, table, places, base, part, mask, offset):
    """Numbers, from offset on, for neighbours whose hash is `part` under the mask: those of the n-grams one word longer, into `out`
    (ids itself where the mask is 0, else it holds NONE) in the place of their first word. Returns (code, groups, base, the place
    stopped at); each number's count and first place go to counts and first."""
    bits = np.int64(_FIRST_BITS)
    groups = np.int64(0)
    for k in range(places - 1):
        one = ids[k]
        if one == NONE:
            continue
        other = ids[k + 1]
        if other == NONE:
            out[k] = NONE
            continue
        key = mix((np.uint64(one & _NUMBER) << _32 | np.uint64(other & _NUMBER)) * _MULTIPLIER)
        if key & mask != part:
            continue
        number, bits, base = number_of(key, keys, table, bits, base, groups)
        if number < 0:
            return GROUPS_FULL, groups, base, k
        if number == groups:
            first[number] = k
            counts[number] = 1
            groups += 1
        else:
            counts[number] += np.uint32(1)
        out[k] = np.uint32(offset + number)
    out[places - 1] = NONE
    return OK, groups, base + groups, places - 1


@kernel
def _undo(ids, keys, stop):
    """Makes of the numbers in ids[:stop] those again that `_pair` made them of, where it worked in place and stopped."""
    for k in range(stop - 1, -1, -1):
        if ids[k] == NONE:
            continue
        pair = unmix(keys[ids[k]]) * _INVERSE
        ids[k] = np.uint32(pair >> _32)
        if k + 1 < stop and ids[k + 1] == NONE:
            ids[k + 1] = np.uint32(pair & np.uint64(0xFFFFFFFF))


@kernel
def _settle(out, first, counts, groups):
    """NONE in the place of an n-gram that occurs once; of the others the first place is marked."""
    for g in range(groups):
        if counts[g] == 1:
            out[first[g]] = NONE
        else:
            out[first[g]] |= _FIRST


@kernel
def _top(first, counts, groups, lengths, long_places, long_lengths, n, top):
    """Looks for the most frequent n-gram among groups, beside what was found in other parts. top: (3,) int64, its count, its characters
    (by the paper, the longest of equally frequent ones), and its place (by dolma and datatrove, the first of them)."""
    most = np.uint32(1)
    for g in range(groups):
        most = max(most, counts[g])
    if most < 2 or most < top[0]:
        return
    if most > top[0]:
        top[0], top[1], top[2] = most, 0, first[0] + WRAP
    for g in range(groups):
        if counts[g] == most:
            top[1] = max(top[1], span_length(lengths, long_places, long_lengths, np.int64(first[g]), n))
            top[2] = min(top[2], np.int64(first[g]))


@kernel
def _book_top(top, lengths, long_places, long_lengths, n, out):
    if top[0] < 2:
        return
    earliest = span_length(lengths, long_places, long_lengths, top[2], n)
    out[Count.TOP_2 + n - 2] = top[1] * top[0]
    out[Count.TOP_2_DOLMA + n - 2] = earliest * top[0]
    out[Count.TOP_2_DATATROVE + n - 2] = (earliest + n - 1) * top[0]  # the spaces between its words are counted


@kernel
def _duplicates(ids, marks, lengths, long_places, long_lengths, places, n, out):
    """Characters in n-grams that occur more than once, by four definitions. marks: a bit for each number."""
    covered = np.int64(0)  # words before this one are counted
    covered_copies = np.int64(0)
    paper = np.int64(0)
    copies = np.int64(0)
    dolma = np.int64(0)
    datatrove = np.int64(0)
    resume = np.int64(0)  # datatrove goes on here after a repeat
    run = np.int64(0)
    longest = np.int64(0)
    size = np.int64(0)
    before = np.int64(-2)
    for word in range(np.int64(places)):
        if ids[word] == NONE:
            continue
        if word == before + 1 and lengths[before] < LONG and lengths[word + n - 1] < LONG:  # the last one, moved by a word
            size += np.int64(lengths[word + n - 1]) - np.int64(lengths[before])
        else:
            size = span_length(lengths, long_places, long_lengths, word, n)
        before = word
        dolma += size
        begin = max(word, covered_copies)
        copies += size if begin == word else span_length(lengths, long_places, long_lengths, begin, word + n - begin)
        covered_copies = word + n
        if not ids[word] & _FIRST:
            begin = max(word, covered)
            paper += size if begin == word else span_length(lengths, long_places, long_lengths, begin, word + n - begin)
            run = run + word + n - begin if word <= covered else np.int64(n)
            longest = max(longest, run)
            covered = word + n
        if word >= resume:
            number = np.int64(ids[word] & _NUMBER)
            bit = np.uint8(1 << (number & 7))
            if marks[number >> 3] & bit:
                datatrove += size
                resume = word + n
            else:
                marks[number >> 3] |= bit
    out[Count.DUPLICATE_5 + n - 5] = paper
    out[Count.DUPLICATE_5_DCLM + n - 5] = copies
    out[Count.DUPLICATE_5_DOLMA + n - 5] = dolma
    out[Count.DUPLICATE_5_DATATROVE + n - 5] = datatrove
    if n == REPEAT:
        out[Count.LONGEST_REPEAT] = longest


@kernel
def repeats(x, base, out):
    """Fills the n-gram counts of a document from what the walk and `keep_repeated` have left of it: ids and lengths. Returns (code,
    base): OK or, where x has no second array to work in parts with, GROUPS_FULL. Uses up ids."""
    ids, spare, keys, first, counts, marks, table, top = x.ids, x.spare, x.keys, x.first, x.counts, x.marks, x.table, x.top
    lengths, long_places, long_lengths = x.lengths, x.long_places, x.long_lengths
    places = out[Count.WORDS]
    _all_sizes(lengths, long_places, long_lengths, places, out)
    _firsts(lengths, long_places, long_lengths, places, out)
    for n in range(2, LONGEST + 1):
        while places > 0 and ids[places - 1] == NONE:
            places -= 1
        if places < 2:
            break
        top[:] = 0
        code, groups, base, stop = _pair(ids, ids, keys, first, counts, table, places, base, np.uint64(0), np.uint64(0), 0)
        if code == OK:
            if n <= 4:
                _top(first, counts, groups, lengths, long_places, long_lengths, n, top)
            _settle(ids, first, counts, groups)
        elif len(spare) < places:
            return code, base
        else:
            _undo(ids, keys, stop)
            parts = 1
            while code != OK:
                parts *= 2
                top[:] = 0
                groups = 0
                spare[:places] = NONE
                for part in range(parts):
                    table[:] = 0
                    code, more, base, stop = _pair(
                        ids, spare, keys, first, counts, table, places, 1, np.uint64(part), np.uint64(parts - 1), groups
                    )
                    if code != OK:
                        break
                    if n <= 4:
                        _top(first, counts, more, lengths, long_places, long_lengths, n, top)
                    _settle(spare, first, counts, more)
                    groups += more
            ids, spare = spare, ids
        if n <= 4:
            _book_top(top, lengths, long_places, long_lengths, n, out)
        else:
            marks[: (groups >> 3) + 1] = 0
            _duplicates(ids, marks, lengths, long_places, long_lengths, places, n, out)
    return OK, base


@kernel
def _firsts(lengths, long_places, long_lengths, words, out):
    """What dolma and datatrove count when no n-gram repeats: the first one. `_book_top` overwrites it when one does."""
    for n in range(2, 5):
        if words >= n:
            size = span_length(lengths, long_places, long_lengths, 0, n)
            out[Count.TOP_2_DOLMA + n - 2] = size
            out[Count.TOP_2_DATATROVE + n - 2] = size + n - 1


@kernel
def _all_sizes(lengths, long_places, long_lengths, words, out):
    """Characters of all n-grams, repeated or not, for dolma's fractions."""
    for n in range(5, 11):
        if words < n:
            continue
        # A word is in as many n-grams as there are places for it: n of them, fewer near the ends.
        total = n * out[Count.WORD_CHARACTERS]
        for k in range(n - 1):
            ends = span_length(lengths, long_places, long_lengths, k, 1)
            ends += span_length(lengths, long_places, long_lengths, words - 1 - k, 1)
            total -= (n - 1 - k) * ends
        out[Count.ALL_5_DOLMA + n - 5] = total


@kernel
def twice_median_length(histogram, long_places, long_lengths, words):
    """Twice the median of the words' lengths: the sum of the two in the middle."""
    if words == 0:
        return 0
    lower = _nth_length(histogram, long_places, long_lengths, (words - 1) // 2)
    return lower + _nth_length(histogram, long_places, long_lengths, words // 2)


@kernel
def _nth_length(histogram, long_places, long_lengths, place):
    seen = np.int64(0)
    for length in range(LONG):
        seen += histogram[length]
        if seen > place:
            return length
    # Among the long ones: the least length that enough words do not exceed, by halving.
    low, high = np.int64(LONG), np.int64(0xFFFFFFFF)
    while low < high:
        middle = (low + high) >> 1
        below = seen
        for k in range(1, np.int64(long_places[0]) + 1):
            below += long_lengths[k] <= middle
        if below > place:
            high = middle
        else:
            low = middle + 1
    return low
