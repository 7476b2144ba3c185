"""The walk: one decode loop over a document that finds its words, lines and paragraphs, and counts everything that needs no look at
other places. It leaves the words as numbers (equal words, equal numbers) and lengths: n-gram counts are made from those."""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import COPIES, DISTINCT, PHRASES, REPEATS, STOPS, Count
from dataproc.kernels.lists import SHORT_LINE_CHARACTERS
from dataproc.kernels.places import class_of, code_at, is_url, is_www, last_unclosed, phrase_at, previous, stop_number, stop_word
from dataproc.kernels.primitives import decode, hash_lowered, hash_span, number_of
from dataproc.kernels.scratch import (
    GROUPS_FULL,
    INVALID,
    LINES_FULL,
    NONASCII,
    OK,
    PARAGRAPHS_FULL,
    SPECIAL,
    WORDS_FULL,
)
from dataproc.kernels.unicode import (
    ALPHA,
    BULLET,
    CLOSER,
    DIGIT,
    IDEOGRAPHIC_END,
    MARK,
    PLAIN,
    SPACE,
    STRIP,
    TERMINAL,
    UNSPACED,
)

LONG = 255  # characters from which on a word's length does not stand in `lengths`
NONE = np.uint32(0xFFFFFFFF)  # in the place of a word that has no number, or of an n-gram that occurs once
_FIRST_BITS = 10  # slots of an interning table for a new document
_FIELD = np.uint64(0xFFF)  # character classes are summed in five fields of 12 bits
_STOPPERS = np.uint16(SPACE | SPECIAL | NONASCII)
_FLUSH = 4000  # characters after which the fields might overflow


@kernel(inline=True)
def _fields(c):
    """The class bits of a character as one in each of its fields."""
    c = np.uint64(c)
    one = np.uint64(1)
    return (
        ((c >> np.uint64(1)) & one)
        | (((c >> np.uint64(3)) & one) << np.uint64(12))
        | (((c >> np.uint64(2)) & one) << np.uint64(24))
        | (((c >> np.uint64(4)) & one) << np.uint64(36))
        | (((c >> np.uint64(5)) & one) << np.uint64(48))
    )


@kernel
def _flush(fields, out):
    out[Count.ALPHAS] += np.int64(fields & _FIELD)
    out[Count.UPPERS] += np.int64((fields >> np.uint64(12)) & _FIELD)
    out[Count.DIGITS] += np.int64((fields >> np.uint64(24)) & _FIELD)
    out[Count.SYMBOLS] += np.int64((fields >> np.uint64(36)) & _FIELD)
    out[Count.PUNCTUATIONS] += np.int64((fields >> np.uint64(48)) & _FIELD)


@kernel(inline=True)
def _book_copy(data, start, end, characters, part, mask, keys, counts, table, bits, base, count, out, duplicates, copies):
    """Numbers the line or paragraph data[start:end], if its hash is of this part, and books it where it was there before: in two
    columns each, count, then characters. Returns (distinct ones so far, bits, base); -1 of them when keys or table are full."""
    key = hash_span(data, start, end)
    if key & mask != part:
        return count, bits, base
    number, bits, base = number_of(key, keys, table, bits, base, count)
    if number == count:
        counts[number] = 1
        return count + 1, bits, base
    if number >= 0:
        out[duplicates] += 1
        out[duplicates + 1] += characters
        again = 2 if counts[number] == 1 else 1
        counts[number] += np.uint32(1)
        out[copies] += again
        out[copies + 1] += again * characters
        return count, bits, base
    return number, bits, base


@kernel
def _book_line(data, start, end, characters, stage, classes, out):
    """What a line counts for by its length, its first character and its last ones."""
    out[Count.LINES] += 1
    out[Count.LINE_CHARACTERS] += characters
    out[Count.SHORT_LINES] += characters <= SHORT_LINE_CHARACTERS
    first = code_at(data, start, end)
    out[Count.BULLET_LINES] += (class_of(stage, classes, first) & BULLET) != 0
    out[Count.ASCII_BULLET_LINES] += first == 45 or first == 42
    last = code_at(data, previous(data, start, end), end)
    out[Count.ELLIPSIS_CHARACTER_LINES] += last == 0x2026
    out[Count.ELLIPSIS_LINES] += last == 0x2026 or (end - start >= 3 and last == 46 and data[end - 2] == 46 and data[end - 3] == 46)
    out[Count.TERMINAL_LINES] += (last_unclosed(data, stage, classes, start, end) & TERMINAL) != 0


@kernel
def walk(data, start, end, t, x, language, wanted, out):
    """Counts one document, data[start:end], into out (COUNTS,) int64, and leaves word numbers in ids, their lengths in lengths (and of
    the long ones in long_lengths) and their counts in counts. Returns a code of scratch.py: OK, INVALID UTF-8, or what was too small.

    x.split is (part, mask, offset): only words, lines and paragraphs whose hash is `part` under the mask are numbered and looked for
    among the earlier ones; words from `offset` on. A giant is walked once for each part, every other document once, as part 0 under
    mask 0.
    """
    # Taken out of their tuples once: each access costs a reference count.
    ascii, field_table, stage, classes, scripts, lowers = t.ascii, t.fields, t.stage, t.classes, t.scripts, t.lowers
    phrases, phrase_lengths, phrase_anchors, pairs = t.phrases, t.phrase_lengths, t.phrase_anchors, t.phrase_pairs
    row_keys, row_numbers = t.stop_keys[language], t.stop_numbers[language]
    stop_longest, stop_letters = t.stop_longest[language], t.stop_letters[language]
    ids, lengths, histogram, buffer, bases = x.ids, x.lengths, x.histogram, x.buffer, x.bases
    long_places, long_lengths = x.long_places, x.long_lengths
    part, mask, offset = np.uint64(x.split[0]), np.uint64(x.split[1]), x.split[2]
    keys, counts, table = x.keys, x.counts, x.table
    line_keys, line_counts, line_table = x.line_keys, x.line_counts, x.line_table
    paragraph_keys, paragraph_counts, paragraph_table = x.paragraph_keys, x.paragraph_counts, x.paragraph_table
    out[Count.BYTES] = end - start
    copies, phrased, stopped = wanted & COPIES != 0, wanted & PHRASES != 0, wanted & STOPS != 0
    distinguished = wanted & (DISTINCT | REPEATS) != 0
    keyed = distinguished or stopped
    i = start
    extra = np.int64(0)  # bytes so far that are no character of their own
    words = np.int64(0)
    distinct = np.int64(0)
    bits = np.int64(_FIRST_BITS)
    base = bases[0]
    line_number = np.int64(0)  # distinct lines
    line_bits = np.int64(_FIRST_BITS)
    line_base = bases[1]
    paragraph_number = np.int64(0)
    paragraph_bits = np.int64(_FIRST_BITS)
    paragraph_base = bases[2]
    line_start = np.int64(-1)
    line_first = np.int64(0)  # characters before it
    line_end = np.int64(0)
    line_last = np.int64(0)
    paragraph_start = np.int64(-1)
    paragraph_first = np.int64(0)
    paragraph_end = np.int64(0)
    paragraph_last = np.int64(0)
    fields = np.uint64(0)
    flushed = start
    spaces = np.int64(0)
    newlines = np.int64(0)
    stops = np.int64(0)
    cased = np.int64(0)
    dots = np.int64(0)
    last_dot = np.int64(-2)
    word_characters = np.int64(0)
    longest_word = np.int64(0)
    longs = np.int64(0)  # of LONG characters or more
    histogram[:] = 0
    while True:
        # White space. The end of the text ends a line as a line feed does.
        while True:
            ended = i >= end
            if ended:
                feed = True
            else:
                b = np.int64(data[i])
                if b < 128:
                    if not ascii[b] & SPACE:
                        break
                    feed = b == 10
                    if (
                        phrased
                        and b == 32
                        and start < i < end - 1
                        and (pairs[data[i - 1] & 31] >> np.uint32(data[i + 1] & 31)) & np.uint32(1)
                    ):
                        phrase_at(data, start, end, i, phrases, phrase_lengths, phrase_anchors, out)
                    spaces += 1
                    i += 1
                else:
                    code, size = decode(data, i, end)
                    if size == 0:
                        return INVALID
                    if not class_of(stage, classes, code) & SPACE:
                        break
                    feed = False
                    spaces += 1
                    extra += size - 1
                    i += size
            if feed:
                blank = line_start < 0
                if not ended:
                    newlines += 1
                if not blank:
                    size = line_last - line_first
                    _book_line(data, line_start, line_end, size, stage, classes, out)
                    if copies:
                        line_number, line_bits, line_base = _book_copy(
                            data, line_start, line_end, size, part, mask, line_keys, line_counts, line_table,
                            line_bits, line_base, line_number, out, Count.DUPLICATE_LINES, Count.COPIED_LINES,
                        )  # fmt: skip
                        if line_number < 0:
                            return LINES_FULL
                    if paragraph_start < 0:
                        paragraph_start = line_start
                        paragraph_first = line_first
                    paragraph_end = line_end
                    paragraph_last = line_last
                    line_start = -1
                if (blank or ended) and paragraph_start >= 0:
                    size = paragraph_last - paragraph_first
                    out[Count.PARAGRAPHS] += 1
                    out[Count.PARAGRAPH_CHARACTERS] += size
                    if copies:
                        paragraph_number, paragraph_bits, paragraph_base = _book_copy(
                            data, paragraph_start, paragraph_end, size, part, mask, paragraph_keys, paragraph_counts, paragraph_table,
                            paragraph_bits, paragraph_base, paragraph_number, out, Count.DUPLICATE_PARAGRAPHS, Count.COPIED_PARAGRAPHS,
                        )  # fmt: skip
                        if paragraph_number < 0:
                            return PARAGRAPHS_FULL
                    paragraph_start = -1
            if ended:
                break
        if i >= end:
            break
        # A word. White space ends it, and so does a letter of a script without spaces (which then begins one of its own).
        word = i
        extra_before = extra
        union = np.uint16(0)
        alone = False
        while i < end:
            if i - flushed >= _FLUSH:
                _flush(fields, out)
                fields = np.uint64(0)
                flushed = i
            if not alone:
                # The common case in the fewest steps: letters, digits and most marks of ASCII.
                limit = min(end, flushed + _FLUSH)
                while i < limit:
                    b = np.int64(data[i])
                    c = ascii[b]
                    if c & _STOPPERS:
                        break
                    union |= c
                    fields += field_table[b]
                    i += 1
                if i >= limit:
                    continue
            b = np.int64(data[i])
            c = ascii[b]
            if c & SPACE:
                break
            if c & NONASCII:
                code, size = decode(data, i, end)
                if size == 0:
                    return INVALID
                c = class_of(stage, classes, code)
                if c & SPACE:
                    break
                if c & UNSPACED:
                    if i > word:
                        break
                    alone = True
                elif alone and c & (ALPHA | DIGIT) and not c & MARK:
                    break
                union |= c | np.uint16(NONASCII)
                fields += _fields(c)
                if c & ALPHA:
                    out[Count.SCRIPT_LATIN + scripts[(np.int64(stage[code >> 8]) << 8) | (code & 255)]] += 1
                if c & IDEOGRAPHIC_END:
                    out[Count.SENTENCES] += 1
                if code == 0x2026:
                    out[Count.ELLIPSES] += 1
                    union |= np.uint16(SPECIAL)
                extra += size - 1
                i += size
                continue
            if alone and c & (ALPHA | DIGIT):
                break
            union |= c & np.uint16(0xFFFF - SPECIAL)
            fields += field_table[b]
            if c & SPECIAL:
                if b == 46:
                    dots = dots + 1 if last_dot == i - 1 else 1
                    last_dot = i
                    if dots == 3:
                        out[Count.ELLIPSES] += 1
                        dots = 0
                        last_dot = -2
                elif b == 35:
                    out[Count.HASHES] += 1
                    union |= np.uint16(SPECIAL)
                elif b == 123 or b == 125:
                    out[Count.CURLY_BRACKETS] += 1
                elif b == 58:
                    out[Count.URLS] += is_url(data, start, end, i)
                elif phrased:
                    phrase_at(data, start, end, i, phrases, phrase_lengths, phrase_anchors, out)
            i += 1
        length = (i - word) - (extra - extra_before)
        if line_start < 0:
            line_start = word
            line_first = (word - start) - extra_before
        line_end = i
        line_last = (i - start) - extra
        if words >= len(ids):
            return WORDS_FULL
        key = hash_span(data, word, i) if keyed else np.uint64(0)
        if distinguished and key & mask == part:
            number, bits, base = number_of(key, keys, table, bits, base, distinct)
            if number < 0:
                return GROUPS_FULL
            if number == distinct:
                counts[number] = 1
                distinct += 1
            else:
                counts[number] += np.uint32(1)
            ids[words] = np.uint32(offset + number)
        elif part == 0:
            ids[words] = NONE
        short = min(length, LONG)
        histogram[short] += 1
        lengths[words] = np.uint8(short)
        if short == LONG:
            longs += 1
            long_places[longs] = np.uint32(words)
            long_lengths[longs] = np.uint32(length)
        words += 1
        word_characters += length
        longest_word = max(longest_word, length)
        out[Count.ALPHABETIC_WORDS] += (union & ALPHA) != 0
        out[Count.NON_SYMBOL_WORDS] += (union & PLAIN) != 0
        out[Count.NON_SYMBOL_WORD_CHARACTERS] += length if union & PLAIN else 0
        out[Count.SYMBOL_WORDS] += (union & SPECIAL) != 0
        last = ascii[data[i - 1]]
        if last & (TERMINAL | CLOSER | NONASCII) and (i >= end or class_of(stage, classes, code_at(data, i, end)) & SPACE):
            # A sentence ends with a mark of ASCII, closing marks after it, then white space or the end.
            if not last & TERMINAL:
                last = last_unclosed(data, stage, classes, word, i)
            out[Count.SENTENCES] += last & (TERMINAL | NONASCII) == TERMINAL
        if data[word] | 32 == 119:
            out[Count.URLS] += is_www(data, word, i)
        if not stopped:
            continue
        found = np.int64(-1)
        if union & NONASCII:
            found = stop_word(data, word, i, stage, classes, lowers, row_keys, row_numbers, stop_longest, buffer)
        else:
            first = word
            after = i
            if union & STRIP:
                while first < after and ascii[data[first]] & STRIP:
                    first += 1
                while after > first and ascii[data[after - 1]] & STRIP:
                    after -= 1
            if 0 < after - first <= stop_longest and (stop_letters >> np.uint32(data[first] & 31)) & np.uint32(1):
                found = stop_number(row_keys, row_numbers, hash_lowered(data, first, after))
        if found >= 0:
            stops |= np.int64(1) << found
            out[Count.STOP_WORD_OCCURRENCES] += 1
            # As it is written: only a word in which nothing was stripped or lowered has the same key.
            if stop_number(row_keys, row_numbers, key) == found:
                cased |= np.int64(1) << found
                out[Count.CASED_STOP_WORD_OCCURRENCES] += 1
    _flush(fields, out)
    latin = out[Count.ALPHAS]
    for script in range(Count.SCRIPT_LATIN, Count.SCRIPT_OTHER + 1):
        latin -= out[script]
    out[Count.SCRIPT_LATIN] += latin  # those in ASCII were not booked one by one
    out[Count.CHARACTERS] = (end - start) - extra
    out[Count.SPACES] = spaces
    out[Count.NEWLINES] = newlines
    out[Count.WORDS] = words
    out[Count.WORD_CHARACTERS] = word_characters
    out[Count.LONGEST_WORD] = longest_word
    out[Count.DISTINCT_WORDS] = distinct
    for k in range(16):
        out[Count.STOP_WORDS] += (stops >> k) & 1
        out[Count.CASED_STOP_WORDS] += (cased >> k) & 1
    long_places[0] = np.uint32(longs)
    bases[0] = base + distinct
    bases[1] = line_base + line_number
    bases[2] = paragraph_base + paragraph_number
    return OK
