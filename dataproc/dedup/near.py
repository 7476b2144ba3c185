"""Near duplicates between the passes, as steps of tasks that hand each other ranges of fixed-width records (shuffle.py).

bands: from signatures to (key of a band, document). pairs: documents with equal keys become candidate pairs. first, second: a pair
is taken to the signatures of its one document and then, with them, to those of its other, and stays if enough values are equal.
forests: pairs that join nothing new are left out, until one file is left, which tells every document's cluster. ranked, losers: the
members of a cluster meet, and all but the best of them lose.

A document is a number here: its unit's number above 32 bits, its place among the unit's survivors below. A group is some units in a row,
as many as have their signatures in a worker's memory at once. What comes out depends neither on groups and ranges nor on the order of work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from dataproc.dedup.exact import LOSERS_SCHEMA, lost_rows
from dataproc.dedup.keys import hexadecimal
from dataproc.dedup.shuffle import even_bounds, gather, write_ranges
from dataproc.dedup.signatures import read_documents, read_signatures
from dataproc.kernels import near as kernels
from dataproc.kernels.compiling import ready
from dataproc.parquet import write_table
from dataproc.plan import read_job, unit_file
from dataproc.receipts import FILE_SUFFIXES, read_standing, write_receipt
from dataproc.stages.near_dedup import NearDedupConfig
from dataproc.unit import STEP as PASS1
from store import files

BAND = np.dtype([("key", "<u8"), ("rank", "<u8"), ("node", "<u8")])
PAIR = np.dtype([("a", "<u8"), ("b", "<u8")])
EDGE = np.dtype([("a", "<u8"), ("b", "<u8"), ("equal", "<u2")])
LABEL = np.dtype([("node", "<u8"), ("root", "<u8")])
MEMBER = np.dtype([(name, "<u8") for name in ("key", "root", "node", "first", "second", "high", "low")] + [("row", "<i8")])

GROUP_BYTES = 256_000_000  # of signatures
BANDS_PER_RANGE = 4_000_000  # 24 bytes each, and about three copies while sorting
MEMBERS_PER_RANGE = 2_000_000
FORESTS_AT_ONCE = 16
STEP = "near"  # the last one, which writes losers


def power_of_two(count: float) -> int:
    return 1 << max(0, int(np.ceil(np.log2(max(1.0, count)))))


def plan_groups(survivors: list[int], document_bytes: int, group_bytes: int) -> list[int]:
    """Where groups begin, as numbers of units, and at the end how many units there are. survivors: of each unit."""
    bounds, held = [0], 0
    for unit, count in enumerate(survivors):
        if held and held + count * document_bytes > group_bytes:
            bounds.append(unit)
            held = 0
        held += count * document_bytes
    return [*bounds, len(survivors)] if survivors else [0]


class NearWorker:
    """Runs the tasks of all steps: {step, index, ...}."""

    def __init__(self, work: str, groups: list[int], losers: list[tuple[str, int]]):
        """groups: as `plan_groups` has them. losers: (step, tasks) that have written who has lost already."""
        self.work, self.groups, self.losers = work, groups, losers
        self.config = read_job(work).near_dedup.config
        # The first document that is of each group but the first.
        self.group_bounds = np.array(groups[1:-1], np.uint64) << np.uint64(32)

    def close(self) -> None:
        """Holds nothing open."""

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        step, index = task["step"], task["index"]
        standing = read_standing(self.work, step, index)
        if standing is not None:
            return standing
        receipt = {"index": index, **getattr(self, f"_{step}")(task)}
        write_receipt(self.work, step, index, receipt)
        return receipt

    # Files.

    def _url(self, step: str, index: int, name: str = "records") -> str:
        return unit_file(self.work, step, index, FILE_SUFFIXES[name])

    def _write(self, step: str, index: int, records: np.ndarray, field: str, bounds: np.ndarray, name: str = "records") -> dict[str, Any]:
        stamp = files.write_stamped(self._url(step, index, name), lambda path: write_ranges(path, records, field, bounds))
        return {name: {"bytes": stamp.bytes, "xxh3_128": stamp.xxh3_128}}

    def _gather(self, step: str, tasks: int, dtype: np.dtype, number: int, name: str = "records") -> np.ndarray:
        return gather((self._url(step, task, name) for task in range(tasks)), dtype, number)

    def _units(self, group: int) -> range:
        return range(self.groups[group], self.groups[group + 1])

    def _of_group(self, group: int, read: Callable[[str], np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        """What was read of each unit, and (units + 1,) where each begins in all of them."""
        parts = [read(unit_file(self.work, PASS1, unit, FILE_SUFFIXES["signatures"])) for unit in self._units(group)]
        return parts, np.cumsum([0, *map(len, parts)])

    def _places(self, group: int, begins: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Where documents stand among those of their group."""
        units = (nodes >> np.uint64(32)).astype(np.int64) - self.groups[group]
        return begins[units] + (nodes & np.uint64(0xFFFFFFFF)).astype(np.int64)

    # Steps.

    def _bands(self, task: dict[str, Any]) -> dict[str, Any]:
        """Band keys of a group's documents, but for those that have lost already and those without a word."""
        group, config = task["index"], self.config
        lost = lost_rows(self.work, self.losers, self.groups[group], self.groups[group + 1])
        parts = []
        for unit in self._units(group):
            url = unit_file(self.work, PASS1, unit, FILE_SUFFIXES["signatures"])
            documents, signatures = read_documents(url), read_signatures(url)
            taken = np.flatnonzero(documents["words"] & ~np.isin(documents["row"], lost.get(unit, [])))
            keys = np.empty((len(signatures), config.bands), np.uint64)
            with ready(kernels.band_keys):
                kernels.band_keys(signatures, config.bands, config.rows, keys)
            records = np.empty((len(taken), config.bands), BAND)
            records["key"] = keys[taken]
            records["rank"] = documents["high"][taken, None]
            records["node"] = (np.uint64(unit << 32) + taken.astype(np.uint64))[:, None]
            parts.append(records.reshape(-1))
        records = np.concatenate(parts)
        records = records[np.argsort(records["key"], kind="stable")]
        return {"keys": len(records), "files": self._write("bands", group, records, "key", even_bounds(task["ranges"]))}

    def _pairs(self, task: dict[str, Any]) -> dict[str, Any]:
        """Candidate pairs of one range of band keys."""
        records = self._gather("bands", task["sources"], BAND, task["index"])
        records = records[np.lexsort((records["node"], records["rank"], records["key"]))]
        keys, nodes = np.ascontiguousarray(records["key"]), np.ascontiguousarray(records["node"])
        del records
        limits = self.config.all_pairs, self.config.star
        sizes = np.zeros(64, np.int64)
        with ready(kernels.bucket_pairs):
            made = np.empty((kernels.count_pairs(keys, *limits), 2), np.uint64)
            giants = kernels.bucket_pairs(keys, nodes, *limits, made, sizes)
        pairs = _distinct(made.view(PAIR).reshape(-1))
        return {
            "pairs": len(pairs),
            "giant_buckets": int(giants),
            "bucket_sizes": {str(1 << power): int(count) for power, count in enumerate(sizes) if count},
            "files": self._write("pairs", task["index"], pairs, "a", self.group_bounds),
        }

    def _first(self, task: dict[str, Any]) -> dict[str, Any]:
        """Pairs of a group's documents: those within the group are compared, the others take the signature of the one along."""
        group = task["index"]
        pairs = _distinct(self._gather("pairs", task["sources"], PAIR, group))
        parts, begins = self._of_group(group, read_signatures)
        signatures = np.concatenate(parts)
        del parts
        near = pairs["b"] < (np.uint64(self.groups[group + 1]) << np.uint64(32))
        a, b = (self._places(group, begins, pairs[name][near]) for name in ("a", "b"))
        edges = self._compared(pairs[near], signatures, a, signatures, b)
        far = pairs[~near]
        carried = np.empty(len(far), self._carried(signatures.dtype))
        carried["a"], carried["b"] = far["a"], far["b"]
        carried["signature"] = signatures[self._places(group, begins, far["a"])]
        carried = carried[np.argsort(carried["b"], kind="stable")]
        written = self._write("first", group, self._spanning(edges)[0], "a", np.zeros(0, np.uint64))
        return {"compared": int(near.sum()), "files": written | self._write("first", group, carried, "b", self.group_bounds, "carried")}

    def _second(self, task: dict[str, Any]) -> dict[str, Any]:
        """Compares the signatures that came with pairs to those of a group's documents."""
        group = task["index"]
        dtype = np.dtype("<u4" if self.config.scheme == "affine32" else "<u8")
        carried = self._gather("first", task["sources"], self._carried(dtype), group, "carried")
        carried = carried[np.lexsort((carried["a"], carried["b"]))]
        parts, begins = self._of_group(group, read_signatures)
        signatures = np.concatenate(parts)
        pairs = np.empty(len(carried), PAIR)
        pairs["a"], pairs["b"] = carried["a"], carried["b"]
        own = np.ascontiguousarray(carried["signature"])
        edges = self._compared(pairs, own, np.arange(len(carried)), signatures, self._places(group, begins, carried["b"]))
        written = self._write("second", group, self._spanning(edges)[0], "a", np.zeros(0, np.uint64))
        return {"compared": len(carried), "files": written}

    def _carried(self, dtype: np.dtype) -> np.dtype:
        return np.dtype([("a", "<u8"), ("b", "<u8"), ("signature", dtype, (self.config.permutations,))])

    def _compared(self, pairs: np.ndarray, one: np.ndarray, a: np.ndarray, other: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The pairs with enough equal values, as edges."""
        equal = np.empty(len(pairs), np.uint16)
        with ready(kernels.equal_values):
            kernels.equal_values(one, a, other, b, equal)
        stays = equal >= self.config.least_equal
        edges = np.empty(int(stays.sum()), EDGE)
        edges["a"], edges["b"], edges["equal"] = pairs["a"][stays], pairs["b"][stays], equal[stays]
        return edges

    def _spanning(self, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The edges of a forest that joins what all of them join, the most similar pairs first; and the labels (LABEL) of its nodes."""
        edges = edges[np.lexsort((edges["b"], edges["a"], -edges["equal"].astype(np.int32)))]
        nodes, places = np.unique(np.concatenate([edges["a"], edges["b"]]), return_inverse=True)
        a, b = places[: len(edges)].astype(np.int64), places[len(edges) :].astype(np.int64)
        parents, kept = np.arange(len(nodes)), np.zeros(len(edges), np.bool_)
        with ready(kernels.spanning_forest):
            kernels.spanning_forest(a, b, parents, kept)
        labels = np.empty(len(nodes), LABEL)
        labels["node"], labels["root"] = nodes, nodes[parents]
        edges = edges[kept]
        return edges[np.lexsort((edges["b"], edges["a"]))], labels

    def _forests(self, task: dict[str, Any]) -> dict[str, Any]:
        """Joins the forests of some earlier tasks; the last one writes labels in place of edges."""
        edges = gather((self._url(step, index) for step, index in task["of"]), EDGE, 0)
        forest, labels = self._spanning(edges)
        if task["last"]:
            return {
                "edges": len(forest),
                "members": len(labels),
                "files": self._write("forests", task["index"], labels, "node", self.group_bounds),
            }
        return {"edges": len(forest), "files": self._write("forests", task["index"], forest, "a", np.zeros(0, np.uint64))}

    def _ranked(self, task: dict[str, Any]) -> dict[str, Any]:
        """Members of clusters among a group's documents, with what tells the best, to the task of their cluster."""
        group = task["index"]
        labels = gather([self._url("forests", task["labels"])], LABEL, group)
        parts, begins = self._of_group(group, read_documents)
        documents = np.concatenate(parts)[self._places(group, begins, labels["node"])]
        members = np.empty(len(labels), MEMBER)
        members["key"], members["root"], members["node"] = _mixed(labels["root"]), labels["root"], labels["node"]
        for name in ("first", "second", "high", "low", "row"):
            members[name] = documents[name]
        members = members[np.argsort(members["key"], kind="stable")]
        return {"files": self._write("ranked", group, members, "key", even_bounds(task["ranges"]))}

    def _near(self, task: dict[str, Any]) -> dict[str, Any]:
        """The losers of one range of clusters."""
        members = self._gather("ranked", task["sources"], MEMBER, task["index"])
        members = members[np.lexsort([members[name] for name in ("low", "high", "second", "first", "root")])]
        starts = np.ones(len(members), bool)
        starts[1:] = members["root"][1:] != members["root"][:-1]
        firsts = np.flatnonzero(starts)
        lost = np.flatnonzero(~starts)
        winners = members[firsts[np.cumsum(starts) - 1][lost]] if len(lost) else members[:0]
        sizes = Counter(np.diff(np.append(firsts, len(members))).tolist())
        losers = pa.table(
            {
                "unit": (members["node"][lost] >> np.uint64(32)).astype(np.int32),
                "row": members["row"][lost],
                "kind": pa.repeat(pa.scalar("near"), len(lost)),
                "winner": [hexadecimal(int(h), int(w)) for h, w in zip(winners["high"], winners["low"], strict=True)],
            },
            schema=LOSERS_SCHEMA,
        ).sort_by([("unit", "ascending"), ("row", "ascending")])
        url = self._url("near", task["index"], "losers")
        stamp = files.write_stamped(url, lambda path: write_table(path, losers))
        return {
            "losers": len(lost),
            "cluster_sizes": {str(size): count for size, count in sorted(sizes.items())},
            "files": {"losers": {"bytes": stamp.bytes, "xxh3_128": stamp.xxh3_128}},
        }


# (step, arguments of the worker, tasks) -> receipts of all.
RunStep = Callable[[str, dict[str, Any], list[dict[str, Any]]], list[dict[str, Any]]]


def run_near(run: RunStep, survivors: list[int], config: NearDedupConfig) -> tuple[dict[str, Any], int]:
    """All steps in their order. survivors: of each unit. Returns (what the manifest says of them, tasks that have written losers)."""
    groups = plan_groups(survivors, config.permutations * (4 if config.scheme == "affine32" else 8), GROUP_BYTES)
    count = len(groups) - 1
    documents = sum(survivors)
    ranges = power_of_two(documents * config.bands / BANDS_PER_RANGE)
    clusters = power_of_two(documents / MEMBERS_PER_RANGE)

    def step(name: str, tasks: int, **facts: Any) -> list[dict[str, Any]]:
        return run(name, {"groups": groups}, [{"step": name, "index": index, **facts} for index in range(tasks)])

    step("bands", count, ranges=ranges)
    found = step("pairs", ranges, sources=count)
    compared = step("first", count, sources=ranges)
    if count > 1:
        compared += step("second", count, sources=count)
    forests = [(name, index) for name in (("first", "second") if count > 1 else ("first",)) for index in range(count)]
    joined = 0
    while True:
        parts = [forests[k : k + FORESTS_AT_ONCE] for k in range(0, len(forests), FORESTS_AT_ONCE)] or [[]]
        tasks = [{"step": "forests", "index": joined + k, "of": part, "last": len(parts) == 1} for k, part in enumerate(parts)]
        made = run("forests", {"groups": groups}, tasks)
        joined += len(tasks)
        if len(parts) == 1:
            break
        forests = [("forests", task["index"]) for task in tasks]
    step("ranked", count, labels=joined - 1, ranges=clusters)
    lost = step(STEP, clusters, sources=count)
    sizes: Counter[int] = Counter()
    buckets: Counter[int] = Counter()
    for receipt in lost:
        sizes.update({int(size): number for size, number in receipt["cluster_sizes"].items()})
    for receipt in found:
        buckets.update({int(size): number for size, number in receipt["bucket_sizes"].items()})
    return {
        "candidate_pairs": sum(receipt["compared"] for receipt in compared),
        "edges": made[0]["edges"],
        "clusters": {str(size): sizes[size] for size in sorted(sizes)},
        "buckets": {str(size): buckets[size] for size in sorted(buckets)},  # from that size to below its double
        "giant_buckets": sum(receipt["giant_buckets"] for receipt in found),
    }, clusters


def _distinct(pairs: np.ndarray) -> np.ndarray:
    """Sorted, each once. (numpy's own sort of records compares them field by field, which takes ten times as long.)"""
    pairs = pairs[np.lexsort((pairs["b"], pairs["a"]))]
    new = np.ones(len(pairs), bool)
    new[1:] = (pairs["a"][1:] != pairs["a"][:-1]) | (pairs["b"][1:] != pairs["b"][:-1])
    return pairs[new]


def _mixed(values: np.ndarray) -> np.ndarray:
    """`mix` of each value."""
    h = (values ^ (values >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(32))
