"""Where a training run lives: `<store>/.runs/<name>/` with its recipe, metrics and checkpoints."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataproc.versions import TOKENS, config_differences, open_version
from mixtures.mixture import Mixture, MixtureFile, resolve
from store import files
from store.errors import ConfigError
from trainer.recipe import KeptRecipe, Recipe

RUNS = ".runs"
RUN_FILE = "run.json"
_ROW_BYTES = 8192  # a row of metrics has some hundred bytes


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

    @property
    def store(self) -> str:
        return str(self.path.parent.parent)

    def exists(self) -> bool:
        return (self.path / RUN_FILE).exists()

    def write(self, recipe: Recipe, mixture: Mixture) -> None:
        """Writes run.json: what the run is, enough to go on with it or to ask about it when its files elsewhere have gone."""
        files.write_bytes(str(self.path / RUN_FILE), json.dumps(_described(recipe, mixture), indent=1, sort_keys=True).encode())

    def describe(self) -> dict[str, Any]:
        """run.json: recipe, recipe digest, mixture, mixture digest, versions by source."""
        try:
            return json.loads((self.path / RUN_FILE).read_text())
        except FileNotFoundError as error:
            known = sorted(p.name for p in self.path.parent.glob("*") if (p / RUN_FILE).exists())
            raise ConfigError(f"no run {self.path.name} in {self.path.parent}; runs there: {', '.join(known) or 'none'}") from error

    def recipe(self) -> Recipe:
        """The recipe that the run was last started with."""
        return KeptRecipe.model_validate(self.describe()["recipe"])

    def mixture(self) -> Mixture:
        """The mixture of the run, with exactly the versions it was started with."""
        described = self.describe()
        file = MixtureFile.model_validate(described["mixture"])
        versions = [open_version(self.store, described["versions"][source.name], TOKENS) for source in file.sources]
        return resolve(file, versions, str(self.path / RUN_FILE))

    def require_same(self, recipe: Recipe, mixture: Mixture) -> None:
        """Raises ConfigError with the differences when the run was made with another recipe or mixture."""
        before, now = self.describe(), _described(recipe, mixture)
        if all(before[key] == now[key] for key in ("recipe_digest", "mixture_digest")):
            return
        changes = config_differences(self.recipe().deciding(), recipe.deciding())
        changes += config_differences(before["mixture"], now["mixture"], "mixture")
        changes += config_differences(before["versions"], now["versions"], "versions")
        shown = "; ".join(f"{c['key']}: {c['before']!r} -> {c['after']!r}" for c in changes[:5])
        raise ConfigError(
            f"run {self.path.name} was started otherwise ({shown}): give the changed recipe another run name, or remove {self.path}"
        )

    def begin_attempt(self) -> str:
        """Marks a new attempt at the run. Workers of an attempt that is no longer marked stop before they write anything more."""
        token = uuid.uuid4().hex
        files.write_bytes(str(self.path / "attempt"), token.encode())
        return token

    @contextmanager
    def scratch(self, token: str) -> Iterator[str]:
        """A folder for what Ray Train wants to keep, on the disk that all workers see; those of attempts before are removed."""
        for left in self.path.glob("ray-*"):
            shutil.rmtree(left, ignore_errors=True)
        place = self.path / f"ray-{token}"
        place.mkdir()
        try:
            yield str(place)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def is_current(self, token: str) -> bool:
        return (self.path / "attempt").read_text() == token

    def append_metrics(self, row: dict[str, Any]) -> None:
        """Adds one step's metrics and flushes them to the disk."""
        with files.explained("write", str(self.metrics)), open(self.metrics, "ab") as stream:
            stream.write(json.dumps(row).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def read_metrics(self) -> list[dict[str, Any]]:
        """All whole rows; an unfinished last line (a killed writer) is left out."""
        if not self.metrics.exists():
            return []
        return [json.loads(line) for line in self.metrics.read_bytes().split(b"\n")[:-1]]

    def last_metrics(self) -> dict[str, Any] | None:
        """The newest whole row, by a look at the end of the file; None when there is none."""
        try:
            with open(self.metrics, "rb") as stream:
                stream.seek(max(0, stream.seek(0, os.SEEK_END) - _ROW_BYTES))
                lines = stream.read().split(b"\n")
        except FileNotFoundError:
            return None
        return json.loads(lines[-2]) if len(lines) > 2 or (len(lines) == 2 and lines[0].startswith(b"{")) else None

    def cut_metrics(self, steps: int) -> None:
        """Forgets metrics of steps after the first `steps`: they will be made again."""
        rows = [row for row in self.read_metrics() if row["step"] < steps]
        files.write_bytes(str(self.metrics), b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def _described(recipe: Recipe, mixture: Mixture) -> dict[str, Any]:
    return {
        "recipe": recipe.model_dump(mode="json"),
        "recipe_digest": recipe.digest(),
        "mixture": mixture.file.model_dump(mode="json", by_alias=True),
        "mixture_digest": mixture.digest,
        "versions": {source.name: source.version.reference for source in mixture.sources},
    }
