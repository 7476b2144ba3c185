"""A run that is killed and started again has the losses of one that was not, bit for bit."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from store.errors import ConfigError
from tests.conftest import PROJECT
from tests.trainer.made import recipe, world
from trainer.run import train


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("training")
    world(made)
    return made


def metrics(folder: Path, name: str) -> list[dict]:
    rows = [json.loads(line) for line in (folder / "store" / ".runs" / name / "metrics.jsonl").read_text().splitlines()]
    return [{key: row[key] for key in ("step", "loss", "lr", "grad_norm", "tokens")} for row in rows]


def command(path: str, store: Path) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    arguments = [sys.executable, "-m", "ops.cli", "train", "run", path, "--store", str(store)]
    return subprocess.Popen(
        arguments, env=environment, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.ray
@pytest.mark.timeout(400)
def test_killed_runs_go_on_with_the_same_losses(folder):
    store = folder / "store"
    whole = train(recipe(folder, "whole", steps=400, checkpoint={"every": 50, "keep": 2}), str(store))
    assert whole["last_loss"] < whole["first_loss"]
    path = recipe(folder, "killed", steps=400, checkpoint={"every": 50, "keep": 2})
    recorded = store / ".runs" / "killed" / "metrics.jsonl"
    for least in (70, 210):
        process = command(path, store)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and (not recorded.exists() or len(recorded.read_bytes().splitlines()) < least):
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert least <= len(recorded.read_bytes().splitlines()) < 400
    process = command(path, store)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors.decode()[-2000:]
    assert metrics(folder, "killed") == metrics(folder, "whole")


@pytest.mark.ray
def test_another_number_of_workers_has_the_same_batches_and_nearly_the_same_losses(folder):
    train(recipe(folder, "pair"), str(folder / "store"))
    train(recipe(folder, "single", workers=1), str(folder / "store"))
    pair, single = ([row["loss"] for row in metrics(folder, name)] for name in ("pair", "single"))
    assert pair == pytest.approx(single, abs=1e-5)


def test_a_changed_recipe_is_refused_with_what_differs(folder):
    run = folder / "store" / ".runs" / "kept"
    run.mkdir(parents=True)
    from mixtures.mixture import load_mixture
    from trainer.recipe import load_recipe
    from trainer.runs import describe_run

    before = load_recipe(recipe(folder, "kept"))
    described = describe_run(before, load_mixture(before.mixture, str(folder / "store")), str(folder / "store"))
    (run / "run.json").write_text(json.dumps(described))
    with pytest.raises(ConfigError, match=r"optimizer.lr: 0.01 -> 0.02"):
        train(recipe(folder, "kept", optimizer={"lr": 0.02}), str(folder / "store"))
    shutil.rmtree(run)


def test_resume_of_nothing_is_refused(folder):
    with pytest.raises(ConfigError, match="there is no run nothing"):
        train(recipe(folder, "nothing"), str(folder / "store"), resume=True)
