"""Learning rate as a pure function of the step: a resume has nothing to restore."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from store.strict_yaml import StrictModel


class Schedule(StrictModel):
    """Linear warm-up over `warmup_steps`, then `decay` to `min_ratio` x the peak at the last step.

    cosine and linear decay from the end of the warm-up; wsd (warm-up, stable, decay) holds the peak until the last `decay_fraction` of
    the steps and then falls linearly; constant holds it to the end.
    """

    warmup_steps: int = Field(0, ge=0)
    decay: Literal["cosine", "linear", "wsd", "constant"] = "cosine"
    min_ratio: float = Field(0.1, ge=0, le=1)
    decay_fraction: float = Field(0.1, gt=0, le=1)

    def ratio(self, step: int, steps: int) -> float:
        """Share of the peak rate at `step` (0-based) of `steps`, from 0 to 1. The first step already has a rate above 0."""
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        start = self.warmup_steps if self.decay != "wsd" else max(self.warmup_steps, round(steps * (1 - self.decay_fraction)))
        if self.decay == "constant" or step < start:
            return 1.0
        done = (step - start + 1) / max(1, steps - start)
        shape = (1 + math.cos(math.pi * done)) / 2 if self.decay == "cosine" else 1 - done
        return self.min_ratio + (1 - self.min_ratio) * shape
