"""Starts or continues a training run on Ray Train; also the Ray entry script: `python trainer/run.py RECIPE.yaml`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    # Run as a file from a checkout that is not installed: the packages lie beside this folder.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dataproc.execution import start_ray, stop_ray
from mixtures.mixture import load_mixture
from store import artefacts
from store.errors import ConfigError, HeadraceError
from trainer import checkpoint
from trainer.display import StepDisplay
from trainer.loop import train_worker
from trainer.recipe import Recipe, load_recipe
from trainer.runs import RunFolder

# An entry script hands the loop, by name, what stands above it: the loop and this package know nothing of evaluation.
HOOKS = ("eval.bits_per_byte:training_hook",)


def train(
    path: str,
    store: str | None = None,
    resume: bool = False,
    address: str | None = None,
    hooks: tuple[str, ...] = (),
    workers: int | None = None,
) -> dict[str, Any]:
    """Trains a recipe to its last step, from the newest sound checkpoint of its run where there is one.

    `hooks`: "module:function" called by rank 0 after a step as f(recipe, mixture, model, steps done) -> metrics to add. `workers`
    replaces the recipe's. Raises ConfigError when an earlier run of the name was made with another recipe or mixture.
    """
    recipe = load_recipe(path)
    if workers:
        recipe = recipe.with_workers(workers, path)
    store = artefacts.store_url(store)
    mixture = load_mixture(recipe.mixture, store)
    mixture.require(recipe.steps * recipe.batch_size)
    folder = RunFolder.of(store, recipe.run)
    if folder.exists():
        folder.require_same(recipe, mixture)
    elif resume:
        raise ConfigError(f"--resume: there is no run {recipe.run} in {store} to go on with")
    folder.write(recipe, mixture)
    found, damaged = checkpoint.latest(folder.checkpoints)
    if damaged:
        print(f"checkpoints passed over, damaged or unfinished: {', '.join(damaged)}", file=sys.stderr)
    if found is None or found.step < recipe.steps or len(folder.read_metrics()) < recipe.steps:
        _fit(folder, recipe, hooks, address)
    metrics = folder.read_metrics()
    if [row["step"] for row in metrics] != list(range(recipe.steps)):
        raise HeadraceError(f"run {recipe.run} ended with {len(metrics)} of {recipe.steps} steps recorded")
    return {
        "run": recipe.run,
        "url": str(folder.path),
        "steps": recipe.steps,
        "first_loss": metrics[0]["loss"],
        "last_loss": metrics[-1]["loss"],
        "tokens": metrics[-1]["tokens"],
    }


def _fit(folder: RunFolder, recipe: Recipe, hooks: tuple[str, ...], address: str | None) -> None:
    """Runs the loop in Ray Train workers. What Ray Train keeps of it is of no use later: checkpoints and metrics are our own."""
    # Its controller looks at workers every two seconds by default, which their start and end wait for.
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.2")
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer
    from ray.train.v2.api.exceptions import TrainingFailedError

    with contextlib.ExitStack() as stack:
        # Ray prints what its processes report on standard output, which belongs to the command's own result.
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        if not ray.is_initialized():
            # The controller of Ray Train takes a CPU of its own.
            stack.callback(stop_ray, start_ray(address, max(recipe.workers + 1, os.cpu_count() or 1)))
        attempt = folder.begin_attempt()
        scratch = stack.enter_context(folder.scratch(attempt))
        trainer = TorchTrainer(
            train_worker,
            train_loop_config={"store": folder.store, "run": recipe.run, "attempt": attempt, "hooks": list(hooks)},
            scaling_config=ScalingConfig(num_workers=recipe.workers, resources_per_worker={"CPU": 1}),
            run_config=RunConfig(name="fit", storage_path=scratch),
        )
        try:
            with StepDisplay(folder, recipe.steps):
                trainer.fit()
        except TrainingFailedError as error:
            raise _cause(error, folder.path / "failure.log") from error


def _cause(error: Exception, log: Path) -> HeadraceError:
    """The sentence of what went wrong in a worker, and in `log` all that Ray Train says about it."""
    log.write_text(str(error))
    # The first failure of a worker makes those that wait for it fail, too: our own errors say most. (Ray wraps what a worker raised.)
    failures = [getattr(failure, "_base_exc", failure) for failure in getattr(error, "worker_failures", {}).values()] or [error]
    own = next((failure for failure in failures if isinstance(failure, HeadraceError)), None)
    if own is not None:
        return own
    lines = str(failures[0]).strip().splitlines() or [""]
    return HeadraceError(
        f"training failed: {type(failures[0]).__name__}: {lines[0]} (details in {log}); the same command goes on from the last checkpoint"
    )


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 ok, 2 bad recipe, 1 anything else."""
    parser = argparse.ArgumentParser(
        prog="trainer/run.py", description="Train a recipe on Ray Train, or go on with its run from the newest sound checkpoint.",
        epilog="example: ray job submit --working-dir . -- python trainer/run.py recipe.yaml --store /mnt/store",
    )  # fmt: skip
    parser.add_argument("recipe", metavar="RECIPE.yaml")
    parser.add_argument("--store", help="where versions and runs live; default HEADRACE_STORE, then ./headrace-store")
    parser.add_argument("--address", help="address of a Ray cluster; default RAY_ADDRESS, else a private Ray")
    parser.add_argument("--resume", action="store_true", help="refuse to start a new run")
    parser.add_argument("--workers", type=int, help="workers to use instead of the recipe's number: the batches stay the same")
    options = parser.parse_args(arguments)
    try:
        address = options.address or os.environ.get("RAY_ADDRESS") or None
        result = train(options.recipe, options.store, options.resume, address, HOOKS, options.workers)
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
