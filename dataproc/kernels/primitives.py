"""What all kernels are made of: unaligned loads, hashes of byte spans, UTF-8 decoding, classes, interning of 64-bit keys."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dataproc.kernels.compiling import kernel

_M1 = np.uint64(0x9E3779B97F4A7C15)  # golden ratio
_M2 = np.uint64(0xD6E8FEB86659FD93)
_M2_INVERSE = np.uint64(pow(0xD6E8FEB86659FD93, -1, 1 << 64))
_ONE = np.uint64(1)
_32 = np.uint64(32)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
# For SWAR on eight bytes at once: every byte 0x80, 0x7F, and what carries a byte over 'A' and 'Z'.
_HIGH = np.uint64(0x8080808080808080)
_LOW7 = np.uint64(0x7F7F7F7F7F7F7F7F)
_TO_A = np.uint64(0x3F3F3F3F3F3F3F3F)  # 0x80 - ord("A")
_PAST_Z = np.uint64(0x2525252525252525)  # 0x7F - ord("Z")
_2 = np.uint64(2)


@intrinsic
def _load_unaligned(typingctx, data, index):
    """Eight bytes from a uint8 array at a byte index, little-endian, as uint64. No bounds are checked."""
    signature = types.uint64(data, index)

    def codegen(context, builder, sig, args):
        array = context.make_array(sig.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        value = builder.load(place)
        value.align = 1
        return value

    return signature, codegen


@kernel(inline=True)
def load(data, start, end):
    """The at most eight bytes of data[start:end], little-endian, zeros above. end > start."""
    count = end - start
    if start + 8 <= len(data):
        value = _load_unaligned(data, start)
        if count < 8:
            value &= (_ONE << np.uint64(8 * count)) - _ONE
        return value
    value = np.uint64(0)
    for i in range(min(count, 8)):
        value |= np.uint64(data[start + i]) << np.uint64(8 * i)
    return value


@kernel(inline=True)
def mix(h):
    """Spreads 64 bits; a bijection."""
    h = (h ^ (h >> _32)) * _M2
    return h ^ (h >> _32)


@kernel(inline=True)
def unmix(h):
    """What `mix` made h of."""
    h = (h ^ (h >> _32)) * _M2_INVERSE
    return h ^ (h >> _32)


@kernel(inline=True)
def _first_bytes(count):
    """A mask of the first bytes of eight, none for a count below 1, all from 8 on."""
    return np.uint64(0) if count <= 0 else _ALL >> np.uint64(64 - 8 * min(count, 8))


@kernel(inline=True)
def _round(h, eight):
    h = (h ^ eight) * _M1
    return h ^ (h >> _32)


@kernel(inline=True)
def lower_ascii(value):
    """Eight bytes with A to Z in lower case."""
    heptets = value & _LOW7
    upper = ((heptets + _TO_A) ^ (heptets + _PAST_Z)) & ~value & _HIGH
    return value | (upper >> _2)


@kernel(inline=True)
def _hash_short(data, start, end, lowered):
    """Of at most 16 bytes, without branches that depend on how many: the lengths of a text's words cannot be foretold."""
    size = end - start
    h = np.uint64(size) * _M2
    if start + 16 <= len(data):
        first = _load_unaligned(data, start) & _first_bytes(size)
        second = _load_unaligned(data, start + 8) & _first_bytes(size - 8)
    else:
        first = load(data, start, end) if size > 0 else np.uint64(0)
        second = load(data, start + 8, end) if size > 8 else np.uint64(0)
    once = _round(h, lower_ascii(first) if lowered else first)
    twice = _round(once, lower_ascii(second) if lowered else second)
    return mix(once ^ ((once ^ twice) & (np.uint64(0) - np.uint64(size > 8))))


@kernel
def _hash_long(data, start, end, lowered):
    """Of more than 16 bytes: four sums side by side, the last bytes taken twice where they do not fill all of them."""
    h = np.uint64(end - start) * _M2
    a, b, c, d = h, h ^ _M1, h ^ _LOW7, h ^ _HIGH
    i = start
    while True:
        last = i + 32 >= end
        first = max(start, end - 32) if last else i
        third = end - 16 if last else i + 16
        w, x, y, z = (
            _load_unaligned(data, first), _load_unaligned(data, first + 8), _load_unaligned(data, third), _load_unaligned(data, third + 8),
        )  # fmt: skip
        if lowered:
            w, x, y, z = lower_ascii(w), lower_ascii(x), lower_ascii(y), lower_ascii(z)
        a, b, c, d = _round(a, w), _round(b, x), _round(c, y), _round(d, z)
        if last:
            return mix(_round(_round(_round(a, b), c), d))
        i += 32


@kernel(inline=True)
def _hash(data, start, end, lowered):
    return _hash_short(data, start, end, lowered) if end - start <= 16 else _hash_long(data, start, end, lowered)


@kernel(inline=True)
def hash_span(data, start, end):
    """A 64-bit hash of the bytes data[start:end]; spans of up to eight bytes of one length never collide."""
    return _hash(data, start, end, False)


@kernel(inline=True)
def hash_lowered(data, start, end):
    """`hash_span` of the bytes with A to Z in lower case."""
    return _hash(data, start, end, True)


@kernel
def decode(data, i, end):
    """(code point, bytes) of the non-ASCII UTF-8 sequence at i; (0, 0) when it is not valid: overlong, a surrogate, cut off."""
    b = np.int64(data[i])
    if b < 0xC2 or b > 0xF4:
        return 0, 0
    if i + 1 >= end:
        return 0, 0
    b1 = np.int64(data[i + 1])
    if b1 & 0xC0 != 0x80:
        return 0, 0
    if b < 0xE0:
        return ((b & 0x1F) << 6) | (b1 & 0x3F), 2
    if i + 2 >= end:
        return 0, 0
    b2 = np.int64(data[i + 2])
    if b2 & 0xC0 != 0x80:
        return 0, 0
    if b < 0xF0:
        code = ((b & 0x0F) << 12) | ((b1 & 0x3F) << 6) | (b2 & 0x3F)
        if code < 0x800 or 0xD800 <= code <= 0xDFFF:
            return 0, 0
        return code, 3
    if i + 3 >= end:
        return 0, 0
    b3 = np.int64(data[i + 3])
    if b3 & 0xC0 != 0x80:
        return 0, 0
    code = ((b & 0x07) << 18) | ((b1 & 0x3F) << 12) | ((b2 & 0x3F) << 6) | (b3 & 0x3F)
    if code < 0x10000 or code > 0x10FFFF:
        return 0, 0
    return code, 4


@kernel(inline=True)
def class_of(stage, classes, code):
    """Class bits of a code point."""
    return classes[(np.int64(stage[code >> 8]) << 8) | (code & 255)]


@kernel
def encode(code, out, at):
    """Writes a code point as UTF-8 into out from `at`; returns the place after it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | (code >> 6)
        out[at + 1] = 0x80 | (code & 0x3F)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | (code >> 12)
        out[at + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[at + 2] = 0x80 | (code & 0x3F)
        return at + 3
    out[at] = 0xF0 | (code >> 18)
    out[at + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[at + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[at + 3] = 0x80 | (code & 0x3F)
    return at + 4


@kernel(inline=True)
def intern(table, bits, base, key, keys, count):
    """The number of a key: its place in keys[:count], or `count` when it is new (it is then entered).

    `table`: uint32, of which the first 2**bits slots are used; a slot below `base` is free, so that a table need not be cleared between
    documents. `number_of` keeps count under half the slots, and keys longer than count.
    """
    mask = (np.int64(1) << bits) - 1
    slot = np.int64(key >> np.uint64(64 - bits))
    while True:
        entry = table[slot]
        if entry < base:
            table[slot] = np.uint32(base + count)
            keys[count] = key
            return count
        if keys[entry - base] == key:
            return np.int64(entry - base)
        slot = (slot + 1) & mask


@kernel
def grow(table, bits, base, keys, count):
    """Enters keys[:count] anew into twice as many slots, under stamps that no slot holds. Returns (bits, base)."""
    bits += 1
    base += count
    mask = (np.int64(1) << bits) - 1
    for i in range(count):
        slot = np.int64(keys[i] >> np.uint64(64 - bits))
        while table[slot] >= base:
            slot = (slot + 1) & mask
        table[slot] = np.uint32(base + i)
    return bits, base


@kernel(inline=True)
def number_of(key, keys, table, bits, base, count):
    """`intern` where there is room for it, made by `grow` if need be. Returns (number, bits, base): the number is -1 when keys or table
    are full."""
    if count >= len(keys) or 2 * count >= len(table):
        return np.int64(-1), bits, base
    if 2 * count > np.int64(1) << bits:
        bits, base = grow(table, bits, base, keys, count)
    return intern(table, bits, base, key, keys, count), bits, base
