"""Document versions to a token version: documents tokenised, placed and ordered by a hash of their id, a part held out.

Shards are so globally shuffled and any prefix is an unbiased sample; the bytes depend on the documents alone, not on the order or
number of the versions' shards. Memory stays bounded: documents go through partition files, one partition becomes one shard.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from dataproc import tokenizers
from dataproc.parquet import ZSTD_LEVEL
from dataproc.provenance import code_version
from dataproc.tokenizers import LoadedTokenizer
from dataproc.versions import DOCUMENTS, TOKENS, Version, describe_schema, now, open_version, publish, version_digest
from store import artefacts, files
from store.digests import file_digest, json_digest
from store.errors import ConfigError

GROUP_DOCUMENTS = 128  # a random read of one group takes about a millisecond (64 to 256 measured alike)
SHARD_TEXT_BYTES = 256_000_000
DEFAULT_HOLDOUT = 0.01
TOKENIZER_FILE = "tokenizer.json"
_READ_ROWS = 1024
_ENCODE_BYTES = 1_000_000  # the tokenizer keeps some hundred bytes for every token of the texts it is given at once


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
    loaded = tokenizers.load(tokenizer, versions, lambda document: not is_held_out(document, holdout), end)
    with tempfile.TemporaryDirectory(prefix="headrace-tokens-") as folder:
        with files.explained("write", folder):
            parts = _partition(versions, loaded, holdout, Path(folder))
            shards = [_write_shard(part, Path(folder) / f"shard-{i:05d}.parquet") for i, part in enumerate(parts["train"])]
            held = [_write_shard(part, Path(folder) / f"heldout-{i:05d}.parquet") for i, part in enumerate(parts["heldout"])]
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
    text_bytes = sum(tokenizers.text_size(version) for version in versions)
    counts = {"train": _shard_count(text_bytes), "heldout": _shard_count(text_bytes * holdout)}
    paths = {kind: [folder / f"{kind}-{i:05d}.arrow" for i in range(count)] for kind, count in counts.items()}
    wanted = pa.schema([("place", pa.uint64()), *schema(loaded.dtype)])
    with contextlib.ExitStack() as opened:
        writers = {kind: [opened.enter_context(pa.ipc.new_file(str(path), wanted)) for path in group] for kind, group in paths.items()}
        for version in versions:
            for batch in version.batches(["id", "source", "domain", "language", "text"], _READ_ROWS):
                for part in _by_text_bytes(batch):
                    table = _tokenized(part, loaded, wanted)
                    for (kind, number), rows in _destinations(table, holdout, counts).items():
                        writers[kind][number].write_table(table.take(rows))
    return paths


def _shard_count(text_bytes: float) -> int:
    return max(1, round(text_bytes / SHARD_TEXT_BYTES))


def _by_text_bytes(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cuts a batch into runs of rows of at most _ENCODE_BYTES of text, or one row."""
    ends = np.cumsum(pc.binary_length(batch.column("text")).to_numpy(zero_copy_only=False).astype(np.int64))
    start = 0
    while start < batch.num_rows:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _ENCODE_BYTES, "right")))
        yield batch.slice(start, stop - start)
        start = stop


def _tokenized(batch: pa.RecordBatch, loaded: LoadedTokenizer, wanted: pa.Schema) -> pa.Table:
    """The rows of a batch with their places and tokens, in the columns of `wanted`."""
    texts = batch.column("text").to_pylist()
    encoded = loaded.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    columns = {
        "place": pa.array([place(name) for name in batch.column("id").to_pylist()], pa.uint64()),
        **{name: batch.column(name) for name in ("id", "source", "domain", "language")},
        "bytes": pa.array([len(text.encode()) for text in texts], pa.uint32()),
        "tokens": pa.array([np.array([*e.ids, loaded.end_id], loaded.dtype) for e in encoded], wanted.field("tokens").type),
    }
    return pa.Table.from_arrays([columns[field.name] for field in wanted], schema=wanted)


def _destinations(table: pa.Table, holdout: float, counts: dict[str, int]) -> dict[tuple[str, int], list[int]]:
    """(kind, partition) -> rows of a table that go there."""
    found: dict[tuple[str, int], list[int]] = {}
    for row, (name, where) in enumerate(zip(table.column("id").to_pylist(), table.column("place").to_pylist(), strict=True)):
        kind = "heldout" if is_held_out(name, holdout) else "train"
        found.setdefault((kind, where * counts[kind] >> 64), []).append(row)
    return found


def _write_shard(part: Path, path: Path) -> TokenShard:
    """One partition, ordered by place then id, as a Parquet shard with GROUP_DOCUMENTS documents a row group.

    Pages carry check sums: a reader that picks out single row groups finds a flipped bit without reading the whole shard.
    """
    with pa.memory_map(str(part)) as stream:
        table = pa.ipc.open_file(stream).read_all().sort_by([("place", "ascending"), ("id", "ascending")]).drop_columns(["place"])
        _refuse_repeated(table)
        lengths = pc.list_value_length(table.column("tokens")).to_numpy() if table.num_rows else np.zeros(0, np.int64)
        text_bytes = int(table.column("bytes").to_numpy().astype(np.int64).sum()) if table.num_rows else 0
        with pq.ParquetWriter(
            path, table.schema, compression="zstd", compression_level=ZSTD_LEVEL, store_schema=False, write_page_checksum=True
        ) as out:
            out.write_table(table.combine_chunks(), row_group_size=GROUP_DOCUMENTS)
    groups = [int(lengths[i : i + GROUP_DOCUMENTS].sum()) for i in range(0, len(lengths), GROUP_DOCUMENTS)]
    part.unlink()
    return TokenShard(path, len(lengths), groups, text_bytes)


def _refuse_repeated(table: pa.Table) -> None:
    """A document has one place, so copies of it lie beside each other."""
    ids = table.column("id")
    same = pc.equal(ids.slice(1), ids.slice(0, max(0, len(ids) - 1))).to_numpy() if len(ids) > 1 else np.zeros(0, bool)
    if same.any():
        raise ConfigError(
            f"document {ids[int(np.argmax(same))].as_py()} is in more than one of the versions ({int(same.sum()):,} such here): "
            "it would be trained on twice; name versions that share no documents"
        )


def _manifest(versions, loaded, name, label, holdout, shards, held, folder) -> tuple[dict[str, Any], dict[str, str]]:
    work_files: dict[str, str] = {}

    def entry(shard: TokenShard, place: str) -> dict[str, Any]:
        work_files[place] = str(shard.path)
        size, digest = file_digest(shard.path)
        return {
            "path": place,
            "rows": shard.rows,
            "bytes": size,
            "xxh3_128": digest,
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
