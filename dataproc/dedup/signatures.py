"""What near deduplication keeps of a unit: its documents (or paragraphs) as owners.py knows them, and their MinHash signatures."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from dataproc.dedup.arrays import Column, open_arrays, write_arrays
from dataproc.dedup.owners import OWNER, owners
from dataproc.dedup.shuffle import joined
from dataproc.kernels.minhash import MinHasher
from dataproc.stages.near_dedup import NearConfig


def hasher(config: NearConfig) -> MinHasher:
    return MinHasher(config.permutations, config.ngram, config.scheme, config.seed)


def value_of(config: NearConfig) -> np.dtype:
    """Of one value of a signature."""
    return np.dtype("<u4" if config.scheme == "affine32" else "<u8")


def record_of(config: NearConfig) -> np.dtype:
    """Of a whole signature."""
    return np.dtype((np.void, config.permutations * value_of(config).itemsize))


def has_words(signatures: np.ndarray) -> np.ndarray:
    """(rows,) bool. Without a word there is no shingle, and the signature is that of the empty set: all values are the largest."""
    return (signatures != np.iinfo(signatures.dtype).max).any(axis=1)


class SignatureWriter:
    """Collects documents with their signatures and writes them as one file."""

    def __init__(self, config: NearConfig, inputs: list[str]):
        """config: NearDedupConfig where documents are added. inputs: names of all inputs in their order."""
        self.config, self.inputs = config, inputs
        self.hasher = hasher(config)
        self.seconds = 0.0
        self._owners: list[np.ndarray] = []
        self._signatures: list[np.ndarray] = []

    def add(self, survivors: pa.Table) -> None:
        """Adds documents: rows with the columns of `unit_outputs.survivor_schema`."""
        start = time.perf_counter()
        self.add_texts(survivors.column("text"), owners(survivors, self.config, self.inputs))
        self.seconds += time.perf_counter() - start

    def add_texts(self, texts: pa.Array | pa.ChunkedArray, owned: np.ndarray) -> None:
        """Adds texts and (texts,) of OWNER."""
        self._owners.append(owned)
        self._signatures.append(self.hasher.signatures(texts))

    def write(self, path: str) -> None:
        record = record_of(self.config)
        parts = [np.ascontiguousarray(part).view(record).reshape(-1) for part in self._signatures]
        write_arrays(path, joined(self._owners, OWNER), (sum(map(len, parts)), record, parts))


def open_signatures(url: str, config: NearConfig) -> tuple[Column, Column]:
    """(owners, signatures) of a file."""
    documents, signatures = open_arrays(url, OWNER, record_of(config))
    return documents, signatures


def matrix(records: np.ndarray, config: NearConfig) -> np.ndarray:
    """Signatures as read: (rows, permutations) uint32 or uint64."""
    return records.view(value_of(config)).reshape(len(records), config.permutations)
