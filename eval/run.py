"""Scores a run's checkpoint and archives the result; also a script: `python eval/run.py RUN --store STORE`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    # Run as a file from a checkout that is not installed: the packages lie beside this folder.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from dataproc.provenance import code_version
from eval.bits_per_byte import score
from store import artefacts, files
from store.errors import ConfigError, HeadraceError
from store.ledger import Ledger, read_ledger
from trainer import checkpoint
from trainer.model import Decoder
from trainer.runs import RunFolder

ARCHIVE = ".evals"
METRIC = "heldout_bits_per_byte"


def evaluate(name: str, store: str | None = None, step: int | None = None, documents: int = 1000) -> dict[str, Any]:
    """Bits per byte of a run's checkpoint (the newest sound one, or that of `step`) on held-out documents.

    `name`: a run, or the path of one of its checkpoint folders. The archive row ties the scores to the checkpoint, the data versions,
    the mixture and the recipe. Raises ConfigError when there is nothing to score.
    """
    store = artefacts.store_url(store)
    folder, step = _find(name, store, step)
    described, mixture, recipe = folder.describe(), folder.mixture(), folder.recipe()
    found, damaged = checkpoint.latest(folder.checkpoints, step)
    if found is None:
        wanted = f"at step {step}" if step is not None else "yet"
        raise ConfigError(f"run {folder.path.name} has no sound checkpoint {wanted}{f' (damaged: {damaged})' if damaged else ''}")
    torch.set_num_threads(1)  # sums over threads would depend on their number
    model = Decoder(recipe.model, mixture.tokenizer["vocabulary"])
    model.load_state_dict(found.load("model"))
    model.eval()
    scores = score(mixture, model, documents)
    if not scores["total"]["documents"]:
        raise ConfigError(f"the sources of run {folder.path.name} hold out no documents: tokenize with a larger --holdout")
    row = {
        "run": folder.path.name,
        "step": found.step,
        "checkpoint_digest": found.digest,
        "versions": described["versions"],
        "mixture_digest": described["mixture_digest"],
        "recipe_digest": described["recipe_digest"],
        "code_version": code_version(),
        "metric": METRIC,
        "documents_per_source": documents,
        "scores": scores,
    }
    Ledger(files.join(store, ARCHIVE)).append(row)
    return row


def _find(name: str, store: str, step: int | None) -> tuple[RunFolder, int | None]:
    path = Path(name)
    named = checkpoint.step_of(path)
    if named is not None and path.is_dir():
        if step not in (None, named):
            raise ConfigError(f"{name} is the checkpoint after {named} steps, --step says {step}")
        return RunFolder(path.resolve().parent.parent), named
    return RunFolder.of(store, name), step


def archive(store: str | None = None) -> list[dict[str, Any]]:
    """All archived scores of a store, oldest first."""
    return read_ledger(files.join(artefacts.store_url(store), ARCHIVE))


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 ok, 2 bad arguments, 1 anything else."""
    parser = argparse.ArgumentParser(prog="eval/run.py", description="Score a run's checkpoint on held-out documents.")
    parser.add_argument("run", metavar="RUN|CHECKPOINT")
    parser.add_argument("--store", default=os.environ.get("HEADRACE_STORE"))
    parser.add_argument("--step", type=int)
    parser.add_argument("--documents", type=int, default=1000, help="held-out documents to score of each source")
    options = parser.parse_args(arguments)
    try:
        print(json.dumps(evaluate(options.run, options.store, options.step, options.documents)))
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
