"""From pairs to clusters, and from clusters to winners.

forests: pairs that join nothing new are left out, as many files at a time as fit into a worker, until one is left, which tells every
member's cluster. Where what is left of all files fits into no single worker, rounds of large and small follow (alternating large-star and
small-star: Kiveris et al., Connected Components in MapReduce and Beyond, 2014) until every member of a cluster points at its first.
ranked, losers: the members of a cluster meet with the pairs that joined them, and all but the best lose, each with its way to the best.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from dataproc.dedup.arrays import open_arrays
from dataproc.dedup.groups import GroupWorker
from dataproc.dedup.owners import OWNER, Overlaps, add_counts, groups_of, hexadecimal, losers_table
from dataproc.dedup.shuffle import OFFSETS, Receipt, Source, Steps, Task, even_bounds, joined, power_of_two
from dataproc.kernels import near as kernels
from dataproc.kernels.compiling import ready
from dataproc.parquet import write_table

EDGE = np.dtype([("a", "<u8"), ("b", "<u8"), ("score", "<f4")])  # a < b
LINK = np.dtype([("key", "<u8"), ("node", "<u8"), ("other", "<u8")])
LABEL = np.dtype([("node", "<u8"), ("root", "<u8")])
MEMBER = np.dtype([("key", "<u8"), ("root", "<u8"), ("node", "<u8"), *OWNER.descr])
WAY = np.dtype([("key", "<u8"), ("root", "<u8"), *EDGE.descr])
# What of a worker's records is cut from a text, not a document: a paragraph (its unit, its number among the unit's), and who holds it.
CUT = np.dtype([("node", "<u8"), ("high", "<u8"), ("low", "<u8"), ("earlier", "<i2")])

# Bytes for each record, with what is made of it meanwhile.
EDGE_BYTES = 150
LINK_BYTES = 120
MEMBER_BYTES = 500
FILES_AT_ONCE = 16
LARGEST_SHOWN = 5
MEMBERS_SHOWN = 3
_32 = np.uint64(32)
_ONE_RANGE = np.zeros(0, np.uint64)


class ClusterWorker(GroupWorker):
    """Runs the tasks of these steps."""

    # Clusters.

    def _whole(self, files: list[tuple[str, int]]) -> np.ndarray:
        """All edges of some files, whatever their ranges."""
        return joined([open_arrays(self._url(step, index), OFFSETS, EDGE)[1].read() for step, index in files], EDGE)

    def _forests(self, task: Task) -> Receipt:
        """Joins the forests of some earlier tasks; the last one writes labels in place of edges."""
        forest, labels = spanning(self._whole(task["of"]))
        if task["last"]:
            return {"edges": len(forest), "members": len(labels), "files": self._write(task, labels, "node", self.group_bounds)}
        return {"edges": len(forest), "files": self._write(task, forest, "a", _ONE_RANGE)}

    def _spread(self, task: Task) -> Receipt:
        """The edges of one file, both ways."""
        edges = self._whole(task["of"])
        return {"files": self._write_links(task, edges["a"], edges["b"], both=True)}

    def _large(self, task: Task) -> Receipt:
        """Points every neighbour above a member at the least of its neighbours and itself."""
        links = self._links(task)
        least = _least(links)
        above = links["other"] > links["node"]
        return {"files": self._write_links(task, links["other"][above], least[above], both=False)}

    def _small(self, task: Task) -> Receipt:
        """Points a member and its neighbours, all below it, at the least of them."""
        links = self._links(task)
        least = _least(links)
        node = np.concatenate([links["other"], links["node"]])
        root = np.concatenate([least, least])
        apart = node != root
        node, root = node[apart], root[apart]
        made = np.empty(len(node), LABEL)
        made["node"], made["root"] = node, root
        made = made[np.lexsort((root, node))]
        made = made[groups_of(made["node"], made["root"])[0]]
        return {
            "count": len(made),
            # The same edges may be written by several tasks; what is compared from round to round is what all of them write.
            "digest": int(_mixed(_mixed(made["node"]) + made["root"]).sum()) if len(made) else 0,
            "files": self._write_links(task, made["node"], made["root"], both=True),
        }

    def _stars(self, task: Task) -> Receipt:
        """Labels of one range of members, once every one points at the first of its cluster."""
        links = self._links(task)
        firsts = groups_of(links["node"])[0]
        labels = np.empty(len(firsts), LABEL)
        labels["node"] = links["node"][firsts]
        labels["root"] = np.minimum(links["node"], links["other"])[firsts]
        labels = labels[np.argsort(labels["node"], kind="stable")]
        return {"members": len(labels), "files": self._write(task, labels, "node", self.group_bounds)}

    def _links(self, task: Task) -> np.ndarray:
        """The links of one range of members, by member and neighbour, each once."""
        links = self._gather(task["sources"], LINK, task["index"])
        links = links[np.lexsort((links["other"], links["node"]))]
        return links[groups_of(links["node"], links["other"])[0]]

    def _write_links(self, task: Task, node: np.ndarray, other: np.ndarray, both: bool) -> dict[str, Any]:
        links = np.empty(len(node) * (2 if both else 1), LINK)
        links["node"] = np.concatenate([node, other]) if both else node
        links["other"] = np.concatenate([other, node]) if both else other
        links["key"] = _mixed(links["node"])
        return self._write(task, links[np.argsort(links["key"], kind="stable")], "key", even_bounds(task["ranges"]))

    # Winners.

    def _ranked(self, task: Task) -> Receipt:
        """Members of clusters of a group, with what tells the best, and their pairs, to the task of their cluster."""
        group = task["index"]
        labels = self._gather(task["labels"], LABEL, group)
        labels = labels[np.argsort(labels["node"], kind="stable")]
        owned = self._owners_of(labels["node"])
        members = np.empty(len(labels), MEMBER)
        members["key"], members["root"], members["node"] = _mixed(labels["root"]), labels["root"], labels["node"]
        for name in OWNER.names:
            members[name] = owned[name]
        if group == len(self.groups) - 1:  # of earlier versions: they come first, in the order of the versions
            units = (members["node"] >> _32).astype(np.int64) - self.groups[-1]
            members["first"], members["second"] = 0, np.array([part.place for part in self.parts], np.uint64)[units]
        edges = self._gather(task["edges"], EDGE, group) if group < len(self.groups) - 1 else np.zeros(0, EDGE)
        ways = np.empty(len(edges), WAY)
        for name in EDGE.names:
            ways[name] = edges[name]
        ways["root"] = labels["root"][np.searchsorted(labels["node"], edges["a"])] if len(edges) else 0
        ways["key"] = _mixed(ways["root"])
        bounds = even_bounds(task["ranges"])
        return {
            "files": self._write(task, members[np.argsort(members["key"], kind="stable")], "key", bounds)
            | self._write(task, ways[np.argsort(ways["key"], kind="stable")], "key", bounds, "ways")
        }

    def _losers(self, task: Task) -> Receipt:
        """The losers of one range of clusters."""
        members = self._gather(task["sources"], MEMBER, task["index"])
        members = members[np.lexsort([members[name] for name in ("node", "low", "high", "second", "first", "root")])]
        firsts, first_of = groups_of(members["root"])
        via, similarity = self._ways(task, members, firsts)
        place = np.arange(len(members))
        own = members["node"] < self.first_earlier
        lost = np.flatnonzero((place - first_of >= task["copies"]) & own)
        # With several copies kept the one that a loser is told of is the best.
        won, beaten = members[first_of[lost]], members[lost]
        held = self._version_of(won["node"])
        overlaps = Overlaps(self.inputs, self.earlier)
        overlaps.add(beaten, won, held)
        sizes = np.diff(np.append(firsts, len(members)))
        if self.subject.stage == "paragraph_dedup":
            written = self._write_cuts(task, beaten, won)
        else:
            losers = losers_table("near", beaten["node"] >> _32, beaten, won, held, similarity[lost], members[via[lost]])
            written = self._publish(task, "losers", lambda path: write_table(path, losers))
        return {
            "losers": len(lost),
            "cluster_sizes": {str(size): count for size, count in sorted(Counter(sizes.tolist()).items())},
            "overlaps": overlaps.to_json(),
            "largest": self._largest(members, firsts, sizes, similarity),
            "files": written,
        }

    def _ways(self, task: Task, members: np.ndarray, firsts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(members,) the place of the next member on the way to the winner, and how similar they are. The forest is that of the most
        similar pairs, the same whatever was left out before."""
        ways = self._gather(task["ways"], WAY, task["index"])
        edges = np.empty(len(ways), EDGE)
        for name in EDGE.names:
            edges[name] = ways[name]
        edges = spanning(edges)[0]
        order = np.argsort(members["node"], kind="stable")
        a, b = (order[np.searchsorted(members["node"], edges[name], sorter=order)] for name in ("a", "b"))
        via, similarity = np.empty(len(members), np.int64), np.zeros(len(members), np.float32)
        scratch = np.zeros(len(members) + 1, np.int64), np.empty(2 * len(edges), np.int64), np.empty(len(members), np.int64)
        with ready(kernels.ways):
            kernels.ways(a, b, np.ascontiguousarray(edges["score"]), *scratch, firsts, via, similarity)
        return via, similarity

    def _version_of(self, nodes: np.ndarray) -> np.ndarray:
        """Which earlier version members are of; -1 for this run's."""
        places = np.array([part.place for part in self.parts] or [-1])
        units = (nodes >> _32).astype(np.int64) - self.groups[-1]
        return np.where(units < 0, -1, places[np.maximum(units, 0)])

    def _write_cuts(self, task: Task, beaten: np.ndarray, won: np.ndarray) -> dict[str, Any]:
        cuts = np.empty(len(beaten), CUT)
        for name in ("high", "low"):
            cuts[name] = won[name]
        cuts["node"], cuts["earlier"] = beaten["node"], -1
        return self._write(task, np.sort(cuts, order="node"), "node", unit_bounds(self.groups[-1]))

    def _largest(self, members: np.ndarray, firsts: np.ndarray, sizes: np.ndarray, similarity: np.ndarray) -> list[dict[str, Any]]:
        """The largest clusters: {size, members: [{id, node, row, similarity}]}, the winner first."""
        best = members[firsts]
        chosen = np.lexsort((best["low"], best["high"], -sizes))[:LARGEST_SHOWN]
        shown = []
        for k in chosen:
            some = slice(int(firsts[k]), int(firsts[k]) + min(int(sizes[k]), 1 + MEMBERS_SHOWN))
            names = hexadecimal(members["high"][some], members["low"][some])
            facts = zip(names, members["node"][some].tolist(), members["row"][some].tolist(), similarity[some].tolist(), strict=True)
            shown.append(
                {"size": int(sizes[k]), "members": [dict(zip(("id", "node", "row", "similarity"), f, strict=True)) for f in facts]}
            )
        return shown


def unit_bounds(units: int) -> np.ndarray:
    """Bounds that make a range of each unit's members."""
    return np.arange(1, units, dtype=np.uint64) << _32


def spanning(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edges of the forest that joins what all of them join, the most similar pairs first; and the labels (LABEL) of its nodes, the
    lowest node of its tree."""
    edges = edges[np.lexsort((edges["b"], edges["a"], -edges["score"]))]
    nodes, places = np.unique(np.concatenate([edges["a"], edges["b"]]), return_inverse=True)
    a, b = places[: len(edges)].astype(np.int64), places[len(edges) :].astype(np.int64)
    parents, kept = np.arange(len(nodes)), np.zeros(len(edges), np.bool_)
    with ready(kernels.spanning_forest):
        kernels.spanning_forest(a, b, parents, kept)
    labels = np.empty(len(nodes), LABEL)
    labels["node"], labels["root"] = nodes, nodes[parents]
    edges = edges[kept]
    return edges[np.lexsort((edges["b"], edges["a"]))], labels


def run_clusters(
    steps: Steps,
    worker: type,
    arguments: dict[str, Any],
    prefix: str,
    trees: list[tuple[str, int]],
    sizes: list[int],
    edges: list[dict[str, Any]],
    copies: int = 1,
) -> tuple[dict[str, Any], tuple[str, int]]:
    """All steps in their order. trees: (step, task) of files of edges, with their sizes; edges: the same as sources of ranges by group.
    copies: how many of a cluster stay. Returns (what the manifest says of them, (step, tasks) that have written losers)."""
    groups = len(arguments["groups"])  # that of earlier versions included

    def run(name: str, do: str, tasks: list[Task]) -> list[Receipt]:
        return steps.run(worker, arguments, f"{prefix}-{name}", [{"do": do, **task} for task in tasks])

    room, level = steps.room(EDGE_BYTES), 0
    while True:
        parts = pack(sizes, room)
        if len(parts) <= 1 or len(parts) == len(trees):  # one file, or none that another fits beside
            break
        made = run(f"forests-{level}", "forests", [{"of": [trees[k] for k in part], "last": False} for part in parts])
        trees, sizes = [(f"{prefix}-forests-{level}", k) for k in range(len(parts))], [receipt["edges"] for receipt in made]
        level += 1
    if sum(sizes) <= room:
        made = run("labels", "forests", [{"of": trees, "last": True}])
        labels = Source(f"{prefix}-labels", 1).to_json()
    else:
        labels, made = _stars(steps, run, prefix, trees, sum(sizes), groups)
    members = sum(receipt["members"] for receipt in made)
    ranges = power_of_two(members / steps.room(MEMBER_BYTES))
    ranked = run("ranked", "ranked", [{"labels": [labels], "edges": edges, "ranges": ranges}] * groups)
    sources = [steps.merged(Source(f"{prefix}-ranked", groups), ranges, ranked, MEMBER)]
    ways = [steps.merged(Source(f"{prefix}-ranked", groups, "ways"), ranges, ranked, WAY)]
    lost = run("losers", "losers", [{"sources": sources, "ways": ways, "copies": copies}] * ranges)
    found = add_counts(lost, "cluster_sizes")
    largest = sorted((c for receipt in lost for c in receipt["largest"]), key=lambda c: (-c["size"], c["members"][0]["id"]))
    return (
        {
            "edges": members - sum(found.values()),  # of forests over all clusters
            "clusters": {size: found[size] for size in sorted(found, key=int)},
            "overlaps": {name: add_counts(lost, "overlaps", name) for name in ("sources", "languages")},
            "largest": largest[:LARGEST_SHOWN],
        },
        (f"{prefix}-losers", ranges),
    )


def _stars(
    steps: Steps, run: Any, prefix: str, trees: list[tuple[str, int]], total: int, groups: int
) -> tuple[dict[str, Any], list[Receipt]]:
    """Large and small in turn until nothing changes. Returns (labels as a source, receipts)."""
    ranges = power_of_two(2 * total / steps.room(LINK_BYTES))

    def source(name: str, tasks: int, receipts: list[Receipt]) -> list[dict[str, Any]]:
        return [steps.merged(Source(f"{prefix}-{name}", tasks), ranges, receipts, LINK)]

    made = run("spread", "spread", [{"of": [tree], "ranges": ranges} for tree in trees])
    links, before, turn = source("spread", len(trees), made), None, 0
    while True:
        made = run(f"large-{turn}", "large", [{"sources": links, "ranges": ranges}] * ranges)
        made = run(f"small-{turn}", "small", [{"sources": source(f"large-{turn}", ranges, made), "ranges": ranges}] * ranges)
        links = source(f"small-{turn}", ranges, made)
        now = sum(receipt["count"] for receipt in made), sum(receipt["digest"] for receipt in made) % (1 << 64)
        if now == before:
            break
        before, turn = now, turn + 1
    receipts = run("labels", "stars", [{"sources": links}] * ranges)
    return steps.merged(Source(f"{prefix}-labels", ranges), groups, receipts, LABEL), receipts


def pack(sizes: list[int], room: int) -> list[list[int]]:
    """Consecutive numbers put together so that their sizes stay under room, two at least where they do, FILES_AT_ONCE at most."""
    parts: list[list[int]] = []
    held = 0
    for number, size in enumerate(sizes):
        if not parts or held + size > room or len(parts[-1]) == FILES_AT_ONCE:
            parts.append([])
            held = 0
        parts[-1].append(number)
        held += size
    return parts


def _least(links: np.ndarray) -> np.ndarray:
    """(links,) of each one's member the least of its neighbours and itself. links: by member and neighbour."""
    _, first_of = groups_of(links["node"])
    return np.minimum(links["node"], links["other"][first_of])


def _mixed(values: np.ndarray) -> np.ndarray:
    """`mix` of each value."""
    h = (values ^ (values >> _32)) * np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> _32)
