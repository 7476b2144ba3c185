"""The plan of a run: which work units there are. It depends on the inputs and the configuration alone, never on the workers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import xxhash

from dataproc.config import Limits, OutputSpec, Pipeline, StageSpec
from dataproc.dedup.earlier import Earlier
from dataproc.provenance import code_version, library_versions
from dataproc.sources.base import InputSpec, Slice
from dataproc.sources.registry import plan_input
from dataproc.stages.registry import stage_class
from store import files
from store.digests import canonical_json

MEGABYTE = 1_000_000
JOB = "job.json"
PASS1 = "pass1"  # the step that leaves a unit's survivors


@dataclass(frozen=True)
class WorkUnit:
    """A fixed part of one input: the unit of scheduling, retry and commit."""

    index: int
    input: str
    slices: tuple[Slice, ...]

    @property
    def bytes(self) -> int:
        """Stored bytes of its slices."""
        return sum(part.bytes for part in self.slices)

    def to_json(self) -> dict[str, Any]:
        return {"unit": self.index, "input": self.input, "slices": [asdict(part) for part in self.slices]}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> WorkUnit:
        return cls(value["unit"], value["input"], tuple(Slice(**part) for part in value["slices"]))


class Plan:
    """All work units of a run, held as compact JSON lines (a plan may have 100,000 units), and the digest that names the run."""

    def __init__(self, pipeline: Pipeline, lines: list[bytes], digest: str, input_files: int, input_bytes: int):
        self.pipeline = pipeline
        self.digest = digest
        self.input_files = input_files
        self.input_bytes = input_bytes
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def unit(self, index: int) -> WorkUnit:
        return WorkUnit.from_json(json.loads(self._lines[index]))

    def units(self) -> Iterator[WorkUnit]:
        return (WorkUnit.from_json(json.loads(line)) for line in self._lines)

    def with_first_rows(self, counts: dict[tuple[str, int], int]) -> Plan:
        """The plan with every unknown `first_row` filled in from the row counts of the slices before it in the file.

        counts: (url, start) of a slice -> rows that start in it.
        """
        next_row: dict[str, int] = {}
        lines = []
        for unit in self.units():
            parts = []
            for part in unit.slices:
                first = part.first_row if part.first_row is not None else next_row[part.url]
                next_row[part.url] = first + counts.get((part.url, part.start), 0)
                parts.append(replace(part, first_row=first))
            lines.append(canonical_json(replace(unit, slices=tuple(parts)).to_json()))
        return Plan(self.pipeline, lines, self.digest, self.input_files, self.input_bytes)


def slices_to_count(plan: Plan) -> list[tuple[str, Slice]]:
    """(input, slice) whose rows must be counted, because a later slice of the same file does not know its first row."""
    wanted: list[tuple[str, Slice]] = []
    earlier: list[tuple[str, Slice]] = []
    for unit in plan.units():
        for part in unit.slices:
            if earlier and earlier[-1][1].url != part.url:
                earlier = []
            if part.first_row is None:
                wanted += earlier
                earlier = []
            earlier.append((unit.input, part))
    return wanted


def make_plan(pipeline: Pipeline) -> Plan:
    """Lists the inputs, sorted, and cuts them into units. Raises ConfigError for an input that matches no file."""
    unit_bytes = int(pipeline.limits.unit_mb * MEGABYTE)
    lines: list[bytes] = []
    # How global steps are cut does not change what they give, but steps that were cut otherwise cannot be gone on with.
    cut = pipeline.limits.dedup_memory_mb
    digest = xxhash.xxh3_128(canonical_json([pipeline.identity(), cut, code_version(), library_versions()]))
    sizes: dict[str, int] = {}
    for spec in pipeline.inputs:
        for slices in plan_input(spec, unit_bytes):
            unit = WorkUnit(len(lines), spec.name, tuple(slices))
            lines.append(canonical_json(unit.to_json()))
            digest.update(lines[-1])
            sizes |= {part.url: part.file_bytes for part in slices}
    return Plan(pipeline, lines, digest.hexdigest()[:24], len(sizes), sum(sizes.values()))


def write_job(work: str, pipeline: Pipeline) -> None:
    """Publishes what a worker on any node needs to know of the pipeline at `<work>/job.json`."""
    job = {
        "path": pipeline.path,
        "dataset": pipeline.dataset,
        "version": pipeline.version,
        "owner": pipeline.owner,
        "inputs": [spec.model_dump(mode="json") for spec in pipeline.inputs],
        "record_stages": [_written(spec) for spec in pipeline.record_stages],
        "exact_dedup": _written(pipeline.exact_dedup),
        "near_dedup": _written(pipeline.near_dedup),
        "keep_rate": _written(pipeline.keep_rate),
        "paragraph_dedup": _written(pipeline.paragraph_dedup),
        "earlier": {reference: version.to_json() for reference, version in pipeline.earlier.items()},
        "output": pipeline.output.model_dump(mode="json"),
        "limits": pipeline.limits.model_dump(mode="json"),
    }
    files.write_bytes(files.join(work, JOB), canonical_json(job))


def _written(spec: StageSpec | None) -> list[Any] | None:
    return spec and [spec.key, spec.config.model_dump(mode="json")]


def read_job(work: str) -> Pipeline:
    """The pipeline as `write_job` left it."""
    job = json.loads(files.read_bytes(files.join(work, JOB)))

    def stage(entry: list) -> StageSpec:
        cls = stage_class(entry[0])
        return StageSpec(entry[0], cls, cls.Config.model_validate(entry[1], context={"base": None}))

    return Pipeline(
        path=job["path"],
        dataset=job["dataset"],
        version=job["version"],
        owner=job["owner"],
        inputs=tuple(InputSpec.model_validate(spec) for spec in job["inputs"]),
        record_stages=tuple(stage(entry) for entry in job["record_stages"]),
        exact_dedup=job["exact_dedup"] and stage(job["exact_dedup"]),
        near_dedup=job["near_dedup"] and stage(job["near_dedup"]),
        keep_rate=job["keep_rate"] and stage(job["keep_rate"]),
        paragraph_dedup=job["paragraph_dedup"] and stage(job["paragraph_dedup"]),
        output=OutputSpec.model_validate(job["output"]),
        limits=Limits.model_validate(job["limits"]),
        earlier={reference: Earlier(**version) for reference, version in job["earlier"].items()},
    )


def work_folder(store: str, plan_digest: str) -> str:
    return files.join(store, ".work", plan_digest)


def unit_file(work: str, step: str, index: int, suffix: str) -> str:
    """The place of one of a task's outputs, for example `<work>/pass1/000012.kept.parquet`."""
    return files.join(work, step, f"{index:06d}.{suffix}")


def scratch_folder() -> str:
    """A folder on this machine for what may be lost with it: cursors of running units."""
    return os.path.join(os.environ.get("TMPDIR", "/tmp"), f"headrace-{os.getuid()}")
