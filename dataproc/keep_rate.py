"""The global step that keeps a share of the corpus by `quality`: an exact quantile of all documents that have not lost yet.

The order of documents is that of a 64-bit key: the score, best first, then the first half of the id's first half, so that of equal scores
some are kept and others are not, the same in every run. Documents without a score come last. The key of the last one that stays is found by
its digits: four rounds of counting 16 bits each, by group, over what each unit left. So no worker and no driver holds more than a
group of units, or the counts of a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from dataproc.dedup.arrays import open_arrays, write_arrays
from dataproc.dedup.exact import lost_rows, plan_groups
from dataproc.dedup.owners import LOSERS_SCHEMA, best_first, score_of
from dataproc.dedup.shuffle import Receipt, Steps, StepWorker, Task, joined
from dataproc.parquet import write_table
from dataproc.plan import PASS1, unit_file
from dataproc.receipts import FILE_SUFFIXES
from dataproc.stages.keep_rate import KeepRateConfig

SCORE = np.dtype([("key", "<u8"), ("row", "<i8"), ("group", "<u4")])
COUNT = np.dtype([("group", "<u4"), ("bucket", "<u4"), ("count", "<u8")])
LETTERS = np.dtype(np.uint8)  # JSON
ALL = "all"  # the one group of a rate that makes none
UNKNOWN = "unknown"  # the group of documents that have no language, or no domain label
DIGITS, DIGIT_BITS = 4, 16
RECORD_BYTES = 100  # of a record and what is made of it
STEP = "keep_rate"
_32 = np.uint64(32)


def score_keys(quality: pa.ChunkedArray, high: np.ndarray) -> np.ndarray:
    """(rows,) uint64: the lower, the better. quality: float32, may be null; high: (rows,) uint64, the first halves of ids."""
    return best_first(quality).astype(np.uint64) << _32 | high >> _32


class ScoreWriter:
    """Collects the scores of a unit's survivors, 20 bytes each."""

    def __init__(self, config: KeepRateConfig):
        self.config = config
        self._scores: list[np.ndarray] = []
        self._groups: dict[str, int] = {}

    def add(self, survivors: pa.Table) -> None:
        """Adds rows with the columns of `unit_outputs.survivor_schema`."""
        made = np.empty(survivors.num_rows, SCORE)
        ids = np.frombuffer(bytes.fromhex("".join(survivors.column("id").to_pylist())), ">u8").reshape(-1, 2)
        made["key"] = score_keys(survivors.column("quality"), ids[:, 0].astype(np.uint64))
        made["row"] = survivors.column("row").to_numpy()
        names = survivors.column(self.config.by).to_pylist() if self.config.by else [ALL] * survivors.num_rows
        made["group"] = [self._groups.setdefault(name or UNKNOWN, len(self._groups)) for name in names]
        self._scores.append(made)

    def write(self, path: str) -> None:
        write_arrays(path, joined(self._scores, SCORE), _letters(list(self._groups)))


def _letters(value: Any) -> np.ndarray:
    return np.frombuffer(orjson.dumps(value), np.uint8)


class RateWorker(StepWorker):
    """Runs the tasks: {group of units, cutoffs or prefixes by name}."""

    def __init__(self, work: str, groups: list[int], losers: list[tuple[str, int]]):
        """groups: where groups of units begin, and the end. losers: (step, tasks) that have written who has lost before."""
        super().__init__(work)
        self.groups, self.losers = groups, [tuple(source) for source in losers]

    def _units(self, task: Task) -> Iterator[tuple[int, str, np.ndarray]]:
        """Of each unit and group of documents (unit, name, (documents,) of SCORE) that have not lost."""
        first, after = self.groups[task["index"]], self.groups[task["index"] + 1]
        lost = lost_rows(self.work, self.losers, first, after)
        for unit in range(first, after):
            columns = open_arrays(unit_file(self.work, PASS1, unit, FILE_SUFFIXES["scores"]), SCORE, LETTERS)
            scores, names = columns[0].read(), orjson.loads(columns[1].read().tobytes())
            if unit in lost:
                scores = scores[~np.isin(scores["row"], lost[unit])]
            for number, name in enumerate(names):
                mine = scores[scores["group"] == number]
                if len(mine):
                    yield unit, name, mine

    def _digits(self, task: Task) -> Receipt:
        """Counts the values of one digit of the keys that begin with a group's prefix."""
        shift = np.uint64((DIGITS - 1 - task["digit"]) * DIGIT_BITS)
        counts: dict[str, np.ndarray] = {}
        for _, name, scores in self._units(task):
            keys = scores["key"]
            if task["digit"]:
                keys = keys[keys >> (shift + np.uint64(DIGIT_BITS)) == np.uint64(task["prefixes"][name])]
            found = np.bincount((keys >> shift & np.uint64(0xFFFF)).astype(np.int64), minlength=1 << DIGIT_BITS)
            counts[name] = counts[name] + found if name in counts else found
        parts = []
        for number, found in enumerate(counts.values()):
            buckets = np.flatnonzero(found)
            part = np.empty(len(buckets), COUNT)
            part["group"], part["bucket"], part["count"] = number, buckets, found[buckets]
            parts.append(part)
        written = (joined(parts, COUNT), _letters(list(counts)))
        return {"files": self._publish(task, "records", lambda path: write_arrays(path, *written))}

    def _keep_rate(self, task: Task) -> Receipt:
        """Writes the losers: documents whose key is above the cutoff of their group."""
        tables = [LOSERS_SCHEMA.empty_table()]
        for unit, name, scores in self._units(task):
            rows = np.sort(scores["row"][scores["key"] > np.uint64(task["cutoffs"][name])])
            columns = {field.name: pa.nulls(len(rows), field.type) for field in LOSERS_SCHEMA}
            columns |= {"unit": pa.array(np.full(len(rows), unit, np.int32)), "row": pa.array(rows)}
            columns |= {"kind": pa.array(["rate"] * len(rows), pa.string())}
            columns["threshold"] = pa.array([score_of(task["cutoffs"][name] >> 32)] * len(rows), pa.float32())
            tables.append(pa.table(columns, schema=LOSERS_SCHEMA))
        losers = pa.concat_tables(tables).sort_by([("unit", "ascending"), ("row", "ascending")])
        return {"losers": losers.num_rows, "files": self._publish(task, "losers", lambda path: write_table(path, losers))}


@dataclass
class Cutoff:
    """The key of the last document that stays, digit by digit. `left`: how many of those that begin like it stay."""

    documents: int
    left: int
    kept: int = 0
    key: int = 0
    last: int = 0  # documents that begin like it, of the digits so far

    def narrow(self, buckets: np.ndarray, counts: np.ndarray) -> None:
        """Takes the next digit. buckets: values of the digit, ascending; counts: documents of each."""
        ends = np.cumsum(counts)
        place = int(np.searchsorted(ends, self.left))
        before = int(ends[place] - counts[place])
        self.kept += before
        self.left -= before
        self.key = self.key << DIGIT_BITS | int(buckets[place])
        self.last = int(counts[place])

    def finished(self) -> dict[str, Any]:
        """What the manifest says of the group. All documents whose key is that of the last one stay."""
        return {"documents": self.documents, "kept": self.kept + self.last, "threshold": score_of(self.key >> 32)}


def run_keep_rate(
    steps: Steps, survivors: list[int], config: KeepRateConfig, losers: list[tuple[str, int]]
) -> tuple[dict[str, dict[str, Any]], tuple[str, int]]:
    """All steps. survivors: of each unit; losers: (step, tasks) of those that do not count. Returns ({group: {documents, kept, threshold}},
    (step, tasks) that has written the losers)."""
    groups = plan_groups(survivors, RECORD_BYTES, steps.memory)
    arguments = {"groups": groups, "losers": losers}
    tasks = len(groups) - 1
    cutoffs: dict[str, Cutoff] = {}
    for digit in range(DIGITS):
        prefixes = {name: cutoff.key for name, cutoff in cutoffs.items()}
        step = f"{STEP}-{digit}"
        steps.run(RateWorker, arguments, step, [{"do": "digits", "digit": digit, "prefixes": prefixes}] * tasks)
        for name, (buckets, counts) in _counted(steps.work, step, tasks).items():
            if digit == 0:
                total = int(counts.sum())
                cutoffs[name] = Cutoff(total, math.ceil(Fraction(str(config.of(name))) * total))
            cutoffs[name].narrow(buckets, counts)
    keys = {name: cutoff.key for name, cutoff in cutoffs.items()}
    steps.run(RateWorker, arguments, STEP, [{"cutoffs": keys}] * tasks)
    return {name: cutoff.finished() for name, cutoff in sorted(cutoffs.items())}, (STEP, tasks)


def _counted(work: str, step: str, tasks: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of each group that has documents (values of the digit, ascending; how many documents have each), over all tasks."""
    numbers: dict[str, int] = {}
    parts = []
    for index in range(tasks):
        columns = open_arrays(unit_file(work, step, index, FILE_SUFFIXES["records"]), COUNT, LETTERS)
        part, names = columns[0].read(), orjson.loads(columns[1].read().tobytes())
        own = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.uint32)
        part["group"] = own[part["group"]] if len(part) else part["group"]
        parts.append(part)
    counts = joined(parts, COUNT)
    found = {}
    for name, number in numbers.items():
        mine = counts[counts["group"] == number]
        if len(mine):
            buckets, places = np.unique(mine["bucket"], return_inverse=True)
            found[name] = (buckets, np.bincount(places, mine["count"]).astype(np.int64))
    return found
