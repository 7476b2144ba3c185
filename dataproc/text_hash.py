"""When two texts are the same: equal after Unicode composition, with white space runs as one space and none at the ends."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import xxhash


def normalise(text: str) -> str:
    """NFC, every run of white space (`str.isspace`) one space, none at the ends. Case and punctuation stay: they are content."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def content_hashes(texts: pa.Array) -> pa.Array:
    """xxh3-128 of each normalised text's UTF-8, as 32 hex digits: the identity that exact deduplication compares. texts: `string` or
    `large_string`."""
    from dataproc.kernels.tidy import collapsed

    data, offsets, certain = collapsed(texts)
    view = memoryview(data)
    return pa.array(
        [
            xxhash.xxh3_128_hexdigest(view[start:end] if plain else normalise(texts[row].as_py()).encode())
            for row, (start, end, plain) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), certain.tolist(), strict=True))
        ],
        pa.string(),
    )


def text_key(text: str) -> str:
    """xxh3-64 of the text as it is, as 16 hex digits: equal texts have equal signals."""
    return xxhash.xxh3_64_hexdigest(text.encode())
