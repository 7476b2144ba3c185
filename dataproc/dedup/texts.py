"""Texts of documents by their numbers, where a global step has to look at some: for n-grams that are compared, and for excerpts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dataproc.dedup.earlier import Part
from dataproc.kernels.minhash import shingle_hashes
from dataproc.parquet import open_parquet
from dataproc.plan import PASS1, unit_file
from dataproc.receipts import FILE_SUFFIXES
from dataproc.statistics import CONTROLS
from store import files

EXCERPT_CHARACTERS = 200


def text_file(work: str, units: int, parts: list[Part], unit: int) -> str:
    """The Parquet file that holds a unit's survivors, or a shard of an earlier version (numbered after the units)."""
    if unit < units:
        return unit_file(work, PASS1, unit, FILE_SUFFIXES["kept"])
    part = parts[unit - units]
    return files.join(part.version.url, f"shards/part-{part.shard:05d}.parquet")


def texts_at(url: str, places: np.ndarray) -> Iterator[str]:
    """The texts in some rows of a Parquet file. places: ascending. Row groups without one of them are not read."""
    with open_parquet(url) as reader:
        first = 0
        for number in range(reader.num_row_groups):
            after = first + reader.metadata.row_group(number).num_rows
            begin, end = np.searchsorted(places, (first, after))
            if end > begin:
                column = reader.read_row_group(number, columns=["text"], use_threads=False).column("text")
                for place in places[begin:end]:
                    yield column[int(place) - first].as_py() or ""
            first = after


def add_excerpts(clusters: list[dict[str, Any]], url_of: Callable[[int], str]) -> list[dict[str, Any]]:
    """The largest clusters (clusters.py) with the beginning of each shown member's text in place of its number. url_of: from a unit to its
    file of texts."""
    shown = []
    for cluster in clusters:
        members = []
        for member in cluster["members"]:
            unit, place = member["node"] >> 32, member["node"] & 0xFFFFFFFF
            (text,) = texts_at(url_of(unit), np.array([place]))
            excerpt = text[:EXCERPT_CHARACTERS].translate(CONTROLS)
            members.append({"id": member["id"], "similarity": round(member["similarity"], 6), "excerpt": excerpt})
        shown.append({"size": cluster["size"], "members": members})
    return shown


def shingle_sets(
    members: Iterable[tuple[int, np.ndarray]], read: Callable[[int, np.ndarray], Iterable[str]], ngram: int
) -> tuple[np.ndarray, np.ndarray]:
    """The sets of n-gram hashes of members: (values uint64, (members + 1,) where each set begins), ascending in each. members: (unit,
    places); read: their texts."""
    sets = [np.unique(shingle_hashes(text, ngram)) for unit, places in members for text in read(unit, places)]
    starts = np.cumsum([0, *map(len, sets)])
    return (np.concatenate(sets) if sets else np.zeros(0, np.uint64)), starts
