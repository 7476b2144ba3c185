"""A stage that takes its time, so that a test can interrupt a run in its middle."""

from __future__ import annotations

import time

from dataproc.stages.base import Stage, StageResult
from store.strict_yaml import StrictModel


class SlowConfig(StrictModel):
    """Seconds that each batch takes."""

    seconds: float = 0.2


class Slow(Stage):
    """Waits for each batch and changes nothing."""

    name = "slow"
    Config = SlowConfig

    def process(self, batch):
        time.sleep(self.config.seconds)
        return StageResult(batch)
