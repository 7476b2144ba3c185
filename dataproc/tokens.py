"""Document versions to a token version: documents tokenised, placed and ordered by a hash of their id, a part held out.

Shards are so globally shuffled and any prefix is an unbiased sample; the bytes depend on the documents alone, not on the order or
number of the versions' shards. Memory stays bounded: documents go through partition files, one partition becomes one shard.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from dataproc import tokenizers
from dataproc.provenance import code_version
from dataproc.tokenizers import LoadedTokenizer
from dataproc.versions import DOCUMENTS, TOKENS, Version, describe_schema, now, open_version, publish, version_digest
from store import artefacts, files
from store.digests import bytes_digest, json_digest
from store.errors import ConfigError

GROUP_DOCUMENTS = 128  # a random read of one group takes about a millisecond (64 to 256 measured alike)
SHARD_TEXT_BYTES = 256_000_000
DEFAULT_HOLDOUT = 0.01
TOKENIZER_FILE = "tokenizer.json"
_READ_ROWS = 1024


@dataclass(frozen=True)
class TokenShard:
    """A written shard: where it waits, its rows, and the tokens of each row group."""

    path: Path
    rows: int
    group_tokens: list[int]
    documents_bytes: int


def tokenize(
    store: str | None,
    references: list[str],
    tokenizer: str,
    name: str,
    label: str,
    holdout: float = DEFAULT_HOLDOUT,
    end: str | None = None,
) -> Version:
    """Makes a token version of document versions. The same documents and tokenizer give the same digest; what stands is not written
    again. `holdout` is the share of documents (by hash of id) that go to `heldout/` and are never trained on."""
    if not references:
        raise ConfigError("name at least one documents version to tokenize")
    if not 0 <= holdout < 1:
        raise ConfigError(f"holdout {holdout:g} is no share from 0 to below 1")
    store = artefacts.store_url(store)
    artefacts.Reference.parse(f"{name}@{label}")
    versions = [open_version(store, reference, DOCUMENTS) for reference in references]
    loaded = tokenizers.load(tokenizer, versions, end)
    with tempfile.TemporaryDirectory(prefix="headrace-tokens-") as folder:
        parts = _partition(versions, loaded, holdout, Path(folder))
        shards = [_write_shard(part, Path(folder) / f"shard-{i:05d}.parquet", loaded) for i, part in enumerate(parts["train"])]
        held = [_write_shard(part, Path(folder) / f"heldout-{i:05d}.parquet", loaded) for i, part in enumerate(parts["heldout"])]
        (Path(folder) / TOKENIZER_FILE).write_bytes(loaded.content)
        manifest, work_files = _manifest(versions, loaded, name, label, holdout, shards, held, Path(folder))
        return publish(store, manifest, work_files)


def schema(dtype: np.dtype) -> pa.Schema:
    """Columns of a token shard; `bytes` is the UTF-8 size of the document's text."""
    return pa.schema(
        [
            ("id", pa.string()),
            ("source", pa.string()),
            ("domain", pa.string()),
            ("language", pa.string()),
            ("bytes", pa.uint32()),
            ("tokens", pa.list_(pa.from_numpy_dtype(dtype))),
        ]
    )


def place(document: str) -> int:
    """The 64-bit place of a document. Not its id itself: deduplication keeps the smallest ids, which would make the start of the
    order special."""
    return xxhash.xxh3_64_intdigest(f"place\0{document}".encode())


def is_held_out(document: str, holdout: float) -> bool:
    return xxhash.xxh3_64_intdigest(f"heldout\0{document}".encode()) < holdout * 2**64


def _partition(versions: list[Version], loaded: LoadedTokenizer, holdout: float, folder: Path) -> dict[str, list[Path]]:
    """Tokenises all documents into partition files by the leading bits of their place: one file will be one shard."""
    text_bytes = sum(v.manifest["stats"]["total"]["bytes"] if "total" in v.manifest.get("stats", {}) else _text_bytes(v) for v in versions)
    count = max(1, round(text_bytes / SHARD_TEXT_BYTES))
    paths = {"train": [folder / f"part-{i:05d}.arrow" for i in range(count)], "heldout": [folder / "part-heldout.arrow"]}
    wanted = pa.schema([("place", pa.uint64()), *schema(loaded.dtype)])
    writers = {key: [pa.ipc.new_file(str(path), wanted) for path in group] for key, group in paths.items()}
    try:
        for version in versions:
            for batch in version.batches(["id", "source", "domain", "language", "text"], _READ_ROWS):
                _tokenize_batch(batch, loaded, holdout, count, wanted, writers)
    finally:
        for group in writers.values():
            for writer in group:
                writer.close()
    return paths


def _text_bytes(version: Version) -> int:
    return sum(batch.column("signals").field("bytes").to_numpy(zero_copy_only=False).sum() for batch in version.batches(["signals"]))


def _tokenize_batch(batch: pa.RecordBatch, loaded: LoadedTokenizer, holdout: float, count: int, wanted: pa.Schema, writers: dict) -> None:
    texts = batch.column("text").to_pylist()
    encoded = loaded.tokenizer.encode_batch(texts, add_special_tokens=False)
    rows: dict[tuple[str, int], list[int]] = {}
    ids = batch.column("id").to_pylist()
    places = [place(name) for name in ids]
    for row, (name, where) in enumerate(zip(ids, places, strict=True)):
        key = ("heldout", 0) if is_held_out(name, holdout) else ("train", where * count >> 64)
        rows.setdefault(key, []).append(row)
    lists = [np.array([*e.ids, loaded.end_id], loaded.dtype) for e in encoded]
    columns = {
        "place": pa.array(places, pa.uint64()),
        **{name: batch.column(name) for name in ("id", "source", "domain", "language")},
        "bytes": pa.array([len(text.encode()) for text in texts], pa.uint32()),
        "tokens": pa.array(lists, wanted.field("tokens").type),
    }
    table = pa.Table.from_arrays([columns[field.name] for field in wanted], schema=wanted)
    for (kind, number), chosen in rows.items():
        writers[kind][number].write_table(table.take(chosen))


def _write_shard(part: Path, path: Path, loaded: LoadedTokenizer) -> TokenShard:
    """One partition, ordered by place then id, as a Parquet shard with GROUP_DOCUMENTS documents a row group."""
    with pa.memory_map(str(part)) as stream:
        table = pa.ipc.open_file(stream).read_all().sort_by([("place", "ascending"), ("id", "ascending")]).drop_columns(["place"])
        lengths = pc.list_value_length(table.column("tokens")).to_numpy() if table.num_rows else np.zeros(0, np.int64)
        text_bytes = int(table.column("bytes").to_numpy().astype(np.int64).sum()) if table.num_rows else 0
        with pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=3, store_schema=False) as out:
            out.write_table(table.combine_chunks(), row_group_size=GROUP_DOCUMENTS)
    groups = [int(lengths[i : i + GROUP_DOCUMENTS].sum()) for i in range(0, len(lengths), GROUP_DOCUMENTS)]
    part.unlink()
    return TokenShard(path, len(lengths), groups, text_bytes)


def _manifest(versions, loaded, name, label, holdout, shards, held, folder) -> tuple[dict[str, Any], dict[str, str]]:
    work_files: dict[str, str] = {}

    def entry(shard: TokenShard, place: str) -> dict[str, Any]:
        work_files[place] = str(shard.path)
        data = shard.path.read_bytes()
        return {
            "path": place,
            "rows": shard.rows,
            "bytes": len(data),
            "xxh3_128": bytes_digest(data),
            "tokens": sum(shard.group_tokens),
            "group_tokens": shard.group_tokens,
            "text_bytes": shard.documents_bytes,
        }

    listed = [entry(shard, f"shards/part-{i:05d}.parquet") for i, shard in enumerate(shards)]
    out = [entry(shard, f"heldout/part-{i:05d}.parquet") for i, shard in enumerate(held)]
    work_files[TOKENIZER_FILE] = str(folder / TOKENIZER_FILE)
    config = {"tokenizer": loaded.digest, "end_id": loaded.end_id, "holdout": holdout, "group_documents": GROUP_DOCUMENTS}
    manifest = {
        "name": name,
        "label": label,
        "kind": TOKENS,
        "owner": versions[0].manifest["owner"],
        "parents": [v.manifest["digest"] for v in versions],
        "parent_references": [v.reference for v in versions],
        "inputs": [],
        "config": config,
        "config_digest": json_digest(config),
        "code_version": code_version(),
        "schema": describe_schema(schema(loaded.dtype)),
        "shards": listed,
        "files": [*out, {"path": TOKENIZER_FILE, "bytes": len(loaded.content), "xxh3_128": loaded.digest}],
        "tokenizer": {"digest": loaded.digest, "vocabulary": loaded.vocabulary, "end_id": loaded.end_id, "dtype": loaded.dtype.name},
        "counts": {
            "documents": sum(s.rows for s in shards),
            "heldout_documents": sum(s.rows for s in held),
            "tokens": sum(sum(s.group_tokens) for s in shards),
            "heldout_tokens": sum(sum(s.group_tokens) for s in held),
        },
    }
    manifest["stats"] = {"bytes_per_token": sum(s.documents_bytes for s in shards) / max(1, manifest["counts"]["tokens"])}
    return {**manifest, "digest": version_digest(manifest), "created_at": now()}, work_files


def heldout_paths(version: Version) -> list[str]:
    """URLs of a token version's held-out shards."""
    return [files.join(version.url, entry["path"]) for entry in version.manifest["files"] if entry["path"].startswith("heldout/")]
