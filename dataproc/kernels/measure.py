"""Counts of whole columns: the walk, the repeats and the compression of every document, in one pass over the buffers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dataproc.kernels import scratch as s
from dataproc.kernels.columns import TextBuffers, chunks
from dataproc.kernels.compiling import compiled_once, kernel
from dataproc.kernels.compression import compressed_size
from dataproc.kernels.counts import COUNTS, Count
from dataproc.kernels.lists import base_language
from dataproc.kernels.repeats import repeats, twice_median_length
from dataproc.kernels.walk import walk

REPEATS = 1  # flags of what is wanted beside the walk
COMPRESSION = 2
_WRAP = 1 << 31  # stamps of interning tables begin anew here
_SMALL_COUNTS = 256


@kernel
def _count_entropy(counts, distinct, nlogn):
    """Sum of c * log2(c) over the counts of a document's words, in the order in which they first occur."""
    total = 0.0
    for i in range(distinct):
        count = counts[i]
        total += nlogn[count] if count < len(nlogn) else count * math.log2(count)
    return total


@kernel
def measure(data, offsets, row, languages, wanted, t, x, nlogn, out, entropy):
    """Counts documents from `row` on into out (rows, COUNTS) int64 and entropy (rows,) float64 (bits per word). Returns (row, code):
    (rows, OK), or the document that it stopped at and why."""
    rows = len(offsets) - 1
    while row < rows:
        for table in range(3):
            if x.bases[table] > _WRAP:
                (x.table, x.line_table, x.paragraph_table)[table][:] = 0
                x.bases[table] = 1
        counts = out[row]
        counts[:] = 0
        code = walk(data, offsets[row], offsets[row + 1], t, x, languages[row], counts)
        if code != s.OK:
            return row, code
        words = counts[Count.WORDS]
        counts[Count.TWICE_MEDIAN_WORD] = twice_median_length(x.histogram, x.ends, words)
        if words > 0:
            bits = math.log2(words) - _count_entropy(x.counts, counts[Count.DISTINCT_WORDS], nlogn) / words
            # Rounded, so that the last bit of a machine's logarithm is of no matter.
            entropy[row] = math.floor(bits * 1e6 + 0.5) / 1e6
        if wanted & REPEATS:
            code, x.bases[0] = repeats(x.ids, x.keys, x.first, x.counts, x.marks, x.table, x.ends, x.bases[0], counts)
            if code != s.OK:
                return row, code
        if wanted & COMPRESSION:
            counts[Count.COMPRESSED] = compressed_size(data, offsets[row], offsets[row + 1], x.matches)
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

    def __init__(self) -> None:
        self.sizes = s.Sizes()
        self.scratch = s.make_scratch(self.sizes)
        self.nlogn = np.array([0.0] + [c * math.log2(c) for c in range(1, _SMALL_COUNTS)])
        with compiled_once():
            self.tables = s.tables()
            self.count(pa.array(["a b"]), None, REPEATS | COMPRESSION)

    def count(
        self, column: pa.Array | pa.ChunkedArray, languages: list[str | None] | None, wanted: int, first_row: int = 0
    ) -> Counts:
        """Counts the documents of a column. languages: of each row, None where unknown (then English stop words are looked for).
        Raises ValueError for invalid UTF-8, naming the row, counted from
        first_row."""
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
        out = np.zeros((len(part), COUNTS), np.int64)
        entropy = np.zeros(len(part))
        row, code = 0, s.OK
        while row < len(part):
            row, code = measure(part.data, part.offsets, row, languages, wanted, self.tables, self.scratch, self.nlogn, out, entropy)
            if code == s.INVALID:
                raise ValueError(f"row {before + row} is not valid UTF-8")
            if code != s.OK:
                self._enlarge(code, int(part.offsets[row + 1] - part.offsets[row]))
        self._shrink()
        return Counts(out, entropy, part.null)

    def _enlarge(self, code: int, size: int) -> None:
        """Twice what was too small, but not more than a document of that many bytes can need."""
        most = size // 2 + 2
        name = {s.WORDS_FULL: "words", s.GROUPS_FULL: "groups", s.LINES_FULL: "lines", s.PARAGRAPHS_FULL: "paragraphs"}[code]
        grown = min(2 * getattr(self.sizes, name), most)
        del self.scratch  # before the new one is made: both need not be there at once
        self.sizes = replace(self.sizes, **{name: grown})
        self.scratch = s.make_scratch(self.sizes)

    def _shrink(self) -> None:
        """Back to the usual sizes after a giant, so that one document does not cost every later one its memory."""
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
