"""Digests: xxh3-128 for bytes and identities, sha256 over canonical JSON for configurations and manifests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, BinaryIO

import xxhash

CHUNK_BYTES = 1 << 20


def canonical_json(value: Any) -> bytes:
    """The one byte form of a JSON value: sorted keys, no white space, UTF-8. Raises ValueError on NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def json_digest(value: Any) -> str:
    """sha256 of the canonical JSON form, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def bytes_digest(data: bytes) -> str:
    """xxh3-128 as 32 hex digits."""
    return xxhash.xxh3_128_hexdigest(data)


def stream_digest(stream: BinaryIO) -> tuple[int, str]:
    """Reads a stream to its end; returns (bytes read, xxh3-128 as 32 hex digits)."""
    digest, size = xxhash.xxh3_128(), 0
    while chunk := stream.read(CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def file_digest(path: str | Path) -> tuple[int, str]:
    """(bytes, xxh3-128) of a local file."""
    with open(path, "rb") as stream:
        return stream_digest(stream)
