"""Batches for stages, made by hand."""

from __future__ import annotations

import pyarrow as pa

from dataproc.batches import make_batch
from dataproc.sources.base import InputSpec, Record
from dataproc.stages.base import Stage, StageContext, StageResult

SPEC = InputSpec(name="made", format="jsonl", path="made.jsonl")


def batch_of(*records: Record) -> pa.RecordBatch:
    """Records as a batch, rows numbered from 0."""
    return make_batch(list(enumerate(records)), SPEC)


def texts(*values: str) -> pa.RecordBatch:
    return batch_of(*(Record(key=str(i), locator=f"made#{i}", text=text) for i, text in enumerate(values)))


def pages(*values: bytes, content_type: str | None = "text/html", charset: str | None = None) -> pa.RecordBatch:
    made = (Record(key=str(i), locator=f"made#{i}", payload=v, content_type=content_type, charset=charset) for i, v in enumerate(values))
    return batch_of(*made)


def run(cls: type[Stage], batch: pa.RecordBatch, **settings) -> StageResult:
    """One batch through a stage with these settings, opened and closed."""
    stage = cls(cls.Config.model_validate(settings, context={"base": None}))
    stage.open(StageContext())
    try:
        return stage.process(batch)
    finally:
        stage.close()


def rules(result: StageResult) -> dict[int, str]:
    """Row -> rule of the verdicts."""
    return {v.row: v.rule for v in result.verdicts}
