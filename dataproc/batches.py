"""Records become Arrow batches, and batches run through the stages: the pure heart of pass 1."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataproc.documents import BASE_SIGNALS, BATCH_SCHEMA, SIGNAL_PREFIX, document_id, meta_json, shard_schema
from dataproc.rules.signals import compute
from dataproc.sources.base import Damaged, InputSpec, Record
from dataproc.stages.base import Stage, Verdict, set_column, without_rows
from dataproc.text_hash import content_hashes
from store.errors import HeadraceError

READ = "read"  # the name under which refusals and damage of the reading step are counted
EXCERPT_SOURCE_CHARACTERS = 1000


@dataclass(frozen=True)
class Loss:
    """A record that does not survive, with what the decision ledger and the report say of it."""

    row: int
    id: str
    source: str
    locator: str
    stage: str
    verdict: Verdict
    url: str | None = None
    language: str | None = None
    text: str = ""  # the start of its text as it was when it was lost

    def decision(self) -> dict[str, Any]:
        """The record's row in `documents.DECISION_SCHEMA`."""
        v = self.verdict
        return {
            "id": self.id,
            "source": self.source,
            "locator": self.locator,
            "verdict": v.verdict,
            "stage": self.stage,
            "rule": v.rule,
            "value": v.value,
            "threshold": v.threshold,
            "detail": detail_json(v.detail, self.url),
        }


def detail_json(detail: dict[str, Any], url: str | None) -> str:
    """The `detail` column: what the stage said, and the record's URL so that it can be asked for."""
    value = {**detail, **({"url": url} if url else {})}
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace").decode()


def damaged_loss(row: int, source: str, damage: Damaged) -> Loss:
    verdict = Verdict(row, damage.reason, detail={"error": damage.error}, verdict="quarantined")
    return Loss(row, document_id(source, damage.key), source, damage.locator, READ, verdict)


def refused(row: int, source: str, record: Record) -> Loss | None:
    """The loss of a record that the reading step itself turns away: a response that says it is not the page."""
    if record.http_status is None or 200 <= record.http_status < 300:
        return None
    verdict = Verdict(row, "http_status", float(record.http_status), 299.0)
    return Loss(row, document_id(source, record.key), source, record.locator, READ, verdict, record.url)


def parse_timestamp(value: str | None) -> datetime | None:
    """ISO 8601 to UTC; None where there is none or it is something else (the text stays in the record's own fields)."""
    if not value:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def make_batch(rows: Sequence[tuple[int, Record]], spec: InputSpec) -> pa.RecordBatch:
    """Records with their rows as a batch of `BATCH_SCHEMA`. Raises when a value cannot stand in it (a lone surrogate)."""
    records = [record for _, record in rows]
    columns = {
        "row": [row for row, _ in rows],
        "id": [document_id(spec.name, r.key) for r in records],
        "source": [spec.name] * len(records),
        "locator": [r.locator for r in records],
        "domain": [spec.domain] * len(records),
        "url": [r.url for r in records],
        "timestamp": [parse_timestamp(r.timestamp) for r in records],
        "language": [r.language or spec.language for r in records],
        "language_score": [None] * len(records),
        "payload": [r.payload for r in records],
        "content_type": [r.content_type for r in records],
        "charset": [r.charset for r in records],
        "robots": [r.robots for r in records],
        "text": [r.text for r in records],
        "meta": [meta_json(r.meta) for r in records],
    }
    return pa.RecordBatch.from_arrays([pa.array(columns[f.name], f.type) for f in BATCH_SCHEMA], schema=BATCH_SCHEMA)


@dataclass
class Outcome:
    """What a batch came to: survivors (in flight form), losses, and the signals that were seen before verdicts fell."""

    survivors: pa.RecordBatch
    losses: list[Loss] = field(default_factory=list)
    seen: list[dict[str, pa.Array]] = field(default_factory=list)


class StageChain:
    """The record stages of a pipeline, opened in a worker. Measures the seconds that each stage takes."""

    def __init__(self, stages: Sequence[Stage]):
        self.stages = list(stages)
        self.seconds: dict[str, float] = {stage.name: 0.0 for stage in stages}
        names = dict.fromkeys(BASE_SIGNALS)
        for stage in stages:
            names.update(dict.fromkeys(stage.signals()))
        self.signals = list(names)
        self.schema = shard_schema(self.signals)

    def measures(self) -> dict[str, float]:
        """`stage.name` -> figure of the work so far, of all stages."""
        return {f"{stage.name}.{name}": value for stage in self.stages for name, value in stage.measures().items()}

    def run(self, batch: pa.RecordBatch) -> Outcome:
        """Runs all stages over a batch. Raises whatever a stage raises: the caller then tries its records one by one."""
        losses: list[Loss] = []
        seen: list[dict[str, pa.Array]] = []
        for stage in self.stages:
            if batch.num_rows == 0:
                break
            start = time.perf_counter()
            result = stage.process(batch)
            self.seconds[stage.name] += time.perf_counter() - start
            if result.batch.num_rows != batch.num_rows:
                raise HeadraceError(
                    f"stage {stage.name} gave {result.batch.num_rows} rows for {batch.num_rows}: a stage keeps rows and order"
                )
            names = [name for name in stage.signals() if SIGNAL_PREFIX + name in result.batch.schema.names]
            seen.append({name: result.batch.column(SIGNAL_PREFIX + name) for name in names})
            verdicts = {v.row: v for v in reversed(result.verdicts)}
            losses += _losses(result.batch, stage.name, [verdicts[row] for row in sorted(verdicts)])
            batch = without_rows(result.batch, set(verdicts))
        return Outcome(batch, losses, seen)

    def finish(self, batch: pa.RecordBatch) -> pa.Table:
        """Survivors in flight -> `row`, `locator` and the columns of the shard schema: base signals and content hash added."""
        for name, values in compute(batch.column("text"), BASE_SIGNALS).items():
            batch = set_column(batch, SIGNAL_PREFIX + name, values)
        batch = set_column(batch, "content_hash", content_hashes(batch.column("text")))
        arrays = [batch.column("row"), batch.column("locator")]
        for column in self.schema:
            if column.name == "signals":
                parts = [_or_null(batch, SIGNAL_PREFIX + name, pa.float64()) for name in self.signals]
                arrays.append(pa.StructArray.from_arrays(parts, fields=list(column.type)))
            else:
                arrays.append(_or_null(batch, column.name, column.type))
        return pa.Table.from_arrays(arrays, schema=pa.schema([("row", pa.int64()), ("locator", pa.string()), *self.schema]))


def _losses(batch: pa.RecordBatch, stage: str, verdicts: list[Verdict]) -> list[Loss]:
    if not verdicts:
        return []
    names = ["row", "id", "source", "locator", "url", "language"]
    lost = batch.select([*names, "text"]).take(pa.array([verdict.row for verdict in verdicts], pa.int64()))
    starts = pc.fill_null(pc.utf8_slice_codeunits(lost.column("text"), 0, EXCERPT_SOURCE_CHARACTERS), "").to_pylist()
    columns = zip(*(lost.column(name).to_pylist() for name in names), verdicts, starts, strict=True)
    return [
        Loss(row, id, source, locator, stage, verdict, url, language, text)
        for row, id, source, locator, url, language, verdict, text in columns
    ]


def _or_null(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, kind)
    return batch.column(name).cast(kind)


def failure_text(error: BaseException) -> str:
    """An exception as a text that is the same in every run: without addresses, at most 300 characters."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return re.sub(r"0x[0-9a-fA-F]+", "0x", text)[:300]
