"""The reader: a batch is a pure function of (mixture, step). It keeps no position, so any step can be read at once, by any rank.

A source's documents, in the order of its shards, are one long run of tokens (concat packing); sample j is the window of
sequence_length + 1 tokens that starts at j x sequence_length. Each epoch visits all windows of a source once, in an order given by a
keyed permutation. Which source a sample comes from is decided by the mixture's plan, before ranks take their slices.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dataproc.parquet import open_parquet
from mixtures.mixture import Mixture, ResolvedSource
from mixtures.permutation import Permutation
from store import files
from store.errors import StoreError

CACHE_BYTES = 256_000_000  # of row groups, over all sources
OPEN_SHARDS = 64  # over all sources; below any usual limit of open files


@dataclass(frozen=True)
class ReaderState:
    """All that a resume needs. `skip`: global sample indices that are passed over; the samples after them move up."""

    mixture_digest: str
    next_sample: int
    skip: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"mixture_digest": self.mixture_digest, "next_sample": self.next_sample, "skip": list(self.skip)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ReaderState:
        return cls(value["mixture_digest"], value["next_sample"], tuple(value["skip"]))


def sample_index(position: int, skip: Sequence[int]) -> int:
    """The global sample at a position of the stream: the `position`-th index (0-based) that is not in `skip` (sorted)."""
    index = position
    while (found := position + bisect_right(skip, index)) != index:
        index = found
    return index


@dataclass(frozen=True)
class _Group:
    """A row group: its tokens as one run, (documents + 1,) offsets of its documents in it, and their ids."""

    tokens: np.ndarray
    edges: np.ndarray
    ids: list[str]

    @property
    def bytes(self) -> int:
        return self.tokens.nbytes + self.edges.nbytes + sum(map(len, self.ids))


class _Shards:
    """Row groups of shards by URL, read when they are asked for. What is kept of them is bounded in bytes, open files in number."""

    def __init__(self):
        self._groups: OrderedDict[tuple[str, int], _Group] = OrderedDict()
        self._bytes = 0
        self._open: OrderedDict[str, tuple[pq.ParquetFile, ExitStack]] = OrderedDict()

    def group(self, url: str, number: int, tokens: int) -> _Group:
        """Row group `number`, which has `tokens` tokens by the manifest. Raises StoreError when the shard is not what was written."""
        key = (url, number)
        if key in self._groups:
            self._groups.move_to_end(key)
            return self._groups[key]
        try:
            table = self._file(url).read_row_group(number, columns=["id", "tokens"], use_threads=False)
            lists, ids = table.column("tokens").combine_chunks(), table.column("id").to_pylist()
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:  # what a damaged footer may give
            raise StoreError(f"{url} cannot be read or is damaged (row group {number}): {error}") from error
        found = _Group(lists.values.to_numpy(), lists.offsets.to_numpy().astype(np.int64), ids)
        if len(found.tokens) != tokens:
            raise StoreError(f"{url}: row group {number} has {len(found.tokens):,} tokens, the manifest says {tokens:,}")
        self._groups[key] = found
        self._bytes += found.bytes
        while self._bytes > CACHE_BYTES and len(self._groups) > 1:
            self._bytes -= self._groups.popitem(last=False)[1].bytes
        return found

    def _file(self, url: str) -> pq.ParquetFile:
        if url not in self._open:
            stack = ExitStack()
            self._open[url] = (stack.enter_context(open_parquet(url)), stack)
            if len(self._open) > OPEN_SHARDS:
                self._open.popitem(last=False)[1][1].close()
        self._open.move_to_end(url)
        return self._open[url][0]

    def close(self) -> None:
        for _, stack in self._open.values():
            stack.close()
        self._open.clear()
        self._groups.clear()
        self._bytes = 0


class _TokenStream:
    """One source's tokens as one long run, read by row groups."""

    def __init__(self, source: ResolvedSource, shards: _Shards):
        self._shards = shards
        listed = source.version.manifest["shards"]
        self._urls = [files.join(source.version.url, shard["path"]) for shard in listed]
        sizes = np.array([size for shard in listed for size in shard["group_tokens"]], np.int64)
        self._starts = np.concatenate([[0], np.cumsum(sizes)])  # token offset of each row group, and the end
        self._firsts = np.cumsum([0] + [len(shard["group_tokens"]) for shard in listed])  # number of each shard's first row group

    def window(self, start: int, count: int) -> np.ndarray:
        """Tokens [start, start + count) as int64."""
        parts, position = [], start
        while position < start + count:
            group, base = self._group_at(position)
            part = group.tokens[position - base : start + count - base]
            parts.append(part)
            position += len(part)
        return np.concatenate(parts).astype(np.int64)

    def documents(self, start: int, count: int) -> list[dict[str, Any]]:
        """The documents that tokens [start, start + count) come from: [{id, tokens: [first, after]}] in the document's own count."""
        found, position = [], start
        while position < start + count:
            group, base = self._group_at(position)
            row = int(np.searchsorted(group.edges, position - base, "right")) - 1
            begin, end = base + int(group.edges[row]), base + int(group.edges[row + 1])
            after = min(end, start + count)
            found.append({"id": group.ids[row], "tokens": [position - begin, after - begin]})
            position = after
        return found

    def _group_at(self, position: int) -> tuple[_Group, int]:
        """The row group that holds a token, and the place of the group's first token."""
        number = int(np.searchsorted(self._starts, position, "right")) - 1
        shard = int(np.searchsorted(self._firsts, number, "right")) - 1
        base = int(self._starts[number])
        size = int(self._starts[number + 1]) - base
        return self._shards.group(self._urls[shard], number - int(self._firsts[shard]), size), base


class Reader:
    """Reads the samples of a mixture. `batch` and `documents` depend on their arguments and the mixture alone."""

    def __init__(self, mixture: Mixture, skip: Sequence[int] = ()):
        self.mixture = mixture
        self.skip = tuple(sorted(set(skip)))
        self.plan = mixture.plan()
        self._shards = _Shards()
        self._streams = [_TokenStream(source, self._shards) for source in mixture.sources]
        self._samples = np.array([source.samples for source in mixture.sources], np.int64)

    def locate(self, first: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the samples at positions [first, first + count) come from: (count,) sources, epochs, windows of the source."""
        positions = range(first, first + count)
        indices = np.array([sample_index(position, self.skip) for position in positions] if self.skip else positions, np.int64)
        sources, within = self.plan.locate(indices)
        epochs, places = np.divmod(within, self._samples[sources])
        windows = np.empty(count, np.int64)
        for source, epoch in set(zip(sources.tolist(), epochs.tolist(), strict=True)):
            chosen = (sources == source) & (epochs == epoch)
            windows[chosen] = self._permutation(source, epoch)(places[chosen])
        return sources, epochs, windows

    def _permutation(self, source: int, epoch: int) -> Permutation:
        spec = self.mixture.sources[source]
        return Permutation(spec.samples, f"{self.mixture.file.seed}\0{spec.name}\0{epoch}")

    def batch(self, first: int, count: int) -> np.ndarray:
        """The samples at positions [first, first + count): (count, sequence_length + 1) int64."""
        length = self.mixture.sequence_length
        sources, _, windows = self.locate(first, count)
        pairs = zip(sources.tolist(), windows.tolist(), strict=True)
        return np.stack([self._streams[source].window(window * length, length + 1) for source, window in pairs])

    def documents(self, first: int, count: int) -> list[dict[str, Any]]:
        """What the samples at positions [first, first + count) are made of: [{position, source, epoch, documents}]."""
        length = self.mixture.sequence_length
        found = []
        for i, (source, epoch, window) in enumerate(zip(*(array.tolist() for array in self.locate(first, count)), strict=True)):
            documents = self._streams[source].documents(window * length, length + 1)
            found.append({"position": first + i, "source": self.mixture.sources[source].name, "epoch": epoch, "documents": documents})
        return found

    def close(self) -> None:
        """Closes all files."""
        self._shards.close()
