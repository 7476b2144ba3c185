"""What a run read: each input file with its size and the hash of its bytes, put together from the slices that units read."""

from __future__ import annotations

from typing import Any

from store.digests import json_digest

MOST_LISTED = 10_000  # in the manifest; beyond it a digest over all files stands for the rest


class InputDigests:
    """Collects slices in any order.

    A file read as one slice has the xxh3-128 of its bytes; a file read in slices has the xxh3-128s of its slices, in order, joined by
    "+", which is the same for the same plan.
    """

    def __init__(self):
        self._files: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
        self._sizes: dict[tuple[str, str], int] = {}

    def add(self, source: str, slices: list[dict[str, Any]]) -> None:
        """Adds the slices of one unit's receipt."""
        for part in slices:
            key = (source, part["path"])
            self._sizes[key] = part["file_bytes"]
            self._files.setdefault(key, []).append((part["start"], part["bytes"], part["xxh3_128"]))

    def summary(self) -> list[dict[str, Any]]:
        """[{source, path, bytes, hash}] by source and path; at most MOST_LISTED, then one entry for the others."""
        entries = []
        for (source, path), parts in sorted(self._files.items()):
            digest = "+".join(digest for _, _, digest in sorted(parts) if digest)
            entries.append({"source": source, "path": path, "bytes": self._sizes[(source, path)], "hash": f"xxh3_128:{digest}"})
        listed, rest = entries[:MOST_LISTED], entries[MOST_LISTED:]
        if rest:
            total = sum(entry["bytes"] for entry in rest)
            listed.append({"source": "*", "path": f"{len(rest)} more files", "bytes": total, "hash": f"sha256:{json_digest(rest)}"})
        return listed
