"""The global step over paragraphs: which of several copies stay, and which are cut.

A unit has left its documents' owners and a hash of each paragraph that is long enough. A task reads one range of hashes, sorts it and
writes what is to be cut: paragraphs by the number they have in their unit. Of copies those of the best documents stay.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from dataproc.dedup.arrays import open_arrays, write_arrays
from dataproc.dedup.clusters import CUT, unit_bounds
from dataproc.dedup.earlier import PARAGRAPHS, found_in, parts_of
from dataproc.dedup.exact import lost_rows, plan_groups, same_hash
from dataproc.dedup.owners import OWNER, Overlaps, add_counts, groups_of, owners
from dataproc.dedup.shuffle import Receipt, Source, Steps, StepWorker, Task, even_bounds, joined, power_of_two, read_ranges
from dataproc.dedup.signatures import SignatureWriter
from dataproc.kernels.paragraphs import measured, paragraphs_of
from dataproc.plan import PASS1, read_job, unit_file
from dataproc.receipts import FILE_SUFFIXES
from dataproc.stages.paragraph_dedup import ParagraphDedupConfig

# A paragraph of a unit: the place of its document among the survivors, its number in the document, and its hash.
ITEM = np.dtype([("place", "<u4"), ("number", "<u4"), ("key", "<u8"), ("check", "<u8")])
COPY = np.dtype([("key", "<u8"), ("check", "<u8"), ("node", "<u8"), *OWNER.descr])
COPY_BYTES = 400  # of a record and what is made of it while it is sorted
_32 = np.uint64(32)


class ParagraphWriter:
    """Collects a unit's paragraphs, and their signatures where near copies are wanted."""

    def __init__(self, config: ParagraphDedupConfig, inputs: list[str]):
        self.config, self.inputs = config, inputs
        self.seconds = 0.0
        self.signatures = SignatureWriter(config.near, inputs) if config.near else None
        self.count = 0
        self._owners: list[np.ndarray] = []
        self._items: list[np.ndarray] = []
        self._documents = 0

    def add(self, survivors: pa.Table) -> None:
        """Adds the paragraphs of rows with the columns of `unit_outputs.survivor_schema`."""
        start = time.perf_counter()
        owned = owners(survivors, self.config, self.inputs)
        texts = pa.concat_arrays(survivors.column("text").chunks) if survivors.num_rows else pa.array([], pa.large_string())
        found = paragraphs_of(texts, self.config.unit == "line")
        words, high, low = measured(found)
        long = words >= self.config.min_words
        items = np.empty(int(long.sum()), ITEM)
        items["place"], items["number"] = found.rows[long] + self._documents, found.numbers[long]
        items["key"], items["check"] = high[long], low[long]
        if self.signatures:
            self.signatures.add_texts(pa.array(found.texts(long), pa.large_string()), owned[found.rows[long]])
        self._owners.append(owned)
        self._items.append(items)
        self._documents += len(owned)
        self.count += len(items)
        self.seconds += time.perf_counter() - start

    def write(self, path: str) -> None:
        write_arrays(path, joined(self._owners, OWNER), joined(self._items, ITEM))


def read_items(work: str, unit: int) -> tuple[np.ndarray, np.ndarray]:
    """(owners, ITEM) of a unit."""
    documents, items = (column.read() for column in open_arrays(unit_file(work, PASS1, unit, FILE_SUFFIXES["paragraphs"]), OWNER, ITEM))
    return documents, items


class ParagraphWorker(StepWorker):
    """Runs the tasks. groups: where groups of units begin, and the end. losers: (step, tasks) that have written which documents have
    lost."""

    def __init__(self, work: str, groups: list[int], losers: list[tuple[str, int]]):
        super().__init__(work)
        self.groups, self.losers = groups, losers
        job = read_job(work)
        self.config: ParagraphDedupConfig = job.paragraph_dedup.config
        self.inputs = [spec.name for spec in job.inputs]
        chosen = [job.earlier[name] for name in self.config.against]
        self.earlier = [version.reference for version in chosen]
        self.parts = parts_of(chosen)

    def _copies_of(self, first: int, after: int) -> np.ndarray:
        """COPY of the paragraphs of some units, but for documents that have lost."""
        lost = lost_rows(self.work, self.losers, first, after)
        made = []
        for unit in range(first, after):
            documents, items = read_items(self.work, unit)
            copies = np.empty(len(items), COPY)
            copies["key"], copies["check"] = items["key"], items["check"]
            copies["node"] = np.uint64(unit << 32) + np.arange(len(items), dtype=np.uint64)
            owned = documents[items["place"]]
            for name in OWNER.names:
                copies[name] = owned[name]
            made.append(copies[~np.isin(copies["row"], lost.get(unit, []))])
        return joined(made, COPY)

    def _collect(self, task: Task) -> Receipt:
        copies = self._copies_of(self.groups[task["index"]], self.groups[task["index"] + 1])
        copies = copies[np.argsort(copies["key"], kind="stable")]
        return {"files": self._write(task, copies, "key", even_bounds(task["ranges"]))}

    def _cuts(self, task: Task) -> Receipt:
        """What is cut of one range of hashes."""
        copies = self._gather(task["sources"], COPY, task["index"]) if task["sources"] else self._copies_of(0, self.groups[-1])
        copies = copies[np.lexsort([copies[name] for name in ("node", "low", "high", "second", "first", "check", "key")])]
        firsts, first_of = groups_of(copies["key"], copies["check"])
        number = np.searchsorted(firsts, first_of)
        winners, earlier, held = copies[firsts], np.full(len(firsts), -1), np.zeros(len(firsts), np.int64)
        for part, found, entries in found_in(self.parts, PARAGRAPHS, np.unique(copies["key"])):
            for place, entry in same_hash(winners["key"], winners["check"], found, entries):
                held[place] += 1
                if earlier[place] < 0:
                    earlier[place] = part.place
                    for name in ("high", "low", "language"):
                        winners[name][place] = entry[name]
        rank = np.arange(len(copies)) - first_of + held[number]
        lost = rank >= self.config.max_copies
        beaten, won, version = copies[lost], winners[number[lost]], earlier[number[lost]]
        cuts = np.empty(len(beaten), CUT)
        cuts["node"], cuts["high"], cuts["low"], cuts["earlier"] = beaten["node"], won["high"], won["low"], version
        overlaps = Overlaps(self.inputs, self.earlier)
        overlaps.add(beaten, won, version)
        sizes = np.diff(np.append(firsts, len(copies))) + held
        return {
            "cuts": len(cuts),
            "copies": {str(size): count for size, count in sorted(Counter(sizes[sizes > 1].tolist()).items())},
            "overlaps": overlaps.to_json(),
            "files": self._write(task, np.sort(cuts, order="node"), "node", unit_bounds(self.groups[-1])),
        }


def run_paragraphs(steps: Steps, counts: list[int], losers: list[tuple[str, int]]) -> tuple[dict[str, Any], tuple[str, int]]:
    """All steps over exact copies. counts: paragraphs of each unit. Returns (what the manifest says of them, (step, tasks) that have
    written cuts)."""
    ranges = power_of_two(sum(counts) / steps.room(COPY_BYTES))
    sources = None
    arguments = {"groups": [0, len(counts)], "losers": losers}
    if ranges > 1:
        arguments["groups"] = plan_groups(counts, COPY_BYTES, steps.memory)
        count = len(arguments["groups"]) - 1
        made = steps.run(ParagraphWorker, arguments, "paragraphs-collect", [{"do": "collect", "ranges": ranges}] * count)
        sources = [steps.merged(Source("paragraphs-collect", count), ranges, made, COPY)]
    cut = steps.run(ParagraphWorker, arguments, "paragraphs-cuts", [{"do": "cuts", "sources": sources}] * ranges)
    copies = add_counts(cut, "copies")
    return {
        "cuts": sum(receipt["cuts"] for receipt in cut),
        "copies": {size: copies[size] for size in sorted(copies, key=int)},
        "overlaps": {name: add_counts(cut, "overlaps", name) for name in ("sources", "languages")},
    }, ("paragraphs-cuts", ranges)


def read_cuts(work: str, sources: list[tuple[str, int]], first_unit: int, after_unit: int) -> np.ndarray:
    """CUT of units [first_unit, after_unit), by node; a paragraph that was found twice stands there once, as it was found first. sources:
    (step, tasks) that have written cuts."""
    parts = [
        read_ranges(unit_file(work, step, index, FILE_SUFFIXES["records"]), CUT, first_unit, after_unit)
        for step, tasks in sources
        for index in range(tasks)
    ]
    cuts = joined(parts, CUT)
    cuts = cuts[np.argsort(cuts["node"], kind="stable")]
    return cuts[groups_of(cuts["node"])[0]]
