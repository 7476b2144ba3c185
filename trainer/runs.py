"""Where a training run lives: `<store>/.runs/<name>/` with its recipe, metrics and checkpoints."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataproc.versions import TOKENS, open_version
from mixtures.mixture import Mixture, MixtureFile, ResolvedSource
from store import artefacts, files
from store.errors import ConfigError
from trainer.recipe import Recipe

RUNS = ".runs"


@dataclass(frozen=True)
class RunFolder:
    """A run's folder on a disk that all its workers see."""

    path: Path

    @classmethod
    def of(cls, store: str, name: str) -> RunFolder:
        if not files.is_local(store):
            raise ConfigError(f"training needs a store on a disk that all workers see, not {store}")
        return cls(Path(files.local_path(store)) / RUNS / name)

    @property
    def checkpoints(self) -> str:
        return str(self.path / "checkpoints")

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    def exists(self) -> bool:
        return (self.path / "run.json").exists()

    def describe(self) -> dict[str, Any]:
        """run.json: recipe, recipe digest, mixture with its versions by digest, store."""
        try:
            return json.loads((self.path / "run.json").read_text())
        except FileNotFoundError as error:
            known = sorted(p.name for p in self.path.parent.glob("*") if (p / "run.json").exists())
            raise ConfigError(f"no run {self.path.name} in {self.path.parent}; runs there: {', '.join(known) or 'none'}") from error

    def begin_attempt(self) -> str:
        """Marks a new attempt at the run. Workers of an attempt that is no longer marked stop before they write anything more."""
        token = uuid.uuid4().hex
        files.write_bytes(str(self.path / "attempt"), token.encode())
        return token

    def is_current(self, token: str) -> bool:
        return (self.path / "attempt").read_text() == token

    def append_metrics(self, row: dict[str, Any]) -> None:
        """Adds one step's metrics and flushes them to the disk."""
        with open(self.metrics, "ab") as stream:
            stream.write(json.dumps(row).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def read_metrics(self) -> list[dict[str, Any]]:
        """All whole rows; an unfinished last line (a killed writer) is left out."""
        if not self.metrics.exists():
            return []
        return [json.loads(line) for line in self.metrics.read_bytes().split(b"\n")[:-1]]

    def cut_metrics(self, steps: int) -> None:
        """Forgets metrics of steps after the first `steps`: they will be made again."""
        rows = [row for row in self.read_metrics() if row["step"] < steps]
        files.write_bytes(str(self.metrics), b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def describe_run(recipe: Recipe, mixture: Mixture, store: str) -> dict[str, Any]:
    """What run.json holds."""
    return {
        "recipe": recipe.model_dump(mode="json"),
        "recipe_digest": recipe.digest(),
        "mixture": mixture.file.model_dump(mode="json", by_alias=True),
        "mixture_digest": mixture.digest,
        "versions": {source.name: source.version.reference for source in mixture.sources},
        "store": store,
    }


def run_mixture(described: dict[str, Any]) -> Mixture:
    """The mixture of a run, with exactly the versions it was started with."""
    file = MixtureFile.model_validate(described["mixture"])
    store = artefacts.store_url(described["store"])
    sources = []
    for spec in file.sources:
        version = open_version(store, described["versions"][spec.name], TOKENS)
        tokens = version.manifest["counts"]["tokens"]
        sources.append(ResolvedSource(spec.name, spec.weight, spec.max_epochs, version, tokens, (tokens - 1) // file.sequence_length))
    return Mixture(file, tuple(sources))
