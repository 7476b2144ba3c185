"""Lists of words and phrases, made ready for the walk that finds them in a column of texts."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dataproc.kernels import folding
from dataproc.kernels.columns import TextBuffers
from dataproc.kernels.compiling import ready
from dataproc.kernels.folding import WORD
from dataproc.kernels.wordmatch import BUFFER, LONGEST, SHOWN, Entries, find, split

_GAPS = re.compile(rf"[\s{re.escape(''.join(sorted(folding.DASHES)))}]+")


@functools.cache
def _ascii() -> np.ndarray:
    f = folding.tables()
    return np.array([code < 128 and bool(f.kinds[(int(f.stage[0]) << 8) | code] & WORD) for code in range(256)])


def written(entry: str) -> str:
    """An entry with each run of white space and dashes as one space, none at its ends."""
    return _GAPS.sub(" ", unicodedata.normalize("NFC", entry)).strip()


def check_entry(entry: str) -> None:
    """Raises ValueError, one sentence, for an entry that no text can hold as a word."""
    text = written(entry)
    if not any(folding.character_kind(c) & WORD for c in text):
        raise ValueError(f"the entry {text!r} has no letter and no digit")
    if len(folding.fold(text).encode()) > LONGEST:
        raise ValueError(f"the entry {text[:40]!r}... is longer than {LONGEST} bytes")


@dataclass(frozen=True)
class Found:
    """words, matches, distinct, covered: (rows,) int64: words of a text, matches, different entries, words inside matches; shown: of each
    text the first of its different entries."""

    words: np.ndarray
    matches: np.ndarray
    distinct: np.ndarray
    covered: np.ndarray
    shown: list[tuple[str, ...]]


class WordList:
    """Words and phrases that are looked for; each must pass `check_entry`."""

    def __init__(self, entries: Iterable[str]):
        spelled = {folding.fold(text): text for text in map(written, entries)}
        made = sorted(_made(spelled), key=lambda entry: (entry.key, -len(entry.folded), entry.folded))
        self.entries = [entry.text for entry in made]
        self._arrays = _arrays(made)
        self._stamps = np.full(len(made), -1, np.int64)
        self._stamp = 0
        self._buffer = np.empty(BUFFER, np.uint8)

    def search(self, part: TextBuffers, rows: np.ndarray) -> Found:
        """Looks into some rows (int64) of a column. Of matches that overlap the first counts, of those that begin at one place the
        longest. Raises ValueError for invalid UTF-8."""
        counts, shown, odd = self._find(part.data, part.offsets[rows], part.offsets[rows + 1])
        for place in np.flatnonzero(odd).tolist():
            text = part.data[part.offsets[rows[place]] : part.offsets[rows[place] + 1]].tobytes().decode()
            if not unicodedata.is_normalized("NFC", text):
                data = np.frombuffer(unicodedata.normalize("NFC", text).encode(), np.uint8)
                (counts[place],), (shown[place],), _ = self._find(data, np.zeros(1, np.int64), np.array([len(data)], np.int64))
        named = [tuple(self.entries[k] for k in row if k >= 0) for row in shown.tolist()]
        return Found(counts[:, 0], counts[:, 1], counts[:, 2], counts[:, 3], named)

    def _find(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = len(starts)
        counts, shown, odd = np.zeros((rows, 4), np.int64), np.full((rows, SHOWN), -1, np.int32), np.zeros(rows, np.uint8)
        with ready(find):
            bad = find(
                data, starts, ends, _ascii(), folding.tables(), self._arrays, self._buffer, self._stamps, self._stamp, counts, shown, odd
            )
        if bad >= 0:
            raise ValueError(f"row {bad} is not valid UTF-8")
        self._stamp += rows
        return counts, shown, odd


class _Entry(NamedTuple):
    text: str
    folded: bytes
    lead: int  # bytes of `folded` before its first word
    size: int  # words
    key: tuple[bool, int]  # (is a phrase, hash of its word or of its first two)
    first: int


def _made(spelled: dict[str, str]) -> list[_Entry]:
    data, starts, ends = _joined(spelled.values())
    places, hashes, sizes = np.zeros(len(starts), np.int64), np.zeros((len(starts), 2), np.uint64), np.zeros(len(starts), np.int64)
    with ready(split):
        split(data, starts, ends, _ascii(), folding.tables(), np.empty(BUFFER, np.uint8), places, hashes, sizes)
    made = []
    for k, (folded, text) in enumerate(spelled.items()):
        raw = folded.encode()
        lead = len(folding.fold(data[starts[k] : places[k]].tobytes().decode()).encode())
        phrase = bool(sizes[k] > 1)
        made.append(_Entry(text, raw, lead, int(sizes[k]), (phrase, int(hashes[k, int(phrase)])), int(hashes[k, 0])))
    return made


def _joined(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(bytes, starts, ends) of texts one after the other."""
    raw = [text.encode() for text in texts]
    ends = np.cumsum([len(item) for item in raw], dtype=np.int64) if raw else np.zeros(0, np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if raw else ends
    return np.frombuffer(b"".join(raw), np.uint8), starts, ends


def _arrays(made: Sequence[_Entry]) -> Entries:
    """made: sorted by key, so that the entries of one key stand side by side."""
    spans: dict[tuple[bool, int], tuple[int, int]] = {}
    for k, entry in enumerate(made):
        spans[entry.key] = (spans.get(entry.key, (k, k))[0], k + 1)
    words = {key: span for (phrase, key), span in spans.items() if not phrase}
    starting = {entry.first for entry in made if entry.key[0]}
    words |= {key: (0, 0) for key in starting - words.keys()}
    word_keys, word_spans = _table(words)
    pair_keys, pair_spans = _table({key: span for (phrase, key), span in spans.items() if phrase})
    bits = np.zeros(1 << max(4, (len(words) // 4).bit_length()), np.uint64)  # 16 bits and more for each word
    for key in words:
        place = key % (64 * len(bits))
        bits[place // 64] |= np.uint64(1 << (place % 64))
    ends = np.cumsum([len(entry.folded) for entry in made], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if made else ends
    return Entries(
        bits=bits,
        words=word_keys,
        word_spans=word_spans,
        phrases=np.array([int(key) in starting for key in word_keys], np.bool_),
        pairs=pair_keys,
        pair_spans=pair_spans,
        spans=np.stack([starts, ends], axis=1),
        spelled=np.frombuffer(b"".join(entry.folded for entry in made) or b"\0", np.uint8),
        leads=np.array([entry.lead for entry in made], np.int64),
        sizes=np.array([entry.size for entry in made], np.int64),
    )


def _table(spans: dict[int, tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """An open table of hashes, as `_probe` reads it, and the span of each slot."""
    size = 1 << max(4, (4 * len(spans)).bit_length())
    keys, found = np.zeros(size, np.uint64), np.zeros((size, 2), np.int64)
    for key, span in spans.items():
        slot = key % size
        while keys[slot]:
            slot = (slot + 1) % size
        keys[slot], found[slot] = key, span
    return keys, found
