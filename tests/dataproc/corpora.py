"""Small corpora and pipeline files that the tests make."""

from __future__ import annotations

import json
import random
from pathlib import Path

WORDS = ["river", "mill", "wheel", "channel", "stone", "water", "gate", "the", "of", "and", "turns", "slowly"]


def write_lines(path: Path, count: int, replaced: dict[int, str] | None = None, seed: int = 1, longest: int = 40) -> None:
    """A JSONL file of `count` documents of random words; rows in `replaced` have that text instead."""
    generator = random.Random(seed)
    rows = []
    for i in range(count):
        text = " ".join(generator.choice(WORDS) for _ in range(generator.randint(1, longest)))
        rows.append(json.dumps({"text": (replaced or {}).get(i, text), "url": f"https://example.org/{i}"}))
    path.write_text("\n".join(rows) + "\n")


def write_pipeline(
    path: Path, inputs: str, stages: str = "[exact_dedup]", limits: str = "{unit_mb: 0.02}", output: str = "{shard_mb: 0.05}"
) -> str:
    """A pipeline file with the given parts in YAML flow style; returns its path."""
    path.write_text(
        f"dataset: corpus\nversion: v1\nowner: data@example.org\ninputs: {inputs}\nstages: {stages}\nlimits: {limits}\noutput: {output}\n"
    )
    return str(path)
