"""Documents as the global steps know them: by rank, id, source and language, never by their text; and how losers are written down."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataproc.stages.winners import WinnerConfig

# Of two documents the one with the lower (first, second, high, low) stays; high and low are the halves of its id. `first` is 0 for a
# document of an earlier version alone. source: which input it came from; language: its code, as far as it fits.
OWNER = np.dtype([(name, "<u8") for name in ("first", "second", "high", "low")] + [("row", "<i8"), ("source", "<u2"), ("language", "S6")])
ORDER = ("first", "second", "high", "low")
LOSERS_SCHEMA = pa.schema(
    [
        ("unit", pa.int32()),
        ("row", pa.int64()),
        ("kind", pa.string()),  # id, content, near or rate
        ("winner", pa.string()),
        ("earlier", pa.int16()),  # which earlier version holds the winner; null for none
        ("similarity", pa.float32()),  # to `via`, or to the winner where that is null
        ("via", pa.string()),  # the next document on the way to the winner
        ("threshold", pa.float32()),  # of a rate: the score of the last document that stays
    ]
)
UNSCORED = 0xFFFFFFFF
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)
_32 = np.uint64(32)


def owners(table: pa.Table, config: WinnerConfig, inputs: list[str]) -> np.ndarray:
    """(rows,) of OWNER. table: columns of `unit_outputs.survivor_schema`; inputs: names of all inputs in their order."""
    made = np.zeros(table.num_rows, OWNER)
    ids = np.frombuffer(bytes.fromhex("".join(table.column("id").to_pylist())), ">u8").reshape(-1, 2)
    made["high"], made["low"] = ids[:, 0], ids[:, 1]
    made["first"], made["second"] = ranks(table, config)
    made["row"] = table.column("row").to_numpy()
    made["source"] = pc.index_in(table.column("source"), pa.array(inputs, pa.string())).to_numpy()
    made["language"] = [(code or "").encode() for code in table.column("language").to_pylist()]
    return made


def ranks(table: pa.Table, config: WinnerConfig) -> tuple[np.ndarray, np.ndarray]:
    """(first, second), (rows,) uint64 each: by them the better of two documents has the lower pair, and `first` is above 0. What a document
    lacks comes last."""
    places = pc.index_in(table.column("source"), pa.array(config.source_priority, pa.string()))
    first = pc.fill_null(places, len(config.source_priority)).to_numpy().astype(np.uint64) + np.uint64(1)
    lengths = _LAST - pc.fill_null(pc.binary_length(table.column("text")), 0).to_numpy().astype(np.uint64)
    if config.keep == "longest":
        return first, lengths
    if config.keep == "earliest":
        times = pc.cast(table.column("timestamp"), pa.int64())
        values = pc.fill_null(times, 0).to_numpy().astype(np.uint64) ^ np.uint64(1 << 63)
        return first, np.where(pc.is_null(times).to_numpy(), _LAST, values)
    if config.keep == "quality":
        return first << _32 | best_first(table.column("quality")).astype(np.uint64), lengths
    return first, np.zeros(table.num_rows, np.uint64)


def best_first(scores: pa.ChunkedArray) -> np.ndarray:
    """(rows,) uint32 that are lower where a float32 score is higher; UNSCORED, the highest, where there is none."""
    values = scores.to_numpy(zero_copy_only=False).astype(np.float32) + np.float32(0)  # no negative zero
    bits = values.view(np.uint32)
    ascending = np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))
    return np.where(np.isnan(values), np.uint32(UNSCORED), ~ascending)


def score_of(place: int) -> float | None:
    """The score that `best_first` made a number of."""
    if place == UNSCORED:
        return None
    ascending = ~np.array([place], np.uint32)
    bits = np.where(ascending >> np.uint32(31), ascending ^ np.uint32(1 << 31), ~ascending)
    return float(bits.view(np.float32)[0])


def hexadecimal(high: np.ndarray, low: np.ndarray) -> list[str]:
    """128-bit ids, given as their halves, as 32 hex digits each."""
    digits = np.stack([high, low], 1).astype(">u8").tobytes().hex()
    return [digits[k : k + 32] for k in range(0, len(digits), 32)]


def groups_of(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of columns by which records are sorted: (where each run of equal ones begins, (records,) the first of each one's run)."""
    starts = np.zeros(len(columns[0]), bool)
    starts[:1] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    firsts = np.flatnonzero(starts)
    return firsts, firsts[np.cumsum(starts) - 1] if len(starts) else firsts


def losers_table(
    kind: str,
    units: np.ndarray,
    lost: np.ndarray,
    winners: np.ndarray,
    earlier: np.ndarray,
    similarity: np.ndarray | None = None,
    via: np.ndarray | None = None,
) -> pa.Table:
    """Rows of LOSERS_SCHEMA, by unit and row. lost, winners, via: records with the fields of OWNER; earlier: -1 for a winner of this run;
    a `via` that is the winner is left out."""
    count = len(lost)
    names = hexadecimal(winners["high"], winners["low"])
    direct = None
    if via is not None:
        direct = (via["high"] == winners["high"]) & (via["low"] == winners["low"])
    return pa.table(
        {
            "unit": units.astype(np.int32),
            "row": lost["row"],
            "kind": pa.repeat(pa.scalar(kind), count),
            "winner": names,
            "earlier": pa.array(earlier.astype(np.int16), pa.int16(), mask=earlier < 0),
            "similarity": pa.nulls(count, pa.float32()) if similarity is None else pa.array(similarity, pa.float32()),
            "via": pa.nulls(count, pa.string())
            if via is None
            else pa.array(hexadecimal(via["high"], via["low"]), pa.string(), mask=direct),
            "threshold": pa.nulls(count, pa.float32()),
        },
        schema=LOSERS_SCHEMA,
    ).sort_by([("unit", "ascending"), ("row", "ascending"), ("kind", "ascending")])


class Overlaps:
    """How often a document of one source (and of one language) lost to one of another: {"loser<tab>winner": documents}."""

    def __init__(self, inputs: list[str], earlier: list[str]):
        """earlier: references of earlier versions, which count as sources of their own."""
        self.names = [*inputs, *earlier]
        self.inputs = len(inputs)
        self.sources: Counter[str] = Counter()
        self.languages: Counter[str] = Counter()

    def add(self, lost: np.ndarray, winners: np.ndarray, earlier: np.ndarray) -> None:
        """Adds losers and their winners (records with the fields of OWNER); earlier as in `losers_table`."""
        won = np.where(earlier < 0, winners["source"].astype(np.int64), self.inputs + earlier)
        for (one, other), count in _pairs(lost["source"].astype(np.int64), won):
            self.sources[f"{self.names[one]}\t{self.names[other]}"] += count
        for (one, other), count in _pairs(lost["language"], winners["language"]):
            self.languages[f"{one.decode('utf-8', 'replace')}\t{other.decode('utf-8', 'replace')}"] += count

    def to_json(self) -> dict[str, dict[str, int]]:
        return {"sources": dict(sorted(self.sources.items())), "languages": dict(sorted(self.languages.items()))}


def _pairs(one: np.ndarray, other: np.ndarray) -> list[tuple[tuple[Any, Any], int]]:
    names_one, codes_one = np.unique(one, return_inverse=True)
    names_other, codes_other = np.unique(other, return_inverse=True)
    if not len(one):
        return []
    counts = np.bincount(codes_one * len(names_other) + codes_other)
    found = np.flatnonzero(counts)
    return [((names_one[k // len(names_other)], names_other[k % len(names_other)]), int(counts[k])) for k in found]


def add_counts(receipts: list[dict[str, Any]], *path: str) -> dict[str, int]:
    """The sum of mappings {name: count} that stand at a path in all receipts, by name."""
    total: Counter[str] = Counter()
    for receipt in receipts:
        for key in path:
            receipt = receipt[key]
        total.update(receipt)
    return dict(sorted(total.items()))
