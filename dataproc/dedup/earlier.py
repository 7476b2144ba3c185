"""What a version keeps so that a later one can be deduplicated against it, and how the later one looks things up.

Beside each shard stand files of its documents' content hashes, and where the pipeline asked for them signatures, keys of their bands and
hashes of paragraphs. All but signatures are sorted, so that a look-up costs in proportion to what is looked up. Hashes and signatures are
those of the texts as they were compared, before paragraphs were cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dataproc.dedup.arrays import Column, open_arrays, write_arrays
from dataproc.dedup.owners import OWNER
from dataproc.versions import DOCUMENTS, open_version
from store import files
from store.errors import ConfigError

KEYS, SIGNATURES, BANDS, PARAGRAPHS = "keys", "signatures", "bands", "paragraphs"
SORTED = (KEYS, BANDS, PARAGRAPHS)
KEY = np.dtype("<u8")
# An entry behind a key: the other half of the hash, the document's id and language, and its row in the shard.
ENTRY = np.dtype([("check", "<u8"), ("high", "<u8"), ("low", "<u8"), ("row", "<u4"), ("language", "S6")])
ROW = np.dtype([("row", "<u4")])
# Settings that must be those of the earlier version where signatures are compared.
SIGNED_BY = ("ngram", "scheme", "seed", "permutations", "bands", "rows")


def entry_dtype(kind: str) -> np.dtype:
    return ROW if kind == BANDS else ENTRY


def index_path(kind: str, shard: int) -> str:
    """Where a file of the index lies in its version."""
    return f"index/part-{shard:05d}.{kind}"


def write_sorted(path: str, keys: np.ndarray, entries: np.ndarray) -> None:
    """Writes keys (n,) uint64 and what stands behind each, by key and row."""
    order = np.lexsort((entries["row"], keys))
    write_arrays(path, keys[order], entries[order])


def write_filtered(url: str, kind: str, kept: np.ndarray, path: str) -> None:
    """Writes what an index file says of some rows of its shard, which are numbered anew. kept: (rows,) bool."""
    if kind == SIGNATURES:
        write_arrays(path, *(column.read()[kept] for column in open_arrays(url, OWNER, None)))
        return
    keys, entries = (column.read() for column in open_arrays(url, KEY, entry_dtype(kind)))
    stays = kept[entries["row"]]
    keys, entries = keys[stays], entries[stays]
    entries["row"] = (np.cumsum(kept) - 1)[entries["row"]]
    write_arrays(path, keys, entries)


@dataclass(frozen=True)
class Earlier:
    """An earlier version that documents are compared to."""

    reference: str
    digest: str
    url: str
    shards: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def index(self, kind: str, shard: int) -> str:
        return files.join(self.url, index_path(kind, shard))


def resolve(store: str, needs: dict[str, list[tuple[str, dict[str, Any]]]]) -> dict[str, Earlier]:
    """The versions behind references. needs: reference -> [(stage, settings that must be those of the version)]. Raises ConfigError when
    there is no such version, or it lacks what is compared."""
    found = {}
    for reference in needs:
        version = open_version(store, reference, DOCUMENTS)
        kinds = {entry["kind"] for entry in version.manifest.get("index", [])}
        stages = {name: config for entry in version.manifest["config"]["stages"] for name, config in entry.items()}
        for stage, settings in needs[reference]:
            wanted = {"exact_dedup": KEYS, "near_dedup": SIGNATURES, "paragraph_dedup": PARAGRAPHS}[stage]
            if wanted not in kinds:
                raise ConfigError(f"stage {stage}: {version.reference} keeps no {wanted}: it was made without {stage}")
            for name, value in settings.items():
                if stages.get(stage, {}).get(name, value) != value:
                    raise ConfigError(
                        f"stage {stage}: {version.reference} was made with {name} {stages[stage][name]}, this pipeline says "
                        f"{value}: what they give cannot be compared; use the same setting"
                    )
        found[reference] = Earlier(version.reference, version.manifest["digest"], version.url, len(version.manifest["shards"]))
    return found


@dataclass(frozen=True)
class Part:
    """A shard of an earlier version: its number among all of them, the version's place in the list, and the shard's number in it."""

    number: int
    place: int
    shard: int
    version: Earlier

    def sorted(self, kind: str) -> tuple[Column, Column]:
        keys, entries = open_arrays(self.version.index(kind, self.shard), KEY, entry_dtype(kind))
        return keys, entries

    @property
    def signatures(self) -> str:
        """Where its signatures are."""
        return self.version.index(SIGNATURES, self.shard)


def parts_of(versions: list[Earlier]) -> list[Part]:
    """All shards of earlier versions, in the order of the versions."""
    parts: list[Part] = []
    for place, version in enumerate(versions):
        parts += [Part(len(parts) + shard, place, shard, version) for shard in range(version.shards)]
    return parts


def found_in(
    parts: Iterable[Part], kind: str, wanted: np.ndarray, most: int | None = None
) -> Iterator[tuple[Part, np.ndarray, np.ndarray]]:
    """What earlier versions hold of some keys: (part, keys, entries), keys ascending, of each at most `most` entries of a part, the first
    ones. wanted: ascending, each once."""
    for part in parts:
        keys, entries = part.sorted(kind)
        lows, highs = keys.find(wanted, "left"), keys.find(wanted, "right")
        counts = highs - lows if most is None else np.minimum(highs - lows, most)
        hit = np.flatnonzero(counts)
        if len(hit):
            # The places lows[k], lows[k] + 1, ... of each hit.
            sizes = counts[hit]
            places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(lows[hit], sizes)
            yield part, np.repeat(wanted[hit], sizes), entries.take(places)
