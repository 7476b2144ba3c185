"""Runs small pipelines and tells what became of each document by its name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.versions import Version, open_version, verify

PIPELINE = """\
dataset: {name}
version: {label}
owner: data@example.org
inputs: {inputs}
stages: {stages}
limits: {{unit_mb: {unit_mb}{limits}}}
"""


def write_rows(folder: Path, name: str, rows: list[dict]) -> str:
    """Writes `<name>.jsonl` and returns an input of that name."""
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return f"{{name: {name}, format: jsonl, path: {name}.jsonl, id_field: id, timestamp_field: when}}"


def run_rows(
    folder: Path,
    inputs: dict[str, list[dict]],
    stages: str,
    label="v1",
    name="corpus",
    unit_mb=0.02,
    limits="",
    executor=PlainLoop,
    store="store",
) -> Version:
    """Runs rows (`id` and `text` at least) as inputs, checks the version's every byte and count, and opens it."""
    entries = ", ".join(write_rows(folder, source, rows) for source, rows in inputs.items())
    path = folder / "p.yaml"
    path.write_text(PIPELINE.format(name=name, label=label, inputs=f"[{entries}]", stages=stages, unit_mb=unit_mb, limits=limits))
    result = run_pipeline(str(path), str(folder / store), executor, quiet=True)
    version = open_version(str(folder / store), result["version"])
    assert verify(version) == []
    return version


def kept(version: Version) -> dict[str, str]:
    """Texts of kept documents by their row's `id`."""
    rows = (row for batch in version.batches(["meta", "text"]) for row in batch.to_pylist())
    return {json.loads(row["meta"]).get("name", row["text"]): row["text"] for row in rows}


def decisions(version: Version) -> list[dict]:
    """All decisions, with `detail` parsed."""
    rows = (row for part in version.manifest["decisions"] for row in pq.read_table(f"{version.url}/{part['path']}").to_pylist())
    return [{**row, "detail": json.loads(row["detail"] or "{}")} for row in rows]


def reasons(version: Version) -> dict[str, int]:
    return version.manifest["counts"]["dropped"]
