"""Exact duplicates: of all documents with the same normalised text one is kept, whatever source each came from.

This stage is a global step: it only computes the hash here, the winners are found between the passes (dataproc/dedup/exact.py).
"""

from __future__ import annotations

from dataproc.stages.base import Stage, StageResult
from dataproc.stages.winners import WinnerConfig


class ExactDedupConfig(WinnerConfig):
    """Which of several documents with one text stays."""


class ExactDedup(Stage):
    """Keeps one of the documents with equal `content_hash`; the others are dropped as `duplicate`."""

    name = "exact_dedup"
    Config = ExactDedupConfig

    def process(self, batch):
        """Leaves every batch as it is: losers are known only when all keys have been compared."""
        return StageResult(batch)
