"""The reader: a batch is a pure function of (mixture, step). It keeps no position, so any step can be read at once, by any rank.

A source's documents, in the order of its shards, are one long run of tokens (concat packing); sample j is the window of
sequence_length + 1 tokens that starts at j x sequence_length. Each epoch visits all windows of a source once, in an order given by a
keyed permutation. Which source a sample comes from is decided by the mixture's plan, before ranks take their slices.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from mixtures.mixture import Mixture, ResolvedSource
from mixtures.permutation import Permutation
from store import files
from store.errors import StoreError

CACHED_GROUPS = 256  # row groups of 128 documents: some tens of megabytes


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


class _TokenStream:
    """One source's tokens as one long run, read by row groups."""

    def __init__(self, source: ResolvedSource):
        self.version = source.version
        self.shards = source.version.manifest["shards"]
        self._groups = [(s, g) for s, shard in enumerate(self.shards) for g in range(len(shard["group_tokens"]))]
        sizes = [size for shard in self.shards for size in shard["group_tokens"]]
        self.starts = np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))])  # token offset of each row group
        self._cache: OrderedDict[int, tuple[np.ndarray, np.ndarray, list[str]]] = OrderedDict()
        self._open: dict[int, pq.ParquetFile] = {}

    def window(self, start: int, count: int) -> np.ndarray:
        """Tokens [start, start + count) as int64."""
        parts, position = [], start
        while position < start + count:
            number = int(np.searchsorted(self.starts, position, "right")) - 1
            tokens, _, _ = self._group(number)
            offset = position - int(self.starts[number])
            part = tokens[offset : offset + start + count - position]
            parts.append(part)
            position += len(part)
        return np.concatenate(parts).astype(np.int64)

    def documents(self, start: int, count: int) -> list[dict[str, Any]]:
        """The documents that tokens [start, start + count) come from: [{id, tokens: [first, after]}] in the document's own count."""
        found, position = [], start
        while position < start + count:
            number = int(np.searchsorted(self.starts, position, "right")) - 1
            _, edges, ids = self._group(number)
            base = int(self.starts[number])
            row = int(np.searchsorted(edges, position - base, "right")) - 1
            first = position - base - int(edges[row])
            after = min(int(edges[row + 1]), start + count - base) - int(edges[row])
            found.append({"id": ids[row], "tokens": [first, after]})
            position = base + int(edges[row]) + after
        return found

    def _group(self, number: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """(tokens, edges of its documents, ids) of a row group."""
        if number in self._cache:
            self._cache.move_to_end(number)
            return self._cache[number]
        shard, group = self._groups[number]
        table = self._file(shard).read_row_group(group, columns=["id", "tokens"], use_threads=False)
        lists = table.column("tokens").combine_chunks()
        tokens, edges = lists.values.to_numpy(), lists.offsets.to_numpy().astype(np.int64)
        if len(tokens) != self.shards[shard]["group_tokens"][group]:
            raise StoreError(f"{self.shards[shard]['path']} of {self.version.reference}: row group {group} is not as its manifest says")
        self._cache[number] = (tokens, edges - edges[0], table.column("id").to_pylist())
        if len(self._cache) > CACHED_GROUPS:
            self._cache.popitem(last=False)
        return self._cache[number]

    def _file(self, shard: int) -> pq.ParquetFile:
        if shard not in self._open:
            url = files.join(self.version.url, self.shards[shard]["path"])
            try:
                self._open[shard] = pq.ParquetFile(files.local_path(url) if files.is_local(url) else files.open_read(url), pre_buffer=False)
            except (OSError, ValueError) as error:
                raise StoreError(f"cannot read {url}: {error}") from error
        return self._open[shard]

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()
        self._cache.clear()


class Reader:
    """Reads the samples of a mixture. `batch` and `documents` depend on their arguments and the mixture alone."""

    def __init__(self, mixture: Mixture, skip: Sequence[int] = ()):
        self.mixture = mixture
        self.skip = tuple(sorted(set(skip)))
        self.plan = mixture.plan()
        self._streams = [_TokenStream(source) for source in mixture.sources]
        self._permutations: dict[tuple[int, int], Permutation] = {}

    def locate(self, position: int) -> tuple[int, int, int]:
        """(source, epoch, window) of the sample at a position of the stream."""
        index = sample_index(position, self.skip)
        sources, within = self.plan.locate(np.array([index]))
        source = int(sources[0])
        samples = self.mixture.sources[source].samples
        epoch, place = divmod(int(within[0]), samples)
        return source, epoch, int(self._permutation(source, epoch)(np.array([place]))[0])

    def _permutation(self, source: int, epoch: int) -> Permutation:
        if (source, epoch) not in self._permutations:
            spec = self.mixture.sources[source]
            self._permutations[(source, epoch)] = Permutation(spec.samples, f"{self.mixture.file.seed}\0{spec.name}\0{epoch}")
        return self._permutations[(source, epoch)]

    def batch(self, first: int, count: int) -> np.ndarray:
        """The samples at positions [first, first + count): (count, sequence_length + 1) int64."""
        length = self.mixture.sequence_length
        rows = []
        for position in range(first, first + count):
            source, _, window = self.locate(position)
            rows.append(self._streams[source].window(window * length, length + 1))
        return np.stack(rows)

    def documents(self, first: int, count: int) -> list[dict[str, Any]]:
        """What the samples at positions [first, first + count) are made of: [{position, source, epoch, documents}]."""
        length = self.mixture.sequence_length
        found = []
        for position in range(first, first + count):
            source, epoch, window = self.locate(position)
            documents = self._streams[source].documents(window * length, length + 1)
            found.append({"position": position, "source": self.mixture.sources[source].name, "epoch": epoch, "documents": documents})
        return found

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
