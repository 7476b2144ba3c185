"""Paragraphs that stand in several documents are cut out of all but some of them.

This stage is a global step: workers hash the paragraphs of what the other stages leave, copies are found between the passes
(dataproc/dedup/paragraphs.py), and the second pass cuts them (dataproc/dedup/cutting.py).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dataproc.stages.base import Stage, StageResult
from dataproc.stages.near_dedup import NearConfig
from dataproc.stages.winners import WinnerConfig


class ParagraphDedupConfig(WinnerConfig):
    """Which paragraphs are copies, how many of them stay, and when a document that was cut is dropped. The copies that stay are those of
    the best documents."""

    # A paragraph is a run of lines without a blank one between them; in a text that has only one such run, and with `line`, each line is.
    unit: Literal["paragraph", "line"] = "paragraph"
    # Shorter ones stay in any case: headings, list marks, "Yes." are not copies of each other.
    min_words: int = Field(8, ge=1)
    max_copies: int = Field(1, ge=1)
    # A document that lost paragraphs is dropped as too_short with fewer words left, as too_different with a larger share of its words cut.
    min_words_left: int = Field(5, ge=0)
    max_cut: float = Field(0.9, ge=0, le=1)
    # Paragraphs that are alike are copies, too: the settings of near_dedup, of paragraphs.
    near: NearConfig | None = None


class ParagraphDedup(Stage):
    """Cuts paragraphs that other documents hold; a document of which too little is left is dropped."""

    name = "paragraph_dedup"
    Config = ParagraphDedupConfig

    def process(self, batch):
        """Leaves every batch as it is: copies are known only when all paragraphs have been compared."""
        return StageResult(batch)
