"""`headrace train ...`: run a recipe, list the documents of a step."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ops.console import JsonOption, StoreOption, emit, group
from store import artefacts
from store.errors import ConfigError

app = group("Train on mixtures, and ask what a step was made of.")


@app.command(epilog="example: headrace train run recipes/small.yaml --store ./store")
def run(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE.yaml", help="The training recipe.")],
    resume: Annotated[bool, typer.Option("--resume", help="Refuse to start a new run: only go on with one.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers to use instead of the recipe's number: the batches stay the same.")
    ] = None,
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster. Default: RAY_ADDRESS, else a private Ray.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a recipe to its last step. Killed and started again it goes on from its newest sound checkpoint, with the same losses."""
    from trainer.run import HOOKS, train

    result = train(recipe, store, resume, address or os.environ.get("RAY_ADDRESS") or None, HOOKS, workers)
    text = f"run {result['run']}: {result['steps']:,} steps, {result['tokens']:,} tokens"
    emit(result, as_json, f"{text}, loss {result['first_loss']:.4f} -> {result['last_loss']:.4f}\n  {result['url']}")


@app.command(epilog="example: headrace train docs small --step 120")
def docs(
    run_name: Annotated[str, typer.Argument(metavar="RUN", help="Name of a run.")],
    step: Annotated[int, typer.Option(min=0, help="The step, from 0.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the documents, and the token range of each, that a step's batch was made of. Runs nothing."""
    from trainer.reader import Reader
    from trainer.runs import RunFolder

    folder = RunFolder.of(artefacts.store_url(store), run_name)
    recipe = folder.recipe()
    if step >= recipe.steps:
        raise ConfigError(f"run {run_name} has steps 0 to {recipe.steps - 1}, not {step}")
    reader = Reader(folder.mixture())
    samples = reader.documents(step * recipe.batch_size, recipe.batch_size)
    reader.close()
    lines = []
    for sample in samples:
        lines.append(f"sample {sample['position']}  {sample['source']}, epoch {sample['epoch']}")
        lines += [f"  {d['id']}  tokens {d['tokens'][0]} to {d['tokens'][1]}" for d in sample["documents"]]
    emit({"run": run_name, "step": step, "samples": samples}, as_json, "\n".join(lines))
