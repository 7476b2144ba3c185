"""How the tasks of a global step hand each other their shares: files of fixed-width records that are cut into ranges.

Every task of a step writes one file; task r of the next step reads range r of all of them. Where that would be too many small reads,
tasks in between put the same ranges of many files together. Text is never in these records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dataproc.dedup.arrays import open_arrays, write_arrays
from dataproc.plan import unit_file
from dataproc.receipts import FILE_SUFFIXES, read_standing, write_receipt
from store import files

OFFSETS = np.dtype("<u8")
MEGABYTE = 1_000_000
READS_AT_MOST = 1 << 20  # of ranges, by all tasks of a step; beyond, files are merged first

Task = dict[str, Any]
Receipt = dict[str, Any]


def power_of_two(count: float) -> int:
    """The least power of two that is no less."""
    return 1 << max(0, int(np.ceil(np.log2(max(1.0, count)))))


def even_bounds(ranges: int) -> np.ndarray:
    """(ranges - 1,) uint64: where hashes are cut into that many ranges of equal width."""
    return np.array([(number << 64) // ranges for number in range(1, ranges)], np.uint64)


def write_ranges(path: str, records: np.ndarray, field: str, bounds: np.ndarray) -> None:
    """Writes records (n,) of a structured dtype, which are sorted by a uint64 field, to a local path. bounds: (ranges - 1,) uint64,
    ascending: the first values of all ranges but the first."""
    write_arrays(path, range_offsets(records[field], bounds), records)


def range_offsets(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """(ranges + 1,): where the ranges of sorted values begin, and their end."""
    return np.array([0, *np.searchsorted(values, bounds, "left"), len(values)], OFFSETS)


def read_ranges(url: str, dtype: np.dtype, first: int, after: int) -> np.ndarray:
    """The records of ranges [first, after). Raises StoreError for a file that is not of this kind."""
    offsets, records = open_arrays(url, OFFSETS, dtype)
    if after - first > 1 or len(offsets) > 2:
        start, stop = offsets.read(first, first + 1)[0], offsets.read(after, after + 1)[0]
        return records.read(int(start), int(stop))
    return records.read()


@dataclass(frozen=True)
class Source:
    """Files that hold ranges: of each of `tasks` tasks of a step one, under a name of FILE_SUFFIXES. When they were merged, task k of
    them holds ranges [f, f + fan), f = (k // files) * fan."""

    step: str
    tasks: int
    name: str = "records"
    fan: int = 0
    files: int = 1

    def places(self, number: int) -> Iterator[tuple[str, int, str, int]]:
        """(step, task, name, number of the range in its file) of all files with some of a range."""
        if not self.fan:
            yield from ((self.step, task, self.name, number) for task in range(self.tasks))
            return
        block = number // self.fan * self.files
        yield from ((self.step, task, self.name, number % self.fan) for task in range(block, block + self.files))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class StepWorker:
    """What workers of global steps share: a task is {step, index, ...} and runs `_<step>`; what stands is not done again."""

    def __init__(self, work: str):
        self.work = work

    def close(self) -> None:
        """Holds nothing open."""

    def run(self, task: Task) -> Receipt:
        step, index = task["step"], task["index"]
        standing = read_standing(self.work, step, index)
        if standing is not None:
            return standing
        receipt = {"index": index, **getattr(self, f"_{task.get('do', step)}")(task)}
        write_receipt(self.work, step, index, receipt)
        return receipt

    def _url(self, step: str, index: int, name: str = "records") -> str:
        return unit_file(self.work, step, index, FILE_SUFFIXES[name])

    def _publish(self, task: Task, name: str, write: Callable[[str], None]) -> dict[str, Any]:
        """Lets `write` fill a file of a task; returns its entry in the receipt's `files`."""
        stamp = files.write_stamped(self._url(task["step"], task["index"], name), write)
        return {name: {"bytes": stamp.bytes, "xxh3_128": stamp.xxh3_128}}

    def _write(self, task: Task, records: np.ndarray, field: str, bounds: np.ndarray, name: str = "records") -> dict[str, Any]:
        return self._publish(task, name, lambda path: write_ranges(path, records, field, bounds))

    def _parts(self, sources: Iterable[dict[str, Any]], dtype: np.dtype, number: int) -> Iterator[np.ndarray]:
        """A range of all files of some sources, file by file."""
        for source in sources:
            for step, task, name, place in Source(**source).places(number):
                yield read_ranges(self._url(step, task, name), dtype, place, place + 1)

    def _gather(self, sources: Iterable[dict[str, Any]], dtype: np.dtype, number: int) -> np.ndarray:
        """A range of all files of some sources, one after the other."""
        return joined(list(self._parts(sources, dtype, number)), dtype)


def joined(parts: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


class MergeWorker(StepWorker):
    """Puts ranges [first, after) of the files of tasks [begin, end) together: range by range, in each in the order of the files."""

    def _merged(self, task: Task) -> Receipt:
        first, after = task["first"], task["after"]
        record = np.dtype((np.void, task["width"]))
        parts, counts = [], []
        for number in range(task["begin"], task["end"]):
            url = self._url(task["of"], number, task["name"])
            offsets, records = open_arrays(url, OFFSETS, record)
            places = offsets.read(first, after + 1).astype(np.int64)
            parts.append(records.read(int(places[0]), int(places[-1])))
            counts.append(np.diff(places))
        lengths = np.array(counts).reshape(len(parts), after - first)
        starts = np.cumsum(np.concatenate([np.zeros((len(parts), 1), np.int64), lengths], 1), 1)
        pieces = (parts[k][starts[k, r] : starts[k, r + 1]] for r in range(after - first) for k in range(len(parts)))
        ends = np.concatenate([[0], np.cumsum(lengths.sum(0))]).astype(OFFSETS)
        whole = (int(ends[-1]), record, (piece for piece in pieces if len(piece)))
        return {"files": self._publish(task, "records", lambda path: write_arrays(path, ends, whole))}


# (worker class, its arguments, name of the step, tasks) -> receipts of all.
RunTasks = Callable[[type, dict[str, Any], str, list[Task]], list[Receipt]]


class Steps:
    """Runs the steps of global work. memory: bytes that a worker may hold."""

    def __init__(self, work: str, memory: int, run: RunTasks):
        self.work, self.memory, self._run = work, memory, run

    def room(self, record_bytes: int) -> int:
        """How many records of so many bytes, working copies included, a worker may hold."""
        return max(1, self.memory // record_bytes)

    def run(self, worker: type, arguments: dict[str, Any], step: str, tasks: list[Task]) -> list[Receipt]:
        """Receipts in the order of the tasks."""
        tasks = [{"step": step, "index": index, **task} for index, task in enumerate(tasks)]
        receipts = self._run(worker, {"work": self.work, **arguments}, step, tasks)
        return sorted(receipts, key=lambda receipt: receipt["index"])

    def merged(self, source: Source, ranges: int, receipts: list[Receipt], dtype: np.dtype) -> dict[str, Any]:
        """The source as the next step shall read it: merged first where its tasks would read too many small parts."""
        if source.tasks * ranges <= READS_AT_MOST or ranges == 1 or source.tasks == 1:
            return source.to_json()
        total = sum(receipt["files"][source.name]["bytes"] for receipt in receipts)
        # Blocks of `fan` ranges of `count` files that fit into memory; reads are fewest when both numbers are alike.
        block = max(4.0, self.memory / 4 * ranges * source.tasks / max(1, total))
        fan = int(min(ranges, max(2, block**0.5)))
        count = int(min(source.tasks, max(2, block / fan)))
        begins = range(0, source.tasks, count)
        tasks = [
            {
                "do": "merged",
                "of": source.step,
                "name": source.name,
                "width": dtype.itemsize,
                "first": first,
                "after": min(ranges, first + fan),
                "begin": begin,
                "end": min(source.tasks, begin + count),
            }
            for first in range(0, ranges, fan)
            for begin in begins
        ]
        step = f"{source.step}-{source.name}-merged"
        self.run(MergeWorker, {}, step, tasks)
        return Source(step, len(tasks), "records", fan, len(begins)).to_json()
