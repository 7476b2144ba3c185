"""Starts or continues a training run on Ray Train; also the Ray entry script: `python trainer/run.py RECIPE.yaml`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    # Run as a file from a checkout that is not installed: the packages lie beside this folder.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mixtures.mixture import load_mixture
from store import artefacts, files
from store.errors import ConfigError, HeadraceError
from trainer import checkpoint
from trainer.recipe import load_recipe
from trainer.runs import RunFolder, describe_run


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
        recipe = type(recipe).model_validate(recipe.model_copy(update={"workers": workers}).model_dump())
    store = artefacts.store_url(store)
    mixture = load_mixture(recipe.mixture, store)
    mixture.require(recipe.steps * recipe.batch_size)
    folder = RunFolder.of(store, recipe.run)
    described = describe_run(recipe, mixture, store)
    if folder.exists():
        _require_same(folder.describe(), described, folder)
    elif resume:
        raise ConfigError(f"--resume: there is no run {recipe.run} in {store} to go on with")
    files.write_bytes(str(folder.path / "run.json"), json.dumps(described, indent=1, sort_keys=True).encode())
    _, damaged = checkpoint.latest(folder.checkpoints)
    if damaged:
        print(f"passed over, damaged or unfinished: {', '.join(damaged)}", file=sys.stderr)
    settings = {"store": store, "run": recipe.run, "attempt": folder.begin_attempt(), "hooks": list(hooks)}
    _fit(settings, recipe.workers, address)
    metrics = folder.read_metrics()
    if len(metrics) != recipe.steps:
        raise HeadraceError(f"run {recipe.run} ended with {len(metrics)} of {recipe.steps} steps recorded")
    return {
        "run": recipe.run,
        "url": str(folder.path),
        "steps": recipe.steps,
        "first_loss": metrics[0]["loss"],
        "last_loss": metrics[-1]["loss"],
        "tokens": metrics[-1]["tokens"],
    }


def _require_same(before: dict[str, Any], now: dict[str, Any], folder: RunFolder) -> None:
    from dataproc.versions import config_differences

    if before["recipe_digest"] == now["recipe_digest"] and before["mixture_digest"] == now["mixture_digest"]:
        return
    changes = config_differences(before["recipe"], now["recipe"]) + config_differences(before["mixture"], now["mixture"])
    changes += config_differences(before["versions"], now["versions"])
    shown = "; ".join(f"{c['key']}: {c['before']!r} -> {c['after']!r}" for c in changes[:5])
    raise ConfigError(
        f"run {folder.path.name} was started otherwise ({shown}): give the changed recipe another run name, or remove {folder.path}"
    )


def _fit(settings: dict[str, Any], workers: int, address: str | None) -> None:
    """Runs the loop in Ray Train workers. What Ray Train keeps of it is of no use later: checkpoints and metrics are our own."""
    # Its controller looks at workers every two seconds by default, which a report() then waits for.
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.2")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    scratch = tempfile.mkdtemp(prefix="hr-", dir="/tmp")
    owned = not ray.is_initialized()
    if owned and address:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    elif owned:
        ray.init(
            address="local", num_cpus=max(workers + 1, os.cpu_count() or 1), include_dashboard=False, object_store_memory=200_000_000,
            logging_level="ERROR", log_to_driver=False, _temp_dir=scratch,
        )  # fmt: skip
    try:
        from trainer.loop import train_worker

        trainer = TorchTrainer(
            train_worker,
            train_loop_config=settings,
            scaling_config=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
            run_config=RunConfig(name="fit", storage_path=f"{scratch}/train"),
        )
        trainer.fit()
    except ray.train.v2.api.exceptions.TrainingFailedError as error:
        raise HeadraceError(_cause(error)) from error
    finally:
        if owned:
            ray.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)


def _cause(error: Exception) -> str:
    """The first worker's own sentence inside a failure of Ray Train."""
    failures = list(getattr(error, "worker_failures", {}).values())
    lines = [line for line in str(failures[0] if failures else error).strip().splitlines() if line.strip()]
    return f"training failed: {lines[-1].strip()}"


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 ok, 2 bad recipe, 1 anything else."""
    parser = argparse.ArgumentParser(prog="trainer/run.py", description="Train a recipe on Ray Train, or go on with its run.")
    parser.add_argument("recipe", metavar="RECIPE.yaml")
    parser.add_argument("--store")
    parser.add_argument("--address", help="address of a Ray cluster; default RAY_ADDRESS, else a private Ray")
    parser.add_argument("--resume", action="store_true", help="refuse to start a new run")
    options = parser.parse_args(arguments)
    try:
        result = train(options.recipe, options.store, options.resume, options.address or os.environ.get("RAY_ADDRESS"))
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
