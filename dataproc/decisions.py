"""The decision ledger: one row for each input record, and the question it answers: why?"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataproc.batches import detail_json
from dataproc.documents import DECISION_SCHEMA
from dataproc.parquet import iterate_batches
from dataproc.versions import Version
from store import files

WORK_SCHEMA = pa.schema([("row", pa.int64()), *DECISION_SCHEMA])


def kept_decisions(survivors: pa.Table, details: dict[int, dict[str, Any]] | None = None) -> pa.Table:
    """The decisions of kept documents (rows of `unit_outputs.survivor_schema`), in `WORK_SCHEMA`. details: what is to be said of some rows."""
    details = details or {}
    count = survivors.num_rows
    urls = survivors.column("url").to_pylist()
    columns = {
        "row": survivors.column("row"),
        "id": survivors.column("id"),
        "source": survivors.column("source"),
        "locator": survivors.column("locator"),
        "verdict": pa.repeat(pa.scalar("kept"), count),
        "detail": pa.array([detail_json(details.get(k, {}), url) for k, url in enumerate(urls)], pa.string()),
    }
    arrays = [columns.get(f.name, pa.nulls(count, f.type)) for f in WORK_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=WORK_SCHEMA)


def why(version: Version, query: str) -> list[dict[str, Any]]:
    """Every decision on a record, asked by document id, URL or locator.

    Each answer is the decision's row with `detail` parsed, plus `explanation` (one sentence) and, for a kept document, `document`:
    its shard, row and columns without the text. Empty when no input record is known by that name.
    """
    found = []
    for number, part in enumerate(version.manifest["decisions"]):
        for row in _matching(version, part["path"], query):
            answer = {**row, "detail": json.loads(row["detail"] or "{}")}
            if answer["verdict"] == "kept":
                answer["document"] = _document(version, number, answer["id"])
            answer["explanation"] = explain(answer, version)
            found.append(answer)
    return found


def _matching(version: Version, path: str, query: str) -> Iterable[dict[str, Any]]:
    quoted = json.dumps(query, ensure_ascii=False)
    for batch in iterate_batches(files.join(version.url, path)):
        by_name = pc.or_(pc.equal(batch.column("id"), query), pc.equal(batch.column("locator"), query))
        by_url = pc.match_substring(batch.column("detail"), f'"url":{quoted}')
        yield from batch.filter(pc.fill_null(pc.or_(by_name, by_url), False)).to_pylist()


def _document(version: Version, number: int, document: str) -> dict[str, Any] | None:
    """Where a kept document stands and its columns without the text. Shards and decision parts have the same numbers."""
    shard = version.manifest["shards"][number]["path"]
    columns = [name for name in version.schema.names if name != "text"]
    first = 0
    for batch in iterate_batches(files.join(version.url, shard), columns):
        position = pc.index(batch.column("id"), document).as_py()
        if position >= 0:
            return {"shard": shard, "row": first + position, **batch.slice(position, 1).to_pylist()[0]}
        first += batch.num_rows
    return None


def explain(answer: dict[str, Any], version: Version) -> str:
    """A decision as one sentence for a person."""
    where = f"{answer['source']}, {answer['locator']}"
    detail = answer["detail"]
    if answer["verdict"] == "kept":
        document = answer.get("document") or {}
        return f"kept: passed every stage; row {document.get('row')} of {document.get('shard')} ({where})"
    rule = f"{answer['stage']}.{answer['rule']}"
    if answer["verdict"] == "quarantined":
        return f"quarantined by {rule}: {detail.get('error', 'no reason given')} ({where})"
    if "winner" in detail:
        same = "nearly the same" if answer["stage"] == "near_dedup" else "the same"
        return f"dropped by {rule}: {same} text as document {detail['winner']}, which was chosen ({where})"
    limit = ""
    if answer["value"] is not None and answer["threshold"] is not None:
        limit = f": the value is {answer['value']:.6g}, the threshold {answer['threshold']:.6g}"
    more = ", ".join(f"{key} {value}" for key, value in detail.items() if key != "url")
    return f"dropped by {rule}{limit}{f' ({more})' if more else ''} ({where})"
