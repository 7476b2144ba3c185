"""The walk: one pass over a document, 64 bytes at a time, that finds its words, lines and paragraphs, and counts everything that needs no
look at other places. It leaves the words as numbers (equal words, equal numbers) and lengths: n-gram counts are made from those."""

from __future__ import annotations

import numpy as np

from dataproc.kernels.blocks import BLOCK, classify, lowest, moved, popcount
from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import DISTINCT, PHRASES, REPEATS, SENTENCES, SHAPES, STOPS, Count
from dataproc.kernels.lines import count_lines
from dataproc.kernels.places import is_url, is_www, last_unclosed, phrase_at
from dataproc.kernels.scratch import GROUPS_FULL, INVALID, NONASCII, OK, WORDS_FULL, Mask, State
from dataproc.kernels.unicode import TERMINAL
from dataproc.kernels.words import count_stop_words, find_words, hash_words, number_words, shape_words, size_words

_FIRST_BITS = 10  # slots of an interning table for a new document
_1 = np.uint64(1)


@kernel
def _begin(bases, state):
    """No word, line and paragraph so far. bases: the stamps of their tables."""
    state[:] = 0
    state[State.WORD_START] = state[State.LINE_START] = state[State.PARAGRAPH_START] = -1
    state[State.WORD_BITS] = state[State.LINE_BITS] = state[State.PARAGRAPH_BITS] = _FIRST_BITS
    state[State.WORD_BASE], state[State.LINE_BASE], state[State.PARAGRAPH_BASE] = bases[0], bases[1], bases[2]


@kernel
def _end(bases, state):
    """Books the stamps that have been used."""
    bases[0] = state[State.WORD_BASE] + state[State.WORDS]
    bases[1] = state[State.LINE_BASE] + state[State.LINES]
    bases[2] = state[State.PARAGRAPH_BASE] + state[State.PARAGRAPHS]


@kernel(inline=True)
def _count_dots(m, state, out):
    """Three dots in a row are an ellipsis, and the next three another one. DOTS in state: those at the block's end that are of none."""
    dots = m[Mask.DOTS]
    if not dots & moved(m, Mask.DOTS, 1):
        state[State.DOTS] = np.int64(dots >> np.uint64(BLOCK - 1))
        return
    run, last = state[State.DOTS], np.int64(-1)
    while dots:
        place = lowest(dots)
        dots &= dots - _1
        run = run + 1 if place == last + 1 else 1
        last = place
        if run == 3:
            out[Count.ELLIPSES] += 1
            run = 0
            last = -2
    state[State.DOTS] = run if last == BLOCK - 1 else 0


@kernel(inline=True)
def _count_sentences(data, start, i, stage, classes, m, out):
    """A sentence ends with a mark of ASCII, closing marks after it, then white space or the end; an ideographic mark ends one wherever
    it stands."""
    out[Count.SENTENCES] += popcount(m[Mask.IDEOGRAPHIC_ENDS])
    ends = m[Mask.SPACES] & moved(m, Mask.VISIBLE, 1)
    marked = moved(m, Mask.TERMINALS, 1)
    out[Count.SENTENCES] += popcount(ends & marked)
    closed = ends & (moved(m, Mask.CLOSERS, 1) | moved(m, Mask.BEYOND, 1))
    while closed:
        last = last_unclosed(data, stage, classes, start, i + lowest(closed))
        out[Count.SENTENCES] += last & (TERMINAL | NONASCII) == TERMINAL
        closed &= closed - _1


@kernel(inline=True)
def _count_phrases(data, start, end, i, phrases, lengths, anchors, pairs, m, out):
    """Looks where a letter, a blank and a letter may be those of a phrase."""
    found = m[Mask.AFTER_ANCHORS] & moved(m, Mask.BLANKS, 1) & moved(m, Mask.BEFORE_ANCHORS, 2)
    while found:
        blank = i + lowest(found) - 1
        if (pairs[data[blank - 1] & 31] >> np.uint32(data[blank + 1] & 31)) & np.uint32(1):
            phrase_at(data, start, end, blank, phrases, lengths, anchors, out)
        found &= found - _1
    found = m[Mask.JS]
    while found:
        phrase_at(data, start, end, i + lowest(found), phrases, lengths, anchors, out)
        found &= found - _1


@kernel(inline=True)
def _count_urls(data, start, end, i, stage, classes, m, out):
    found = m[Mask.COLONS]
    while found:
        out[Count.URLS] += is_url(data, start, end, i + lowest(found))
        found &= found - _1
    found = m[Mask.WS] & moved(m, Mask.WS, 1) & moved(m, Mask.WS, 2) & moved(m, Mask.STARTS, 2)
    while found:
        out[Count.URLS] += is_www(data, stage, classes, i + lowest(found) - 2, end)
        found &= found - _1


@kernel(inline=True)
def _count_bits(m, out):
    """What is counted by counting bits."""
    characters = m[Mask.TEXT] & ~m[Mask.INSIDE]
    out[Count.CHARACTERS] += popcount(characters)
    out[Count.SPACES] += popcount(characters & m[Mask.SPACES])
    out[Count.WORD_CHARACTERS] += popcount(characters & m[Mask.VISIBLE])
    out[Count.WORDS] += popcount(m[Mask.STARTS])
    out[Count.NEWLINES] += popcount(m[Mask.NEWLINES])
    out[Count.ALPHAS] += popcount(m[Mask.ALPHAS])
    out[Count.UPPERS] += popcount(m[Mask.UPPERS])
    out[Count.DIGITS] += popcount(m[Mask.DIGITS])
    out[Count.SYMBOLS] += popcount(m[Mask.SYMBOLS])
    out[Count.PUNCTUATIONS] += popcount(m[Mask.PUNCTUATIONS])
    out[Count.HASHES] += popcount(m[Mask.HASHES])
    out[Count.ELLIPSES] += popcount(m[Mask.ELLIPSES])
    out[Count.CURLY_BRACKETS] += popcount(m[Mask.CURLIES])


@kernel
def walk(data, start, end, t, x, language, wanted, out):
    """Counts one document, data[start:end], into out (COUNTS,) int64, and leaves word numbers in ids, their lengths in lengths (and of
    the long ones in long_lengths) and their counts in counts. Returns a code of scratch.py: OK, INVALID UTF-8, or what was too small.

    x.split is (part, mask, offset): only words, lines and paragraphs whose hash is `part` under the mask are numbered and looked for
    among the earlier ones; words from `offset` on. A giant is walked once for each part, every other document once, as part 0 under
    mask 0.
    """
    # Taken out of their tuples once: to hand a kernel a whole tuple costs more than many a kernel does.
    ascii, stage, classes, scripts, lowers = t.ascii, t.stage, t.classes, t.scripts, t.lowers
    phrases, phrase_lengths, phrase_anchors, phrase_pairs = t.phrases, t.phrase_lengths, t.phrase_anchors, t.phrase_pairs
    stop_keys, stop_numbers = t.stop_keys[language], t.stop_numbers[language]
    stop_multiplier, stop_longest = t.stop_multipliers[language], t.stop_longest[language]
    m, state, buffer, bases = x.masks, x.state, x.buffer, x.bases
    starts, ends, sizes, kinds, hashes = x.starts, x.ends, x.sizes, x.kinds, x.hashes
    part, mask, offset = np.uint64(x.split[0]), np.uint64(x.split[1]), x.split[2]
    stopped = wanted & STOPS != 0 and stop_longest > 0
    sized = wanted & (SHAPES | REPEATS) != 0
    numbered = wanted & (DISTINCT | REPEATS) != 0
    keyed = numbered or stopped
    each = keyed or sized
    m[:] = 0
    _begin(bases, state)
    words = np.int64(0)  # that are counted one by one
    found = np.int64(0)  # that are not counted yet
    x.long_places[0] = 0
    if sized:
        x.histogram[:] = 0
    out[Count.BYTES] = end - start
    i = start
    while True:
        if not classify(data, i, end, wanted, stage, classes, scripts, m, state, buffer, out):
            return INVALID
        ended = end - i < BLOCK
        _count_bits(m, out)
        if wanted & SENTENCES:
            _count_sentences(data, start, i, stage, classes, m, out)
        _count_dots(m, state, out)
        _count_urls(data, start, end, i, stage, classes, m, out)
        if wanted & PHRASES:
            _count_phrases(data, start, end, i, phrases, phrase_lengths, phrase_anchors, phrase_pairs, m, out)
        code = count_lines(data, i, ended, stage, classes, x, part, mask, wanted, m, state, out)
        if code != OK:
            return code
        state[State.EXTRA] += popcount(m[Mask.INSIDE])
        if each:
            found = find_words(i, m, state, starts, ends, sizes, kinds, found)
            if ended or found + BLOCK > len(starts):
                if words + found > len(x.ids):
                    return WORDS_FULL
                if keyed:
                    hash_words(data, starts, ends, found, hashes)
                if numbered and not number_words(hashes, found, words, part, mask, offset, x.ids, x.keys, x.counts, x.table, state):
                    return GROUPS_FULL
                if sized:
                    size_words(sizes, found, words, x.lengths, x.histogram, x.long_places, x.long_lengths)
                if wanted & SHAPES:
                    shape_words(sizes, kinds, found, out)
                if stopped:
                    count_stop_words(
                        data, starts, ends, kinds, hashes, found, ascii, stage, classes, lowers, stop_keys, stop_numbers, stop_multiplier,
                        stop_longest, buffer, out,
                    )  # fmt: skip
                words += found
                found = 0
        if ended:
            break
        i += BLOCK
    latin = out[Count.ALPHAS]
    for script in range(Count.SCRIPT_LATIN, Count.SCRIPT_OTHER + 1):
        latin -= out[script]
    out[Count.SCRIPT_LATIN] += latin  # those in ASCII were not booked one by one
    out[Count.DISTINCT_WORDS] = state[State.WORDS]
    out[Count.STOP_WORDS] = popcount(np.uint64(out[Count.STOP_WORDS]))
    out[Count.CASED_STOP_WORDS] = popcount(np.uint64(out[Count.CASED_STOP_WORDS]))
    _end(bases, state)
    return OK
