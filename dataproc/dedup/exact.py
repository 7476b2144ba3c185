"""The global step between the passes: who wins among documents with the same text, and whose id is taken already.

A unit has left its survivors' owners (owners.py) and content hashes. A task reads one range of ids or hashes from all units, sorts it and
writes the losers; where there are several ranges, tasks before it collect units and cut them into ranges. Winners do not depend on the
order in which units ran: the earliest record (unit, row) wins an id, the best document wins a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataproc.dedup.arrays import open_arrays, write_arrays
from dataproc.dedup.earlier import KEYS, found_in, parts_of
from dataproc.dedup.owners import LOSERS_SCHEMA, OWNER, Overlaps, add_counts, groups_of, losers_table, owners
from dataproc.dedup.shuffle import Receipt, Source, Steps, StepWorker, Task, even_bounds, joined, power_of_two
from dataproc.parquet import open_parquet, write_table
from dataproc.plan import PASS1, read_job, unit_file
from dataproc.receipts import FILE_SUFFIXES
from dataproc.stages.winners import WinnerConfig

HASH = np.dtype([("high", "<u8"), ("low", "<u8")])
CONTENT = np.dtype([("key", "<u8"), ("check", "<u8"), ("node", "<u8"), *OWNER.descr])
ID = np.dtype([("key", "<u8"), ("low", "<u8"), ("node", "<u8"), ("row", "<i8")])
TAKEN = np.uint64(0xFFFFFFFFFFFFFFFF)  # the rank of a document whose id is taken: it wins no text
RECORD_BYTES = 400  # of a record and what is made of it while it is sorted
_32 = np.uint64(32)


class KeyCollector:
    """Collects owners and content hashes of a unit's survivors; 64 bytes each."""

    def __init__(self, config: WinnerConfig, inputs: list[str]):
        self.config, self.inputs = config, inputs
        self._owners: list[np.ndarray] = []
        self._hashes: list[np.ndarray] = []

    def add(self, survivors: pa.Table) -> None:
        """Adds rows with the columns of `unit_outputs.survivor_schema`."""
        self._owners.append(owners(survivors, self.config, self.inputs))
        self._hashes.append(content_halves(survivors.column("content_hash").to_pylist()))

    def write(self, path: str) -> None:
        write_arrays(path, joined(self._owners, OWNER), joined(self._hashes, HASH))


def content_halves(values: list[str]) -> np.ndarray:
    """Hex digests as (n,) of HASH."""
    halves = np.frombuffer(bytes.fromhex("".join(values)), ">u8").reshape(-1, 2)
    made = np.empty(len(halves), HASH)
    made["high"], made["low"] = halves[:, 0], halves[:, 1]
    return made


def plan_groups(survivors: list[int], document_bytes: int, group_bytes: int) -> list[int]:
    """Where groups of units in a row begin that stay under a size, as numbers of units, and at the end how many units there are.
    survivors: of each unit."""
    bounds, held = [0], 0
    for unit, count in enumerate(survivors):
        if held and held + count * document_bytes > group_bytes:
            bounds.append(unit)
            held = 0
        held += count * document_bytes
    return [*bounds, len(survivors)] if survivors else [0]


class KeyWorker(StepWorker):
    """Runs the tasks: ids must be unique in any case, texts when exact_dedup is in the pipeline."""

    def __init__(self, work: str, groups: list[int], taken: tuple[str, int] | None = None):
        """groups: where groups of units begin, and the end. taken: (step, tasks) that have written whose ids are taken."""
        super().__init__(work)
        self.groups, self.taken = groups, taken
        job = read_job(work)
        self.content = job.exact_dedup is not None
        self.inputs = [spec.name for spec in job.inputs]
        chosen = [job.earlier[name] for name in job.exact_dedup.config.against] if job.exact_dedup else []
        self.earlier = [version.reference for version in chosen]
        self.parts = parts_of(chosen)

    # Reading.

    def _units(self, first: int, after: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of each unit (owners, content hashes, numbers of its documents)."""
        for unit in range(first, after):
            url = unit_file(self.work, PASS1, unit, FILE_SUFFIXES["keys"])
            documents, hashes = (column.read() for column in open_arrays(url, OWNER, HASH))
            yield documents, hashes, np.uint64(unit << 32) + np.arange(len(documents), dtype=np.uint64)

    def _ids_of(self, first: int, after: int) -> np.ndarray:
        made = []
        for documents, _, nodes in self._units(first, after):
            ids = np.empty(len(documents), ID)
            ids["key"], ids["low"], ids["node"], ids["row"] = documents["high"], documents["low"], nodes, documents["row"]
            made.append(ids)
        return joined(made, ID)

    def _contents_of(self, first: int, after: int) -> np.ndarray:
        made = []
        for documents, hashes, nodes in self._units(first, after):
            contents = np.empty(len(documents), CONTENT)
            contents["key"], contents["check"], contents["node"] = hashes["high"], hashes["low"], nodes
            for name in OWNER.names:
                contents[name] = documents[name]
            made.append(contents)
        return joined(made, CONTENT)

    # Steps.

    def _collect_ids(self, task: Task) -> Receipt:
        return {"files": self._cut(task, self._ids_of(*self._group(task)))}

    def _collect_contents(self, task: Task) -> Receipt:
        first, after = self._group(task)
        contents = self._contents_of(first, after)
        lost = lost_rows(self.work, [self.taken], first, after)
        for unit, rows in lost.items():
            contents["first"][(contents["node"] >> _32 == unit) & np.isin(contents["row"], rows)] = TAKEN
        return {"files": self._cut(task, contents)}

    def _group(self, task: Task) -> tuple[int, int]:
        return self.groups[task["index"]], self.groups[task["index"] + 1]

    def _cut(self, task: Task, records: np.ndarray) -> dict[str, Any]:
        return self._write(task, records[np.argsort(records["key"], kind="stable")], "key", even_bounds(task["ranges"]))

    def _ids(self, task: Task) -> Receipt:
        """The losers of one range of ids."""
        losers = _taken_ids(self._gather(task["sources"], ID, task["index"]))
        return self._receipt(task, [losers], Counter(), Overlaps(self.inputs, self.earlier))

    def _contents(self, task: Task) -> Receipt:
        """The losers of one range of content hashes."""
        table, sizes, overlaps = self._copies(self._gather(task["sources"], CONTENT, task["index"]))
        return self._receipt(task, [table], sizes, overlaps)

    def _keys(self, task: Task) -> Receipt:
        """All losers, where everything fits into one worker."""
        ids = self._ids_of(0, self.groups[-1])
        tables, sizes, overlaps = [_taken_ids(ids)], Counter(), Overlaps(self.inputs, self.earlier)
        if self.content:
            contents = self._contents_of(0, self.groups[-1])
            units, rows = (tables[0].column(name).to_numpy() for name in ("unit", "row"))
            for unit in np.unique(units):
                contents["first"][(contents["node"] >> _32 == unit) & np.isin(contents["row"], rows[units == unit])] = TAKEN
            table, sizes, overlaps = self._copies(contents)
            tables.append(table)
        return self._receipt(task, tables, sizes, overlaps)

    def _receipt(self, task: Task, tables: list[pa.Table], sizes: Counter, overlaps: Overlaps) -> Receipt:
        losers = pa.concat_tables(tables).sort_by([("unit", "ascending"), ("row", "ascending"), ("kind", "ascending")])
        return {
            "losers": losers.num_rows,
            "cluster_sizes": {str(size): count for size, count in sorted(sizes.items())},
            "overlaps": overlaps.to_json(),
            "files": self._publish(task, "losers", lambda path: write_table(path, losers)),
        }

    def _copies(self, contents: np.ndarray) -> tuple[pa.Table, Counter, Overlaps]:
        """Losers by content, how many clusters there are of each size above one, documents of earlier versions included, and who lost to
        whom."""
        contents = contents[np.lexsort([contents[name] for name in ("row", "node", "low", "high", "second", "first", "check", "key")])]
        firsts, first_of = groups_of(contents["key"], contents["check"])
        winners, earlier = contents[firsts], np.full(len(firsts), -1)
        sizes = np.diff(np.append(firsts, len(contents)))
        for part, found, entries in found_in(self.parts, KEYS, np.unique(contents["key"])):
            for place, entry in same_hash(winners["key"], winners["check"], found, entries):
                sizes[place] += 1
                best = (int(winners["high"][place]), int(winners["low"][place]))
                if earlier[place] < 0 or (earlier[place] == part.place and (int(entry["high"]), int(entry["low"])) < best):
                    earlier[place] = part.place
                    for name in ("high", "low", "language"):
                        winners[name][place] = entry[name]
        number = np.searchsorted(firsts, first_of)
        lost = (earlier[number] >= 0) | (np.arange(len(contents)) != first_of)
        # Where the best has lost by its id all have: no document of this run has that text.
        lost &= (contents["first"][first_of] != TAKEN) | (earlier[number] >= 0)
        beaten, won, held = contents[lost], winners[number[lost]], earlier[number[lost]]
        overlaps = Overlaps(self.inputs, self.earlier)
        overlaps.add(beaten, won, held)
        return losers_table("content", beaten["node"] >> _32, beaten, won, held), Counter(sizes[sizes > 1].tolist()), overlaps


def _taken_ids(ids: np.ndarray) -> pa.Table:
    ids = ids[np.lexsort([ids[name] for name in ("row", "node", "low", "key")])]
    firsts, first_of = groups_of(ids["key"], ids["low"])
    lost = np.ones(len(ids), bool)
    lost[firsts] = False
    winners = np.zeros(int(lost.sum()), OWNER)
    winners["high"], winners["low"] = ids["key"][first_of[lost]], ids["low"][first_of[lost]]
    return losers_table("id", ids["node"][lost] >> _32, ids[lost], winners, np.full(len(winners), -1))


def same_hash(keys: np.ndarray, checks: np.ndarray, found: np.ndarray, entries: np.ndarray) -> Iterator[tuple[int, np.void]]:
    """(place among keys, entry) of the entries whose whole hash, key and check, is there. keys: sorted; several may have equal ones."""
    for start, key, entry in zip(np.searchsorted(keys, found, "left").tolist(), found, entries, strict=True):
        place = start
        while place < len(keys) and keys[place] == key:
            if checks[place] == entry["check"]:
                yield place, entry
            place += 1


def run_keys(steps: Steps, survivors: list[int], deduplicated: bool) -> tuple[list[Receipt], list[tuple[str, int]]]:
    """All steps over keys. survivors: of each unit. Returns (receipts, [(step, tasks) that have written losers])."""
    ranges = power_of_two(sum(survivors) / steps.room(RECORD_BYTES))
    if ranges == 1:
        return steps.run(KeyWorker, {"groups": [0, len(survivors)]}, "keys", [{}]), [("keys", 1)]
    groups = plan_groups(survivors, RECORD_BYTES, steps.memory)
    count = len(groups) - 1
    receipts, losers = [], []
    for step, dtype in (("ids", ID), ("contents", CONTENT)) if deduplicated else (("ids", ID),):
        arguments = {"groups": groups, "taken": losers[0] if losers else None}
        made = steps.run(KeyWorker, arguments, f"collect_{step}", [{"ranges": ranges}] * count)
        source = steps.merged(Source(f"collect_{step}", count), ranges, made, dtype)
        receipts += steps.run(KeyWorker, arguments, step, [{"sources": [source]}] * ranges)
        losers.append((step, ranges))
    return receipts, losers


def summary(receipts: list[Receipt]) -> dict[str, Any]:
    """What the manifest says of exact duplicates."""
    return {name: add_counts(receipts, "overlaps", name) for name in ("sources", "languages")}


class Losers:
    """Who has lost in units [first_unit, after_unit). sources: (step, tasks) that have written losers."""

    def __init__(self, work: str, sources: Iterable[tuple[str, int]], first_unit: int, after_unit: int):
        tables = [LOSERS_SCHEMA.empty_table(), *_losers_of(work, sources, first_unit, after_unit)]
        self._table = pa.concat_tables(tables).sort_by("unit").combine_chunks()
        self._units = self._table.column("unit").to_numpy()

    def of(self, unit: int) -> dict[int, dict[str, Any]]:
        """Row -> the loser's row of LOSERS_SCHEMA. A record that lost both ways lost by its content."""
        begin, end = np.searchsorted(self._units, (unit, unit + 1))
        found: dict[int, dict[str, Any]] = {}
        for row in self._table.slice(begin, end - begin).to_pylist():
            if row["kind"] == "content" or row["row"] not in found:
                found[row["row"]] = row
        return found


def lost_rows(work: str, sources: Iterable[tuple[str, int]], first_unit: int, after_unit: int) -> dict[int, np.ndarray]:
    """unit -> rows (int64) of losers, some perhaps twice, for units [first_unit, after_unit) that have any."""
    tables = [table.select(["unit", "row"]) for table in _losers_of(work, sources, first_unit, after_unit)]
    if not tables:
        return {}
    units, rows = (pa.concat_tables(tables).column(name).to_numpy() for name in ("unit", "row"))
    order = np.argsort(units, kind="stable")
    units, rows = units[order], rows[order]
    starts, _ = groups_of(units)
    return {int(units[start]): rows[start:stop] for start, stop in zip(starts, np.append(starts, len(units))[1:], strict=True)}


def _losers_of(work: str, sources: Iterable[tuple[str, int]], first_unit: int, after_unit: int) -> Iterator[pa.Table]:
    """The losers of some units. Files are sorted by unit: groups of other units are not read."""
    for url in (unit_file(work, step, index, FILE_SUFFIXES["losers"]) for step, tasks in sources for index in range(tasks)):
        with open_parquet(url) as reader:
            for number in range(reader.num_row_groups):
                extremes = reader.metadata.row_group(number).column(0).statistics
                if extremes is None or (extremes.min < after_unit and extremes.max >= first_unit):
                    table = reader.read_row_group(number, use_threads=False)
                    units = table.column("unit")
                    yield table.filter(pc.and_(pc.greater_equal(units, first_unit), pc.less(units, after_unit)))
