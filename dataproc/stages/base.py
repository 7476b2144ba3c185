"""The contract of a stage: a pure function of a record batch, with its inputs, outputs and resources declared.

A user adds a stage by naming `package.module:Class` in the pipeline file; the class derives from `Stage`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from store.strict_yaml import StrictModel


@dataclass(frozen=True)
class Resources:
    """What one worker needs. Memory in bytes; 0 means no special demand."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory: int = 0


@dataclass(frozen=True)
class Verdict:
    """A decision against a record: the `row`-th of the batch given to the stage (0-based). The first verdict on a row counts."""

    row: int
    rule: str
    value: float | None = None
    threshold: float | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    verdict: Literal["dropped", "quarantined"] = "dropped"


@dataclass(frozen=True)
class StageResult:
    """The batch with the stage's columns set (same rows, same order) and the verdicts on some of its rows."""

    batch: pa.RecordBatch
    verdicts: Sequence[Verdict] = ()


@dataclass(frozen=True)
class StageContext:
    """What a stage learns about its surroundings when a worker opens it."""

    record_timeout_s: float = 60.0
    scratch: str | None = None  # a local folder of this worker, or None
    heartbeat: Callable[[], None] = lambda: None  # a slow stage calls it after each record: "still making progress"


class Stage(ABC):
    """One processing stage. The output for a record depends on that record and the config alone, never on its neighbours."""

    name: ClassVar[str]
    Config: ClassVar[type[StrictModel]] = StrictModel
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    outputs: ClassVar[tuple[str, ...]] = ()
    resources: ClassVar[Resources] = Resources()

    def __init__(self, config: StrictModel):
        """Cheap and free of side effects: also run on the driver to learn `signals` and `thresholds`."""
        self.config = config

    def signals(self) -> tuple[str, ...]:
        """Names of the signals this stage computes, as configured: float64 columns `signals.<name>` of its output."""
        return ()

    def needed_signals(self) -> dict[str, str]:
        """Signals of earlier stages that this one looks at, as configured, each with what makes it, for the error when none does."""
        return {}

    def named_inputs(self) -> tuple[str, ...]:
        """Names of inputs that the configuration speaks of: each must be one of the pipeline's."""
        return ()

    def thresholds(self) -> dict[str, list[dict[str, Any]]]:
        """Signal name -> [{rule, min, max}] as configured, for the report's histograms."""
        return {}

    def meet(self, stages: Sequence[Stage]) -> None:
        """Shown all record stages of the pipeline, in order, once they are made: for what depends on how another one is set. Raises
        ValueError (what is missing, and the remedy). Also called on the driver."""

    def measures(self) -> dict[str, float]:
        """Figures of the work done since `open`, which only grow, for the report alone: they may hold times."""
        return {}

    def open(self, context: StageContext) -> None:
        """Loads models and lists. Called once in a worker before the first batch."""

    @abstractmethod
    def process(self, batch: pa.RecordBatch) -> StageResult:
        """Computes the stage's columns and verdicts for a batch (columns of `documents.BATCH_SCHEMA` plus earlier signals)."""

    def close(self) -> None:
        """Ends what `open` started (child processes). Called once; a crash may skip it."""


def set_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """The batch with one column replaced or, if it is new, added at the end."""
    position = batch.schema.get_field_index(name)
    if position < 0:
        return batch.append_column(name, values)
    return batch.set_column(position, pa.field(name, values.type), values)


def without_rows(batch: pa.RecordBatch, rows: set[int]) -> pa.RecordBatch:
    """The batch without some rows."""
    if not rows:
        return batch
    keep = pa.array([i not in rows for i in range(batch.num_rows)], pa.bool_())
    return batch.filter(pc.fill_null(keep, False))
