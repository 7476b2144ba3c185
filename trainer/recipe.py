"""A training recipe as strict typed models."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from store.artefacts import NAME_PATTERN
from store.digests import json_digest
from store.strict_yaml import ExistingFile, StrictModel, load_strict, validate
from trainer.schedule import Schedule


class ModelSpec(StrictModel):
    """A Llama-type decoder. `kv_heads` below `heads` shares keys and values between heads; `ffn` is the hidden width of the MLP."""

    layers: int = Field(gt=0)
    width: int = Field(gt=0)
    heads: int = Field(gt=0)
    kv_heads: int | None = None
    ffn: int | None = None
    rope_base: float = 10_000.0
    tie_embeddings: bool = True

    @model_validator(mode="after")
    def _fits(self) -> ModelSpec:
        if self.width % self.heads or (self.width // self.heads) % 2:
            raise ValueError(f"width {self.width} must be heads ({self.heads}) times an even number")
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(f"heads {self.heads} must be a multiple of kv_heads {self.kv_heads}")
        return self


class OptimizerSpec(StrictModel):
    """AdamW. `lr` is the peak rate; gradients are clipped to norm `clip`."""

    lr: float = Field(gt=0)
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = Field(0.1, ge=0)
    clip: float = Field(1.0, gt=0)


class CheckpointSpec(StrictModel):
    """A checkpoint every `every` steps and at the end; the newest `keep` stay."""

    every: int = Field(100, gt=0)
    keep: int = Field(3, gt=1)


class EvalSpec(StrictModel):
    """Bits per byte on the held-out documents every `every` steps; 0 for never. At most `documents` a source are scored."""

    every: int = Field(0, ge=0)
    documents: int = Field(100, gt=0)


class Recipe(StrictModel):
    """A training recipe. `batch_size` counts sequences over all workers; `microbatch` is how many of them a worker holds at once."""

    run: str
    owner: str
    mixture: ExistingFile
    model: ModelSpec
    steps: int = Field(gt=0)
    batch_size: int = Field(gt=0)
    microbatch: int = Field(8, gt=0)
    workers: int = Field(1, gt=0)
    seed: int = 0
    optimizer: OptimizerSpec
    schedule: Schedule = Schedule()
    checkpoint: CheckpointSpec = CheckpointSpec()
    eval: EvalSpec = EvalSpec()

    @field_validator("run")
    @classmethod
    def _name(cls, value: str) -> str:
        if not NAME_PATTERN.fullmatch(value):
            raise ValueError(f"{value!r} is not a name: use letters, digits, '.', '_' and '-'")
        return value

    @model_validator(mode="after")
    def _divides(self) -> Recipe:
        if self.batch_size % self.workers:
            raise ValueError(f"batch_size {self.batch_size} must be a multiple of workers {self.workers}")
        return self

    def deciding(self) -> dict[str, Any]:
        """What decides the losses: not names and paths, not how often checkpoints or evaluations are made, not the workers. (The
        mixture has a digest of its own.)"""
        return self.model_dump(mode="json", exclude={"run", "owner", "mixture", "workers", "checkpoint", "eval"})

    def digest(self) -> str:
        """sha256 of what decides the losses."""
        return json_digest(self.deciding())

    def with_workers(self, workers: int, path: str) -> Recipe:
        """The same recipe on another number of workers. Raises ConfigError when they cannot share its batch."""
        return validate({**self.model_dump(), "workers": workers}, Recipe, path)


class KeptRecipe(Recipe):
    """A recipe as its run keeps it: the mixture file may have moved since, its content is kept beside it."""

    mixture: str


def load_recipe(path: str) -> Recipe:
    """Reads a recipe. Raises ConfigError."""
    return load_strict(path, Recipe)
