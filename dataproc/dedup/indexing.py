"""Writing a shard's index: what a later version looks its documents up by (earlier.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dataproc.dedup.arrays import write_arrays
from dataproc.dedup.earlier import BANDS, ENTRY, KEY, KEYS, PARAGRAPHS, ROW, SIGNATURES, SORTED, index_path, write_sorted
from dataproc.dedup.exact import content_halves
from dataproc.dedup.near import band_keys
from dataproc.dedup.owners import OWNER
from dataproc.dedup.shuffle import joined
from dataproc.dedup.signatures import matrix, record_of
from dataproc.kernels.paragraphs import measured, paragraphs_of
from dataproc.stages.near_dedup import NearDedupConfig
from dataproc.stages.paragraph_dedup import ParagraphDedupConfig


class IndexWriter:
    """Collects the kept documents of a shard. Configurations are None where the pipeline is without the stage."""

    def __init__(self, near: NearDedupConfig | None, paragraphs: ParagraphDedupConfig | None):
        self.near, self.paragraphs = near, paragraphs
        self.kinds = [KEYS, *([SIGNATURES, BANDS] if near else []), *([PARAGRAPHS] if paragraphs else [])]
        self._rows = 0
        self._keys: dict[str, list[np.ndarray]] = {kind: [] for kind in self.kinds}
        self._entries: dict[str, list[np.ndarray]] = {kind: [] for kind in self.kinds}

    def add(self, kept: pa.Table, hashes: list[str], documents: np.ndarray | None = None, signatures: np.ndarray | None = None) -> None:
        """Adds kept documents. kept: columns id, language, text; hashes: of their contents as they were compared; documents, signatures:
        their records, where there is near deduplication."""
        base = np.zeros(kept.num_rows, ENTRY)
        ids = content_halves(kept.column("id").to_pylist())
        base["high"], base["low"], base["row"] = ids["high"], ids["low"], np.arange(self._rows, self._rows + kept.num_rows)
        base["language"] = [(code or "").encode() for code in kept.column("language").to_pylist()]
        self._add(KEYS, content_halves(hashes), base)
        if self.near and kept.num_rows:
            keys = band_keys(matrix(signatures, self.near), self.near)
            rows = np.zeros(keys.shape, ROW)
            rows["row"] = base["row"][:, None]
            self._keys[BANDS].append(keys.reshape(-1))
            self._entries[BANDS].append(rows.reshape(-1))
            self._keys[SIGNATURES].append(documents)
            self._entries[SIGNATURES].append(signatures)
        if self.paragraphs:
            texts = kept.column("text")
            found = paragraphs_of(pa.concat_arrays(texts.chunks) if kept.num_rows else pa.array([], pa.large_string()), self._by_line)
            words, high, low = measured(found)
            long = words >= self.paragraphs.min_words
            made = np.empty(int(long.sum()), [("high", "<u8"), ("low", "<u8")])
            made["high"], made["low"] = high[long], low[long]
            self._add(PARAGRAPHS, made, base[found.rows[long]])
        self._rows += kept.num_rows

    @property
    def _by_line(self) -> bool:
        return self.paragraphs.unit == "line"

    def _add(self, kind: str, hashes: np.ndarray, entries: np.ndarray) -> None:
        entries["check"] = hashes["low"]
        self._keys[kind].append(hashes["high"].astype(KEY))
        self._entries[kind].append(entries)

    def write(self, kind: str, path: str) -> None:
        """Writes one of `kinds`."""
        if kind == SIGNATURES:
            write_arrays(path, joined(self._keys[kind], OWNER), joined(self._entries[kind], record_of(self.near)))
        else:
            write_sorted(path, joined(self._keys[kind], KEY), joined(self._entries[kind], ROW if kind == BANDS else ENTRY))


def index_entries(shards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The index as the manifest lists it, from the receipts of shards."""
    return [
        {"path": index_path(kind, shard["index"]), "kind": kind, "shard": shard["index"], **shard["files"][f"index_{kind}"]}
        for shard in shards
        for kind in (SIGNATURES, *SORTED)
        if f"index_{kind}" in shard["files"]
    ]
