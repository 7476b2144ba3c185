"""Pass 2: survivors of consecutive units become one final shard and its part of the decision ledger.

How units are put together into shards depends on what pass 1 wrote alone, so the shards are the same for any workers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataproc.batches import StageChain, detail_json
from dataproc.config import StageSpec
from dataproc.decisions import WORK_SCHEMA, kept_decisions
from dataproc.dedup.cutting import Cutter, Cutting, UnitCuts
from dataproc.dedup.earlier import Earlier
from dataproc.dedup.exact import Losers
from dataproc.dedup.indexing import IndexWriter
from dataproc.dedup.paragraphs import read_cuts
from dataproc.dedup.signatures import open_signatures
from dataproc.documents import DECISION_SCHEMA
from dataproc.parquet import RowGroupWriter, iterate_groups, open_parquet
from dataproc.plan import MEGABYTE, PASS1, read_job, unit_file
from dataproc.receipts import FILE_SUFFIXES, read_standing, write_receipt
from dataproc.statistics import DropSamples, Statistics
from dataproc.text_hash import text_key
from dataproc.unit import RUN
from dataproc.unit_outputs import survivor_schema
from store import files
from store.digests import file_digest
from store.errors import HeadraceError
from store.files import FileStamp

STEP = "pass2"


@dataclass(frozen=True)
class Segment:
    """Row groups [first_group, after_group) of a unit's survivors, with the lost records that lie between them.

    The first segment of a unit begins at its first record, the last ends with its last one.
    """

    unit: int
    records: int
    first_group: int
    after_group: int
    groups: int


def plan_shards(units: Iterator[tuple[int, int, list[int]]], shard_mb: float) -> list[list[Segment]]:
    """Puts consecutive units together into shards of about `shard_mb` megabytes; a unit larger than that is cut between groups.

    units: (unit, records, compressed bytes of each row group of survivors), in order. At least one shard comes out.
    """
    target, size = shard_mb * MEGABYTE, 0
    shards: list[list[Segment]] = [[]]
    for unit, records, groups in units:
        first = 0
        for number, group_bytes in enumerate(groups):
            if size and size + group_bytes > target:
                if number > first:
                    shards[-1].append(Segment(unit, records, first, number, len(groups)))
                shards.append([])
                first, size = number, 0
            size += group_bytes
        shards[-1].append(Segment(unit, records, first, len(groups), len(groups)))
    return shards


class ShardWorker:
    """Runs shard tasks: {index, segments, losers, cuts: (step, tasks) that have written some}."""

    def __init__(self, work: str):
        self.work = work
        self.pipeline = read_job(work)
        chain = StageChain(self.pipeline.make_stages())
        self.schema = chain.schema
        self.survivor_schema = survivor_schema(self.schema)
        paragraphs = self.pipeline.paragraph_dedup
        self.cutter = Cutter(paragraphs.config, chain.stages) if paragraphs else None

    def versions_of(self, stage: StageSpec) -> list[Earlier]:
        """The earlier versions that a stage compares to, in its order."""
        return [self.pipeline.earlier[reference] for reference in stage.config.against]

    def close(self) -> None:
        """Holds nothing open."""

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        """Writes one shard and its decisions; returns the receipt."""
        standing = read_standing(self.work, STEP, task["index"])
        return standing if standing is not None else _ShardRun(self, task).receipt()


class _ShardRun:
    def __init__(self, worker: ShardWorker, task: dict[str, Any]):
        self.worker = worker
        self.work = worker.work
        self.index = task["index"]
        self.segments = [Segment(**value) for value in task["segments"]]
        self.losers = [tuple(source) for source in task["losers"]]
        self.cut_sources = [tuple(source) for source in task["cuts"]]
        pipeline = worker.pipeline
        self.index_writer = IndexWriter(*(spec and spec.config for spec in (pipeline.near_dedup, pipeline.paragraph_dedup)))
        self.removed: Counter[str] = Counter()  # bytes of text by the stage that took them
        self.statistics = Statistics()
        self.samples = DropSamples()

    def _url(self, name: str) -> str:
        return unit_file(self.work, STEP, self.index, FILE_SUFFIXES[name])

    def receipt(self) -> dict[str, Any]:
        units = [segment.unit for segment in self.segments]
        losers = Losers(self.work, self.losers, min(units), max(units) + 1) if units else None
        cuts = read_cuts(self.work, self.cut_sources, min(units), max(units) + 1) if units else None
        compression = self.worker.pipeline.output.compression
        names = ["kept", "decisions", "side", *(f"index_{kind}" for kind in self.index_writer.kinds)]
        with ExitStack() as stack:
            paths = {name: stack.enter_context(files.atomic_path(self._url(name))) for name in names}
            shard = RowGroupWriter(paths["kept"], self.worker.schema, compression)
            decisions = RowGroupWriter(paths["decisions"], DECISION_SCHEMA, compression, text_column="detail")
            for segment in self.segments:
                self._segment(segment, losers.of(segment.unit), self._cuts_of(segment.unit, cuts), shard, decisions)
            shard.close()
            decisions.close()
            for kind in self.index_writer.kinds:
                self.index_writer.write(kind, paths[f"index_{kind}"])
            with open(paths["side"], "w") as stream:
                json.dump({"statistics": self.statistics.to_json(), "samples": self.samples.to_json()}, stream)
            stamps = {name: asdict(FileStamp(*file_digest(path))) for name, path in paths.items()}
        dropped, quarantined = (self.statistics.losses_by_name(verdict) for verdict in ("dropped", "quarantined"))
        receipt = {
            "index": self.index,
            "kept": shard.rows,
            "decisions": decisions.rows,
            "quarantined": sum(quarantined.values()),
            "dropped": dropped,
            "quarantine_reasons": quarantined,
            "removed_bytes": dict(sorted(self.removed.items())),
            "files": stamps,
        }
        write_receipt(self.work, STEP, self.index, receipt)
        return receipt

    def _cuts_of(self, unit: int, cuts: np.ndarray) -> UnitCuts | None:
        cutter = self.worker.cutter
        if cutter is None:
            return None
        begin, end = np.searchsorted(cuts["node"], np.array([unit, unit + 1], np.uint64) << np.uint64(32))
        return UnitCuts(self.work, unit, cuts[begin:end], self.worker.versions_of(self.worker.pipeline.paragraph_dedup))

    def _segment(self, segment: Segment, losers: dict, cuts: UnitCuts | None, shard: RowGroupWriter, decisions: RowGroupWriter) -> None:
        kept_url = unit_file(self.work, PASS1, segment.unit, FILE_SUFFIXES["kept"])
        first, after, place = self._window(segment, kept_url)
        out = _Out(segment, losers, cuts, shard, decisions)
        lost = _LostRows(unit_file(self.work, PASS1, segment.unit, FILE_SUFFIXES["decisions"]), first)
        expected = first
        held = self.worker.survivor_schema.empty_table()  # the last group goes with all lost records after it
        for group in iterate_groups(kept_url, self.worker.survivor_schema, segment.first_group, segment.after_group):
            if held.num_rows:
                until = held.column("row")[-1].as_py()
                expected = self._write(held, place, lost.before(until), out, expected)
            place += held.num_rows
            held = group
        expected = self._write(held, place, lost.before(after), out, expected)
        if expected != after:
            raise HeadraceError(f"work unit {segment.unit}: decisions reach record {expected}, the unit has {after}: one was lost")
        if segment.first_group == 0:
            self._take_side(segment.unit)

    def _window(self, segment: Segment, kept_url: str) -> tuple[int, int, int]:
        """The records [first, after) of the unit that this segment accounts for, and the place of its first survivor among the unit's."""
        cuts = []
        with open_parquet(kept_url) as reader:
            place = sum(reader.metadata.row_group(number).num_rows for number in range(segment.first_group))
            for group in (segment.first_group, segment.after_group):
                inner = 0 < group < segment.groups
                cuts.append(reader.read_row_group(group - 1, columns=["row"]).column("row")[-1].as_py() + 1 if inner else None)
        return cuts[0] or 0, segment.records if cuts[1] is None else cuts[1], place

    def _take_side(self, unit: int) -> None:
        side = json.loads(files.read_bytes(unit_file(self.work, PASS1, unit, FILE_SUFFIXES["side"])))
        self.statistics.merge(Statistics.from_json(side["statistics"]))
        self.samples.merge(DropSamples.from_json(side["samples"]))

    def _write(self, group: pa.Table, place: int, lost: pa.Table, out: _Out, expected: int) -> int:
        """Writes one group of survivors, the first of which has a place among the unit's, and the decisions on all records up to its last;
        returns the next expected row."""
        rows = group.column("row").to_pylist()
        beaten = [row in out.losers for row in rows]
        stays = pa.array([not b for b in beaten], pa.bool_())
        late = self._late_losses(group.filter(pa.array(beaten, pa.bool_())), out.losers)
        kept = group.filter(stays)
        places = [place + k for k, b in enumerate(beaten) if not b]
        cutting = self.worker.cutter.cut(kept, places, out.cuts) if out.cuts is not None else Cutting(kept)
        left = [k for k in range(kept.num_rows) if k not in cutting.verdicts]
        cut_down = self._cut_losses(kept, cutting)
        self.removed["paragraph_dedup"] += cutting.bytes
        details = {k: {"cut": cutting.facts[row]} for k, row in enumerate(left) if row in cutting.facts}
        written = cutting.table.take(pa.array(left, pa.int64()))
        table = pa.concat_tables([lost, late, cut_down, kept_decisions(written, details)]).sort_by("row")
        found = table.column("row").to_pylist()
        if found != list(range(expected, expected + len(found))):
            raise HeadraceError(f"work unit {out.segment.unit}: its decisions do not account for every record once, near record {expected}")
        table = table.drop_columns(["row"])
        out.decisions.add(table)
        hashes = kept.column("content_hash").take(pa.array(left, pa.int64())).to_pylist()  # as they were compared
        written = written.select(self.worker.schema.names).cast(self.worker.schema)
        out.shard.add(written)
        self._index(out.segment.unit, written, hashes, [places[k] for k in left])
        self.statistics.observe_decisions(table)
        self.statistics.observe_kept(written)
        return expected + len(found)

    def _index(self, unit: int, written: pa.Table, hashes: list[str], places: list[int]) -> None:
        near = self.worker.pipeline.near_dedup
        if near is None or not places:
            self.index_writer.add(written, hashes)
            return
        columns = open_signatures(unit_file(self.work, PASS1, unit, FILE_SUFFIXES["signatures"]), near.config)
        first, after = places[0], places[-1] + 1
        some = np.array(places) - first
        self.index_writer.add(written, hashes, *(column.read(first, after)[some] for column in columns))

    def _late_losses(self, beaten: pa.Table, losers: dict[int, dict[str, Any]]) -> pa.Table:
        """Decisions against survivors that lost to another document, or are not among the best."""
        rows = []
        for row in beaten.select(["row", "id", "source", "locator", "url", "language", "text", "quality"]).to_pylist():
            loser = losers[row["row"]]
            if loser["kind"] == "rate":
                rows.append(self._loss(row, "dropped", "keep_rate", "below_quantile", row["quality"], loser["threshold"], {}))
                continue
            if loser["kind"] == "id":
                verdict, stage, rule = "quarantined", RUN, "duplicate_id"
                detail = {"error": "an earlier record of the same source has the same id"}
            else:
                exact = loser["kind"] == "content"
                verdict, stage, rule = "dropped", *(("exact_dedup", "duplicate") if exact else ("near_dedup", "near_duplicate"))
                detail = {"winner": loser["winner"], "language": row["language"]}
                if exact:
                    detail["text_key"] = text_key(row["text"])
                else:
                    detail["similarity"] = round(loser["similarity"], 6)
                    detail |= {"via": loser["via"]} if loser["via"] else {}
                if loser["earlier"] is not None:
                    spec = self.worker.pipeline.exact_dedup if exact else self.worker.pipeline.near_dedup
                    detail["version"] = self.worker.versions_of(spec)[loser["earlier"]].reference
                self.removed[stage] += len(row["text"].encode())
            rows.append(self._loss(row, verdict, stage, rule, None, None, detail))
        return pa.Table.from_pylist(rows, schema=WORK_SCHEMA)

    def _cut_losses(self, kept: pa.Table, cutting: Cutting) -> pa.Table:
        """Decisions against documents of which too little was left."""
        chosen = sorted(cutting.verdicts)
        columns = ["row", "id", "source", "locator", "url", "language", "text"]
        rows = []
        for place, row in zip(chosen, kept.select(columns).take(pa.array(chosen, pa.int64())).to_pylist(), strict=True):
            stage, verdict = cutting.verdicts[place]
            self.removed["paragraph_dedup"] += len(row["text"].encode())
            detail = {**verdict.detail, "cut": cutting.facts[place]}
            rows.append(self._loss(row, "dropped", stage, verdict.rule, verdict.value, verdict.threshold, detail))
        return pa.Table.from_pylist(rows, schema=WORK_SCHEMA)

    def _loss(self, row: dict, verdict: str, stage: str, rule: str, value: float | None, threshold: float | None, detail: dict) -> dict:
        self.samples.offer(stage, rule, row["id"], row["source"], row["url"], row["language"], value, threshold, row["text"])
        named = {name: row[name] for name in ("row", "id", "source", "locator")}
        decided = {"verdict": verdict, "stage": stage, "rule": rule, "value": value, "threshold": threshold}
        return {**named, **decided, "detail": detail_json(detail, row["url"])}


@dataclass(frozen=True)
class _Out:
    """Where a segment goes, and what is known against its records."""

    segment: Segment
    losers: dict[int, dict[str, Any]]
    cuts: UnitCuts | None
    shard: RowGroupWriter
    decisions: RowGroupWriter


class _LostRows:
    """The decisions that pass 1 made against a unit's records, handed out in ascending windows of rows."""

    def __init__(self, url: str, first: int):
        self._groups = iterate_groups(url, WORK_SCHEMA)
        self._held = WORK_SCHEMA.empty_table()
        self._first = first

    def before(self, row: int) -> pa.Table:
        """Those with rows below `row` that were not handed out yet."""
        parts = [self._held]
        while parts[-1].num_rows == 0 or parts[-1].column("row")[-1].as_py() < row:
            group = next(self._groups, None)
            if group is None:
                break
            parts.append(group)
        table = pa.concat_tables(parts)
        rows = table.column("row")
        self._held = table.filter(pc.greater_equal(rows, row))
        return table.filter(pc.and_(pc.less(rows, row), pc.greater_equal(rows, self._first)))
