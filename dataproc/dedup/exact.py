"""The global step between the passes: who wins among documents with the same text, and whose id is taken already.

A task reads one range of keys from every unit, sorts it and writes the losers. Winners do not depend on the order in which
units ran: the smallest id wins a text, the earliest record (unit, row) wins an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataproc.dedup.keys import BUCKETS, KINDS, Kind, hexadecimal, read_keys
from dataproc.parquet import open_parquet, write_table
from dataproc.plan import unit_file
from dataproc.receipts import FILE_SUFFIXES, read_standing, write_receipt
from dataproc.unit import STEP as PASS1
from store import files

STEP = "keys"
KEYS_PER_RANGE = 5_000_000  # 40 bytes each, and about three copies while sorting: 600 MB
LOSERS_SCHEMA = pa.schema([("unit", pa.int32()), ("row", pa.int64()), ("kind", pa.string()), ("winner", pa.string())])


def range_tasks(units: int, survivors: int) -> list[dict[str, Any]]:
    """Tasks that cover all keys, each holding about KEYS_PER_RANGE of them. Depends on the counts alone."""
    ranges = 1
    while ranges < BUCKETS and survivors / ranges > KEYS_PER_RANGE:
        ranges *= 2
    step = BUCKETS // ranges
    return [{"index": i, "first_bucket": i * step, "after_bucket": (i + 1) * step, "units": units} for i in range(ranges)]


class KeyWorker:
    """Runs range tasks. `kinds` says which keys must be unique: always ids; content when exact_dedup is in the pipeline."""

    def __init__(self, work: str, kinds: list[Kind]):
        self.work = work
        self.kinds = [kind for kind in KINDS if kind in kinds]

    def close(self) -> None:
        """Holds nothing open."""

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        """Finds the losers of one range; returns the receipt with their number and the cluster sizes."""
        standing = read_standing(self.work, STEP, task["index"])
        if standing is not None:
            return standing
        tables, sizes = [], Counter()
        for kind in self.kinds:
            losers, clusters = self._losers(kind, task)
            tables.append(losers)
            if kind == "content":
                sizes.update(clusters)
        losers = pa.concat_tables(tables).sort_by([("unit", "ascending"), ("row", "ascending"), ("kind", "ascending")])
        url = unit_file(self.work, STEP, task["index"], FILE_SUFFIXES["losers"])
        stamp = files.write_stamped(url, lambda path: write_table(path, losers))
        receipt = {
            "index": task["index"],
            "losers": losers.num_rows,
            "cluster_sizes": {str(size): count for size, count in sorted(sizes.items())},
            "files": {"losers": {"bytes": stamp.bytes, "xxh3_128": stamp.xxh3_128}},
        }
        write_receipt(self.work, STEP, task["index"], receipt)
        return receipt

    def _losers(self, kind: Kind, task: dict[str, Any]) -> tuple[pa.Table, Counter]:
        parts = [
            read_keys(unit_file(self.work, PASS1, unit, FILE_SUFFIXES["keys"]), kind, task["first_bucket"], task["after_bucket"])
            for unit in range(task["units"])
        ]
        units = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
        return find_losers(kind, np.concatenate(parts), units)


def find_losers(kind: Kind, keys: np.ndarray, units: np.ndarray) -> tuple[pa.Table, Counter]:
    """Losers of one range of keys and how many clusters there are of each size above one.

    keys: (n,) of dtype KEY; units: (n,) unit of each. The winner of a text is its smallest (id, unit, row), the winner of an id
    its smallest (unit, row). Returns rows of LOSERS_SCHEMA, where `winner` is the winner's id.
    """
    order_by = (keys["row"], units) if kind == "id" else (keys["row"], units, keys["other_low"], keys["other_high"])
    order = np.lexsort((*order_by, keys["low"], keys["high"]))
    keys, units = keys[order], units[order]
    starts = np.ones(len(keys), bool)
    starts[1:] = (keys["high"][1:] != keys["high"][:-1]) | (keys["low"][1:] != keys["low"][:-1])
    firsts = np.flatnonzero(starts)
    winner_of = firsts[np.cumsum(starts) - 1] if len(keys) else firsts
    lost = np.flatnonzero(~starts)
    high, low = ("high", "low") if kind == "id" else ("other_high", "other_low")
    winners = keys[winner_of[lost]]
    table = pa.table(
        {
            "unit": units[lost],
            "row": keys["row"][lost],
            "kind": pa.repeat(pa.scalar(kind), len(lost)),
            "winner": [hexadecimal(int(h), int(w)) for h, w in zip(winners[high], winners[low], strict=True)],
        },
        schema=LOSERS_SCHEMA,
    )
    sizes = np.diff(np.append(firsts, len(keys)))
    return table, Counter(sizes[sizes > 1].tolist())


def read_losers(work: str, sources: list[tuple[str, int]], first_unit: int, after_unit: int) -> dict[int, dict[int, tuple[str, str]]]:
    """unit -> row -> (kind, winner's id) for units [first_unit, after_unit). sources: (step, tasks) that have written losers. A row that
    lost both ways lost by its content."""
    losers: dict[int, dict[int, tuple[str, str]]] = {}
    for table in _losers_of(work, sources, first_unit, after_unit):
        for row in table.to_pylist():
            at = losers.setdefault(row["unit"], {})
            if row["kind"] == "content" or row["row"] not in at:
                at[row["row"]] = (row["kind"], row["winner"])
    return losers


def lost_rows(work: str, sources: list[tuple[str, int]], first_unit: int, after_unit: int) -> dict[int, np.ndarray]:
    """unit -> rows (int64) of losers, some perhaps twice, for units [first_unit, after_unit) that have any."""
    tables = [table.select(["unit", "row"]) for table in _losers_of(work, sources, first_unit, after_unit)]
    if not tables:
        return {}
    units, rows = (pa.concat_tables(tables).column(name).to_numpy() for name in ("unit", "row"))
    return {int(unit): rows[units == unit] for unit in np.unique(units)}


def _losers_of(work: str, sources: list[tuple[str, int]], first_unit: int, after_unit: int) -> Iterator[pa.Table]:
    """The losers of some units. Files are sorted by unit: groups of other units are not read."""
    for url in (unit_file(work, step, index, FILE_SUFFIXES["losers"]) for step, tasks in sources for index in range(tasks)):
        with open_parquet(url) as reader:
            for number in range(reader.num_row_groups):
                extremes = reader.metadata.row_group(number).column(0).statistics
                if extremes is None or (extremes.min < after_unit and extremes.max >= first_unit):
                    table = reader.read_row_group(number, use_threads=False)
                    units = table.column("unit")
                    yield table.filter(pc.and_(pc.greater_equal(units, first_unit), pc.less(units, after_unit)))
