"""The last step of whatever makes a documents version: its report, its manifest, and its publication."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any

from dataproc.plan import unit_file
from dataproc.receipts import FILE_SUFFIXES
from dataproc.report.build import build_report
from dataproc.report.page import render_page
from dataproc.statistics import DropSamples, Statistics
from dataproc.versions import Version, publish
from store import files
from store.digests import bytes_digest


def part_entry(folder: str, index: int, rows: int, stamp: dict[str, Any]) -> dict[str, Any]:
    """A shard or a part of the decisions as the manifest lists it."""
    return {"path": f"{folder}/part-{index:05d}.parquet", "rows": rows, **stamp}


def merged_sides(work: str, step: str, count: int) -> tuple[Statistics, DropSamples]:
    """What the tasks of a step have observed, put together."""
    statistics, samples = Statistics(), DropSamples()
    for index in range(count):
        side = json.loads(files.read_bytes(unit_file(work, step, index, FILE_SUFFIXES["side"])))
        statistics.merge(Statistics.from_json(side["statistics"]))
        samples.merge(DropSamples.from_json(side["samples"]))
    return statistics, samples


def commit_documents(
    store: str,
    work: str,
    manifest: dict[str, Any],
    statistics: Statistics,
    samples: DropSamples,
    stages: Iterable[dict[str, Any]],
    timings: dict[str, float],
    steps: dict[str, str],
    measures: dict[str, float] | None = None,
) -> Version:
    """Writes the report, completes the manifest and publishes the version.

    manifest: all but `stats` and `files`; stages: as build_report wants them; steps: which step of the work folder wrote `shards` and
    `decisions`; measures: as build_report wants them.
    """
    report = build_report(manifest, statistics, samples, list(stages), timings, measures)
    manifest["stats"] = report["stats"]
    pages = {"report.json": json.dumps(report, sort_keys=True).encode(), "report.html": render_page(report).encode()}
    mine = uuid.uuid4().hex  # another run of the same plan writes its own report into the same folder
    work_files = {name: files.join(work, "reports", mine, name) for name in pages}
    for name, content in pages.items():
        files.write_bytes(work_files[name], content)
    manifest["files"] = [
        {"path": name, "bytes": len(content), "xxh3_128": bytes_digest(content)} for name, content in sorted(pages.items())
    ]
    for kind, output in (("shards", "kept"), ("decisions", "decisions")):
        for index, entry in enumerate(manifest[kind]):
            work_files[entry["path"]] = unit_file(work, steps[kind], index, FILE_SUFFIXES[output])
    for entry in manifest["index"]:
        work_files[entry["path"]] = unit_file(work, steps["shards"], entry["shard"], FILE_SUFFIXES[f"index_{entry['kind']}"])
    return publish(store, manifest, work_files)
