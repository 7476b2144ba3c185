"""The two maps of a refilter over the shards of a version: judge its documents by other rules, then rewrite its decisions."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataproc.batches import detail_json
from dataproc.dedup.earlier import write_filtered
from dataproc.documents import DECISION_SCHEMA, SIGNAL_PREFIX, shard_schema
from dataproc.parquet import RowGroupWriter, iterate_batches, read_table, write_table
from dataproc.plan import unit_file
from dataproc.receipts import FILE_SUFFIXES, read_standing, write_receipt
from dataproc.rules.signals import compute
from dataproc.sources.base import InputSpec
from dataproc.stages.registry import GLOBAL_STAGES
from dataproc.stages.rules import Rules, RulesConfig, judge
from dataproc.statistics import DropSamples, Statistics
from dataproc.text_hash import text_key
from dataproc.versions import Version
from store import artefacts, files
from store.digests import file_digest
from store.errors import CheckFailed
from store.files import FileStamp

STAGE = "rules"
JUDGE, LEDGER = "judge", "ledger"
DROPPED_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("rule", pa.string()),
        ("value", pa.float64()),
        ("threshold", pa.float64()),
        ("detail", pa.string()),  # JSON object without the URL
        ("language", pa.string()),
        ("domain", pa.string()),
        ("text_key", pa.string()),
    ]
)


def input_domains(version: Version) -> dict[str, str]:
    """Name of each input that a version was made of -> its domain label."""
    default = InputSpec.model_fields["domain"].default  # the manifest leaves defaults out
    return {entry["name"]: entry.get("domain", default) for entry in version.manifest["config"]["inputs"]}


class JudgeWorker:
    """Judges the documents of single shards: writes those that stay, and what is known of the others."""

    def __init__(self, work: str, version: str, config: dict[str, Any], compression: str):
        self.work, self.compression = work, compression
        self.version = Version(version, artefacts.load(version).manifest)
        self.stage = Rules(RulesConfig.model_validate(config))
        self.stored = [field.name for field in self.version.schema.field("signals").type]
        self.missing = [name for name in self.stage.signals() if name not in self.stored]
        self.schema = shard_schema([*self.stored, *self.missing])

    def close(self) -> None:
        """Holds nothing open."""

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        """Writes `kept`, `dropped` and `side` of a shard; returns the receipt."""
        index = task["index"]
        standing = read_standing(self.work, JUDGE, index)
        if standing is not None:
            return standing
        statistics, samples, gone = Statistics(), DropSamples(), []
        places = {name: unit_file(self.work, JUDGE, index, FILE_SUFFIXES[name]) for name in ("kept", "dropped", "side")}
        shard = files.join(self.version.url, self.version.manifest["shards"][index]["path"])
        index_files = {f"index_{entry['kind']}": entry for entry in self.version.manifest["index"] if entry["shard"] == index}
        places |= {name: unit_file(self.work, JUDGE, index, FILE_SUFFIXES[name]) for name in index_files}
        with ExitStack() as stack:
            paths = {name: stack.enter_context(files.atomic_path(place)) for name, place in places.items()}
            out = RowGroupWriter(paths["kept"], self.schema, self.compression)
            stays = []
            for batch in iterate_batches(shard, batch_rows=1024):
                table, dropped, kept = self._judge(pa.table(batch), statistics, samples)
                out.add(table)
                statistics.observe_kept(table)
                gone += dropped
                stays += kept
            out.close()
            write_table(paths["dropped"], pa.Table.from_pylist(gone, schema=DROPPED_SCHEMA))
            for name, entry in index_files.items():
                write_filtered(files.join(self.version.url, entry["path"]), entry["kind"], np.array(stays, bool), paths[name])
            with open(paths["side"], "w") as stream:
                json.dump({"statistics": statistics.to_json(), "samples": samples.to_json()}, stream)
            stamps = {name: asdict(FileStamp(*file_digest(path))) for name, path in paths.items()}
        receipt = {"index": index, "kept": out.rows, "lost": len(gone), "files": stamps}
        write_receipt(self.work, JUDGE, index, receipt)
        return receipt

    def _judge(self, table: pa.Table, statistics: Statistics, samples: DropSamples) -> tuple[pa.Table, list[dict[str, Any]], list[bool]]:
        """(documents that stay, what is known of the others, which stay)."""
        languages = table.column("language").to_pylist()
        signals = table.column("signals").combine_chunks()
        columns = {name: signals.field(name) for name in self.stored}
        columns |= compute(pc.fill_null(table.column("text"), ""), self.missing, languages) if self.missing else {}
        flat = pa.table({SIGNAL_PREFIX + name: column for name, column in columns.items()})
        statistics.observe_signals({name: columns[name] for name in self.stage.rules.signals()})
        made = pa.StructArray.from_arrays(list(columns.values()), fields=list(self.schema.field("signals").type))
        table = table.set_column(table.schema.get_field_index("signals"), self.schema.field("signals"), made)
        verdicts = judge(self.stage.rules, languages, table.column("domain").to_pylist(), flat)
        dropped = []
        lost = (
            table.select(["id", "source", "domain", "url", "language", "text"])
            .take(pa.array([v.row for v in verdicts], pa.int64()))
            .to_pylist()
        )
        for verdict, row in zip(verdicts, lost, strict=True):
            samples.offer(
                STAGE,
                verdict.rule,
                row["id"],
                row["source"],
                row["url"],
                row["language"],
                verdict.value,
                verdict.threshold,
                row["text"],
            )
            dropped.append(
                {
                    "id": row["id"],
                    "rule": verdict.rule,
                    "value": verdict.value,
                    "threshold": verdict.threshold,
                    "detail": json.dumps(verdict.detail),
                    "language": row["language"],
                    "domain": row["domain"],
                    "text_key": text_key(row["text"]),
                }
            )
        lost = {verdict.row for verdict in verdicts}
        stays = [row not in lost for row in range(table.num_rows)]
        return table.cast(self.schema).filter(pa.array(stays, pa.bool_())), dropped, stays


class LedgerWorker:
    """Rewrites the decisions of single shards: what is dropped now, and the copies of what is dropped now."""

    def __init__(self, work: str, version: str, shards: int, compression: str, by_domain: bool):
        """by_domain: whether the rules that the documents had, or those they get, differ by domain."""
        self.work, self.shards, self.compression, self.by_domain = work, shards, compression, by_domain
        self.version = Version(version, artefacts.load(version).manifest)
        self.domains = input_domains(self.version)

    def close(self) -> None:
        """Holds nothing open."""

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        """Writes `decisions` and `side` of a shard; returns the receipt."""
        index = task["index"]
        standing = read_standing(self.work, LEDGER, index)
        if standing is not None:
            return standing
        part = files.join(self.version.url, self.version.manifest["decisions"][index]["path"])
        own = _dropped(self.work, index)
        winners = self._dropped_winners(part)
        statistics = Statistics()
        clusters: Counter[str] = Counter()
        places = {name: unit_file(self.work, LEDGER, index, FILE_SUFFIXES[name]) for name in ("decisions", "side")}
        with files.atomic_path(places["decisions"]) as path, files.atomic_path(places["side"]) as side_path:
            out = RowGroupWriter(path, DECISION_SCHEMA, self.compression, text_column="detail")
            for batch in iterate_batches(part):
                rows = [self._decide(row, own, winners) for row in batch.to_pylist()]
                table = pa.Table.from_pylist(rows, schema=DECISION_SCHEMA)
                out.add(table)
                statistics.observe_decisions(table)
                clusters.update(winner for row in rows if (winner := _winner(row)))
            out.close()
            with open(side_path, "w") as stream:
                json.dump({"statistics": statistics.to_json(), "samples": DropSamples().to_json()}, stream)
            paths = {"decisions": path, "side": side_path}
            stamps = {name: asdict(FileStamp(*file_digest(place))) for name, place in paths.items()}
        receipt = {
            "index": index,
            "decisions": out.rows,
            "verdicts": dict(sum(statistics.verdicts_by_source().values(), Counter())),
            "dropped": statistics.losses_by_name("dropped"),
            "copies": dict(clusters),
            "files": stamps,
        }
        write_receipt(self.work, LEDGER, index, receipt)
        return receipt

    def _dropped_winners(self, part: str) -> dict[str, dict[str, Any]]:
        """The documents dropped now that won against a record of this part, by id."""
        wanted = {winner for batch in iterate_batches(part) for row in _duplicates(batch) if (winner := _winner(row))}
        found: dict[str, dict[str, Any]] = {}
        for index in range(self.shards) if wanted else ():
            found |= {name: row for name, row in _dropped(self.work, index).items() if name in wanted}
        return found

    def _decide(self, row: dict[str, Any], own: dict[str, dict[str, Any]], winners: dict[str, dict[str, Any]]) -> dict[str, Any]:
        lost = own.get(row["id"]) if row["verdict"] == "kept" else None
        winner = _winner(row)
        detail = json.loads(row["detail"] or "{}")
        if winner in winners:
            # A copy of a document that is dropped now. With the same text and language it has the same signals, so the same rule takes it,
            # unless it is of a domain with other rules.
            lost = winners[winner]
            other = "domain" if self.by_domain and self.domains.get(row["source"]) != lost["domain"] else None
            if detail.get("text_key") != lost["text_key"] or detail.get("language") != lost["language"]:
                other = "text or language"
            if other:
                raise CheckFailed(
                    f"{row['id']} lost to {winner}, which the new rules drop; its own {other} is not the same and may "
                    f"pass them, but is not in {self.version.reference}: run the pipeline with these rules"
                )
        if lost is None:
            return row
        changed = {"verdict": "dropped", "stage": STAGE, "rule": lost["rule"], "value": lost["value"], "threshold": lost["threshold"]}
        return {**row, **changed, "detail": detail_json(json.loads(lost["detail"]), detail.get("url"))}


def _winner(row: dict[str, Any]) -> str | None:
    """The id of the document that a duplicate lost to."""
    if row["verdict"] != "dropped" or row["stage"] not in GLOBAL_STAGES:
        return None
    return json.loads(row["detail"]).get("winner")


def _duplicates(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return batch.filter(pc.is_in(batch.column("stage"), pa.array(GLOBAL_STAGES))).to_pylist()


def _dropped(work: str, index: int) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read_table(unit_file(work, JUDGE, index, FILE_SUFFIXES["dropped"])).to_pylist()}
