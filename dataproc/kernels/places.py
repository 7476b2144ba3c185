"""What stands at a place of a text: the class of a character, a closing mark, a phrase, a URL, a stop word."""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import Count
from dataproc.kernels.primitives import class_of, decode, encode, hash_span
from dataproc.kernels.scratch import LOREM, NONASCII, STOP_BITS
from dataproc.kernels.unicode import CLOSER, SPACE, STRIP, UNSPACED


@kernel
def previous(data, start, i):
    """Start of the character that ends before byte i, in valid UTF-8."""
    i -= 1
    while i > start and data[i] & 0xC0 == 0x80:
        i -= 1
    return i


@kernel(inline=True)
def code_at(data, i, end):
    """The code point at byte i of valid UTF-8."""
    b = np.int64(data[i])
    if b < 128:
        return b
    return decode(data, i, end)[0]


@kernel
def last_unclosed(data, stage, classes, start, end):
    """Class bits (with NONASCII) of the last character of data[start:end] that is no closing mark; 0 when all are."""
    i = end
    while i > start:
        at = previous(data, start, i)
        c = class_of(stage, classes, code_at(data, at, end))
        if not c & CLOSER:
            return c | (np.uint16(0) if data[at] < 128 else np.uint16(NONASCII))
        i = at
    return np.uint16(0)


@kernel(inline=True)
def _matches(data, i, end, phrases, p, length):
    """Whether data[i:i+length], A to Z in lower case, is phrase p."""
    if i + length > end:
        return False
    for k in range(length):
        b = data[i + k]
        if 65 <= b <= 90:
            b |= 32
        if b != phrases[p, k]:
            return False
    return True


@kernel
def phrase_at(data, start, end, i, phrases, lengths, anchors, out):
    """Counts the phrases whose anchor (their first space, or the j of javascript) is at byte i."""
    for p in range(len(lengths)):
        at = i - anchors[p]
        if at >= start and _matches(data, at, end, phrases, p, lengths[p]):
            if p == LOREM:
                out[Count.LOREM_IPSUM] += 1
            else:
                out[Count.POLICY_PHRASES] += 1


@kernel
def is_url(data, start, end, colon):
    """Whether http or https stands before a colon and // after it."""
    if colon + 2 >= end or data[colon + 1] != 47 or data[colon + 2] != 47:
        return False
    at = colon - 1
    if at >= start and data[at] | 32 == 115:
        at -= 1
    return at - 3 >= start and data[at - 3] | 32 == 104 and data[at - 2] | 32 == 116 and data[at - 1] | 32 == 116 and data[at] | 32 == 112


@kernel
def is_www(data, stage, classes, at, end):
    """Whether the word that begins at `at` with three w goes on with a dot and one more character at least."""
    return at + 4 < end and data[at + 3] == 46 and not class_of(stage, classes, code_at(data, at + 4, end)) & (SPACE | UNSPACED)


@kernel(inline=True)
def stop_number(keys, numbers, multiplier, key):
    """The place of a key among a language's stop words, or -1. keys, numbers: (STOP_SLOTS,); the multiplier sends each to its slot."""
    slot = np.int64((key * multiplier) >> np.uint64(64 - STOP_BITS))
    return np.int64(numbers[slot]) if keys[slot] == key else np.int64(-1)


@kernel
def stop_word(data, start, end, stage, classes, lowers, keys, numbers, multiplier, longest, buffer):
    """The place of a word (in lower case, marks around it left out) among a language's stop words, or -1."""
    while start < end:
        b = np.int64(data[start])
        code, size = (b, 1) if b < 128 else decode(data, start, end)
        if not class_of(stage, classes, code) & STRIP:
            break
        start += size
    while end > start:
        at = previous(data, start, end)
        if not class_of(stage, classes, code_at(data, at, end)) & STRIP:
            break
        end = at
    if end == start or end - start > 2 * longest:
        return np.int64(-1)
    size = 0
    i = start
    while i < end:
        b = np.int64(data[i])
        code, width = (b, 1) if b < 128 else decode(data, i, end)
        code += lowers[(np.int64(stage[code >> 8]) << 8) | (code & 255)]
        size = encode(code, buffer, size)
        i += width
    return stop_number(keys, numbers, multiplier, hash_span(buffer, 0, size))
