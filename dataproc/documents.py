"""What a document is: its id, the columns of a batch in flight and the columns of a published shard."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import xxhash

# A batch in flight. `payload` holds the raw bytes of records whose text is still to be extracted (HTML); `text` is null until then.
# A text column may pass 2 GiB, so `text` and `payload` have 64-bit offsets.
BATCH_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),  # ordinal of the record inside its work unit
        ("id", pa.string()),
        ("source", pa.string()),
        ("locator", pa.string()),  # relative path#row, or #offset for WARC: where the record lies, for a person
        ("domain", pa.string()),  # mixture domain label of the input (web, books, code, ...)
        ("url", pa.string()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("language", pa.string()),
        ("language_score", pa.float32()),
        ("payload", pa.large_binary()),
        ("content_type", pa.string()),  # MIME type without parameters, lower case; null where the source states none
        ("charset", pa.string()),  # character set that HTTP declared; null where none
        ("robots", pa.string()),  # X-Robots-Tag headers, a line each; null where none
        ("text", pa.large_string()),
        ("meta", pa.string()),  # JSON object
    ]
)
SIGNAL_PREFIX = "signals."  # a signal in flight is a float64 column `signals.<name>`

# Signals that every kept document has, whatever the stages.
BASE_SIGNALS = ("bytes", "characters", "words")


def document_id(source: str, key: str) -> str:
    """xxh3-128 of `source \\0 key`, as 32 hex digits: the same record has the same id in every run and version."""
    return xxhash.xxh3_128_hexdigest(f"{source}\0{key}".encode("utf-8", "surrogatepass"))


def meta_json(meta: dict[str, Any]) -> str:
    """The one text form of a document's metadata: sorted keys; what JSON has no form for (a decimal) as text."""
    return orjson.dumps(meta, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()


def shard_schema(signals: list[str]) -> pa.Schema:
    """Columns of a published shard, with one float64 field per signal in the order given."""
    return pa.schema(
        [
            ("id", pa.string()),
            ("source", pa.string()),
            ("domain", pa.string()),
            ("url", pa.string()),
            ("timestamp", pa.timestamp("ms", "UTC")),
            ("language", pa.string()),
            ("language_score", pa.float32()),
            ("text", pa.large_string()),
            ("content_hash", pa.string()),
            ("quality", pa.float32()),
            ("signals", pa.struct([(name, pa.float64()) for name in signals])),
            ("meta", pa.string()),
        ]
    )


DECISION_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("locator", pa.string()),
        ("verdict", pa.string()),  # kept | dropped | quarantined
        ("stage", pa.string()),  # null for kept
        ("rule", pa.string()),
        ("value", pa.float64()),
        ("threshold", pa.float64()),
        ("detail", pa.string()),  # JSON object: url, winner, error, ...
    ]
)
