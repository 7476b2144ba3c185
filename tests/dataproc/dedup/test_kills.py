"""SIGKILL in every global step: the same command goes on and ends in the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.dataproc.dedup.running import PIPELINE, write_rows
from tests.dataproc.dedup.test_against import corpus
from tests.dataproc.test_same_bytes import finish, kill_a_worker

STAGES = "[exact_dedup: {}, near_dedup: {}, paragraph_dedup: {near: {threshold: 0.7, ngram: 2}}]"
STEPS = [
    *("collect_ids", "ids", "collect_contents", "contents"),
    *("near-bands", "near-bands-records-merged", "near-pairs", "near-first", "near-second", "near-labels", "near-ranked", "near-losers"),
    *("paragraphs-collect", "paragraphs-cuts", "paragraphs-near-bands", "paragraphs-near-first-carried-merged"),
    *("paragraphs-near-forests-0", "paragraphs-near-losers", "pass2"),
]


def start(path: Path, store: Path, where: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.dataproc.dedup.small_steps_run", str(path), str(store), where]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=PROJECT)


def pipeline(folder: Path) -> Path:
    (folder / "p.yaml").write_text(
        PIPELINE.format(
            name="corpus",
            label="v1",
            inputs=f"[{write_rows(folder, 'a', corpus(1, 150))}]",
            stages=STAGES,
            unit_mb=0.01,
            limits=", dedup_memory_mb: 1000",
        )
    )
    return folder / "p.yaml"


def wait_for(store: Path, step: str, process: subprocess.Popen) -> bool:
    """Whether a step has begun to write before the process ended."""
    while process.poll() is None:
        if any(True for _ in store.glob(f".work/*/{step}/*")):
            return True
        time.sleep(0.001)
    return False


def decided(result: dict) -> list[str]:
    manifest = json.loads((Path(result["url"]) / "manifest.json").read_bytes())
    return [part["xxh3_128"] for part in manifest["shards"] + manifest["decisions"] + manifest["index"]]


@pytest.mark.timeout(600)
def test_a_run_that_is_killed_in_each_step(tmp_path):
    path = pipeline(tmp_path)
    whole = finish(start(path, tmp_path / "whole", "plain"))
    killed = 0
    for step in STEPS:
        process = start(path, tmp_path / "killed", "plain")
        if wait_for(tmp_path / "killed", step, process):
            process.kill()
            process.communicate()
            killed += 1
        else:
            assert step == STEPS[-1], f"the run ended before {step}"
    assert killed >= len(STEPS) - 1  # the last one may be too quick
    result = finish(start(path, tmp_path / "killed", "plain"))
    assert result["digest"] == whole["digest"] and decided(result) == decided(whole)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_workers_that_are_killed_in_each_step(tmp_path):
    path = pipeline(tmp_path)
    whole = finish(start(path, tmp_path / "whole", "plain"))
    process = start(path, tmp_path / "killed", "ray")
    killed = 0
    for step in STEPS:
        assert wait_for(tmp_path / "killed", step, process), f"the run ended before {step}"
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            if kill_a_worker(process):
                killed += 1
                break
            time.sleep(0.01)
    result = finish(process)
    assert killed > len(STEPS) // 2
    assert result["digest"] == whole["digest"] and decided(result) == decided(whole)
