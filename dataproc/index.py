"""Row numbers for the slices of large line files: the rows of each slice are counted, a prefix sum gives where the next begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from dataproc.plan import read_job
from dataproc.receipts import read_standing, write_receipt
from dataproc.sources.base import Slice
from dataproc.sources.registry import make_source

STEP = "index"


def index_tasks(wanted: list[tuple[str, Slice]]) -> list[dict[str, Any]]:
    """One task for each slice to count."""
    return [{"index": i, "input": name, "slice": asdict(part)} for i, (name, part) in enumerate(wanted)]


def row_counts(wanted: list[tuple[str, Slice]], receipts: Iterable[dict[str, Any]]) -> dict[tuple[str, int], int]:
    """(url, start) -> rows, as `Plan.with_first_rows` takes them."""
    counts = {}
    for receipt in receipts:
        part = wanted[receipt["index"]][1]
        counts[(part.url, part.start)] = receipt["rows"]
    return counts


class IndexWorker:
    """Counts the rows of slices."""

    def __init__(self, work: str):
        self.work = work
        self.sources = {spec.name: make_source(spec) for spec in read_job(work).inputs}

    def close(self) -> None:
        """Holds nothing open."""

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        standing = read_standing(self.work, STEP, task["index"])
        if standing is not None:
            return standing
        rows = self.sources[task["input"]].count_rows(Slice(**task["slice"]))
        receipt = {"index": task["index"], "rows": rows, "files": {}}
        write_receipt(self.work, STEP, task["index"], receipt)
        return receipt
