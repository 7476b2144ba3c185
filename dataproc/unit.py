"""Pass 1: one work unit from its source to its survivors, decisions and keys.

`UnitWorker` is what a Ray actor (or a plain loop) runs. A unit whose outputs stand is checked and not run again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from dataproc.batches import Loss, Outcome, StageChain, damaged_loss, failure_text, make_batch, refused
from dataproc.dedup.collecting import Collectors
from dataproc.documents import document_id
from dataproc.faults import Cursor, Watchdog, limit_memory
from dataproc.metrics import count_unit
from dataproc.plan import MEGABYTE, PASS1, WorkUnit, read_job, scratch_folder
from dataproc.receipts import read_standing
from dataproc.sources.base import Damaged, ReadReport, Record, Slice
from dataproc.sources.registry import make_source
from dataproc.stages.base import StageContext, Verdict
from dataproc.unit_outputs import LOSSES_HELD, UnitOutputs, survivor_schema
from store.errors import HeadraceError

# Large enough that per-batch costs vanish, small enough that a batch of large pages stays well under the worker's memory.
BATCH_RECORDS = 64
BATCH_BYTES = 4_000_000
RUN = "run"  # the stage under which faults of the run itself are counted
WORKER_DIED = "worker_died"


class UnitWorker:
    """Runs work units of one plan. `guarded` turns on what only makes sense in a process that may be ended and started
    again: the watchdog that ends it and the cap on its memory."""

    def __init__(self, work: str, run: str, guarded: bool):
        self.work = work
        self.run_name = run
        self.guarded = guarded
        self.pipeline = read_job(work)
        self.limits = self.pipeline.limits
        self.specs = {spec.name: spec for spec in self.pipeline.inputs}
        self.watchdog = Watchdog(guarded)
        # A whole batch may take several times what one slow record may; when it takes longer its records are tried one by one.
        self.batch_timeout_s = 2 * self.limits.record_timeout_s + 10
        self.chain = StageChain(self.pipeline.make_stages())
        context = StageContext(self.limits.record_timeout_s, scratch_folder(), self.watchdog.restart)
        for stage in self.chain.stages:
            stage.open(context)
        self._memory_limited = False

    def close(self) -> None:
        for stage in self.chain.stages:
            stage.close()

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        """Runs one unit (`WorkUnit.to_json`) and returns its receipt; one that stands already is only checked."""
        unit = WorkUnit.from_json(task)
        standing = read_standing(self.work, PASS1, unit.index)
        if standing is not None:
            return standing
        if self.guarded and not self._memory_limited:
            # Not earlier: Ray maps its object store when the first task arrives.
            limit_memory(self.limits.worker_memory_mb * MEGABYTE)
            self._memory_limited = True
        receipt = _UnitRun(self, unit).receipt()
        if self.guarded:
            count_unit(self.pipeline.dataset, receipt)
        return receipt


class _UnitRun:
    """One attempt at one unit."""

    def __init__(self, worker: UnitWorker, unit: WorkUnit):
        self.worker = worker
        self.unit = unit
        self.spec = worker.specs[unit.input]
        self.cursor = Cursor(worker.run_name, PASS1, unit.index)
        self.records = 0
        self.inputs: list[dict[str, Any]] = []
        self.not_documents: Counter[str] = Counter()
        self.pending: list[tuple[int, Record]] = []
        self.pending_bytes = 0

    def receipt(self) -> dict[str, Any]:
        start, before, measured = time.perf_counter(), dict(self.worker.chain.seconds), self.worker.chain.measures()
        schema = survivor_schema(self.worker.chain.schema)
        compression = self.worker.pipeline.output.compression
        collectors = Collectors(self.worker.pipeline)
        with UnitOutputs(self.worker.work, PASS1, self.unit.index, schema, compression, collectors) as self.outputs:
            for item in self._read():
                row = self.records
                self.records += 1
                self._take(row, item)
            self._flush()
            seconds = {name: total - before[name] for name, total in self.worker.chain.seconds.items()}
            seconds |= collectors.seconds
            seconds["read"] = max(0.0, time.perf_counter() - start - sum(seconds.values()))
            facts = {
                "inputs": self.inputs,
                "input_bytes": sum(part["bytes"] for part in self.inputs),
                "not_documents": dict(self.not_documents),
                "seconds": seconds,
                "measures": {name: value - measured[name] for name, value in self.worker.chain.measures().items()},
            }
            receipt = self.outputs.publish(self.records, facts)
        self.cursor.close()
        return receipt

    def _read(self) -> Iterator[Record | Damaged]:
        """The unit's records, slice by slice. A record that kills the worker while it is read ends its slice: the rest of the
        slice becomes one damaged entry, because no reader can find the next record without reading this one."""
        source = make_source(self.spec)
        for part in self.unit.slices:
            report = ReadReport()
            records = source.read(part, report)
            while True:
                row = self.records
                if self.cursor.case.unreadable(row):
                    where = f"{part.relative_path}#from record {row} of unit {self.unit.index}"
                    yield Damaged(where, where, WORKER_DIED, "reading this record ended the worker: the rest of its slice is unread")
                    break
                self._note(row)
                with self.worker.watchdog.limit(self.worker.limits.record_timeout_s):
                    item = next(records, None)
                if item is None:
                    break
                yield item
            self._finish_slice(part, report)

    def _note(self, row: int) -> None:
        if self.cursor.is_careful(row, row + 1):
            self._flush()
            self.cursor.reading(row)
        elif not self.pending:
            self.cursor.batch(row, row + BATCH_RECORDS)

    def _finish_slice(self, part: Slice, report: ReadReport) -> None:
        self.not_documents.update(report.not_documents)
        self.inputs.append(
            {
                "path": part.relative_path,
                "file_bytes": part.file_bytes,
                "start": part.start,
                "bytes": report.input_bytes,
                "xxh3_128": report.input_digest,
            }
        )

    def _take(self, row: int, item: Record | Damaged) -> None:
        name = self.spec.name
        loss = damaged_loss(row, name, item) if isinstance(item, Damaged) else refused(row, name, item)
        if loss is not None:
            self.outputs.lose([loss])
            if self.outputs.unsettled >= LOSSES_HELD:
                self._flush()
        elif self.cursor.is_careful(row, row + 1):
            self._one(row, item)
        else:
            self.pending.append((row, item))
            self.pending_bytes += len(item.payload or b"") + len(item.text or "")
            if len(self.pending) >= BATCH_RECORDS or self.pending_bytes >= BATCH_BYTES:
                self._flush()

    def _flush(self) -> None:
        """Runs the pending records as one batch; when a stage raises, each of them alone."""
        rows, self.pending, self.pending_bytes = self.pending, [], 0
        if rows:
            self.cursor.batch(rows[0][0], rows[-1][0] + 1)
            try:
                with self.worker.watchdog.limit(self.worker.batch_timeout_s):
                    outcome, table = self._process(rows)
            except HeadraceError:
                raise
            except (Exception, SystemExit):  # whatever it is, the records are tried one by one and the guilty one is named
                for row, record in rows:
                    self._one(row, record)
            else:
                self._add(outcome, table)
        self.outputs.settle()
        self.cursor.idle()

    def _process(self, rows: list[tuple[int, Record]]) -> tuple[Outcome, pa.Table | None]:
        outcome = self.worker.chain.run(make_batch(rows, self.spec))
        survivors = outcome.survivors
        return outcome, self.worker.chain.finish(survivors) if survivors.num_rows else None

    def _one(self, row: int, record: Record) -> None:
        """Runs one record alone; what it raises, or that it killed a worker before, is its quarantine."""
        if self.cursor.case.convicted(row):
            self._quarantine(row, record, WORKER_DIED, "processing this record ended the worker, or took longer than record_timeout_s")
            return
        self.cursor.processing(row)
        try:
            with self.worker.watchdog.limit(self.worker.limits.record_timeout_s):
                outcome, table = self._process([(row, record)])
        except HeadraceError:
            raise
        except MemoryError:
            self._quarantine(row, record, "out_of_memory", "processing this record takes more memory than worker_memory_mb")
        except (Exception, SystemExit) as error:  # sys.exit in a stage must not end the worker: Ray would take it for the end of the run
            self._quarantine(row, record, "failed", failure_text(error))
        else:
            self._add(outcome, table)
        self.cursor.idle()

    def _quarantine(self, row: int, record: Record, rule: str, error: str) -> None:
        verdict = Verdict(row, rule, detail={"error": error}, verdict="quarantined")
        name = self.spec.name
        self.outputs.lose([Loss(row, document_id(name, record.key), name, record.locator, RUN, verdict, record.url)])

    def _add(self, outcome: Outcome, table: pa.Table | None) -> None:
        self.outputs.lose(outcome.losses)
        for columns in outcome.seen:
            self.outputs.statistics.observe_signals(columns)
        if table is not None:
            self.outputs.survive(table)
