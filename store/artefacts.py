"""Versioned artefacts: `<store>/<name>/<label>-<digest12>/manifest.json`. The manifest is written last: its presence is the commit."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import Any

from store import files
from store.errors import ConfigError, StoreError

MANIFEST = "manifest.json"
DIGEST_LETTERS = 12
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
DEFAULT_STORE = "./headrace-store"


def store_url(store: str | None) -> str:
    """The store named by an argument, else by HEADRACE_STORE, else ./headrace-store. Local stores become absolute paths."""
    chosen = store or os.environ.get("HEADRACE_STORE") or DEFAULT_STORE
    return files.local_path(chosen) if files.is_local(chosen) else chosen.rstrip("/")


@dataclass(frozen=True)
class Reference:
    """`name@label` or `name@label-digest`."""

    name: str
    label: str

    @classmethod
    def parse(cls, text: str) -> Reference:
        name, _, label = text.partition("@")
        if not NAME_PATTERN.fullmatch(name) or not NAME_PATTERN.fullmatch(label):
            raise ConfigError(f"{text!r} is not a version: write NAME@LABEL or NAME@LABEL-DIGEST, for example web@v1")
        return cls(name, label)

    def __str__(self) -> str:
        return f"{self.name}@{self.label}"


@dataclass(frozen=True)
class Artefact:
    """A committed artefact: where it lies and its manifest as JSON."""

    url: str
    manifest: dict[str, Any]

    @property
    def reference(self) -> str:
        return f"{self.manifest['name']}@{self.manifest['label']}-{self.manifest['digest'][:DIGEST_LETTERS]}"


def artefact_url(store: str, name: str, label: str, digest: str) -> str:
    return files.join(store, name, f"{label}-{digest[:DIGEST_LETTERS]}")


def commit(url: str, manifest: dict[str, Any]) -> None:
    """Writes the manifest of a folder whose other files stand: from here on the artefact exists."""
    files.write_bytes(files.join(url, MANIFEST), json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n")


def is_committed(url: str) -> bool:
    return files.exists(files.join(url, MANIFEST))


def load(url: str) -> Artefact:
    """Reads the manifest in a folder. Raises StoreError when it is missing or damaged."""
    try:
        return Artefact(url, json.loads(files.read_bytes(files.join(url, MANIFEST))))
    except FileNotFoundError as error:
        raise StoreError(f"{url} has no {MANIFEST}: it was never committed") from error
    except ValueError as error:
        raise StoreError(f"{url}/{MANIFEST} is damaged: {error}") from error


def list_artefacts(store: str) -> list[Artefact]:
    """All committed artefacts of a store, by name, then creation time."""
    found = []
    for name in files.list_folders(store):
        if NAME_PATTERN.fullmatch(name):
            found += _committed(store, name)
    return sorted(found, key=lambda a: (a.manifest["name"], a.manifest["created_at"], a.url))


def _committed(store: str, name: str) -> list[Artefact]:
    folders = (files.join(store, name, entry) for entry in files.list_folders(files.join(store, name)))
    return [load(folder) for folder in folders if is_committed(folder)]


def resolve(store: str, reference: str) -> Artefact:
    """The artefact a reference names: an exact label-digest, or the newest digest of a label. Raises ConfigError with what there is."""
    wanted = Reference.parse(reference)
    candidates = _committed(store, wanted.name)
    exact = [a for a in candidates if os.path.basename(a.url) == wanted.label or a.reference == str(wanted)]
    if exact:
        return exact[0]
    same_label = [a for a in candidates if a.manifest["label"] == wanted.label]
    if same_label:
        return max(same_label, key=lambda a: (a.manifest["created_at"], a.url))
    known = ", ".join(sorted(a.reference for a in candidates)) or "none"
    raise ConfigError(f"no version {wanted} in {store}; versions of {wanted.name!r} there: {known}")
