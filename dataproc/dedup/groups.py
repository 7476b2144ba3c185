"""What the workers of near deduplication share: what is compared, in groups of units whose signatures fit into a worker.

A member is a number here: its unit's number above 32 bits, its place in the unit's file of signatures below. Shards of earlier versions
are numbered after the units, so their documents have the highest numbers and are the last group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dataproc.dedup.arrays import Column
from dataproc.dedup.earlier import parts_of
from dataproc.dedup.owners import OWNER, groups_of
from dataproc.dedup.shuffle import StepWorker, joined
from dataproc.dedup.signatures import matrix, open_signatures, record_of
from dataproc.plan import PASS1, read_job, unit_file
from dataproc.receipts import FILE_SUFFIXES
from dataproc.stages.near_dedup import NearConfig

_32 = np.uint64(32)
_PLACE = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Subject:
    """What is compared: documents, or paragraphs."""

    stage: str
    signatures: str  # the file of a unit
    prefix: str  # of the names of steps


SUBJECTS = {
    "documents": Subject("near_dedup", "signatures", "near"),
    "paragraphs": Subject("paragraph_dedup", "paragraph_signatures", "paragraphs-near"),
}


class GroupWorker(StepWorker):
    """subject: of SUBJECTS. groups: where groups of units begin, and how many units there are. losers, cuts: (step, tasks) that have
    written which documents and which paragraphs are out already."""

    def __init__(self, work: str, subject: str, groups: list[int], losers: list[tuple[str, int]], cuts: list[tuple[str, int]]):
        super().__init__(work)
        self.subject, self.groups, self.losers, self.cuts = SUBJECTS[subject], groups, losers, cuts
        self.job = read_job(work)
        self.inputs = [spec.name for spec in self.job.inputs]
        self.config: NearConfig = self.job.near_config(self.subject.stage)
        earlier = [self.job.earlier[name] for name in self.config.against] if subject == "documents" else []
        self.earlier = [version.reference for version in earlier]
        self.parts = parts_of(earlier)
        # The first member of each group but the first, and the first one of an earlier version.
        self.group_bounds = np.array(groups[1:], np.uint64) << _32
        self.first_earlier = np.uint64(groups[-1] << 32)

    def _signature_file(self, unit: int) -> tuple[Column, Column]:
        """(owners, signatures) of a unit, or of a shard of an earlier version."""
        number = unit - self.groups[-1]
        url = unit_file(self.work, PASS1, unit, FILE_SUFFIXES[self.subject.signatures]) if number < 0 else self.parts[number].signatures
        return open_signatures(url, self.config)

    def _units(self, group: int) -> range:
        return range(self.groups[group], self.groups[group + 1])

    def _signatures(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        """(members, permutations) of a group, and (units + 1,) where each unit begins among them."""
        columns = [self._signature_file(unit)[1] for unit in self._units(group)]
        begins = np.cumsum([0, *map(len, columns)])
        held = np.empty(int(begins[-1]), record_of(self.config))
        for column, begin in zip(columns, begins, strict=False):
            held[begin : begin + len(column)] = column.read()
        return matrix(held, self.config), begins

    def _places(self, group: int, begins: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Where members stand among those of their group."""
        units = (members >> _32).astype(np.int64) - self.groups[group]
        return begins[units] + (members & _PLACE).astype(np.int64)

    def _owners_of(self, members: np.ndarray) -> np.ndarray:
        """(members,) of OWNER. members: ascending."""
        return joined([self._signature_file(unit)[0].take(places) for unit, places in by_unit(members)], OWNER)

    def _signatures_of(self, members: np.ndarray) -> np.ndarray:
        """(members, permutations). members: ascending."""
        found = [self._signature_file(unit)[1].take(places) for unit, places in by_unit(members)]
        return matrix(joined(found, record_of(self.config)), self.config)


def by_unit(members: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(unit, places in it) of ascending members."""
    units = members >> _32
    starts, _ = groups_of(units)
    for start, stop in zip(starts, np.append(starts, len(members))[1:], strict=True):
        yield int(units[start]), (members[start:stop] & _PLACE).astype(np.int64)
