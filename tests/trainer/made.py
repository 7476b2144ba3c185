"""Tiny document versions, token versions, mixtures and recipes for tests."""

from __future__ import annotations

import json
import random
from pathlib import Path

from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.tokens import tokenize
from tests.dataproc.corpora import WORDS


def documents(folder: Path, name: str, count: int, seed: int, store: str) -> None:
    """A documents version `name@v1` of random words."""
    generator = random.Random(seed)
    rows = [{"text": " ".join(generator.choice(WORDS) for _ in range(generator.randint(5, 60)))} for _ in range(count)]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / f"{name}.yaml").write_text(
        f"dataset: {name}\nversion: v1\nowner: me@example.org\ninputs: [{{name: {name}, format: jsonl, path: {name}.jsonl, language: en}}]\n"
    )
    run_pipeline(str(folder / f"{name}.yaml"), store, PlainLoop, quiet=True)


def world(folder: Path, sequence_length: int = 16) -> str:
    """Two token versions with one tokenizer and a mixture over them, in `<folder>/store`; returns the store."""
    store = str(folder / "store")
    documents(folder, "one", 300, 1, store)
    documents(folder, "two", 200, 2, store)
    first = tokenize(store, ["one@v1"], "train:320", "one_tokens", "v1", 0.05)
    tokenize(store, ["two@v1"], f"{first.url}/tokenizer.json", "two_tokens", "v1", 0.05)
    (folder / "mix.yaml").write_text(
        f"mixture: both\nversion: v1\nowner: me@example.org\nsequence_length: {sequence_length}\nseed: 3\nsources:\n"
        "  - {name: one, from: one_tokens@v1, weight: 0.75}\n  - {name: two, from: two_tokens@v1, weight: 0.25}\n"
    )
    return store


def recipe(folder: Path, name: str = "tiny", **changes) -> str:
    """A recipe file over the world's mixture; returns its path."""
    settings = {
        "run": name,
        "owner": "me@example.org",
        "mixture": "mix.yaml",
        "model": {"layers": 1, "width": 32, "heads": 2},
        "steps": 12,
        "batch_size": 4,
        "microbatch": 2,
        "workers": 2,
        "optimizer": {"lr": 0.01},
        "schedule": {"warmup_steps": 3},
        "checkpoint": {"every": 4, "keep": 2},
    }
    path = folder / f"{name}.recipe.yaml"
    path.write_text(json.dumps({**settings, **changes}))
    return str(path)
