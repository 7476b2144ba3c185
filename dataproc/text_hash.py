"""When two texts are the same: equal after Unicode composition, with white space runs as one space and none at the ends."""

from __future__ import annotations

import unicodedata

import xxhash


def normalise(text: str) -> str:
    """NFC, every run of white space (`str.isspace`) one space, none at the ends. Case and punctuation stay: they are content."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def content_hash(text: str) -> str:
    """xxh3-128 of the normalised text's UTF-8, as 32 hex digits: the identity that exact deduplication compares."""
    return xxhash.xxh3_128_hexdigest(normalise(text).encode())


def text_key(text: str) -> str:
    """xxh3-64 of the text as it is, as 16 hex digits: equal texts have equal signals."""
    return xxhash.xxh3_64_hexdigest(text.encode())
