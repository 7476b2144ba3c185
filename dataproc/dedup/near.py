"""Near duplicates between the passes: which pairs are similar. (What the pairs join, and who wins, is in clusters.py.)

bands: from signatures to (key of a band, member). pairs: members with equal keys become candidate pairs; of a key with very many only the
first is remembered, and hot makes their pairs where they are. first, second: a pair is taken to the signatures of its one member and then,
with them, to those of its other, and stays if enough values are equal. shingles: where it is asked for, the pairs that are left are
compared by their sets of n-grams.

What comes out depends neither on groups and ranges nor on the order of work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from dataproc.dedup.arrays import open_arrays, write_arrays
from dataproc.dedup.clusters import EDGE, ClusterWorker, run_clusters, spanning
from dataproc.dedup.earlier import BANDS, found_in
from dataproc.dedup.exact import lost_rows, plan_groups
from dataproc.dedup.groups import SUBJECTS, by_unit
from dataproc.dedup.owners import add_counts, groups_of
from dataproc.dedup.paragraphs import read_cuts, read_items
from dataproc.dedup.shuffle import (
    OFFSETS,
    Receipt,
    Source,
    Steps,
    Task,
    even_bounds,
    joined,
    power_of_two,
    range_offsets,
    write_ranges,
)
from dataproc.dedup.signatures import has_words, matrix, record_of, value_of
from dataproc.dedup.texts import shingle_sets, text_file, texts_at
from dataproc.kernels import near as kernels
from dataproc.kernels.compiling import ready
from dataproc.kernels.paragraphs import paragraphs_of
from dataproc.stages.near_dedup import NearConfig

BAND = np.dtype([("key", "<u8"), ("rank", "<u8"), ("node", "<u8")])
HOT = np.dtype([("key", "<u8"), ("rank", "<u8"), ("node", "<u8"), ("count", "<u8")])
PAIR = np.dtype([("a", "<u8"), ("b", "<u8")])
PAIRS_AT_ONCE = 100_000  # whose signatures are carried, read or compared at a time
RECORDS_AT_ONCE = 1_000_000
TEXTS_AT_ONCE = 10_000  # pairs whose sets of n-grams are held at a time
_32 = np.uint64(32)


class NearWorker(ClusterWorker):
    """Runs the tasks of all steps."""

    def _bands(self, task: Task) -> Receipt:
        """Band keys of a group's members, but for those that are out already and those without a word."""
        group, config = task["index"], self.config
        first, after = self.groups[group], self.groups[group + 1]
        lost = lost_rows(self.work, self.losers, first, after)
        cut = {unit: places for unit, places in by_unit(self._cut_nodes(first, after))}
        parts = []
        for unit in self._units(group):
            owned, signatures = (column.read() for column in self._signature_file(unit))
            signatures = matrix(signatures, config)
            takes_part = has_words(signatures) & ~np.isin(owned["row"], lost.get(unit, []))
            takes_part[cut.get(unit, [])] = False
            taken = np.flatnonzero(takes_part)
            records = np.empty((len(taken), config.bands + 1), BAND)
            records["key"] = band_keys(signatures[taken], config)
            records["rank"] = owned["high"][taken, None]
            records["node"] = (np.uint64(unit << 32) + taken.astype(np.uint64))[:, None]
            parts.append(records.reshape(-1))
        records = joined(parts, BAND)
        records = records[np.argsort(records["key"], kind="stable")]
        return {"keys": len(records), "files": self._write(task, records, "key", even_bounds(task["ranges"]))}

    def _pairs(self, task: Task) -> Receipt:
        """Candidate pairs of one range of band keys."""
        records, hot = self._of_range(task)
        records = records[np.lexsort((records["node"], records["rank"], records["key"]))]
        keys, nodes = np.ascontiguousarray(records["key"]), np.ascontiguousarray(records["node"])
        del records
        limits = self.config.all_pairs, self.config.star
        sizes = np.zeros(64, np.int64)
        with ready(kernels.bucket_pairs):
            made = np.empty((kernels.count_pairs(keys, *limits), 2), np.uint64)
            giants = int(kernels.bucket_pairs(keys, nodes, *limits, made, sizes)) + len(hot)
        made = made.view(PAIR).reshape(-1)
        for count in hot["count"].tolist():
            sizes[count.bit_length() - 1] += 1
        if self.parts:
            made = np.concatenate([made, self._pairs_with_earlier(keys, nodes)])
        pairs = distinct(made)
        largest = [*hot["count"].tolist(), int(np.diff(np.append(groups_of(keys)[0], len(keys))).max(initial=0))]
        return {
            "pairs": len(pairs),
            "hot": len(hot),
            "giant_buckets": giants,
            "largest_bucket": max(largest),
            "bucket_sizes": {str(1 << power): int(count) for power, count in enumerate(sizes) if count},
            "files": self._write(task, pairs, "a", self.group_bounds)
            | self._publish(task, "hot", lambda path: write_ranges(path, hot, "key", np.zeros(0, np.uint64))),
        }

    def _of_range(self, task: Task) -> tuple[np.ndarray, np.ndarray]:
        """(BAND, HOT) of one range: the members of keys that have too many for a worker are not held, but counted, and their first one is
        remembered: pairing each with the first is all that such a bucket is for."""
        most = task["most"]
        hot = np.zeros(0, HOT)
        held: list[np.ndarray] = []
        count = 0
        for part in self._parts(task["sources"], BAND, task["index"]):
            part, hot = _without_hot(part, hot)
            held.append(part)
            count += len(part)
            if count > 2 * most:
                records = np.concatenate(held)
                records = records[np.argsort(records["key"], kind="stable")]
                firsts = groups_of(records["key"])[0]
                sizes = np.diff(np.append(firsts, len(records)))
                large = sizes > max(self.config.star, most // 16)
                new = np.zeros(int(large.sum()), HOT)
                new["key"] = records["key"][firsts[large]]
                hot = np.sort(np.concatenate([hot, new]), order="key")
                records, hot = _without_hot(records, hot)
                held, count = [records], len(records)
                most = max(most, count)  # many keys of middling size: they are held
        return joined(held, BAND), hot

    def _pairs_with_earlier(self, keys: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Pairs of members with documents of earlier versions that share a band: up to `all_pairs` of them in each bucket, the first ones.
        keys: ascending."""
        most = self.config.all_pairs
        found = [
            (found, np.uint64((self.groups[-1] + part.number) << 32) + entries["row"].astype(np.uint64))
            for part, found, entries in found_in(self.parts, BANDS, np.unique(keys), most)
        ]
        others = np.empty(sum(len(part) for part, _ in found), PAIR)
        others["a"], others["b"] = (np.concatenate([part[k] for part in found]) if found else [] for k in (0, 1))
        others = others[np.lexsort((others["b"], others["a"]))]
        arguments = keys, nodes, np.ascontiguousarray(others["a"]), np.ascontiguousarray(others["b"]), most
        with ready(kernels.cross_pairs):
            made = np.empty((kernels.cross_pairs(*arguments, np.empty((0, 2), np.uint64)), 2), np.uint64)
            kernels.cross_pairs(*arguments, made)
        return made.view(PAIR).reshape(-1)

    def _hot(self, task: Task) -> Receipt:
        """Pairs of a group's members in hot buckets with the first of each."""
        hot = np.sort(self._gather([task["hot"]], HOT, 0), order="key")
        made = []
        _, bands = open_arrays(self._url(task["bands"], task["index"]), OFFSETS, BAND)
        for records in bands.parts(RECORDS_AT_ONCE):
            places, of_hot = _among(records["key"], hot["key"])
            nodes, firsts = records["node"][of_hot], hot["node"][places]
            pairs = np.empty(len(nodes), PAIR)
            pairs["a"], pairs["b"] = np.minimum(nodes, firsts), np.maximum(nodes, firsts)
            made.append(pairs[pairs["a"] != pairs["b"]])
            if self.parts:
                made.append(self._pairs_with_earlier(records["key"][of_hot], nodes))
        pairs = distinct(joined(made, PAIR))
        return {"pairs": len(pairs), "files": self._write(task, pairs, "a", self.group_bounds)}

    def _first(self, task: Task) -> Receipt:
        """Pairs of a group's members: those within the group, and those with earlier versions, are compared, the others take the signature
        of the one along."""
        group = task["index"]
        pairs = self._distinct_pairs(task, group)
        signatures, begins = self._signatures(group)
        after = np.uint64(self.groups[group + 1]) << _32
        near, old = pairs["b"] < after, pairs["b"] >= self.first_earlier
        edges = [self._similar(pairs[near], signatures, *(self._places(group, begins, pairs[name][near]) for name in ("a", "b")))]
        with_old = pairs[old]
        with_old = with_old[np.argsort(with_old["b"], kind="stable")]
        for first in range(0, len(with_old), PAIRS_AT_ONCE):
            some = with_old[first : first + PAIRS_AT_ONCE]
            theirs, place = np.unique(some["b"], return_inverse=True)
            ours = self._places(group, begins, some["a"])
            edges.append(self._similar(some, signatures, ours, place, self._signatures_of(theirs)))
        far = pairs[~near & ~old]
        far = far[np.argsort(far["b"], kind="stable")]
        offsets = range_offsets(far["b"], self.group_bounds)
        carried = self._carried

        def parts() -> Iterator[np.ndarray]:
            for first in range(0, len(far), PAIRS_AT_ONCE):
                some = far[first : first + PAIRS_AT_ONCE]
                made = np.empty(len(some), carried)
                made["a"], made["b"] = some["a"], some["b"]
                made["signature"] = signatures[self._places(group, begins, some["a"])]
                yield made

        write = self._publish(task, "carried", lambda path: write_arrays(path, offsets, (len(far), carried, parts())))
        edges = self._left(joined(edges, EDGE))
        return {
            "compared": int(near.sum()) + len(with_old),
            "edges": len(edges),
            "files": self._write(task, edges, "a", self.group_bounds) | write,
        }

    def _second(self, task: Task) -> Receipt:
        """Compares the signatures that came with pairs to those of a group's members."""
        group, compared = task["index"], 0
        signatures, begins = self._signatures(group)
        edges = [np.zeros(0, EDGE)]
        for part in self._parts(task["sources"], self._carried, group):
            for first in range(0, len(part), PAIRS_AT_ONCE):
                some = part[first : first + PAIRS_AT_ONCE]
                pairs = np.empty(len(some), PAIR)
                pairs["a"], pairs["b"] = some["a"], some["b"]
                own = np.ascontiguousarray(some["signature"])
                edges.append(self._similar(pairs, own, np.arange(len(some)), self._places(group, begins, some["b"]), signatures))
                compared += len(some)
        edges = self._left(joined(edges, EDGE))
        return {"compared": compared, "edges": len(edges), "files": self._write(task, edges, "a", self.group_bounds)}

    def _shingles(self, task: Task) -> Receipt:
        """Edges of a group's members whose sets of n-grams are similar enough."""
        edges = self._gather(task["sources"], EDGE, task["index"])
        edges = edges[np.lexsort((edges["b"], edges["a"]))]
        left = [np.zeros(0, EDGE)]
        for first in range(0, len(edges), TEXTS_AT_ONCE):
            some = edges[first : first + TEXTS_AT_ONCE]
            members, places = np.unique(np.concatenate([some["a"], some["b"]]), return_inverse=True)
            values, starts = shingle_sets(by_unit(members), self._texts, self.config.ngram)
            similarity = np.empty(len(some), np.float64)
            with ready(kernels.jaccard):
                kernels.jaccard(values, starts, places[: len(some)], places[len(some) :], similarity)
            some = some.copy()
            some["score"] = similarity
            left.append(some[similarity >= self.config.verify])
        found = spanning(joined(left, EDGE))[0]
        return {"compared": len(edges), "edges": len(found), "files": self._write(task, found, "a", self.group_bounds)}

    def _texts(self, unit: int, places: np.ndarray) -> Iterator[str]:
        """Texts of members of one unit. places: ascending."""
        url = text_file(self.work, self.groups[-1], self.parts, unit)
        if self.subject.stage == "near_dedup":
            yield from texts_at(url, places)
            return
        _, items = read_items(self.work, unit)
        documents, of = np.unique(items["place"][places], return_inverse=True)
        found = paragraphs_of(pa.array(texts_at(url, documents), pa.large_string()), self.job.paragraph_dedup.config.unit == "line")
        firsts = np.searchsorted(found.rows, np.arange(len(documents)))
        yield from found.texts(firsts[of] + items["number"][places])

    def _cut_nodes(self, first: int, after: int) -> np.ndarray:
        """Paragraphs of units [first, after) that are cut already."""
        return read_cuts(self.work, self.cuts, first, after)["node"]

    @property
    def _carried(self) -> np.dtype:
        return np.dtype([("a", "<u8"), ("b", "<u8"), ("signature", value_of(self.config), (self.config.permutations,))])

    def _distinct_pairs(self, task: Task, group: int) -> np.ndarray:
        """The pairs of a group: a pair comes from every band that it shares, so they are made few while they are read."""
        held, count, made_few = [], 0, 0
        for part in self._parts(task["sources"], PAIR, group):
            held.append(part)
            count += len(part)
            if count > 2 * made_few + task["most"]:
                held = [distinct(np.concatenate(held))]
                count = made_few = len(held[0])
        return distinct(joined(held, PAIR))

    def _similar(self, pairs: np.ndarray, one: np.ndarray, a: np.ndarray, b: np.ndarray, other: np.ndarray | None = None) -> np.ndarray:
        """The pairs with enough equal values, as edges. one, other: signatures in which a and b are rows."""
        equal = np.empty(len(pairs), np.uint16)
        with ready(kernels.equal_values):
            kernels.equal_values(one, a, one if other is None else other, b, equal)
        stays = equal >= self.config.least_equal
        edges = np.empty(int(stays.sum()), EDGE)
        edges["a"], edges["b"], edges["score"] = pairs["a"][stays], pairs["b"][stays], equal[stays] / self.config.permutations
        return edges

    def _left(self, edges: np.ndarray) -> np.ndarray:
        """Those that join something new, unless they are still to be compared by their n-grams."""
        if self.config.verify_by == "signatures":
            return spanning(edges)[0]
        return edges[np.argsort(edges["a"], kind="stable")]


def band_keys(signatures: np.ndarray, config: NearConfig) -> np.ndarray:
    """(rows, bands + 1) uint64: the keys of each signature's bands, and that of all of it."""
    keys = np.empty((len(signatures), config.bands + 1), np.uint64)
    with ready(kernels.band_keys):
        kernels.band_keys(signatures, config.bands, config.rows, keys)
    return keys


def _without_hot(records: np.ndarray, hot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The records whose keys are not hot, and `hot` with those that are counted in. hot: by key."""
    if not len(hot) or not len(records):
        return records, hot
    places, of_hot = _among(records["key"], hot["key"])
    taken = records[of_hot]
    order = np.lexsort((taken["node"], taken["rank"], places))
    taken, places = taken[order], places[order]
    found, starts = np.unique(places, return_index=True)
    best, old = taken[starts], hot[found]
    better = (old["count"] == 0) | (best["rank"] < old["rank"]) | ((best["rank"] == old["rank"]) & (best["node"] < old["node"]))
    hot["count"][found] += np.diff(np.append(starts, len(places))).astype(np.uint64)
    hot["rank"][found[better]], hot["node"][found[better]] = best["rank"][better], best["node"][better]
    return records[~of_hot], hot


def _among(keys: np.ndarray, hot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(places of those keys that are hot among the hot ones, (keys,) which are). hot: ascending, one at least."""
    places = np.minimum(np.searchsorted(hot, keys), len(hot) - 1)
    found = hot[places] == keys
    return places[found], found


def distinct(pairs: np.ndarray) -> np.ndarray:
    """Sorted, each once. (numpy's own sort of records compares them field by field, which takes ten times as long.)"""
    pairs = pairs[np.lexsort((pairs["b"], pairs["a"]))]
    return pairs[groups_of(pairs["a"], pairs["b"])[0]]


def run_near(
    steps: Steps,
    subject: str,
    sizes: list[int],
    config: NearConfig,
    losers: list[tuple[str, int]],
    copies: int = 1,
    cuts: list[tuple[str, int]] | None = None,
) -> tuple[dict[str, Any], tuple[str, int]]:
    """All steps in their order. sizes: members in each unit; losers, cuts: (step, tasks) that have written which documents or
    paragraphs are out already; copies: how many of a cluster stay. Returns (what the manifest says of them, (step, tasks) that have written
    losers)."""
    prefix = SUBJECTS[subject].prefix
    groups = plan_groups(sizes, record_of(config).itemsize, steps.memory // 4)
    count, members = len(groups) - 1, sum(sizes)
    arguments = {"subject": subject, "groups": groups, "losers": losers, "cuts": cuts or []}
    band_bytes = 10 * BAND.itemsize  # with what is made while they are sorted, and the pairs that come out
    ranges = power_of_two(members * (config.bands + 1) / steps.room(band_bytes))

    def step(name: str, tasks: int, **facts: Any) -> list[Receipt]:
        return steps.run(NearWorker, arguments, f"{prefix}-{name}", [{"do": name, **facts}] * tasks)

    def source(name: str, tasks: int, parts: int, receipts: list[Receipt], dtype: np.dtype, file: str = "records") -> dict[str, Any]:
        return steps.merged(Source(f"{prefix}-{name}", tasks, file), parts, receipts, dtype)

    made = step("bands", count, ranges=ranges)
    found = step("pairs", ranges, sources=[source("bands", count, ranges, made, BAND)], most=steps.room(band_bytes))
    pairs = [source("pairs", ranges, count, found, PAIR)]
    if any(receipt["hot"] for receipt in found):
        hot = Source(f"{prefix}-pairs", ranges, "hot").to_json()
        heated = step("hot", count, hot=hot, bands=f"{prefix}-bands")
        pairs.append(source("hot", count, count, heated, PAIR))
    compared = step("first", count, sources=pairs, most=steps.room(8 * PAIR.itemsize))
    edges = [source("first", count, count, compared, EDGE)]
    made_edges = list(compared)
    if count > 1:
        carried = np.dtype((np.void, 16 + record_of(config).itemsize))
        compared = compared + step("second", count, sources=[source("first", count, count, compared, carried, "carried")])
        edges.append(source("second", count, count, compared[count:], EDGE))
        made_edges = list(compared)
    names = ["first", "second"][: len(edges)]
    if config.verify_by == "shingles":
        made_edges = step("shingles", count, sources=edges)
        edges, names = [source("shingles", count, count, made_edges, EDGE)], ["shingles"]
    trees = [(f"{prefix}-{name}", index) for name in names for index in range(count)]
    result, written = run_clusters(steps, NearWorker, arguments, prefix, trees, [r["edges"] for r in made_edges], edges, copies)
    buckets = add_counts(found, "bucket_sizes")
    return {
        "candidate_pairs": sum(receipt["compared"] for receipt in compared),
        **result,
        "buckets": {size: buckets[size] for size in sorted(buckets, key=int)},  # from that size to below its double
        "largest_bucket": max((receipt["largest_bucket"] for receipt in found), default=0),
        "giant_buckets": sum(receipt["giant_buckets"] for receipt in found),
    }, written
