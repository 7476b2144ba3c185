"""Lists of URLs as one file of sorted hashes, mapped into memory and shared by the workers of a machine.

A million domains take 1 to 2 s to read and some 40 MB, so the index is kept under a digest of what the lists hold, beside the compiled
kernels whose hash it is sorted by. A hash that is found is compared with the text it was made of before anything is decided.
"""

from __future__ import annotations

import fcntl
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from dataproc.kernels.columns import TextBuffers, text_buffers
from dataproc.kernels.compiling import cache_folder
from dataproc.kernels.urls import MOST_HOST_BYTES, HashTable, gathered, hash_table, hashes, may_be_listed, places
from dataproc.stages.url_lists import PAGE, UrlList, content_digest, entries
from dataproc.urls import Address, is_registry
from store import files

_MAGIC, _FORMAT = 0x4844525F55524C53, 1
_HEADER = 8  # uint64: magic, format, entries, bytes of text, starts, deepest path, xxh3-64 of all that follows, 0
_MARK = 0xFFFF  # in place of a list: paths or pages of this host are listed


@dataclass(frozen=True)
class Match:
    """What a URL was found by: the list, and its entry."""

    list: UrlList
    entry: str


class UrlIndex:
    """All entries of some lists. Of lists that name the same, the first one counts."""

    def __init__(self, lists: tuple[UrlList, ...], body: np.ndarray):
        """body: (words,) uint64 as `_pack` makes it."""
        self.lists = lists
        _, _, n, text_bytes, starts, self._deepest, _, _ = (int(value) for value in body[:_HEADER])
        rest = body[_HEADER:].view(np.uint8)
        at = 0

        def take(kind: type, count: int) -> np.ndarray:
            nonlocal at
            size = np.dtype(kind).itemsize * count
            part, at = rest[at : at + size].view(kind), at + -(-size // 8) * 8
            return part

        self.table = HashTable(take(np.uint64, n), take(np.uint32, starts))
        self._offsets, self._lists, self._text = take(np.uint64, n + 1), take(np.uint16, n), take(np.uint8, text_bytes)

    def __len__(self) -> int:
        return len(self.table.keys)

    def may_match(self, urls: TextBuffers) -> np.ndarray:
        """(rows,) bool: False only where `match` would find nothing."""
        return may_be_listed(urls, self.table)

    def match(self, address: Address) -> Match | None:
        """The entry that names a URL's host, a domain that it lies below, a path that it lies under, or its page."""
        host = address.host
        if len(host) > MOST_HOST_BYTES:
            host = host[-MOST_HOST_BYTES:].partition(".")[2]
        while host:
            found = self._find(host)
            whole = next((number for number in found if number != _MARK), None)
            if whole is not None and (host == address.host or not self.lists[whole].is_file or not is_registry(host)):
                return Match(self.lists[whole], host)
            if _MARK in found and (match := self._under(host, address)):
                return match
            host = host.partition(".")[2]
        return None

    def _under(self, host: str, address: Address) -> Match | None:
        candidates = [PAGE + address.page] if host == address.host else []
        parts = address.path.split("/")
        candidates += [host + "/".join(parts[:count]) for count in range(2, min(len(parts), self._deepest) + 1)]
        for text in candidates:
            if found := self._find(text):
                return Match(self.lists[found[0]], text.removeprefix(PAGE))
        return None

    def _find(self, text: str) -> list[int]:
        """The numbers of the lists that hold a text, ascending."""
        wanted = text.encode("utf-8", "surrogatepass")
        found = []
        for at in places(wanted, self.table):
            if self._text[self._offsets[at] : self._offsets[at + 1]].tobytes() == wanted:
                found.append(int(self._lists[at]))
        return found


def open_index(lists: tuple[UrlList, ...], folder: Path | None = None) -> UrlIndex:
    """The index of lists, from the disk where it stands there. folder: where it is kept, else beside the compiled kernels; where neither
    can be written it is made in memory. Raises ConfigError for a list that is no text."""
    digest, contents = content_digest(lists)
    folder = folder or cache_folder()
    if folder is None:
        return UrlIndex(lists, _pack(lists, contents))
    path = folder / f"urls-{digest}"
    body = _mapped(path)
    if body is None:
        with (folder / "urls.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one process of the machine makes it, the others then find it
            body = _mapped(path)
            if body is None:
                files.write_bytes(str(path), _pack(lists, contents).tobytes())
                body = _mapped(path)
    return UrlIndex(lists, body)


def _mapped(path: Path) -> np.ndarray | None:
    """The body in a file; None where there is none, or it is damaged."""
    try:
        body = np.asarray(np.memmap(path, np.uint64, mode="r"))  # kernels are found three times as fast for a plain array
    except (FileNotFoundError, ValueError):
        return None
    sound = len(body) > _HEADER and tuple(body[:2]) == (_MAGIC, _FORMAT) and int(body[6]) == _sum(body)
    return body if sound else None


def _sum(body: np.ndarray) -> int:
    return xxhash.xxh3_64_intdigest(body[_HEADER:])


def _pack(lists: tuple[UrlList, ...], contents: list[bytes]) -> np.ndarray:
    """Header, hashes, their starts, offsets, numbers of lists, texts; each part filled up to eight bytes."""
    parts, numbers, marked, deepest = [], [], set(), 0
    for number, (one, content) in enumerate(zip(lists, contents, strict=True)):
        plain, others = entries(one, content)
        for text in others:
            host, slash, path = text.removeprefix(PAGE).partition("/")
            if slash or text.startswith(PAGE):
                marked.add(host.partition("?")[0])
                deepest = max(deepest, 2 + path.count("/"))
        for texts in (plain, text_buffers(pa.array(others, pa.large_string()))):
            parts.append(texts)
            numbers.append(np.full(len(texts), number, np.uint16))
    parts.append(text_buffers(pa.array(sorted(marked), pa.large_string())))
    numbers.append(np.full(len(parts[-1]), _MARK, np.uint16))
    keys = np.concatenate([hashes(texts) for texts in parts])
    order = np.argsort(keys, kind="stable")
    text = np.concatenate([texts.data[: texts.offsets[-1]] for texts in parts])
    bases = np.cumsum([0] + [int(texts.offsets[-1]) for texts in parts])
    begins = np.concatenate([texts.offsets[:-1] + base for texts, base in zip(parts, bases, strict=False)])
    ends = np.concatenate([texts.offsets[1:] + base for texts, base in zip(parts, bases, strict=False)])
    sorted_text = gathered(text, begins[order], ends[order])
    table = hash_table(keys[order])
    blocks = [table.keys, table.starts, sorted_text.offsets.astype(np.uint64), np.concatenate(numbers)[order], sorted_text.data]
    header = np.zeros(_HEADER, np.uint64)
    header[:6] = (_MAGIC, _FORMAT, len(keys), len(sorted_text.data), len(table.starts), deepest)
    body = np.concatenate([header, *map(_filled, blocks)])
    body[6] = _sum(body)
    return body


def _filled(block: np.ndarray) -> np.ndarray:
    raw = np.ascontiguousarray(block).view(np.uint8)
    return np.pad(raw, (0, -len(raw) % 8)).view(np.uint64)
