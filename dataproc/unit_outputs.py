"""What a work unit leaves behind, written while it runs so that memory stays bounded, and published together at its end."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from dataproc.batches import Loss
from dataproc.decisions import WORK_SCHEMA
from dataproc.dedup.collecting import Collectors
from dataproc.parquet import RowGroupWriter
from dataproc.plan import unit_file
from dataproc.receipts import FILE_SUFFIXES, write_receipt
from dataproc.statistics import DropSamples, Statistics
from store import files
from store.digests import file_digest
from store.errors import HeadraceError
from store.files import FileStamp

LOSSES_HELD = 1024


def survivor_schema(shard: pa.Schema) -> pa.Schema:
    """Columns of a survivor between the passes: its row and locator, then those of its shard."""
    return pa.schema([("row", pa.int64()), ("locator", pa.string()), *shard])


class UnitOutputs:
    """Survivors, decisions, statistics and samples of one unit, and what the global steps need of it. Use as a context manager, `publish`
    inside it."""

    def __init__(self, work: str, step: str, index: int, schema: pa.Schema, compression: str, collectors: Collectors):
        self.work, self.step, self.index = work, step, index
        self.schema, self.compression = schema, compression
        self.statistics = Statistics()
        self.samples = DropSamples()
        self.collectors = collectors
        self.text_bytes = 0
        self.verdicts: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.quarantine_reasons: Counter[str] = Counter()
        self._losses: list[Loss] = []
        self._last_row = {"survivor": -1, "loss": -1}

    def __enter__(self) -> UnitOutputs:
        with ExitStack() as stack:
            names = ["kept", "decisions", "side", *self.collectors.files]
            urls = {name: unit_file(self.work, self.step, self.index, FILE_SUFFIXES[name]) for name in names}
            self._paths = {name: stack.enter_context(files.atomic_path(url)) for name, url in urls.items()}
            self._kept = RowGroupWriter(self._paths["kept"], self.schema, self.compression)
            self._decisions = RowGroupWriter(self._paths["decisions"], WORK_SCHEMA, text_column="detail")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure: Any) -> None:
        if failure[0] is not None:
            self._kept.abandon()
            self._decisions.abandon()
            self._stack.__exit__(*failure)

    def survive(self, table: pa.Table) -> None:
        """Adds survivors (`survivor_schema`), in order of their rows."""
        self._ascending("survivor", table.column("row").to_pylist())
        self.text_bytes += int(table.column("text").nbytes)
        self._kept.add(table)
        self.collectors.add(table)

    def lose(self, losses: list[Loss]) -> None:
        """Adds lost records in any order; they are written when `settle` says that no earlier row can still come."""
        self._losses += losses

    @property
    def unsettled(self) -> int:
        return len(self._losses)

    def settle(self) -> None:
        """Writes the losses so far, by row."""
        losses, self._losses = sorted(self._losses, key=lambda loss: loss.row), []
        if not losses:
            return
        self._ascending("loss", [loss.row for loss in losses])
        self._decisions.add(pa.Table.from_pylist([{"row": x.row, **x.decision()} for x in losses], schema=WORK_SCHEMA))
        for x in losses:
            v, name = x.verdict, f"{x.stage}.{x.verdict.rule}"
            self.verdicts[v.verdict] += 1
            (self.dropped if v.verdict == "dropped" else self.quarantine_reasons)[name] += 1
            shown = x.text or str(v.detail.get("error", ""))
            self.samples.offer(x.stage, v.rule, x.id, x.source, x.url, x.language, v.value, v.threshold, shown)

    def _ascending(self, kind: str, rows: list[int]) -> None:
        last = self._last_row[kind]
        for row in rows:
            if row <= last:
                raise HeadraceError(f"work unit {self.index}: row {row} came after row {last}: a stage changed the order of its rows")
            last = row
        self._last_row[kind] = last

    def publish(self, records: int, facts: dict[str, Any]) -> dict[str, Any]:
        """Checks that each of `records` is a survivor or lost, publishes the files and, last, the receipt, which it returns."""
        self.settle()
        lost = sum(self.verdicts.values())
        if self._kept.rows + lost != records:
            raise HeadraceError(
                f"work unit {self.index}: {records} records came in, {self._kept.rows} survived and {lost} were dropped or "
                "quarantined: a stage lost or doubled some"
            )
        groups = self._kept.close()
        self._decisions.close()
        for name, collector in self.collectors.files.items():
            collector.write(self._paths[name])
        with open(self._paths["side"], "w") as stream:
            json.dump({"statistics": self.statistics.to_json(), "samples": self.samples.to_json()}, stream)
        stamps = {name: asdict(FileStamp(*file_digest(path))) for name, path in self._paths.items()}
        self._stack.close()
        receipt = {
            "index": self.index,
            "records": records,
            "survivors": self._kept.rows,
            "groups": [asdict(group) for group in groups],
            "quarantined": self.verdicts["quarantined"],
            "dropped": dict(sorted(self.dropped.items())),
            "quarantine_reasons": dict(sorted(self.quarantine_reasons.items())),
            "text_bytes": self.text_bytes,
            **self.collectors.counts,
            "files": stamps,
            **facts,
        }
        write_receipt(self.work, self.step, self.index, receipt)
        return receipt
