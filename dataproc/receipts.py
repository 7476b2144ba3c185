"""Receipts of finished tasks: JSON beside a task's outputs, written last. A receipt whose files still match is never earned again."""

from __future__ import annotations

import json
from typing import Any

from dataproc.plan import unit_file
from store import files
from store.digests import canonical_json, stream_digest

RECEIPT = "receipt.json"
FILE_SUFFIXES = {
    "kept": "kept.parquet",
    "decisions": "decisions.parquet",
    "keys": "keys",
    "signatures": "signatures",
    "paragraphs": "paragraphs",
    "paragraph_signatures": "paragraph-signatures",
    "scores": "scores",
    "side": "side.json",
    "losers": "losers.parquet",
    "dropped": "dropped.parquet",
    # Ranges that a global step hands on.
    "records": "records",
    "hot": "hot",
    "carried": "carried",
    "ways": "ways",
    # Of a shard, for later versions.
    "index_keys": "index-keys",
    "index_signatures": "index-signatures",
    "index_bands": "index-bands",
    "index_paragraphs": "index-paragraphs",
}


def write_receipt(work: str, step: str, index: int, receipt: dict[str, Any]) -> None:
    files.write_bytes(unit_file(work, step, index, RECEIPT), canonical_json(receipt))


def read_standing(work: str, step: str, index: int) -> dict[str, Any] | None:
    """The receipt of a finished task whose output files are all there with the checksums it names; None otherwise."""
    try:
        receipt = json.loads(files.read_bytes(unit_file(work, step, index, RECEIPT)))
        for name, stamp in receipt["files"].items():
            with files.open_read(unit_file(work, step, index, FILE_SUFFIXES[name])) as stream:
                if stream_digest(stream) != (stamp["bytes"], stamp["xxh3_128"]):
                    return None
    except (FileNotFoundError, ValueError, KeyError):
        return None
    return receipt
