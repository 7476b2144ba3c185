"""A first look at a column of URLs: which rows may be on a list or hold a word. No row that is, is left out; the few that are found are
looked at again in Python, so a hash that two texts share costs time and no page.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from dataproc.kernels.columns import TextBuffers
from dataproc.kernels.compiling import kernel, ready
from dataproc.kernels.primitives import hash_lowered, hash_span

_DOT, _SLASH, _COLON, _QUERY, _HASH, _PERCENT, _SPACE, _DASH, _UNDERSCORE = (ord(c) for c in "./:?#% -_")
_ZERO, _NINE, _SMALL_A, _SMALL_Z = (ord(c) for c in "09az")
_TO_SMALL = np.uint8(32)
_HTTP = np.frombuffer(b"http", np.uint8)
_WWW = np.frombuffer(b"www.", np.uint8)
# How a line of a list may begin before its domain.
_NULL_ADDRESS, _LOCAL_ADDRESS = np.frombuffer(b"0.0.0.0 ", np.uint8), np.frombuffer(b"127.0.0.1 ", np.uint8)
WORD_SLOTS_PER_WORD = 4
MOST_HOST_BYTES = 253  # of a name (RFC 1035, written out); a longer host is no name, and trying all its ends would take its length squared


@dataclass(frozen=True)
class HashTable:
    """Sorted 64-bit hashes, found by their first bits. keys: (n,) uint64 ascending; starts: (2**bits + 1,) uint32, the first key with
    these bits."""

    keys: np.ndarray
    starts: np.ndarray

    @functools.cached_property
    def shift(self) -> np.uint64:
        """How far to the right the first bits of a hash lie."""
        return np.uint64(65 - (len(self.starts) - 1).bit_length())


@kernel(inline=True)
def _find(key, keys, starts, shift):
    """The first place of a key; -1 where it is not."""
    bucket = np.int64(key >> shift)
    for i in range(np.int64(starts[bucket]), np.int64(starts[bucket + 1])):
        if keys[i] == key:
            return i
    return np.int64(-1)


@kernel(inline=True)
def _small(c):
    return c + _TO_SMALL if 65 <= c <= 90 else c


@kernel
def _begins(data, at, end, text):
    """Whether data[at:end] begins with a text, in any case."""
    if end - at < len(text):
        return False
    same = True
    for i in range(len(text)):
        same &= _small(data[at + i]) == text[i]
    return same


@kernel
def _host_end(data, at, end):
    """Where a run of letters, digits, dots, dashes and underscores ends, its last dots left out. (end of host, end of run)"""
    stop = at
    while stop < end:
        c = _small(data[stop])
        if not (_SMALL_A <= c <= _SMALL_Z or _ZERO <= c <= _NINE or c in (_DOT, _DASH, _UNDERSCORE)):
            break
        stop += 1
    last = stop
    while last > at and data[last - 1] == _DOT:
        last -= 1
    return last, stop


@kernel
def _looks_numeric(data, at, stop):
    """Whether the last label begins with a digit: it may be an address in one of its odd forms."""
    i = stop
    while i > at and data[i - 1] != _DOT:
        i -= 1
    return _ZERO <= data[i] <= _NINE


@kernel
def _plain_host(data, at, end):
    """(start, end) of the host of a URL whose normal form is its lower case; (-1, -1) of any other URL."""
    if not _begins(data, at, end, _HTTP):
        return np.int64(-1), np.int64(-1)
    at += 4
    if at < end and _small(data[at]) == 115:  # s
        at += 1
    if not (at + 3 < end and data[at] == _COLON and data[at + 1] == _SLASH and data[at + 2] == _SLASH):
        return np.int64(-1), np.int64(-1)
    at += 3
    last, stop = _host_end(data, at, end)
    if last == at or last - at > MOST_HOST_BYTES or _looks_numeric(data, at, last):
        return np.int64(-1), np.int64(-1)
    if stop < end and data[stop] == _COLON:  # a port, or else what stands here is a user
        stop += 1
        while stop < end and _ZERO <= data[stop] <= _NINE:
            stop += 1
    if stop < end and data[stop] != _SLASH and data[stop] != _QUERY and data[stop] != _HASH:
        return np.int64(-1), np.int64(-1)
    return np.int64(at), np.int64(last)


@kernel
def _may_be_listed(data, offsets, keys, starts, shift, found):
    for row in range(len(found)):
        begin, end = offsets[row], offsets[row + 1]
        found[row] = False
        if begin == end:
            continue
        at, stop = _plain_host(data, begin, end)
        if at < 0:
            found[row] = True
            continue
        while at < stop:
            if _find(hash_lowered(data, at, stop), keys, starts, shift) >= 0:
                found[row] = True
                break
            while at < stop and data[at] != _DOT:
                at += 1
            at += 1


@kernel
def _may_hold_words(data, offsets, table, found):
    mask = np.uint64(len(table) - 1)
    for row in range(len(found)):
        begin, end = offsets[row], offsets[row + 1]
        found[row] = False
        start = begin
        for i in range(begin, end + 1):
            c = _small(data[i]) if i < end else np.uint8(_SPACE)
            if c == _PERCENT or c >= 128:
                found[row] = True
                break
            if _SMALL_A <= c <= _SMALL_Z or _ZERO <= c <= _NINE:
                continue
            if i > start:
                key = hash_lowered(data, start, i) | np.uint64(1)  # 0 is a free slot
                slot = key >> np.uint64(1) & mask
                while table[slot] != 0 and table[slot] != key:
                    slot = (slot + np.uint64(1)) & mask
                if table[slot] == key:
                    found[row] = True
                    break
            start = i + 1


@kernel
def _places(text, keys, starts, shift):
    key = hash_span(text, 0, len(text))
    first = _find(key, keys, starts, shift)
    last = first
    while 0 <= last < len(keys) and keys[last] == key:
        last += 1
    return first, last


@kernel
def _hashes(data, offsets, out):
    for row in range(len(out)):
        out[row] = hash_span(data, offsets[row], offsets[row + 1])


@kernel
def _list_lines(data, starts, ends):
    """Where the domains of a list lie, a line each. Returns lines; a line that is not just a domain in lower case (after the address of a
    hosts file, before a comma or an adblock `^`) has start -1 - its first byte, and an empty one start = end."""
    count = 0
    at, size = np.int64(0), np.int64(len(data))
    while at < size:
        end = at
        while end < size and data[end] != 10:
            end += 1
        after = end + 1
        if end > at and data[end - 1] == 13:
            end -= 1
        begin = at
        if begin < end and data[begin] == _HASH:
            end = begin
        elif _begins(data, begin, end, _NULL_ADDRESS):
            begin += len(_NULL_ADDRESS)
        elif _begins(data, begin, end, _LOCAL_ADDRESS):
            begin += len(_LOCAL_ADDRESS)
        last, stop = _host_end(data, begin, end)
        if _begins(data, begin, last, _WWW) and last > begin + 4:
            begin += 4
        plain = stop == end and last > begin and not _looks_numeric(data, begin, last)
        for i in range(begin, last):
            plain &= not (65 <= data[i] <= 90)
        starts[count], ends[count] = (begin, last) if plain or begin == end else (-1 - at, end)
        count += 1
        at = after
    return count


@kernel
def _gather(data, starts, ends, out, offsets):
    for i in range(len(starts)):
        start, at, size = starts[i], offsets[i], ends[i] - starts[i]
        for j in range(size):
            out[at + j] = data[start + j]
        offsets[i + 1] = at + size


def gathered(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> TextBuffers:
    """The spans data[start:end], one after another. starts, ends: (rows,) int64."""
    out, offsets = np.empty(int((ends - starts).sum()), np.uint8), np.zeros(len(starts) + 1, np.int64)
    with ready(_gather):
        _gather(data, starts, ends, out, offsets)
    return TextBuffers(out, offsets, np.zeros(len(starts), bool))


def hashes(texts: TextBuffers) -> np.ndarray:
    """(rows,) uint64 of each text."""
    out = np.empty(len(texts), np.uint64)
    with ready(_hashes):
        _hashes(texts.data, texts.offsets, out)
    return out


def hash_table(keys: np.ndarray) -> HashTable:
    """Of sorted keys, about one in a bucket."""
    bits = max(1, int(len(keys)).bit_length())
    counts = np.bincount((keys >> np.uint64(64 - bits)).astype(np.int64), minlength=1 << bits)
    return HashTable(keys, np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32))


def word_table(keys: np.ndarray) -> np.ndarray:
    """An open table of the hashes of words. keys: (n,) uint64; returns a power of two of uint64, 0 where free."""
    size = 1 << max(4, (WORD_SLOTS_PER_WORD * len(keys)).bit_length())
    table = np.zeros(size, np.uint64)
    for key in keys | np.uint64(1):
        slot = int(key) >> 1 & (size - 1)
        while table[slot] not in (0, key):
            slot = (slot + 1) % size
        table[slot] = key
    return table


def places(text: bytes, table: HashTable) -> range:
    """The places of a text's hash in the table."""
    data = np.frombuffer(text, np.uint8)
    with ready(_places):
        return range(*_places(data, table.keys, table.starts, table.shift))


def may_be_listed(urls: TextBuffers, table: HashTable) -> np.ndarray:
    """(rows,) bool: whether the host of a URL, or a domain it lies below, may have its hash in the table. An empty URL is in none."""
    found = np.empty(len(urls), bool)
    with ready(_may_be_listed):
        _may_be_listed(urls.data, urls.offsets, table.keys, table.starts, table.shift, found)
    return found


def may_hold_words(urls: TextBuffers, table: np.ndarray) -> np.ndarray:
    """(rows,) bool: whether a run of letters and digits may have its hash in the table (`word_table`), in any case."""
    found = np.empty(len(urls), bool)
    with ready(_may_hold_words):
        _may_hold_words(urls.data, urls.offsets, table, found)
    return found


def list_lines(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(lines,) int64 each: (start, end) of the domain in each line of a list; a start below 0 is -1 - the start of a line that wants a
    closer look. data: (bytes,) uint8."""
    lines = int(np.count_nonzero(data == 10)) + 1
    starts, ends = np.empty(lines, np.int64), np.empty(lines, np.int64)
    with ready(_list_lines):
        count = _list_lines(data, starts, ends)
    return starts[:count], ends[:count]
