"""A worker of a global step stays within `limits.dedup_memory_mb`, however many documents there are."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

FIXED_MB = 15  # what a step takes whatever its size: libraries that are loaded late, buffers of Parquet


def peaks(folder, units: int, megabytes: int) -> dict[str, float]:
    """MB that each step adds at its peak, over units of 5,000 documents."""
    (folder / "made.jsonl").write_text('{"text": "a"}\n')
    (folder / "p.yaml").write_text(
        "dataset: c\nversion: v1\nowner: a@b.c\ninputs: [{name: made, format: jsonl, path: made.jsonl}]\nstages: [exact_dedup: {}, near_dedup: {}]\n"
    )
    command = [sys.executable, "-m", "tests.dataproc.dedup.memory_run", str(folder / f"work{megabytes}"), str(folder / "p.yaml")]
    done = subprocess.run([*command, str(units), "5000", str(megabytes)], capture_output=True, text=True, cwd=PROJECT)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


# Without a limit the step of the bands takes 1.25 kB a document.
@pytest.mark.parametrize("units,megabytes", [(20, 20), pytest.param(160, 80, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_no_step_takes_more_than_it_may(tmp_path, units, megabytes):
    found = peaks(tmp_path, units, megabytes)
    assert {"ids", "contents", "near-bands", "near-pairs", "near-first", "near-second", "near-ranked", "near-losers"} <= found.keys()
    assert {step: peak for step, peak in found.items() if peak > 1.25 * megabytes + FIXED_MB} == {}


@pytest.mark.slow
def test_without_a_limit_they_take_more(tmp_path):
    assert max(peaks(tmp_path, 20, 1000).values()) > 80
