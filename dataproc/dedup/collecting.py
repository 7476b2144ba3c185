"""What pass 1 leaves of a unit's survivors for the global steps, by file."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from dataproc.config import Pipeline
from dataproc.dedup.exact import KeyCollector
from dataproc.dedup.paragraphs import ParagraphWriter
from dataproc.dedup.signatures import SignatureWriter
from dataproc.keep_rate import ScoreWriter
from dataproc.stages.winners import WinnerConfig


class Collector(Protocol):
    """Takes survivors as they come and writes a file at the end."""

    def add(self, survivors: pa.Table) -> None: ...

    def write(self, path: str) -> None: ...


class Collectors:
    """All that a pipeline needs. `files`: name in FILE_SUFFIXES -> what writes it."""

    def __init__(self, pipeline: Pipeline):
        inputs = [spec.name for spec in pipeline.inputs]
        exact, near, paragraphs = pipeline.exact_dedup, pipeline.near_dedup, pipeline.paragraph_dedup
        self.files: dict[str, Collector] = {"keys": KeyCollector(exact.config if exact else WinnerConfig(), inputs)}
        self._timed: dict[str, SignatureWriter | ParagraphWriter] = {}
        if pipeline.keep_rate:
            self.files["scores"] = ScoreWriter(pipeline.keep_rate.config)
        if near:
            self.files["signatures"] = self._timed["near_dedup"] = SignatureWriter(near.config, inputs)
        if paragraphs:
            self.files["paragraphs"] = self._timed["paragraph_dedup"] = ParagraphWriter(paragraphs.config, inputs)
        self._adding = list(self.files.values())
        if paragraphs and paragraphs.config.near:
            self.files["paragraph_signatures"] = self._timed["paragraph_dedup"].signatures

    def add(self, survivors: pa.Table) -> None:
        """Adds rows with the columns of `unit_outputs.survivor_schema`."""
        for collector in self._adding:
            collector.add(survivors)

    @property
    def seconds(self) -> dict[str, float]:
        """Time by stage."""
        return {stage: collector.seconds for stage, collector in self._timed.items()}

    @property
    def counts(self) -> dict[str, int]:
        """What the plan of the global steps needs beside the number of survivors."""
        return {"paragraphs": self._timed["paragraph_dedup"].count} if "paragraph_dedup" in self._timed else {}
