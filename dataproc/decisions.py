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

CHAIN_SHOWN = 100
WORK_SCHEMA = pa.schema([("row", pa.int64()), *DECISION_SCHEMA])


def kept_decisions(survivors: pa.Table, details: dict[int, dict[str, Any]] | None = None) -> pa.Table:
    """The decisions of kept documents (rows of `unit_outputs.survivor_schema`), in `WORK_SCHEMA`. details: of some rows, by
    place."""
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
    its shard, row and columns without the text; for a near duplicate, `chain`: the documents from one to the next of which it is
    nearly the same as the winner, [{document, similarity}]. Empty when no input record is known by that name.
    """
    found = []
    for number, part in enumerate(version.manifest["decisions"]):
        for row in _matching(version, part["path"], query):
            answer = {**row, "detail": json.loads(row["detail"] or "{}")}
            if answer["verdict"] == "kept":
                answer["document"] = _document(version, number, answer["id"])
            if "similarity" in answer["detail"]:
                answer["chain"] = chain(version, answer)
            answer["explanation"] = explain(answer, version)
            found.append(answer)
    return found


def chain(version: Version, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The way of a near duplicate to its winner: of each document on it its id and its similarity to the one before."""
    steps, detail = [], answer["detail"]
    while detail:
        document = detail.get("via") or detail["winner"]
        steps.append({"document": document, "similarity": detail["similarity"]})
        if document == detail["winner"] or len(steps) == CHAIN_SHOWN:
            break
        rows = (row for part in version.manifest["decisions"] for row in _matching(version, part["path"], document))
        detail = next((found for row in rows if "similarity" in (found := json.loads(row["detail"] or "{}"))), None)
    return steps


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
        cut = f"; {_cut(detail['cut'])}" if "cut" in detail else ""
        return f"kept: passed every stage{cut}; row {document.get('row')} of {document.get('shard')} ({where})"
    rule = f"{answer['stage']}.{answer['rule']}"
    if answer["verdict"] == "quarantined":
        return f"quarantined by {rule}: {detail.get('error', 'no reason given')} ({where})"
    if "winner" in detail:
        holder = f"which {detail['version']} holds" if "version" in detail else "which was chosen"
        if "similarity" not in detail:
            return f"dropped by {rule}: the same text as document {detail['winner']}, {holder} ({where})"
        way = ""
        if "via" in detail:
            between = len(answer["chain"]) - 1 if "chain" in answer else 1
            way = f" by way of {between} other{'s' if between > 1 else ''}, the next of them {detail['via']}"
        return (
            f"dropped by {rule}: nearly the same text as document {detail['winner']}, {holder}{way} "
            f"(similarity {detail['similarity']:.3g}; {where})"
        )
    limit = ""
    if answer["value"] is not None and answer["threshold"] is not None:
        limit = f": the value is {answer['value']:.6g}, the threshold {answer['threshold']:.6g}"
    if "cut" in detail:
        limit += f", after {_cut(detail['cut'])}"
    more = ", ".join(f"{key} {value}" for key, value in detail.items() if key not in ("url", "cut"))
    return f"dropped by {rule}{limit}{f' ({more})' if more else ''} ({where})"


def _cut(cut: dict[str, Any]) -> str:
    """What was cut of a document, as part of a sentence."""
    holders = [f"document {one['winner']}{' of ' + one['version'] if 'version' in one else ''}" for one in cut["held_by"]]
    several = "s" if cut["paragraphs"] > 1 else ""
    return f"{cut['paragraphs']} paragraph{several} of {cut['words']} words, held by {', '.join(holders)}, cut"
