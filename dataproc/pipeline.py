"""A data run from its pipeline file to a committed version, in the order in which things happen.

plan -> pass 1 over work units -> global step over keys -> pass 2 into shards -> report and commit. Whatever is killed, the same
command goes on from the receipts that stand and ends in the same bytes.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from dataproc.batches import READ, StageChain
from dataproc.committing import commit_documents, merged_sides, part_entry
from dataproc.config import Pipeline, artefact_digests, load_pipeline
from dataproc.dedup.earlier import parts_of
from dataproc.dedup.exact import run_keys
from dataproc.dedup.exact import summary as exact_summary
from dataproc.dedup.indexing import index_entries
from dataproc.dedup.near import run_near
from dataproc.dedup.paragraphs import run_paragraphs
from dataproc.dedup.shuffle import Steps
from dataproc.dedup.texts import add_excerpts, text_file
from dataproc.execution import Executor, PlainLoop, run_units
from dataproc.index import IndexWorker, index_tasks, row_counts
from dataproc.inputs import InputDigests
from dataproc.keep_rate import run_keep_rate
from dataproc.plan import MEGABYTE, Plan, make_plan, slices_to_count, work_folder, write_job
from dataproc.progress import Progress
from dataproc.provenance import code_version, library_versions
from dataproc.shards import STEP as PASS2
from dataproc.shards import ShardWorker, plan_shards
from dataproc.unit import UnitWorker
from dataproc.versions import DOCUMENTS, Version, describe_schema, now, version_digest
from store import artefacts, files
from store.digests import canonical_json, json_digest
from store.errors import CheckFailed

PLANS = ".plans"
WORST_REASONS = 5
# Up to these sizes a step takes less time in the driver than a pool of workers takes to start.
COUNTED_BYTES_HERE = 1 << 30
KEYS_COMPARED_HERE = 500_000  # some 200 MB while they are sorted
SIGNATURES_COMPARED_HERE = 100_000  # some 150 MB


def run_pipeline(
    path: str,
    store: str | None = None,
    make_executor: Callable[[], Executor] | None = None,
    dry_run: bool = False,
    fresh: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Runs a pipeline file and returns what came out: version, counts, where the report lies.

    Raises ConfigError before any work for a mistake in the file, CheckFailed when too much is quarantined or counts do not add up,
    StoreError when the store cannot be written.
    """
    store = artefacts.store_url(store)
    pipeline = load_pipeline(path).resolved(store)
    plan = make_plan(pipeline)
    if dry_run:
        return describe_plan(plan, store)
    if not fresh and (version := published(store, plan.digest)):
        return outcome(version, plan, already=True)
    work = work_folder(store, plan.digest)
    if fresh:
        files.delete(work)
    write_job(work, pipeline)
    progress = Progress(quiet)
    executor = make_executor()
    try:
        version = Run(plan, store, work, executor, progress).execute()
    except Exception:
        # Another run of the same plan may have finished first and cleared the work away: then its version is the result.
        if not fresh and (version := published(store, plan.digest)):
            return outcome(version, plan, already=True)
        raise
    finally:
        progress.end()
        executor.close()
    return outcome(version, plan, already=False)


@dataclass
class Totals:
    """Counts over the whole run, added up from receipts."""

    records: int = 0
    survivors: int = 0
    kept: int = 0
    quarantined: int = 0
    dropped: Counter = field(default_factory=Counter)
    quarantine_reasons: Counter = field(default_factory=Counter)
    not_documents: Counter = field(default_factory=Counter)
    seconds: Counter = field(default_factory=Counter)
    measures: Counter = field(default_factory=Counter)  # of the stages' work, for the report alone
    cluster_sizes: Counter = field(default_factory=Counter)

    def counts(self) -> dict[str, Any]:
        """The manifest's `counts`."""
        return {
            "input": self.records,
            "kept": self.kept,
            "quarantined": self.quarantined,
            "dropped": dict(sorted(self.dropped.items())),
        }


class Run:
    """One execution of a plan."""

    def __init__(self, plan: Plan, store: str, work: str, executor: Executor, progress: Progress):
        self.plan = plan
        self.pipeline: Pipeline = plan.pipeline
        self.store = store
        self.work = work
        self.executor = executor
        self.progress = progress
        self.run_name = uuid.uuid4().hex[:12]
        self.totals = Totals()
        self.dedup: dict[str, dict[str, Any]] = {}  # what the manifest says of the global steps, by stage
        self.rates: dict[str, dict[str, Any]] = {}  # and of the share that is kept, by group

    def execute(self) -> Version:
        """The story of the run."""
        self.plan = self._with_first_rows()
        units = self._pass_1()
        self._check_quarantine()
        losers = self._keys()
        if self.pipeline.near_dedup:
            losers.append(self._near(losers))
        if self.pipeline.keep_rate:
            losers.append(self._keep_rate(losers))
        cuts = self._paragraphs(losers) if self.pipeline.paragraph_dedup else []
        shards = self._pass_2(units, losers, cuts)
        self._check_quarantine()
        self._check_conservation(shards)
        version = self._commit(shards)
        files.write_bytes(files.join(self.store, PLANS, f"{self.plan.digest}.json"), canonical_json({"reference": version.reference}))
        files.delete(self.work)
        return version

    def _with_first_rows(self) -> Plan:
        """Row numbers of the slices of large line files, which only counting the lines before them can tell."""
        wanted = slices_to_count(self.plan)
        if not wanted:
            return self.plan
        tasks = index_tasks(wanted)
        small = sum(part.bytes for _, part in wanted) <= COUNTED_BYTES_HERE
        receipts = self._run("counting rows", IndexWorker, {"work": self.work}, tasks, small=small)
        return self.plan.with_first_rows(row_counts(wanted, receipts))

    def _pass_1(self) -> list[tuple[int, int, list[int]]]:
        """Work units to survivors. Returns (unit, records, compressed bytes of each group of survivors), in order."""
        arguments = {"work": self.work, "run": self.run_name, "guarded": self.executor.guarded}
        tasks = _UnitTasks(self.plan)
        units: list[Any] = [None] * len(self.plan)
        self.unit_survivors, self.unit_paragraphs = [0] * len(self.plan), [0] * len(self.plan)
        self.inputs = InputDigests()
        for receipt in self._run("pass 1", UnitWorker, arguments, tasks, self.plan.input_bytes, self.pipeline.resources()):
            self.unit_survivors[receipt["index"]] = receipt["survivors"]
            self.unit_paragraphs[receipt["index"]] = receipt.get("paragraphs", 0)
            units[receipt["index"]] = (receipt["index"], receipt["records"], [group["bytes"] for group in receipt["groups"]])
            totals = self.totals
            totals.records += receipt["records"]
            totals.survivors += receipt["survivors"]
            totals.quarantined += receipt["quarantined"]
            totals.dropped.update(receipt["dropped"])
            totals.quarantine_reasons.update(receipt["quarantine_reasons"])
            totals.not_documents.update(receipt["not_documents"])
            totals.seconds.update(receipt["seconds"])
            totals.measures.update(receipt["measures"])
            self.inputs.add(self.plan.unit(receipt["index"]).input, receipt["inputs"])
        return units

    def _steps(self, title: str, small: bool) -> Steps:
        """What runs global steps: in the driver where they are small."""

        def run(worker: type, arguments: dict[str, Any], step: str, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return list(self._run(f"{title}: {step}" if title != step else title, worker, arguments, tasks, small=small))

        return Steps(self.work, self.pipeline.limits.dedup_memory_mb * MEGABYTE, run)

    def _keys(self) -> list[tuple[str, int]]:
        """The global step over keys. Returns (step, tasks) that have written losers."""
        exact = self.pipeline.exact_dedup is not None
        steps = self._steps("comparing keys", self.totals.survivors <= KEYS_COMPARED_HERE)
        receipts, losers = run_keys(steps, self.unit_survivors, exact)
        for receipt in receipts:
            self.totals.cluster_sizes.update({int(size): count for size, count in receipt["cluster_sizes"].items()})
        if exact:
            self.dedup["exact_dedup"] = exact_summary(receipts)
        return losers

    def _near(self, losers: list[tuple[str, int]]) -> tuple[str, int]:
        """The global steps over signatures, of documents that have not lost already. Returns (step, tasks) that have written losers."""
        steps = self._steps("near duplicates", self.totals.survivors <= SIGNATURES_COMPARED_HERE)
        config = self.pipeline.near_dedup.config
        result, found = run_near(steps, "documents", self.unit_survivors, config, losers)
        parts = parts_of([self.pipeline.earlier[reference] for reference in config.against])
        result["largest"] = add_excerpts(result["largest"], lambda unit: text_file(self.work, len(self.plan), parts, unit))
        self.dedup["near_dedup"] = result
        return found

    def _keep_rate(self, losers: list[tuple[str, int]]) -> tuple[str, int]:
        """The global step over scores, of documents that have not lost already. Returns (step, tasks) that have written losers."""
        steps = self._steps("keep rate", self.totals.survivors <= KEYS_COMPARED_HERE)
        self.rates, found = run_keep_rate(steps, self.unit_survivors, self.pipeline.keep_rate.config, losers)
        return found

    def _paragraphs(self, losers: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """The global steps over paragraphs, of documents that have not lost already. Returns (step, tasks) that have written cuts."""
        config = self.pipeline.paragraph_dedup.config
        counts = self.unit_paragraphs
        steps = self._steps("paragraphs", sum(counts) <= KEYS_COMPARED_HERE)
        self.dedup["paragraph_dedup"], found = run_paragraphs(steps, counts, losers)
        cuts = [found]
        if config.near:
            steps = self._steps("near paragraphs", sum(counts) <= SIGNATURES_COMPARED_HERE)
            near, found = run_near(steps, "paragraphs", counts, config.near, losers, config.max_copies, cuts)
            del near["largest"]  # of paragraphs by number, whose texts are not at hand here
            self.dedup["paragraph_dedup"]["near"] = near
            cuts.append(found)
        return cuts

    def _pass_2(
        self, units: list[tuple[int, int, list[int]]], losers: list[tuple[str, int]], cuts: list[tuple[str, int]]
    ) -> list[dict[str, Any]]:
        """Survivors to shards. Returns the shards' receipts in order; their counts replace those of pass 1."""
        plan = plan_shards(iter(units), self.pipeline.output.shard_mb)
        tasks = [{"index": i, "losers": losers, "cuts": cuts, "segments": [asdict(s) for s in segments]} for i, segments in enumerate(plan)]
        shards: list[Any] = [None] * len(tasks)
        totals = self.totals
        totals.quarantined, totals.dropped, totals.quarantine_reasons = 0, Counter(), Counter()
        for receipt in self._run("pass 2", ShardWorker, {"work": self.work}, tasks, small=len(tasks) == 1):
            shards[receipt["index"]] = receipt
            totals.kept += receipt["kept"]
            totals.quarantined += receipt["quarantined"]
            totals.dropped.update(receipt["dropped"])
            totals.quarantine_reasons.update(receipt["quarantine_reasons"])
        return shards

    def _run(
        self, step: str, worker: type, arguments: dict, tasks, total_bytes: int = 0, demand=None, small: bool = False
    ) -> Iterable[dict[str, Any]]:
        self.progress.begin(step, len(tasks), total_bytes)
        for receipt in run_units(PlainLoop() if small else self.executor, worker, arguments, tasks, demand):
            self.progress.advance(receipt)
            yield receipt

    def _check_quarantine(self) -> None:
        totals, limit = self.totals, self.pipeline.limits.max_quarantined_fraction
        if totals.quarantined <= limit * totals.records:
            return
        worst = ", ".join(f"{reason} {count:,}" for reason, count in totals.quarantine_reasons.most_common(WORST_REASONS))
        raise CheckFailed(
            f"{totals.quarantined:,} of {totals.records:,} records are quarantined, more than max_quarantined_fraction {limit:g} allows; "
            f"worst reasons: {worst}; look at {self.work}, mend the input or raise the limit, and run the same command again"
        )

    def _check_conservation(self, shards: list[dict[str, Any]]) -> None:
        totals = self.totals
        out = totals.kept + sum(totals.dropped.values()) + totals.quarantined
        decisions = sum(shard["decisions"] for shard in shards)
        if not totals.records == out == decisions:
            raise CheckFailed(f"{totals.records} records came in, {out} are accounted for by {decisions} decisions: the run is not sound")

    def _commit(self, shards: list[dict[str, Any]]) -> Version:
        """Report, manifest, publication."""
        self.progress.begin("commit", 1, 0)
        statistics, samples = merged_sides(self.work, PASS2, len(shards))
        for size, count in sorted(self.totals.cluster_sizes.items()):
            statistics.observe_duplicates(size, count)
        manifest = self._manifest(shards)
        chain = StageChain(self.pipeline.make_stages())
        steps = {"shards": PASS2, "decisions": PASS2}
        times, measures = dict(self.totals.seconds), dict(self.totals.measures)
        return commit_documents(self.store, self.work, manifest, statistics, samples, self._stages(chain), times, steps, measures)

    def _manifest(self, shards: list[dict[str, Any]]) -> dict[str, Any]:
        pipeline = self.pipeline
        chain = StageChain(pipeline.make_stages())
        identity = pipeline.identity()
        manifest = {
            "name": pipeline.dataset,
            "label": pipeline.version,
            "kind": DOCUMENTS,
            "owner": pipeline.owner,
            "parents": [version.digest for version in pipeline.earlier.values()],
            "parent_references": [version.reference for version in pipeline.earlier.values()],
            "inputs": self.inputs.summary(),
            "config": pipeline.described(),
            "config_digest": json_digest(identity),
            "artefacts": artefact_digests(pipeline),
            "code_version": code_version(),
            "libraries": library_versions(),
            "plan_digest": self.plan.digest,
            "schema": describe_schema(chain.schema),
            "shards": [part_entry("shards", s["index"], s["kept"], s["files"]["kept"]) for s in shards],
            "decisions": [part_entry("decisions", s["index"], s["decisions"], s["files"]["decisions"]) for s in shards],
            "counts": self.totals.counts(),
            "not_documents": dict(sorted(self.totals.not_documents.items())),
            "quarantine_reasons": dict(sorted(self.totals.quarantine_reasons.items())),
        }
        manifest["index"] = index_entries(shards)
        if self.rates:
            manifest["keep_rate"] = self.rates
        if self.dedup:
            removed = Counter()
            for shard in shards:
                removed.update(shard["removed_bytes"])
            manifest["dedup"] = {stage: {"removed_bytes": removed[stage], **found} for stage, found in self.dedup.items()}
        return {**manifest, "digest": version_digest(manifest), "created_at": now()}

    def _stages(self, chain: StageChain) -> list[dict[str, Any]]:
        """The stages as the report shows them, in order, the reading step first."""
        shown = [{"name": READ, "config": {}, "thresholds": {}}]
        for spec, stage in zip(self.pipeline.record_stages, chain.stages, strict=True):
            shown.append({"name": stage.name, "config": spec.config.model_dump(mode="json"), "thresholds": stage.thresholds()})
        for spec in self.pipeline.global_stages:
            shown.append({"name": spec.cls.name, "config": spec.config.model_dump(mode="json"), "thresholds": {}})
        return shown


class _UnitTasks:
    """The plan's units as tasks, made when they are asked for: 100,000 of them need not stand in memory."""

    def __init__(self, plan: Plan):
        self.plan = plan

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, wanted: slice) -> list[dict[str, Any]]:
        return [self.plan.unit(i).to_json() for i in range(*wanted.indices(len(self.plan)))]


def published(store: str, plan_digest: str) -> Version | None:
    """The version that a finished run of this plan left, if it still stands."""
    try:
        reference = json.loads(files.read_bytes(files.join(store, PLANS, f"{plan_digest}.json")))["reference"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    name, _, label = reference.partition("@")
    url = files.join(store, name, label)
    return Version(url, artefacts.load(url).manifest) if artefacts.is_committed(url) else None


def describe_plan(plan: Plan, store: str) -> dict[str, Any]:
    """What `--dry-run` says: nothing has been written."""
    sizes = np.array([unit.bytes for unit in plan.units()] or [0])
    return {
        "dry_run": True,
        "dataset": plan.pipeline.dataset,
        "label": plan.pipeline.version,
        "plan": plan.digest,
        "store": store,
        "input_files": plan.input_files,
        "input_bytes": plan.input_bytes,
        "units": len(plan),
        "largest_unit_bytes": int(sizes.max()),
        "stages": [spec.key for spec in plan.pipeline.stages],
        "already": published(store, plan.digest) is not None,
    }


def outcome(version: Version, plan: Plan, already: bool) -> dict[str, Any]:
    """What a run tells its caller."""
    manifest = version.manifest
    return {
        "version": version.reference,
        "digest": manifest["digest"],
        "url": version.url,
        "report": files.join(version.url, "report.html"),
        "counts": manifest["counts"],
        "shards": len(manifest["shards"]),
        "plan": plan.digest,
        "already": already,
    }
