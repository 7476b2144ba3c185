"""A stage that fails for real on certain texts: what hostile records do to a worker."""

from __future__ import annotations

import ctypes
import os
import sys

from dataproc.stages.base import Stage, StageResult
from store.strict_yaml import StrictModel


class FaultyConfig(StrictModel):
    """No settings."""


class Faulty(Stage):
    """Crashes, exits, loops, eats memory or raises when a text says so; leaves all others as they are."""

    name = "faulty"
    Config = FaultyConfig

    def process(self, batch):
        for text in batch.column("text").to_pylist():
            fault(text)
        return StageResult(batch)


def fault(text: str) -> None:
    if text == "SEGFAULT":
        ctypes.string_at(0)
    elif text == "EXIT":
        os._exit(3)
    elif text == "EXIT CLEANLY":
        os._exit(0)
    elif text == "SYSTEM EXIT":
        sys.exit(0)
    elif text == "LOOP":
        while True:
            pass
    elif text == "RAISE":
        raise RuntimeError("this record is not to be processed")
    elif text == "EAT MEMORY":
        hoard = []
        while True:
            hoard.append(bytearray(50_000_000))
