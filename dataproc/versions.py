"""Dataset versions: what a manifest says, atomic commit, opening, verifying every byte, and what differs between two.

Knows no Ray and no torch: training and evaluation read versions through this file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from dataproc.parquet import iterate_batches, open_parquet, read_table
from store import artefacts, files
from store.artefacts import Artefact
from store.digests import canonical_json, json_digest, stream_digest
from store.errors import ConfigError, StoreError

CLAIMS = ".claims"
CHECKSUM = "checksum"  # sha256 of the manifest without this key: a changed manifest cannot pass for the real one
DOCUMENTS, TOKENS = "documents", "tokens"


@dataclass(frozen=True)
class Version:
    """A committed version: where it lies and what its manifest says."""

    url: str
    manifest: dict[str, Any]

    @property
    def reference(self) -> str:
        return Artefact(self.url, self.manifest).reference

    @property
    def schema(self) -> pa.Schema:
        """The schema of its shards, read from the first."""
        with open_parquet(files.join(self.url, self.manifest["shards"][0]["path"])) as reader:
            return reader.schema_arrow

    def batches(self, columns: list[str] | None = None, batch_rows: int = 8192) -> Iterator[pa.RecordBatch]:
        """All rows of all shards in order, in batches."""
        for shard in self.manifest["shards"]:
            yield from iterate_batches(files.join(self.url, shard["path"]), columns, batch_rows)


def open_version(store: str, reference: str, kind: str | None = None) -> Version:
    """The version that `name@label` or `name@label-digest` names. Raises ConfigError when there is none, or it is of another kind."""
    found = artefacts.resolve(store, reference)
    if kind is not None and found.manifest.get("kind") != kind:
        raise ConfigError(f"{reference} is a {found.manifest.get('kind')} version; this needs a {kind} version")
    return Version(found.url, found.manifest)


def version_digest(manifest: dict[str, Any]) -> str:
    """sha256 over what the data is: kind, schema, shard hashes, configuration, parents. Not when, where or by whom it was made."""
    shards = [[shard["rows"], shard["xxh3_128"]] for shard in manifest["shards"]]
    return json_digest([manifest["kind"], manifest["schema"], shards, manifest["config_digest"], manifest["parents"]])


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with its own checksum."""
    content = {key: value for key, value in manifest.items() if key != CHECKSUM}
    return {**content, CHECKSUM: json_digest(content)}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def describe_schema(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def verify(version: Version) -> list[str]:
    """Re-reads every byte of a version and checks it against its manifest. Returns what is wrong, in sentences; empty when all holds."""
    manifest = version.manifest
    problems = _manifest_problems(version)
    listed = [*manifest["shards"], *manifest.get("decisions", []), *manifest.get("index", []), *manifest.get("files", [])]
    problems += [problem for entry in listed for problem in _file_problems(version, entry)]
    known = {entry["path"] for entry in listed} | {artefacts.MANIFEST}
    for file in files.list_files(version.url):
        name = file.url.removeprefix(version.url.rstrip("/") + "/")
        if name not in known:
            problems.append(f"{name}: a foreign file: the manifest does not list it")
    if not problems and manifest["kind"] == DOCUMENTS:
        problems += _count_problems(version)
    return problems


def _manifest_problems(version: Version) -> list[str]:
    manifest, problems = version.manifest, []
    if sealed(manifest)[CHECKSUM] != manifest.get(CHECKSUM):
        problems.append("manifest.json: its checksum does not hold: it was changed after the commit")
    if version_digest(manifest) != manifest["digest"]:
        problems.append("manifest.json: the digest is not that of the shards, schema and configuration it lists")
    folder = f"{manifest['label']}-{manifest['digest'][: artefacts.DIGEST_LETTERS]}"
    if os.path.basename(version.url.rstrip("/")) != folder:
        problems.append(f"the folder is named {os.path.basename(version.url.rstrip('/'))}, the manifest says {folder}")
    return problems


def _file_problems(version: Version, entry: dict[str, Any]) -> list[str]:
    path = entry["path"]
    try:
        with files.open_read(files.join(version.url, path)) as stream:
            size, digest = stream_digest(stream)
    except FileNotFoundError:
        return [f"{path}: missing"]
    if size != entry["bytes"]:
        return [f"{path}: {size} bytes, the manifest says {entry['bytes']}"]
    if digest != entry["xxh3_128"]:
        return [f"{path}: its bytes have changed (xxh3-128 {digest}, the manifest says {entry['xxh3_128']})"]
    if "rows" not in entry:
        return []
    with open_parquet(files.join(version.url, path)) as reader:
        rows = reader.metadata.num_rows
    return [] if rows == entry["rows"] else [f"{path}: {rows} rows, the manifest says {entry['rows']}"]


def _count_problems(version: Version) -> list[str]:
    """Conservation over the whole version: one decision per input record, verdicts as counted, kept decisions = documents."""
    counts = version.manifest["counts"]
    verdicts: Counter[str] = Counter()
    problems = []
    for shard, part in zip(version.manifest["shards"], version.manifest["decisions"], strict=True):
        kept = []
        for batch in iterate_batches(files.join(version.url, part["path"]), ["id", "verdict"]):
            names = batch.column("verdict").to_pylist()
            verdicts.update(names)
            kept += [i for i, name in zip(batch.column("id").to_pylist(), names, strict=True) if name == "kept"]
        ids = read_table(files.join(version.url, shard["path"]), ["id"]).column("id").to_pylist()
        if ids != kept:
            problems.append(f"{shard['path']}: its documents are not those that {part['path']} says were kept")
    said = {"kept": counts["kept"], "quarantined": counts["quarantined"], "dropped": sum(counts["dropped"].values())}
    for verdict, count in said.items():
        if verdicts[verdict] != count:
            problems.append(f"{verdicts[verdict]} decisions say {verdict}, the manifest says {count}")
    if counts["input"] != sum(said.values()):
        problems.append(f"input {counts['input']} is not kept + dropped + quarantined = {sum(said.values())}")
    return problems


def publish(store: str, manifest: dict[str, Any], work_files: dict[str, str]) -> Version:
    """Puts finished files in their place and commits them by their manifest. Idempotent: what stands already stays.

    manifest: all but the checksum. work_files: path inside the version -> URL of the finished file.

    Runs that come to the same version at once publish the same bytes, though their reports differ by their timings: the first leaves a
    claim, which says what it publishes and from where, and the others publish that. A claim outlives a killed run: the next one
    finishes it.
    """
    url = artefacts.artefact_url(store, manifest["name"], manifest["label"], manifest["digest"])
    claim = files.join(store, CLAIMS, f"{url.removeprefix(store).strip('/').replace('/', '@')}.json")
    own = {"manifest": sealed(manifest), "files": work_files}
    while not artefacts.is_committed(url):
        if files.create_bytes(claim, canonical_json(own)):
            claimed = own
        elif (claimed := _read_claim(claim)) is None:
            continue
        if artefacts.is_committed(url):  # by a run that has withdrawn its claim since
            break
        try:
            for path, source in sorted(claimed["files"].items()):
                files.copy(source, files.join(url, path))
        except (FileNotFoundError, StoreError) as error:
            missing = isinstance(error, FileNotFoundError) or isinstance(error.__cause__, FileNotFoundError)
            if claimed is own or not missing:
                raise
            # The work that was claimed is gone: its run has committed and cleared up, or was killed and its work thrown away.
            files.delete(claim)
            continue
        artefacts.commit(url, claimed["manifest"])
    files.delete(claim)
    return Version(url, artefacts.load(url).manifest)


def _read_claim(url: str) -> dict[str, Any] | None:
    try:
        return json.loads(files.read_bytes(url))
    except FileNotFoundError:
        return None


def diff(before: Version, after: Version) -> dict[str, Any]:
    """What changed between two document versions.

    Returns counts and examples: `entered` and `left` (documents by id, with why they left or had been out), `changed` (same id,
    other text), and `config` (paths of settings that differ).
    Holds both versions' ids and content hashes in memory (about 250 bytes a document).
    """
    for version in (before, after):
        if version.manifest["kind"] != DOCUMENTS:
            raise ConfigError(f"{version.reference} is not a documents version")
    old, new = _hashes(before), _hashes(after)
    entered, left = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    changed = sorted(name for name in new.keys() & old.keys() if new[name] != old[name])
    return {
        "before": before.reference,
        "after": after.reference,
        "documents": {"before": len(old), "after": len(new), "unchanged": len(new.keys() & old.keys()) - len(changed)},
        "entered": {"count": len(entered), "examples": entered[:20], "reasons": _reasons(before, set(entered))},
        "left": {"count": len(left), "examples": left[:20], "reasons": _reasons(after, set(left))},
        "changed": {"count": len(changed), "examples": changed[:20]},
        "config": config_differences(before.manifest["config"], after.manifest["config"]),
        "counts": {"before": before.manifest["counts"], "after": after.manifest["counts"]},
    }


def _hashes(version: Version) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for batch in version.batches(["id", "content_hash"]):
        pairs.update(zip(batch.column("id").to_pylist(), batch.column("content_hash").to_pylist(), strict=True))
    return pairs


def _reasons(version: Version, ids: set[str]) -> dict[str, int]:
    """How a version decided on documents that it does not hold: "stage.rule", "quarantined ...", or "not in its input"."""
    reasons: Counter[str] = Counter()
    seen: set[str] = set()
    for part in version.manifest["decisions"] if ids else []:
        for batch in iterate_batches(files.join(version.url, part["path"]), ["id", "verdict", "stage", "rule"]):
            for row in batch.to_pylist():
                if row["id"] in ids and row["id"] not in seen:
                    seen.add(row["id"])
                    mark = "quarantined " if row["verdict"] == "quarantined" else ""
                    reasons[f"{mark}{row['stage']}.{row['rule']}"] += 1
    if missing := len(ids - seen):
        reasons["not in its input"] = missing
    return dict(reasons.most_common())


def config_differences(before: Any, after: Any, path: str = "") -> list[dict[str, Any]]:
    """Leaves of two JSON values that differ: [{key, before, after}]. Lists of one-key mappings (stages) are matched by name."""
    if isinstance(before, list) and isinstance(after, list):
        named = [_by_name(value) for value in (before, after)]
        if all(value is not None for value in named):
            before, after = named
    if isinstance(before, dict) and isinstance(after, dict):
        keys = list(dict.fromkeys([*before, *after]))
        return [d for key in keys for d in config_differences(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))]
    return [] if before == after else [{"key": path, "before": before, "after": after}]


def _by_name(entries: list) -> dict[str, Any] | None:
    if not all(isinstance(entry, dict) and (len(entry) == 1 or "name" in entry) for entry in entries):
        return None
    return {entry["name"]: entry if "name" in entry else None for entry in entries if "name" in entry} | {
        next(iter(entry)): next(iter(entry.values())) for entry in entries if "name" not in entry
    }
