"""Near duplicates: of documents that share most of their word n-grams one is kept, whatever source each came from.

This stage is a global step: workers make signatures of what the other stages leave, pairs are found and winners chosen between the
passes (dataproc/dedup/near.py).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from dataproc.dedup.lsh import best_bands
from dataproc.stages.base import Stage, StageResult
from dataproc.stages.winners import WinnerConfig
from store.strict_yaml import StrictModel

PERMUTATIONS = 128  # of which a threshold takes as many as it needs for bands


class NearConfig(StrictModel):
    """How near duplicates are found. Two texts of Jaccard similarity s over their sets of word `ngram`-grams share a band with
    probability 1 - (1 - s ** rows) ** bands."""

    ngram: int = Field(5, ge=1, le=64)
    # In place of bands and rows: those of all that `permutations` allow with the least sum of errors on both sides of this similarity.
    threshold: float | None = Field(None, gt=0, lt=1)
    bands: int = Field(14, ge=1, le=512)
    rows: int = Field(8, ge=1, le=64)
    permutations: int = Field(112, ge=1, le=4096)  # values of a signature; bands take the first of them
    scheme: Literal["affine32", "affine64"] = "affine32"
    seed: int = Field(1, ge=0, lt=1 << 32)
    # The similarity below which two texts that share a band are no duplicates, and what it is taken from: the share of equal values of
    # their signatures, or the sets themselves.
    verify: float = Field(0.7, ge=0, le=1)
    verify_by: Literal["signatures", "shingles"] = "signatures"
    # A bucket is what shares one band. Up to all_pairs members are compared each with each; more, each with the first and the one before
    # it by id; more than star, with the first alone.
    all_pairs: int = Field(16, ge=2, le=1000)
    star: int = Field(1000, ge=2)

    @model_validator(mode="before")
    @classmethod
    def _by_threshold(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if not isinstance(value.get("threshold"), (int, float)) or not 0 < value["threshold"] < 1:
            if "permutations" not in value and all(isinstance(value.get(name, 1), int) for name in ("bands", "rows")):
                default = cls.model_fields
                bands, rows = (value.get(name, default[name].default) for name in ("bands", "rows"))
                return {**value, "permutations": bands * rows}
            return value
        permutations = value.get("permutations", PERMUTATIONS)
        if not isinstance(permutations, int) or not 1 <= permutations <= 4096:
            return value
        bands, rows = best_bands(value["threshold"], permutations)
        if (value.get("bands", bands), value.get("rows", rows)) != (bands, rows):
            raise ValueError(f"threshold {value['threshold']:g} gives {bands} bands of {rows} rows: leave bands and rows out")
        return {**value, "bands": bands, "rows": rows, "permutations": permutations}

    @model_validator(mode="after")
    def _sizes(self) -> NearConfig:
        if self.star < self.all_pairs:
            raise ValueError(f"star {self.star} is less than all_pairs {self.all_pairs}")
        if self.bands * self.rows > self.permutations:
            raise ValueError(f"{self.bands} bands of {self.rows} rows need {self.bands * self.rows} permutations, not {self.permutations}")
        return self

    @property
    def least_equal(self) -> int:
        """Signature values that must be equal for a pair to be similar enough."""
        return next(k for k in range(self.permutations + 1) if k / self.permutations >= self.verify)


class NearDedupConfig(NearConfig, WinnerConfig):
    """The same of documents, and which of them stays."""


class NearDedup(Stage):
    """Keeps one document of each cluster of near duplicates; the others are dropped as `near_duplicate`."""

    name = "near_dedup"
    Config = NearDedupConfig

    def process(self, batch):
        """Leaves every batch as it is: losers are known only when all signatures have been compared."""
        return StageResult(batch)
