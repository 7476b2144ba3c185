"""Line editing on the buffers: lines that rules turn away are left out, the rest is written straight to a new buffer.

Rules, in this order: `boilerplate` and `refinedweb` look at a line as it is, `c4` cuts citation marks out of it and looks at the rest.
Spans that are cut are whole lines or ASCII marks, so no character is ever split. Where mathematics is kept, a line that holds a formula,
or a part of one, stays whatever the rules say of it, and no citation mark is cut out of the formula.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import yaml

from dataproc.kernels import scratch
from dataproc.kernels.columns import chunks, from_buffers
from dataproc.kernels.compiling import kernel, ready
from dataproc.kernels.formulas import next_formula
from dataproc.kernels.lists import POLICY_PHRASES
from dataproc.kernels.places import code_at, previous
from dataproc.kernels.primitives import class_of, encode, hash_span
from dataproc.kernels.unicode import ALPHA, DIGIT, MARK, SPACE, UPPER

C4, BOILERPLATE, REFINEDWEB, KEEP_MATH = 1, 2, 4, 8
_FLAGS: dict[str, int] = {"c4": C4, "boilerplate": BOILERPLATE, "refinedweb": REFINEDWEB}
# Raffel et al. 2020, section 2.2; the longest word as in their code.
C4_LEAST_WORDS = 3
C4_LONGEST_WORD = 1000
FRAME_WORDS = 10  # lines of a page's frame are short (Penedo et al. 2023, appendix G.2)
_BUFFER = 256  # bytes of a line in its plain form; longer ones are no frame lines
_NUMBER = 35  # "#" stands for a run of digits
_COPYRIGHT = 0xA9
# A phrase is the whole of a plain line, its beginning, its end, or anywhere in it. Kinds and the rules they belong to.
WHOLE, START, END, INSIDE = 1, 2, 4, 8


def plain(text: str) -> str:
    """A line in its plain form: lower-case letters and digits, runs of digits as #, © as c, words joined by one space; all other
    characters are left out. What `_plain` does, for phrases."""
    kept = "".join(c if c.isalnum() or c.isspace() else "c" if c == "©" else "" for c in text.lower())
    return " ".join(re.sub(r"\d+", "#", word) for word in kept.split())


def spelled(template: str) -> list[str]:
    """All texts that a template stands for: (a|b) is either, (a)? may be missing."""
    found = re.search(r"\(([^()]*)\)(\??)", template)
    if found is None:
        return [template]
    choices = found[1].split("|") + ([""] if found[2] else [])
    return list(itertools.chain.from_iterable(spelled(template[: found.start()] + choice + template[found.end() :]) for choice in choices))


@functools.cache
def phrases() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A hash table of all phrases in frame_lines.yaml: (keys (slots,) uint64, kinds (slots,) uint8, rules (slots,) uint8)."""
    entries: dict[int, list[int]] = {}
    for rule, kinds in yaml.safe_load((Path(__file__).parent / "frame_lines.yaml").read_text()).items():
        for kind, templates in kinds.items():
            for template in templates:
                for text in map(plain, spelled(template.replace("#", "0"))):
                    data = np.frombuffer(text.encode(), np.uint8)
                    entry = entries.setdefault(int(hash_span(data, 0, len(data))), [0, 0])
                    entry[0] |= {"whole": WHOLE, "start": START, "end": END, "inside": INSIDE}[kind]
                    entry[1] |= _FLAGS[rule]
    slots = 1 << (4 * len(entries)).bit_length()
    keys, kinds, rules = np.zeros(slots, np.uint64), np.zeros(slots, np.uint8), np.zeros(slots, np.uint8)
    for key, (kind, rule) in entries.items():
        slot = key % slots
        while kinds[slot]:
            slot = (slot + 1) % slots
        keys[slot], kinds[slot], rules[slot] = key, kind, rule
    return keys, kinds, rules


@functools.cache
def _policy() -> tuple[np.ndarray, np.ndarray]:
    spelled_out = np.zeros((len(POLICY_PHRASES), max(map(len, POLICY_PHRASES))), np.uint8)
    for row, phrase in enumerate(POLICY_PHRASES):
        spelled_out[row, : len(phrase)] = list(phrase.encode())
    return spelled_out, np.array([len(p) for p in POLICY_PHRASES], np.int64)


@kernel
def _is_phrase(buffer, start, end, keys, kinds, rules, kind, flags):
    """Whether buffer[start:end] is a phrase of that kind in one of the rules."""
    key = hash_span(buffer, start, end)
    mask = len(keys) - 1
    slot = np.int64(key & np.uint64(mask))
    while kinds[slot]:
        if keys[slot] == key:
            return kinds[slot] & kind != 0 and rules[slot] & flags != 0
        slot = (slot + 1) & mask
    return False


@kernel
def _plain(data, start, end, stage, classes, lowers, buffer, starts):
    """Writes a line's plain form. Returns (bytes, words, upper-case letters, letters); bytes < 0 when the line is too long for a line
    of a frame. starts: where each word begins."""
    size = np.int64(0)
    words = np.int64(0)
    uppers = np.int64(0)
    letters = np.int64(0)
    inside = False  # a word
    number = False  # a run of digits
    fits = True
    i = start
    while i < end:
        code = code_at(data, i, end)
        c = class_of(stage, classes, code)
        i += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        uppers += (c & UPPER) != 0
        letters += (c & ALPHA) != 0
        if c & SPACE:
            inside = False
            number = False
            continue
        if not fits or not (c & (ALPHA | DIGIT | MARK) or code == _COPYRIGHT):
            continue
        if not inside:
            if words == FRAME_WORDS or size + 8 > len(buffer):
                fits = False
                continue
            if words > 0:
                buffer[size] = 32
                size += 1
            starts[words] = size
            words += 1
            inside = True
        if c & DIGIT:
            if not number:
                buffer[size] = _NUMBER
                size += 1
            number = True
            continue
        number = False
        code = 99 if code == _COPYRIGHT else code + lowers[(np.int64(stage[code >> 8]) << 8) | (code & 255)]
        size = encode(code, buffer, size)
        if size + 8 > len(buffer):
            fits = False
    return size if fits else np.int64(-1), words, uppers, letters


@kernel
def _is_frame(data, start, end, flags, stage, classes, lowers, buffer, starts, keys, kinds, rules):
    """Whether a line belongs to a page's frame, by `boilerplate` or `refinedweb`."""
    size, words, uppers, letters = _plain(data, start, end, stage, classes, lowers, buffer, starts)
    if flags & REFINEDWEB and 2 * uppers > letters:
        return True
    if size < 0:
        return False
    if flags & REFINEDWEB:
        if words <= 1:
            return True
        numbers = True
        for k in range(size):
            numbers = numbers and (buffer[k] == _NUMBER or buffer[k] == 32)
        if numbers:
            return True
    if size == 0:
        return False
    for first in range(words):
        begin = starts[first]
        for last in range(first, words):
            after = starts[last + 1] - 1 if last + 1 < words else size
            kind = WHOLE | START | END | INSIDE
            if first > 0:
                kind &= END | INSIDE
            if last + 1 < words:
                kind &= START | INSIDE
            if _is_phrase(buffer, begin, after, keys, kinds, rules, kind, flags):
                return True
    return False


@kernel
def _citation(data, i, end):
    """Length of a citation mark that begins at the bracket at byte i: [1] to [9999], [edit], [citation needed]; else 0."""
    k = i + 1
    while k < end and 48 <= data[k] <= 57:
        k += 1
    if i + 1 < k <= i + 5 and k < end and data[k] == 93:
        return k + 1 - i
    for mark in (b"edit]", b"citation needed]"):
        size = len(mark)
        if i + 1 + size <= end:
            same = True
            for k in range(size):
                b = data[i + 1 + k]
                if 65 <= b <= 90:
                    b |= 32
                same = same and b == mark[k]
            if same:
                return size + 1
    return 0


@kernel
def _has_policy_phrase(data, start, end, phrases, lengths):
    for i in range(start, end):
        first = data[i] | 32
        for p in range(len(lengths)):
            if phrases[p, 0] != first or i + lengths[p] > end:
                continue
            same = True
            for k in range(1, lengths[p]):
                b = data[i + k]
                if 65 <= b <= 90:
                    b |= 32
                if b != phrases[p, k]:
                    same = False
                    break
            if same:
                return True
    return False


@kernel
def _passes_c4(data, start, end, stage, classes, phrases, lengths):
    """Whether C4 keeps a line without citation marks and white space at its end."""
    last = data[end - 1]
    if not (last == 46 or last == 33 or last == 63 or last == 34):
        return False
    if end - start >= 3 and last == 46 and data[end - 2] == 46 and data[end - 3] == 46:
        return False
    words = 0
    length = 0
    i = start
    while i < end:
        code = code_at(data, i, end)
        i += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        if class_of(stage, classes, code) & SPACE:
            length = 0
        else:
            words += length == 0
            length += 1
            if length > C4_LONGEST_WORD:
                return False
    return words >= C4_LEAST_WORDS and not _has_policy_phrase(data, start, end, phrases, lengths)


@kernel
def _trimmed(data, start, end, stage, classes):
    """The end of data[start:end] without the white space at it."""
    while end > start:
        at = previous(data, start, end)
        if not class_of(stage, classes, code_at(data, at, end)) & SPACE:
            break
        end = at
    return end


@kernel
def _move_on(data, first, i, end, span):
    """Makes span (2,) the first formula that ends after byte i."""
    while span[1] <= i < end:
        span[0], span[1] = next_formula(data, first, span[1], end)
        if span[0] == end:
            span[1] = end + 1


@kernel
def _without_citations(data, first, i, stop, end, span, flags, out, o):
    """Writes a line, data[i:stop], without citation marks to out[o:]; formulas as they are, where they are kept. Returns its end there."""
    while i < stop:
        if flags & KEEP_MATH:
            _move_on(data, first, i, end, span)
        if data[i] == 91 and not (flags & KEEP_MATH and i >= span[0]):
            size = _citation(data, i, stop)
            if size > 0:
                i += size
                continue
        out[o] = data[i]
        o += 1
        i += 1
    return o


@kernel
def edit(
    data, offsets, flags, stage, classes, lowers, keys, kinds, rules, policy, lengths, buffer, starts, span, out, out_offsets, lines, cut
):
    """Writes the texts without the lines that the rules turn away to out (as long as data), their ends to out_offsets, and how many
    lines that are not blank they had and lost to lines and cut (rows,). span: (2,) int64 to work in. The texts must be valid UTF-8."""
    o = np.int64(0)
    out_offsets[0] = 0
    for row in range(len(offsets) - 1):
        i, end = offsets[row], offsets[row + 1]
        first, text = o, i
        span[0], span[1] = i, i
        written = False  # a line of this text: the next one is put after a line feed
        while i <= end:
            stop = i
            while stop < end and data[stop] != 10:
                stop += 1
            begin = o
            if written:
                out[o] = 10
                o += 1
            at = o
            keep, formula = True, False
            blank = _trimmed(data, i, stop, stage, classes) == i
            if not blank:
                lines[row] += 1
                if flags & KEEP_MATH:
                    _move_on(data, text, i, end, span)
                    formula = span[0] < stop
                if flags & (BOILERPLATE | REFINEDWEB) and not formula:
                    keep = not _is_frame(data, i, stop, flags, stage, classes, lowers, buffer, starts, keys, kinds, rules)
            if flags & C4 and keep and not blank:
                o = _trimmed(out, at, _without_citations(data, text, i, stop, end, span, flags, out, o), stage, classes)
                keep = o > at and (formula or _passes_c4(out, at, o, stage, classes, policy, lengths))
            elif keep:
                for k in range(i, stop):
                    out[o] = data[k]
                    o += 1
            cut[row] += not keep
            if keep:
                written = True
            else:
                o = begin
            i = stop + 1
        if not written:
            o = first
        out_offsets[row + 1] = o


@dataclass(frozen=True)
class Edited:
    """texts: `large_string`; lines and cut: (rows,) int64, lines that are not blank before, and how many of them were left out."""

    texts: pa.Array
    lines: np.ndarray
    cut: np.ndarray


def edited(column: pa.Array | pa.ChunkedArray, rules: tuple[str, ...], keep_math: bool = False) -> Edited:
    """The texts without the lines that the rules (c4, boilerplate, refinedweb) turn away; null stays null. keep_math: lines with formulas
    stay. The texts must be valid UTF-8 (`tidied` checks that)."""
    flags = KEEP_MATH if keep_math else 0
    for rule in rules:
        flags |= _FLAGS[rule]
    t = scratch.tables()
    buffer, starts, span = np.empty(_BUFFER, np.uint8), np.empty(FRAME_WORDS + 1, np.int64), np.empty(2, np.int64)
    made = []
    for part in chunks(column):
        rows = len(part)
        out, offsets = np.empty(int(part.offsets[-1] - part.offsets[0]), np.uint8), np.empty(rows + 1, np.int64)
        lines, cut = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        with ready(edit):
            edit(
                part.data,
                part.offsets,
                flags,
                t.stage,
                t.classes,
                t.lowers,
                *phrases(),
                *_policy(),
                buffer,
                starts,
                span,
                out,
                offsets,
                lines,
                cut,
            )
        made.append(Edited(from_buffers(out, offsets, part.null), lines, cut))
    if not made:
        return Edited(pa.array([], pa.large_string()), np.zeros(0, np.int64), np.zeros(0, np.int64))
    return Edited(
        pa.concat_arrays([m.texts for m in made]), *(np.concatenate([getattr(m, name) for m in made]) for name in ("lines", "cut"))
    )
