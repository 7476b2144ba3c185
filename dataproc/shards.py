"""Pass 2: survivors of consecutive units become one final shard and its part of the decision ledger.

How units are put together into shards depends on what pass 1 wrote alone, so the shards are the same for any workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataproc.batches import StageChain, detail_json
from dataproc.decisions import WORK_SCHEMA, kept_decisions
from dataproc.dedup.exact import read_losers
from dataproc.documents import DECISION_SCHEMA
from dataproc.parquet import RowGroupWriter, iterate_groups, open_parquet
from dataproc.plan import MEGABYTE, read_job, unit_file
from dataproc.receipts import FILE_SUFFIXES, read_standing, write_receipt
from dataproc.statistics import DropSamples, Statistics
from dataproc.text_hash import text_key
from dataproc.unit import RUN
from dataproc.unit import STEP as PASS1
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
    """Runs shard tasks: {index, segments, losers: (step, tasks) that have written some}."""

    def __init__(self, work: str):
        self.work = work
        self.pipeline = read_job(work)
        self.schema = StageChain([spec.make() for spec in self.pipeline.record_stages]).schema
        self.survivor_schema = survivor_schema(self.schema)

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
        self.statistics = Statistics()
        self.samples = DropSamples()

    def _url(self, name: str) -> str:
        return unit_file(self.work, STEP, self.index, FILE_SUFFIXES[name])

    def receipt(self) -> dict[str, Any]:
        units = [segment.unit for segment in self.segments]
        losers = read_losers(self.work, self.losers, min(units), max(units) + 1) if units else {}
        compression = self.worker.pipeline.output.compression
        with (
            files.atomic_path(self._url("kept")) as shard_path,
            files.atomic_path(self._url("decisions")) as decisions_path,
            files.atomic_path(self._url("side")) as side_path,
        ):
            shard = RowGroupWriter(shard_path, self.worker.schema, compression)
            decisions = RowGroupWriter(decisions_path, DECISION_SCHEMA, compression, text_column="detail")
            for segment in self.segments:
                self._segment(segment, losers.get(segment.unit, {}), shard, decisions)
            shard.close()
            decisions.close()
            with open(side_path, "w") as stream:
                json.dump({"statistics": self.statistics.to_json(), "samples": self.samples.to_json()}, stream)
            paths = {"kept": shard_path, "decisions": decisions_path, "side": side_path}
            stamps = {name: asdict(FileStamp(*file_digest(path))) for name, path in paths.items()}
        dropped, quarantined = (self.statistics.losses_by_name(verdict) for verdict in ("dropped", "quarantined"))
        receipt = {
            "index": self.index,
            "kept": shard.rows,
            "decisions": decisions.rows,
            "quarantined": sum(quarantined.values()),
            "dropped": dropped,
            "quarantine_reasons": quarantined,
            "files": stamps,
        }
        write_receipt(self.work, STEP, self.index, receipt)
        return receipt

    def _segment(self, segment: Segment, losers: dict, shard: RowGroupWriter, decisions: RowGroupWriter) -> None:
        kept_url = unit_file(self.work, PASS1, segment.unit, FILE_SUFFIXES["kept"])
        first, after = self._window(segment, kept_url)
        lost = _LostRows(unit_file(self.work, PASS1, segment.unit, FILE_SUFFIXES["decisions"]), first)
        expected = first
        held = self.worker.survivor_schema.empty_table()  # the last group goes with all lost records after it
        for group in iterate_groups(kept_url, self.worker.survivor_schema, segment.first_group, segment.after_group):
            if held.num_rows:
                until = held.column("row")[-1].as_py()
                expected = self._write(held, lost.before(until), losers, shard, decisions, expected, segment)
            held = group
        expected = self._write(held, lost.before(after), losers, shard, decisions, expected, segment)
        if expected != after:
            raise HeadraceError(f"work unit {segment.unit}: decisions reach record {expected}, the unit has {after}: one was lost")
        if segment.first_group == 0:
            self._take_side(segment.unit)

    def _window(self, segment: Segment, kept_url: str) -> tuple[int, int]:
        """The records [first, after) of the unit that this segment accounts for."""
        cuts = []
        with open_parquet(kept_url) as reader:
            for group in (segment.first_group, segment.after_group):
                inner = 0 < group < segment.groups
                cuts.append(reader.read_row_group(group - 1, columns=["row"]).column("row")[-1].as_py() + 1 if inner else None)
        return cuts[0] or 0, segment.records if cuts[1] is None else cuts[1]

    def _take_side(self, unit: int) -> None:
        side = json.loads(files.read_bytes(unit_file(self.work, PASS1, unit, FILE_SUFFIXES["side"])))
        self.statistics.merge(Statistics.from_json(side["statistics"]))
        self.samples.merge(DropSamples.from_json(side["samples"]))

    def _write(self, group: pa.Table, lost: pa.Table, losers: dict, shard, decisions, expected: int, segment: Segment) -> int:
        """Writes one group of survivors and the decisions on all records up to its last; returns the next expected row."""
        rows = group.column("row").to_pylist()
        beaten = [row in losers for row in rows]
        kept = group.filter(pa.array([not b for b in beaten], pa.bool_()))
        late = self._late_losses(group.filter(pa.array(beaten, pa.bool_())), losers)
        table = pa.concat_tables([lost, late, kept_decisions(kept)]).sort_by("row")
        found = table.column("row").to_pylist()
        if found != list(range(expected, expected + len(found))):
            raise HeadraceError(f"work unit {segment.unit}: its decisions do not account for every record once, near record {expected}")
        table = table.drop_columns(["row"])
        decisions.add(table)
        kept = kept.select(self.worker.schema.names)
        shard.add(kept)
        self.statistics.observe_decisions(table)
        self.statistics.observe_kept(kept)
        return expected + len(found)

    def _late_losses(self, beaten: pa.Table, losers: dict) -> pa.Table:
        """Decisions against survivors that lost to another document."""
        rows = []
        for row in beaten.select(["row", "id", "source", "locator", "url", "language", "text"]).to_pylist():
            kind, winner = losers[row["row"]]
            language, text_hash = {"language": row["language"]}, {"text_key": text_key(row["text"])}
            if kind == "id":
                verdict, stage, rule = "quarantined", RUN, "duplicate_id"
                detail = {"error": "an earlier record of the same source has the same id"}
            elif kind == "content":
                verdict, stage, rule, detail = "dropped", "exact_dedup", "duplicate", {"winner": winner, **language, **text_hash}
            else:
                verdict, stage, rule, detail = "dropped", "near_dedup", "near_duplicate", {"winner": winner, **language}
            self.samples.offer(stage, rule, row["id"], row["source"], row["url"], row["language"], None, None, row["text"])
            named = {name: row[name] for name in ("row", "id", "source", "locator")}
            rows.append({**named, "verdict": verdict, "stage": stage, "rule": rule, "detail": detail_json(detail, row["url"])})
        return pa.Table.from_pylist(rows, schema=WORK_SCHEMA)


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
