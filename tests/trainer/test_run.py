"""A run that is killed and started again has the losses of one that was not, bit for bit."""

from __future__ import annotations

import json
import os
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


def start(arguments: list[str], cwd: Path) -> subprocess.Popen:
    """A Python of its own process group."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def kill_after(process: subprocess.Popen, recorded: Path, steps: int) -> None:
    """Kills a run's process group with SIGKILL once so many steps are recorded."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None and (not recorded.exists() or recorded.read_bytes().count(b"\n") < steps):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert steps <= recorded.read_bytes().count(b"\n") < STEPS


STEPS = 400


@pytest.mark.ray
@pytest.mark.timeout(400)
def test_killed_runs_go_on_with_the_same_losses_on_any_number_of_workers(folder, tmp_path):
    """Killed on two workers, killed on one, ended by the script from another folder: the losses of one run that was left alone."""
    store = folder / "store"
    settings = {"steps": STEPS, "checkpoint": {"every": 50, "keep": 2}, "eval": {"every": 100, "documents": 3}}
    whole = train(recipe(folder, "whole", **settings), str(store))
    assert whole["last_loss"] < whole["first_loss"]
    path = recipe(folder, "killed", **settings)
    recorded = store / ".runs" / "killed" / "metrics.jsonl"
    command = ["-m", "ops.cli", "train", "run", path, "--store", str(store)]
    kill_after(start(command, PROJECT), recorded, 70)
    kill_after(start([*command, "--workers", "1", "--resume"], PROJECT), recorded, 210)
    process = start([str(PROJECT / "trainer" / "run.py"), path, "--store", str(store), "--resume"], tmp_path)
    out, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors.decode()[-2000:]
    assert metrics(folder, "killed") == metrics(folder, "whole")
    assert json.loads(out.splitlines()[-1])["last_loss"] == whole["last_loss"]
    rows = [json.loads(line) for line in recorded.read_text().splitlines()]
    assert [row["step"] for row in rows if "heldout_bits_per_byte" in row] == [99, 199, 299, 399]
    attempt = (store / ".runs" / "killed" / "attempt").read_text()
    assert train(path, str(store)) == {**whole, "run": "killed", "url": str(store / ".runs" / "killed")}
    assert (store / ".runs" / "killed" / "attempt").read_text() == attempt  # a run that has ended is not started again


@pytest.mark.ray
@pytest.mark.timeout(200)
def test_a_damaged_shard_ends_the_run_with_a_sentence_that_names_it(tmp_path):
    store = world(tmp_path)
    for path in (tmp_path / "store" / "one_tokens").glob("*/shards/*.parquet"):
        data = path.read_bytes()
        path.write_bytes(data[:2000] + bytes(200) + data[2200:])
    process = start(["-m", "ops.cli", "train", "run", recipe(tmp_path, "damaged"), "--store", store], PROJECT)
    _, errors = process.communicate(timeout=180)
    last = errors.decode().splitlines()[-1]
    assert process.returncode == 1 and last.startswith("headrace: ") and "part-00000.parquet cannot be read or is damaged" in last
    assert "Traceback" not in errors.decode()


def test_resume_of_nothing_is_refused(folder):
    with pytest.raises(ConfigError, match="there is no run nothing"):
        train(recipe(folder, "nothing"), str(folder / "store"), resume=True)
