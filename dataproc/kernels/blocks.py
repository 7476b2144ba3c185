"""Sixty-four bytes of a text at a time: what kind of character each byte is, as bit masks, found by vector comparison.

A mask is a uint64 whose bit k stands for byte k of the block. A character of several bytes has its class at its first byte, except that
white space covers all its bytes. Counting is then counting bits, and the ends of words are bits that are looked for, so that the cost of
most signals does not depend on how the text branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dataproc.kernels import unicode as u
from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import PHRASES, SHAPES, STOPS, Count
from dataproc.kernels.lists import LOREM_IPSUM, POLICY_PHRASES
from dataproc.kernels.primitives import class_of, decode
from dataproc.kernels.scratch import MASKS, Mask, State

BLOCK = 64
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_0, _1 = np.uint64(0), np.uint64(1)
_HORIZONTAL_ELLIPSIS = 0x2026
# The masks that `moved` is asked for.
_MOVED = (
    Mask.BLANKS, Mask.TERMINALS, Mask.CLOSERS, Mask.BEYOND, Mask.DOTS, Mask.WS, Mask.BEFORE_ANCHORS, Mask.VISIBLE, Mask.STARTS,
)  # fmt: skip

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(ir.IntType(8), BLOCK)


def _mask(members: Iterable[int]) -> Callable[..., Any]:
    """An intrinsic (data, index) -> uint64: which of data[index:index+64] are among these byte values. No bounds are checked."""
    ranges: list[list[int]] = []
    for byte in sorted(members):
        if ranges and ranges[-1][1] == byte - 1:
            ranges[-1][1] = byte
        else:
            ranges.append([byte, byte])

    @intrinsic
    def mask(typingctx, data, index):
        def codegen(context, builder, signature, arguments):
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            block = builder.load(builder.bitcast(builder.gep(array.data, [arguments[1]]), _VECTOR.as_pointer()), align=1)
            found = None
            for low, high in ranges:
                above = builder.sub(block, ir.Constant(_VECTOR, [low] * BLOCK))
                inside = builder.icmp_unsigned("<=", above, ir.Constant(_VECTOR, [high - low] * BLOCK))
                found = inside if found is None else builder.or_(found, inside)
            bits = builder.bitcast(found, _WORD)
            # No instruction, but a wall: without it LLVM joins the masks of several classes before they are in registers of their own,
            # bit by bit, which takes five times as long.
            return builder.asm(ir.FunctionType(_WORD, [_WORD]), "", "=r,0", [bits], False)

        return types.uint64(data, index), codegen

    return mask


def _of_class(bit: int) -> Callable[..., Any]:
    return _mask(code for code in range(128) if u.code_class(chr(code)) & bit)


def _letters(letters: Iterable[str]) -> Callable[..., Any]:
    return _mask({ord(form) for letter in letters for form in (letter.lower(), letter.upper())})


_spaced = [phrase for phrase in (LOREM_IPSUM, *POLICY_PHRASES) if " " in phrase]
_spaces, _alphas, _uppers, _digits = _of_class(u.SPACE), _of_class(u.ALPHA), _of_class(u.UPPER), _of_class(u.DIGIT)
_symbols, _punctuations, _plain = _of_class(u.SYMBOL), _of_class(u.PUNCTUATION), _of_class(u.PLAIN)
_terminals, _closers, _stripped = _of_class(u.TERMINAL), _of_class(u.CLOSER), _of_class(u.STRIP)
_beyond, _inside = _mask(range(0x80, 0x100)), _mask(range(0x80, 0xC0))
_newlines, _blanks, _hashes, _dots, _curlies, _colons = (_mask(map(ord, signs)) for signs in ("\n", " ", "#", ".", "{}", ":"))
_js, _ws = _letters("j"), _letters("w")
_before_anchors = _letters(phrase[phrase.index(" ") - 1] for phrase in _spaced)
_after_anchors = _letters(phrase[phrase.index(" ") + 1] for phrase in _spaced)


def _bit_intrinsic(name: str) -> Callable[..., Any]:
    @intrinsic
    def operation(typingctx, mask):
        def codegen(context, builder, signature, arguments):
            if name == "ctpop":
                return builder.ctpop(arguments[0])
            return getattr(builder, name)(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), codegen

    return operation


popcount = _bit_intrinsic("ctpop")  # bits that are set
lowest = _bit_intrinsic("cttz")  # place of the lowest one; 64 when there is none
above_highest = _bit_intrinsic("ctlz")  # zeros above the highest one; 64 when there is none


@kernel(inline=True)
def below(place):
    """The bits below a place from 0 to 64."""
    return ALL if place >= BLOCK else (_1 << np.uint64(place)) - _1


@kernel(inline=True)
def moved(m, mask, by):
    """A mask moved up by that many places, filled from the block before."""
    return (m[mask] << np.uint64(by)) | (m[MASKS + mask] >> np.uint64(BLOCK - by))


@kernel(inline=True)
def _classify(data, i, wanted, m):
    m[Mask.SPACES] = _spaces(data, i)
    m[Mask.NEWLINES] = _newlines(data, i)
    m[Mask.ALPHAS] = _alphas(data, i)
    m[Mask.UPPERS] = _uppers(data, i)
    m[Mask.DIGITS] = _digits(data, i)
    m[Mask.SYMBOLS] = _symbols(data, i)
    m[Mask.PUNCTUATIONS] = _punctuations(data, i)
    m[Mask.TERMINALS] = _terminals(data, i)
    m[Mask.CLOSERS] = _closers(data, i)
    m[Mask.BEYOND] = _beyond(data, i)
    m[Mask.INSIDE] = _inside(data, i)
    m[Mask.HASHES] = _hashes(data, i)
    m[Mask.ELLIPSES] = _0
    m[Mask.IDEOGRAPHIC_ENDS] = _0
    m[Mask.DOTS] = _dots(data, i)
    m[Mask.CURLIES] = _curlies(data, i)
    m[Mask.COLONS] = _colons(data, i)
    m[Mask.WS] = _ws(data, i)
    if wanted & (SHAPES | STOPS):
        m[Mask.PLAIN] = _plain(data, i)
        m[Mask.STRIPPED] = _stripped(data, i)
    if wanted & PHRASES:
        m[Mask.BLANKS] = _blanks(data, i)
        m[Mask.JS] = _js(data, i)
        m[Mask.BEFORE_ANCHORS] = _before_anchors(data, i)
        m[Mask.AFTER_ANCHORS] = _after_anchors(data, i)


@kernel(inline=True)
def classify(data, i, end, wanted, stage, classes, scripts, m, state, buffer, out):
    """Fills m (2 * MASKS,) uint64 for the block at byte i of a text that ends at `end`; its second half is for the block before. What
    stands behind the end is white space. wanted: flags of counts.py. buffer: (64,) uint8, to work in. Returns whether it is valid UTF-8."""
    for k in _MOVED:
        m[MASKS + k] = m[k]
    if i + BLOCK <= len(data):
        _classify(data, i, wanted, m)
    else:
        for k in range(BLOCK):
            buffer[k] = data[i + k] if i + k < end else 32
        _classify(buffer, 0, wanted, m)
    m[Mask.BREAKS] = _0
    m[Mask.TEXT] = ALL
    if end - i < BLOCK:
        text = below(end - i)
        for k in range(MASKS):
            m[k] &= text
        m[Mask.SPACES] |= ~text
    if m[Mask.BEYOND] | np.uint64(state[State.ALONE]) and not _beyond_ascii(data, i, end, stage, classes, scripts, m, state, out):
        return False
    visible = ~m[Mask.SPACES]
    m[Mask.VISIBLE] = visible
    before = moved(m, Mask.VISIBLE, 1)
    m[Mask.STARTS] = (visible & ~before) | m[Mask.BREAKS]
    m[Mask.ENDS] = (m[Mask.SPACES] | m[Mask.BREAKS]) & before
    return True


@kernel
def _beyond_ascii(data, i, end, stage, classes, scripts, m, state, out):
    """Enters the characters beyond ASCII into the masks, and counts scripts."""
    rest = m[Mask.BEYOND]
    if state[State.SKIP]:  # bytes of the last character of the block before
        skipped = below(state[State.SKIP])
        rest &= ~skipped
        if state[State.SKIP_SPACE]:
            m[Mask.SPACES] |= skipped
        state[State.SKIP] = 0
    unspaced = _0
    while rest:
        place = lowest(rest)
        code, size = decode(data, i + place, end)
        if size == 0:
            return False
        c = class_of(stage, classes, code)
        bit = _1 << np.uint64(place)
        bits = below(size) << np.uint64(place)
        rest &= ~bits
        if place + size > BLOCK:
            state[State.SKIP] = place + size - BLOCK
            state[State.SKIP_SPACE] = c & u.SPACE
        if c & u.SPACE:
            m[Mask.SPACES] |= bits
            continue
        if c & u.ALPHA:
            m[Mask.ALPHAS] |= bit
            out[Count.SCRIPT_LATIN + scripts[(np.int64(stage[code >> 8]) << 8) | (code & 255)]] += 1
            if c & u.UNSPACED:
                unspaced |= bit
        elif c & u.DIGIT:
            m[Mask.DIGITS] |= bit
        elif c & u.PUNCTUATION:
            m[Mask.PUNCTUATIONS] |= bit
        elif c & u.SYMBOL:
            m[Mask.SYMBOLS] |= bit
        if c & u.UPPER:
            m[Mask.UPPERS] |= bit
        if c & u.PLAIN:
            m[Mask.PLAIN] |= bit
        if c & u.IDEOGRAPHIC_END:
            m[Mask.IDEOGRAPHIC_ENDS] |= bit
        if code == _HORIZONTAL_ELLIPSIS:
            m[Mask.ELLIPSES] |= bit
    if unspaced or state[State.ALONE]:
        _break_unspaced(m, unspaced, state)
    return True


@kernel
def _break_unspaced(m, unspaced, state):
    """A letter of a script without spaces begins a word, and so does the next letter or digit after it."""
    spaces = m[Mask.SPACES]
    events = spaces | m[Mask.ALPHAS] | m[Mask.DIGITS]
    alone = state[State.ALONE] != 0
    rest = ALL
    breaks = _0
    while True:
        found = rest & (events if alone else unspaced)
        if not found:
            break
        bit = found & (~found + _1)
        rest = ~(bit | (bit - _1))
        alone = (bit & unspaced) != 0
        if not bit & spaces:
            breaks |= bit
    m[Mask.BREAKS] = breaks
    state[State.ALONE] = alone
