"""Counts of whole columns: the walk, the repeats and the compression of every document, in one pass over the buffers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dataproc.kernels import scratch as s
from dataproc.kernels.code import count_code
from dataproc.kernels.columns import TextBuffers, chunks
from dataproc.kernels.compiling import compiled_once, kernel
from dataproc.kernels.compression import compressed_size
from dataproc.kernels.counts import CODE, COMPRESSION, COUNTS, DISTINCT, EVERYTHING, FORMULA, REPEATS, SHAPES, Count
from dataproc.kernels.formulas import count_formulas
from dataproc.kernels.lists import base_language
from dataproc.kernels.repeats import WRAP, keep_repeated, repeats, twice_median_length
from dataproc.kernels.walk import walk

_SMALL_COUNTS = 256
_MOST_BYTES = (1 << 32) - 4  # of which every second may end a word: numbers of words have 31 bits
# What is counted of the parts of a giant and summed; every other count is the same in each.
_OF_PARTS = (
    Count.DISTINCT_WORDS,
    Count.DUPLICATE_LINES, Count.DUPLICATE_LINE_CHARACTERS, Count.COPIED_LINES, Count.COPIED_LINE_CHARACTERS,
    Count.DUPLICATE_PARAGRAPHS, Count.DUPLICATE_PARAGRAPH_CHARACTERS, Count.COPIED_PARAGRAPHS, Count.COPIED_PARAGRAPH_CHARACTERS,
)  # fmt: skip


@kernel
def _count_entropy(counts, distinct, nlogn):
    """Sum of c * log2(c) over the counts of a document's words, in the order in which they first occur."""
    total = 0.0
    for i in range(distinct):
        count = counts[i]
        total += nlogn[count] if count < len(nlogn) else count * math.log2(count)
    return total


@kernel
def _entropy(words, total):
    """Bits per word. Rounded, so that the last bit of a machine's logarithm is of no matter."""
    return math.floor((math.log2(words) - total / words) * 1e6 + 0.5) / 1e6 if words > 0 else 0.0


@kernel
def _clear_worn(x, most):
    """Clears interning tables whose stamps have passed `most`."""
    for table in range(3):
        if x.bases[table] > most:
            (x.table, x.line_table, x.paragraph_table)[table][:] = 0
            x.bases[table] = 1


@kernel
def _walk(data, start, end, language, wanted, t, x, nlogn, counts, of_part):
    """Walks a document, a giant in as many parts as its distinct words, lines and paragraphs ask for. Returns (code, sum of c * log2(c)).
    of_part: room for the counts of a part."""
    may_split = len(x.spare) >= len(x.ids)  # a giant's arrays
    parts = 1
    while True:
        counts[:] = 0
        offset = 0
        total = 0.0
        code = s.OK
        for part in range(parts):
            _clear_worn(x, WRAP)
            of_part[:] = 0
            x.split[0], x.split[1], x.split[2] = part, parts - 1, offset
            code = walk(data, start, end, t, x, language, wanted, of_part)
            if code != s.OK:
                break
            distinct = of_part[Count.DISTINCT_WORDS]
            total += _count_entropy(x.counts, distinct, nlogn)
            if wanted & REPEATS:
                keep_repeated(x.ids, x.counts, of_part[Count.WORDS], offset)
            offset += distinct
            for name in _OF_PARTS:
                of_part[name] += counts[name]
            for name in range(COUNTS):
                counts[name] = of_part[name]
        if code == s.OK or code == s.INVALID or not may_split:
            return code, total
        parts *= 2
        _clear_worn(x, 0)  # the stamps that the walk has left are not booked


@kernel
def measure(data, offsets, row, giant, languages, wanted, t, x, nlogn, out, entropy):
    """Counts documents from `row` on into out (rows + 1, COUNTS) int64, the last row of which is room to work in, and entropy (rows,)
    float64 (bits per word). Returns (row, code): (rows, OK), or the document that it stopped at and why: that it has more than `giant`
    bytes, for one."""
    rows = len(offsets) - 1
    while row < rows:
        start, end = offsets[row], offsets[row + 1]
        if end - start > giant:
            return row, s.GIANT
        counts = out[row]
        code, total = _walk(data, start, end, languages[row], wanted, t, x, nlogn, counts, out[len(out) - 1])
        if code != s.OK:
            return row, code
        words = counts[Count.WORDS]
        entropy[row] = _entropy(words, total) if wanted & DISTINCT else 0.0
        if wanted & SHAPES:
            counts[Count.TWICE_MEDIAN_WORD] = twice_median_length(x.histogram, x.long_places, x.long_lengths, words)
        if wanted & REPEATS:
            code, x.bases[0] = repeats(x, x.bases[0], counts)
            if code != s.OK:
                return row, code
        if wanted & COMPRESSION:
            counts[Count.COMPRESSED] = compressed_size(data, start, end, x.matches)
        if wanted & CODE:
            count_code(data, start, end, counts)
        if wanted & FORMULA:
            count_formulas(data, start, end, counts)
        row += 1
    return row, s.OK


@dataclass(frozen=True)
class Counts:
    """What was counted in a column's documents: counts (rows, COUNTS) int64, entropy (rows,) float64, null (rows,) bool."""

    counts: np.ndarray
    entropy: np.ndarray
    null: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        return self.counts[:, Count[name]]


class Measurer:
    """Keeps the scratch arrays from one column to the next. Not for two threads at once."""

    def __init__(self, giant: int = s.GIANT_BYTES, giant_sizes: Callable[[int], s.Sizes] = s.Sizes.giant) -> None:
        """giant: bytes from which on a document is measured in parts, with arrays of giant_sizes(its bytes)."""
        self.giant, self.giant_sizes = giant, giant_sizes
        self.sizes = s.Sizes()
        self.scratch = s.make_scratch(self.sizes)
        self.nlogn = np.array([0.0] + [c * math.log2(c) for c in range(1, _SMALL_COUNTS)])
        with compiled_once():
            self.tables = s.tables()
            self.count(pa.array(["a b"]), None, EVERYTHING)

    def count(self, column: pa.Array | pa.ChunkedArray, languages: list[str | None] | None, wanted: int, first_row: int = 0) -> Counts:
        """Counts the documents of a column. languages: of each row, None where unknown (then English stop words are looked for).
        wanted: flags of counts.py. Raises ValueError for invalid UTF-8, naming the row, counted from first_row."""
        numbers = _language_numbers(languages, len(column))
        parts = []
        row = 0
        for part in chunks(column):
            parts.append(self._count(part, numbers[row : row + len(part)], wanted, first_row + row))
            row += len(part)
        if not parts:
            return Counts(np.zeros((0, COUNTS), np.int64), np.zeros(0), np.zeros(0, bool))
        return Counts(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("counts", "entropy", "null")))

    def _count(self, part: TextBuffers, languages: np.ndarray, wanted: int, before: int) -> Counts:
        out = np.zeros((len(part) + 1, COUNTS), np.int64)  # one row more, in which the parts of a giant are counted
        entropy = np.zeros(len(part))
        row, code = 0, s.OK
        while row < len(part):
            row, code = self._measure(part, row, self.giant, languages, wanted, self.scratch, out, entropy)
            if code == s.GIANT:
                size = int(part.offsets[row + 1] - part.offsets[row])
                if size > _MOST_BYTES:
                    raise ValueError(f"row {before + row} has {size} bytes; a document may have {_MOST_BYTES}")
                alone = TextBuffers(part.data, part.offsets[: row + 2], part.null)
                row, code = self._measure(alone, row, size, languages, wanted, s.make_scratch(self.giant_sizes(size)), out, entropy)
            if code == s.INVALID:
                raise ValueError(f"row {before + row} is not valid UTF-8")
            if code != s.OK:
                self._enlarge(code, int(part.offsets[row + 1] - part.offsets[row]))
        self._shrink()
        return Counts(out[:-1], entropy, part.null)

    def _measure(self, part: TextBuffers, row: int, giant: int, languages, wanted: int, x: s.Scratch, out, entropy) -> tuple[int, int]:
        return measure(part.data, part.offsets, row, giant, languages, wanted, self.tables, x, self.nlogn, out, entropy)

    def _enlarge(self, code: int, size: int) -> None:
        """Twice what was too small, but not more than a document of that many bytes can need."""
        most = size // 2 + 2
        name = {s.WORDS_FULL: "words", s.GROUPS_FULL: "groups", s.LINES_FULL: "lines", s.PARAGRAPHS_FULL: "paragraphs"}[code]
        grown = min(2 * getattr(self.sizes, name), most)
        del self.scratch  # before the new one is made: both need not be there at once
        self.sizes = replace(self.sizes, **{name: grown})
        self.scratch = s.make_scratch(self.sizes)

    def _shrink(self) -> None:
        """Back to the usual sizes after a large document, so that it does not cost every later one its memory."""
        if self.sizes != s.Sizes():
            del self.scratch
            self.sizes = s.Sizes()
            self.scratch = s.make_scratch(self.sizes)


def _language_numbers(languages: list[str | None] | None, rows: int) -> np.ndarray:
    known = {language: number for number, language in enumerate(s.languages())}
    english = known["en"]
    if languages is None:
        return np.full(rows, english, np.int64)
    return np.array([english if language is None else known.get(base_language(language), len(known)) for language in languages], np.int64)
