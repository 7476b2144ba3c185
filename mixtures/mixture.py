"""Mixture files: token versions by weight, and what they resolve to in a store."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic import Field, field_validator, model_validator

from dataproc.versions import TOKENS, Version, open_version
from mixtures.plan import SamplingPlan, block_quotas
from store.digests import json_digest
from store.errors import ConfigError
from store.strict_yaml import StrictModel, load_strict


class MixtureSource(StrictModel):
    """One source: a token version, its share of all samples, and how often it may be gone through."""

    name: str
    from_: str = Field(alias="from")
    weight: float = Field(gt=0, le=1)
    max_epochs: float = Field(4, gt=0)  # up to four epochs repeated data is worth almost as much as new (Muennighoff et al. 2023)


class MixtureFile(StrictModel):
    """A mixture file. Weights must sum to 1: they are never scaled in silence."""

    mixture: str
    version: str
    owner: str
    sequence_length: int = Field(gt=0)
    seed: int = 0
    sources: tuple[MixtureSource, ...] = Field(min_length=1)

    @field_validator("version", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _sound(self) -> MixtureFile:
        names = [source.name for source in self.sources]
        if repeated := next((n for n in names if names.count(n) > 1), None):
            raise ValueError(f'two sources are named "{repeated}"')
        block_quotas(self.exact_weights())
        return self

    def exact_weights(self) -> list[Fraction]:
        """The weights as the decimals that were written, not as the binary fractions nearest to them."""
        return [_exact(source.weight) for source in self.sources]


def _exact(number: float) -> Fraction:
    """The decimal that was written."""
    return Fraction(repr(number))


@dataclass(frozen=True)
class ResolvedSource:
    """A source with the version it stands for. `samples`: windows of sequence_length tokens in one epoch."""

    name: str
    weight: float
    max_epochs: float
    version: Version
    tokens: int
    samples: int


@dataclass(frozen=True)
class Mixture:
    """A mixture whose versions are known."""

    file: MixtureFile
    sources: tuple[ResolvedSource, ...]

    @property
    def sequence_length(self) -> int:
        return self.file.sequence_length

    @property
    def tokenizer(self) -> dict[str, Any]:
        return self.sources[0].version.manifest["tokenizer"]

    @property
    def digest(self) -> str:
        """sha256 over what decides the samples: versions by digest, weights, length, seed."""
        sources = [[s.name, s.version.manifest["digest"], repr(s.weight)] for s in self.sources]
        return json_digest([self.file.sequence_length, self.file.seed, sources])

    def plan(self) -> SamplingPlan:
        return SamplingPlan(self.file.exact_weights())

    def composition(self, samples: int) -> list[dict[str, Any]]:
        """What `samples` samples take from each source: samples, tokens, epochs."""
        return [
            {
                "source": s.name,
                "version": s.version.reference,
                "weight": s.weight,
                "samples": round(weight * samples),
                "tokens": round(weight * samples) * self.sequence_length,
                "available_tokens": s.tokens,
                "epochs": float(weight * samples / s.samples),
                "max_epochs": s.max_epochs,
            }
            for s, weight in zip(self.sources, self.file.exact_weights(), strict=True)
        ]

    def longest(self, epochs: float | None = None) -> int:
        """The most samples that take no source through more than `epochs` epochs (its own max_epochs when None)."""
        weights = self.file.exact_weights()
        limits = [_exact(epochs or s.max_epochs) * s.samples / weight for s, weight in zip(self.sources, weights, strict=True)]
        return int(min(limits))

    def require(self, samples: int) -> None:
        """Raises ConfigError with the numbers when a source has too few tokens for `samples` samples at its max_epochs."""
        if samples <= self.longest():
            return
        row = max(self.composition(samples), key=lambda row: row["epochs"] / row["max_epochs"])
        raise ConfigError(
            f"source {row['source']} ({row['version']}) has {row['available_tokens']:,} tokens: {samples:,} samples would take "
            f"{row['epochs']:.2f} epochs of it, max_epochs is {row['max_epochs']:g}; the mixture lasts for {self.longest():,} samples"
        )


def load_mixture(path: str, store: str) -> Mixture:
    """Reads a mixture file and opens its versions. Raises ConfigError for weights, versions or tokenizers that do not fit."""
    file = load_strict(path, MixtureFile)
    return resolve(file, [open_version(store, source.from_, TOKENS) for source in file.sources], path)


def resolve(file: MixtureFile, versions: list[Version], where: str) -> Mixture:
    """The mixture of a file and the token versions of its sources. Raises ConfigError, naming `where`, when they do not fit."""
    sources = []
    for spec, version in zip(file.sources, versions, strict=True):
        tokens = version.manifest["counts"]["tokens"]
        samples = (tokens - 1) // file.sequence_length
        if samples < 1:
            raise ConfigError(
                f"{where}: source {spec.name}: {version.reference} has {tokens:,} tokens, fewer than one sample of {file.sequence_length}"
            )
        sources.append(ResolvedSource(spec.name, spec.weight, spec.max_epochs, version, tokens, samples))
    kinds = {s.version.manifest["tokenizer"]["digest"]: s.name for s in sources}
    if len(kinds) > 1:
        raise ConfigError(f"{where}: sources {' and '.join(kinds.values())} were tokenized with different tokenizers")
    return Mixture(file, tuple(sources))
