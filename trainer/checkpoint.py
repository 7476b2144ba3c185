"""Checkpoints: a new folder each, every file with its checksum, the manifest last. Loading verifies and falls back to the one before."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from store import files
from store.digests import file_digest, json_digest

MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d{8})")


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint: `step` steps are done. `manifest` holds reader state, lineage and file checksums."""

    path: Path
    step: int
    manifest: dict[str, Any]

    @property
    def digest(self) -> str:
        """sha256 over its files' checksums: the identity of what it holds."""
        return json_digest([self.step, self.manifest["files"]])

    def load(self, name: str) -> Any:
        """One of its parts, as `save` was given it."""
        return torch.load(self.path / f"{name}.pt", weights_only=True, map_location="cpu")


def save(folder: str, step: int, parts: dict[str, Any], facts: dict[str, Any], keep: int) -> Path:
    """Writes parts (name -> state) and facts as `<folder>/step-<step>/`, atomically, and removes all but the newest `keep`."""
    target = Path(folder) / f"step-{step:08d}"
    if read(target) is not None:
        return target
    temporary = Path(folder) / f"{files.TEMPORARY_PREFIX}{step:08d}-{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with files.explained("write", str(target)):
            temporary.mkdir(parents=True)
            stamps = {f"{name}.pt": _write(temporary / f"{name}.pt", state) for name, state in parts.items()}
            manifest = {**facts, "step": step, "files": stamps}
            files.write_bytes(str(temporary / MANIFEST), json.dumps(manifest, sort_keys=True).encode())
            shutil.rmtree(target, ignore_errors=True)  # a damaged one of the same step
            os.replace(temporary, target)
            files.sync_folder(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # after a failure: a full disk needs the room
    for old in sorted(_folders(folder))[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def _write(path: Path, state: Any) -> dict[str, Any]:
    """One part on the disk; returns its bytes and checksum."""
    with open(path, "wb") as stream:
        try:
            torch.save(state, stream)
        except RuntimeError as error:
            # torch covers the stream's own error, which says why (a full disk), with one of its format.
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise
        stream.flush()
        os.fsync(stream.fileno())
    size, digest = file_digest(path)
    return {"bytes": size, "xxh3_128": digest}


def clear_unfinished(folder: str) -> None:
    """Removes what writers that were killed left behind. Only the one that writes may call it."""
    for left in Path(folder).glob(f"{files.TEMPORARY_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)


def step_of(path: Path) -> int | None:
    """The step that a checkpoint folder's name says; None for another name."""
    named = _NAME.fullmatch(path.name)
    return int(named[1]) if named else None


def _folders(folder: str) -> list[Path]:
    place = Path(folder)
    return [path for path in place.iterdir() if step_of(path) is not None] if place.is_dir() else []


def read(path: Path) -> Checkpoint | None:
    """The checkpoint in a folder, every byte verified; None when it is unfinished or damaged."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        for name, stamp in manifest["files"].items():
            if file_digest(path / name) != (stamp["bytes"], stamp["xxh3_128"]):
                return None
    except (OSError, ValueError, KeyError):
        return None
    return Checkpoint(path, manifest["step"], manifest)


def latest(folder: str, at_step: int | None = None) -> tuple[Checkpoint | None, list[str]]:
    """The newest sound checkpoint (or the one of a step), and the names of newer ones that were passed over as damaged."""
    damaged = []
    for path in sorted(_folders(folder), reverse=True):
        if at_step not in (None, step_of(path)):
            continue
        found = read(path)
        if found is not None:
            return found, damaged
        damaged.append(path.name)
    return None, damaged
