"""What near deduplication keeps of a unit's survivors: who they are, how they rank, and their MinHash signatures."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataproc.dedup.shuffle import read_array, read_header
from dataproc.kernels.minhash import MinHasher
from dataproc.stages.near_dedup import NearDedupConfig
from store import files

# Of two documents the one with the lower (first, second, high, low) is kept; high and low are the halves of its id.
DOCUMENT = np.dtype([("first", "<u8"), ("second", "<u8"), ("high", "<u8"), ("low", "<u8"), ("row", "<i8"), ("words", "?")])
_MAGIC = b"HRSIGNS1"
_HEADER = np.dtype([("magic", "S8"), ("count", "<u8"), ("permutations", "<u8"), ("width", "<u8")])
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)


def hasher(config: NearDedupConfig) -> MinHasher:
    return MinHasher(config.permutations, config.ngram, config.scheme, config.seed)


def ranks(survivors: pa.Table, config: NearDedupConfig) -> tuple[np.ndarray, np.ndarray]:
    """(first, second), (rows,) uint64 each: by them the better of two documents has the lower pair. What a document lacks is last."""
    places = pc.index_in(survivors.column("source"), pa.array(config.source_priority, pa.string()))
    first = pc.fill_null(places, len(config.source_priority)).to_numpy().astype(np.uint64)
    lengths = _LAST - pc.fill_null(pc.binary_length(survivors.column("text")), 0).to_numpy().astype(np.uint64)
    if config.keep == "longest":
        return first, lengths
    if config.keep == "earliest":
        times = pc.cast(survivors.column("timestamp"), pa.int64())
        values = pc.fill_null(times, 0).to_numpy().astype(np.uint64) ^ np.uint64(1 << 63)
        return first, np.where(pc.is_null(times).to_numpy(), _LAST, values)
    if config.keep == "quality":
        quality = survivors.column("quality")
        values = pc.fill_null(quality, 0.0).to_numpy().astype(np.float32) + np.float32(0)  # no negative zero
        bits = values.view(np.uint32)
        ascending = np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))
        missing = pc.is_null(quality).to_numpy() | np.isnan(values)
        return first << np.uint64(32) | np.where(missing, np.uint32(0xFFFFFFFF), ~ascending).astype(np.uint64), lengths
    return first, np.zeros(survivors.num_rows, np.uint64)


class SignatureWriter:
    """Collects what near deduplication needs of survivors and writes it as one file."""

    def __init__(self, config: NearDedupConfig):
        self.config = config
        self.hasher = hasher(config)
        self.seconds = 0.0
        self._documents: list[np.ndarray] = []
        self._signatures: list[np.ndarray] = []

    def add(self, survivors: pa.Table) -> None:
        """Adds rows with the columns of `unit_outputs.survivor_schema`."""
        start = time.perf_counter()
        signatures = self.hasher.signatures(survivors.column("text"))
        documents = np.zeros(survivors.num_rows, DOCUMENT)
        ids = np.frombuffer(bytes.fromhex("".join(survivors.column("id").to_pylist())), ">u8").reshape(-1, 2)
        documents["high"], documents["low"] = ids[:, 0], ids[:, 1]
        documents["first"], documents["second"] = ranks(survivors, self.config)
        documents["row"] = survivors.column("row").to_numpy()
        # Without a word there is no shingle, and the signature is that of the empty set.
        documents["words"] = (signatures != np.iinfo(signatures.dtype).max).any(axis=1)
        self._documents.append(documents)
        self._signatures.append(signatures)
        self.seconds += time.perf_counter() - start

    def write(self, path: str) -> None:
        header = np.zeros(1, _HEADER)
        header["magic"], header["count"] = _MAGIC, sum(map(len, self._documents))
        header["permutations"], header["width"] = self.config.permutations, self.hasher.dtype.itemsize
        with open(path, "wb") as stream:
            stream.write(header.tobytes())
            for part in (*self._documents, *self._signatures):
                stream.write(part.tobytes())


def read_documents(url: str) -> np.ndarray:
    """(documents,) of DOCUMENT."""
    return next(_read(url))


def read_signatures(url: str) -> np.ndarray:
    """(documents, permutations) uint32 or uint64."""
    *_, signatures = _read(url)
    return signatures


def _read(url: str) -> Iterator[np.ndarray]:
    with files.open_read(url) as stream:
        header = read_header(stream, url, _HEADER, _MAGIC)
        count, permutations, width = (int(header[name][0]) for name in ("count", "permutations", "width"))
        yield read_array(stream, url, DOCUMENT, count)
        yield read_array(stream, url, np.dtype(f"<u{width}"), count * permutations).reshape(count, permutations)
