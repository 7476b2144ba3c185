"""MinHash signatures of word n-grams, equal to those of datasketch 2.0 for the same shingle hashes and permutations.

A word here is a run of letters, decimal digits and combining marks, in lower case; a letter of a script without spaces is a word of its
own. A shingle is `ngram` words in a row; a document with fewer words, but one at least, is one shingle. A document without a word has
no shingle, and its signature holds the largest value everywhere.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from dataproc.kernels import scratch as s
from dataproc.kernels.columns import chunks
from dataproc.kernels.compiling import kernel, ready
from dataproc.kernels.primitives import class_of, decode, encode, hash_lowered, hash_span, mix
from dataproc.kernels.unicode import ALPHA, DIGIT, MARK, UNSPACED

Scheme = Literal["affine32", "affine64"]
_WORD = np.uint16(ALPHA | DIGIT | MARK)
_BLOCK = 1024  # shingles that are brought under all permutations at once
_BUFFER = 256  # bytes of a lowered word that is hashed as a whole; longer ones go by code point
_BASE = np.uint64(0x9E3779B97F4A7C15)  # of the polynomial that joins word hashes


@kernel
def _hash_word(data, start, end, stage, classes, lowers, buffer):
    """Hash of a word with characters beyond ASCII, in lower case."""
    size = np.int64(0)
    h = np.uint64(0)
    i = start
    fits = end - start <= _BUFFER // 2  # lower case may take more bytes
    while i < end:
        b = np.int64(data[i])
        code, width = (b, 1) if b < 128 else decode(data, i, end)
        code += lowers[(np.int64(stage[code >> 8]) << 8) | (code & 255)]
        if fits:
            size = encode(code, buffer, size)
        else:
            h = mix((h ^ np.uint64(code)) * _BASE)
        i += width
    return hash_span(buffer, 0, size) if fits else h


@kernel
def shingle(data, start, end, i, n, ring, words, out, ascii, stage, classes, lowers, buffer):
    """Reads words from byte i on and writes shingle hashes to out until it is full or the text ends.

    ring: (n,) uint64, the hashes of the last words; words: how many there were. Returns (byte, words, shingles); byte < 0 for invalid
    UTF-8. The shingle of a text shorter than n is not written here.
    """
    made = np.int64(0)
    # Takes the oldest word out of the sum again: _BASE ** n, since every word is multiplied once for each that follows.
    power = np.uint64(1)
    for _ in range(n):
        power *= _BASE
    total = ring[n]
    place = words % n
    while made < len(out):
        # To the next word.
        while i < end:
            b = np.int64(data[i])
            if b < 128:
                if ascii[b] & _WORD:
                    break
                i += 1
            else:
                code, size = decode(data, i, end)
                if size == 0:
                    return np.int64(-1), words, made
                if class_of(stage, classes, code) & _WORD:
                    break
                i += size
        if i >= end:
            break
        word = i
        plain = True
        alone = False
        while i < end:
            b = np.int64(data[i])
            if b < 128:
                if not ascii[b] & _WORD or alone:
                    break
                i += 1
            else:
                code, size = decode(data, i, end)
                if size == 0:
                    return np.int64(-1), words, made
                c = class_of(stage, classes, code)
                if not c & _WORD:
                    break
                if c & UNSPACED:
                    if i > word:
                        break
                    alone = True
                elif alone and not c & MARK:
                    break
                plain = False
                i += size
        h = hash_lowered(data, word, i) if plain else _hash_word(data, word, i, stage, classes, lowers, buffer)
        old = ring[place] if words >= n else np.uint64(0)
        ring[place] = h
        place += 1
        if place == n:
            place = 0
        total = total * _BASE + h - old * power
        words += 1
        if words >= n:
            out[made] = mix(total * _BASE)
            made += 1
    ring[n] = total
    return i, words, made


@kernel
def _least32(hashes, count, a, b, signature):
    """Lowers a signature (permutations,) uint32 by the hashes: the least of a * h + b mod 2**32 over their upper halves."""
    for p in range(len(a)):
        least = signature[p]
        ap, bp = a[p], b[p]
        for k in range(count):
            least = min(least, np.uint32(ap * hashes[k] + bp))
        signature[p] = least


@kernel
def _least64(hashes, count, a, b, signature):
    """The same mod 2**64."""
    for p in range(len(a)):
        least = signature[p]
        ap, bp = a[p], b[p]
        for k in range(count):
            least = min(least, ap * hashes[k] + bp)
        signature[p] = least


@kernel
def _finalise32(hashes, count, out):
    """The upper halves, through the finaliser of MurmurHash3 that datasketch puts before the permutations."""
    for k in range(count):
        h = np.uint32(hashes[k] >> np.uint64(32))
        h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        out[k] = h ^ (h >> np.uint32(16))


@kernel
def _finalise64(hashes, count):
    """The same in place, for 64 bits."""
    for k in range(count):
        h = hashes[k]
        h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        hashes[k] = h ^ (h >> np.uint64(33))


@kernel
def _sign32(data, offsets, n, a, b, ascii, stage, classes, lowers, ring, hashes, halves, buffer, signatures):
    """Signatures of all documents; returns the row of the first one that is not valid UTF-8, or -1."""
    for row in range(len(offsets) - 1):
        ring[:] = 0
        i, words, end = offsets[row], np.int64(0), offsets[row + 1]
        while True:
            i, words, made = shingle(data, offsets[row], end, i, n, ring, words, hashes, ascii, stage, classes, lowers, buffer)
            if i < 0:
                return row
            if made == 0 and 0 < words < n:
                hashes[0] = mix(ring[n] * _BASE)
                made = 1
                words = n
            _finalise32(hashes, made, halves)
            _least32(halves, made, a, b, signatures[row])
            if made < len(hashes):
                break
    return -1


@kernel
def _sign64(data, offsets, n, a, b, ascii, stage, classes, lowers, ring, hashes, halves, buffer, signatures):
    """As `_sign32`, over whole 64-bit hashes."""
    for row in range(len(offsets) - 1):
        ring[:] = 0
        i, words, end = offsets[row], np.int64(0), offsets[row + 1]
        while True:
            i, words, made = shingle(data, offsets[row], end, i, n, ring, words, hashes, ascii, stage, classes, lowers, buffer)
            if i < 0:
                return row
            if made == 0 and 0 < words < n:
                hashes[0] = mix(ring[n] * _BASE)
                made = 1
                words = n
            _finalise64(hashes, made)
            _least64(hashes, made, a, b, signatures[row])
            if made < len(hashes):
                break
    return -1


@dataclass(frozen=True)
class MinHasher:
    """Signatures of `permutations` values over shingles of `ngram` words, with datasketch's parameters for a seed."""

    permutations: int = 112
    ngram: int = 5
    scheme: Scheme = "affine32"
    seed: int = 1

    @property
    def dtype(self) -> np.dtype:
        """Of a signature's values."""
        return np.dtype(np.uint32 if self.scheme == "affine32" else np.uint64)

    @functools.cached_property
    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """(a, b), (permutations,) each: h -> a * h + b with odd a, drawn as datasketch 2.0 draws them."""
        kind = self.dtype.type
        width = 8 * self.dtype.itemsize
        draw = np.random.RandomState(self.seed)
        a = draw.randint(0, 1 << (width - 1), self.permutations, dtype=kind) * kind(2) + kind(1)
        return a, draw.randint(0, 1 << width, self.permutations, dtype=kind)

    def signatures(self, column: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(rows, permutations) of `dtype`; a null text is an empty one. Raises TypeError for a column that is not text, ValueError for
        invalid UTF-8, naming the row."""
        out = np.full((len(column), self.permutations), np.iinfo(self.dtype).max, self.dtype)
        sign = _sign32 if self.scheme == "affine32" else _sign64
        row = 0
        for part in chunks(column):
            with ready(sign):
                bad = sign(part.data, part.offsets, self.ngram, *self.parameters, *_work(self.ngram), out[row : row + len(part)])
            if bad >= 0:
                raise ValueError(f"row {row + bad} is not valid UTF-8")
            row += len(part)
        return out


def shingle_hashes(text: str, ngram: int = 5) -> np.ndarray:
    """(shingles,) uint64: the hashes of one text's shingles, in order. affine64 permutes them, affine32 their upper halves."""
    data = np.frombuffer(text.encode(), np.uint8) if text else np.zeros(0, np.uint8)
    ascii, stage, classes, lowers, ring, _, _, buffer = _work(ngram)
    hashes = np.zeros(len(data) + 1, np.uint64)
    _, words, made = shingle(data, 0, len(data), 0, ngram, ring, 0, hashes, ascii, stage, classes, lowers, buffer)
    if made == 0 and words:
        with np.errstate(over="ignore"):
            hashes[0] = mix(np.uint64(ring[ngram]) * _BASE)
        made = 1
    return hashes[:made]


def _work(ngram: int) -> tuple[np.ndarray, ...]:
    t = s.tables()
    block = np.empty(_BLOCK, np.uint64)
    return (
        t.ascii,
        t.stage,
        t.classes,
        t.lowers,
        np.zeros(ngram + 1, np.uint64),
        block,
        np.empty(_BLOCK, np.uint32),
        np.empty(_BUFFER, np.uint8),
    )
