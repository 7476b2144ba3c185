"""Near duplicates: of documents that share most of their word n-grams one is kept, whatever source each came from.

This stage is a global step: workers make signatures of what the other stages leave, pairs are found and winners chosen between the
passes (dataproc/dedup/near.py).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from dataproc.stages.base import Stage, StageResult
from store.strict_yaml import StrictModel

Keep = Literal["smallest_id", "quality", "longest", "earliest"]


class NearDedupConfig(StrictModel):
    """How near duplicates are found. Two documents of Jaccard similarity s over their sets of word `ngram`-grams share a band with
    probability 1 - (1 - s ** rows) ** bands."""

    ngram: int = Field(5, ge=1, le=64)
    bands: int = Field(14, ge=1, le=512)
    rows: int = Field(8, ge=1, le=64)
    scheme: Literal["affine32", "affine64"] = "affine32"
    seed: int = Field(1, ge=0, lt=1 << 32)
    # The share of equal signature values below which two documents that share a band are no duplicates.
    verify: float = Field(0.7, ge=0, le=1)
    keep: Keep = "smallest_id"
    # Names of inputs: a document of an earlier one stays, whatever `keep` says; inputs that are not named come last.
    source_priority: tuple[str, ...] = ()
    # A bucket is the documents that share one band. Up to all_pairs of them are compared each with each; more, each with the first and
    # the one before it by id; more than star, with the first alone.
    all_pairs: int = Field(16, ge=2, le=1000)
    star: int = Field(1000, ge=2)

    @model_validator(mode="after")
    def _sizes(self) -> NearDedupConfig:
        if self.star < self.all_pairs:
            raise ValueError(f"star {self.star} is less than all_pairs {self.all_pairs}")
        if len(set(self.source_priority)) < len(self.source_priority):
            raise ValueError("source_priority names an input twice")
        return self

    @property
    def permutations(self) -> int:
        return self.bands * self.rows

    @property
    def least_equal(self) -> int:
        """Signature values that must be equal for a pair to be duplicates."""
        return next(k for k in range(self.permutations + 1) if k / self.permutations >= self.verify)


class NearDedup(Stage):
    """Keeps one document of each cluster of near duplicates; the others are dropped as `near_duplicate`."""

    name = "near_dedup"
    Config = NearDedupConfig

    def process(self, batch):
        """Leaves every batch as it is: losers are known only when all signatures have been compared."""
        return StageResult(batch)
