"""Keeping the best share of the corpus by `quality`.

This stage is a global step: an exact quantile is known only when all documents have been scored (dataproc/keep_rate.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from dataproc.stages.base import Stage, StageResult
from store.strict_yaml import StrictModel

Rate = Annotated[float, Field(gt=0, le=1)]


class KeepRateConfig(StrictModel):
    """The best `rate` of all documents stay, or of those of each language, domain label or input where `by` says so; `set` gives single
    groups a rate of their own."""

    rate: Rate = 1.0
    by: Literal["language", "domain", "source"] | None = None
    set: dict[str, Rate] = {}

    @model_validator(mode="after")
    def _says_something(self) -> KeepRateConfig:
        if self.set and self.by is None:
            raise ValueError("set names groups: say by what they are made, for example `by: language`")
        if self.rate == 1 and all(rate == 1 for rate in self.set.values()):
            raise ValueError("a rate of 1 keeps everything: leave the stage out, or give a smaller rate")
        return self

    def of(self, group: str) -> float:
        """The rate of a group."""
        return self.set.get(group, self.rate)


class KeepRate(Stage):
    """Keeps the best documents by `quality`, ties by id, documents without a score last; the others are dropped as `below_quantile`."""

    name = "keep_rate"
    Config = KeepRateConfig
    inputs = ("quality",)

    def process(self, batch):
        """Leaves every batch as it is: who stays is known only when all documents have been scored."""
        return StageResult(batch)
