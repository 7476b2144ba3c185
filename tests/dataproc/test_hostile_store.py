"""A full disk, a store that may not be written, two runs at once: a clear error or the same bytes, never a broken version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.versions import open_version, verify
from store import artefacts
from store.errors import StoreError
from tests.conftest import PROJECT
from tests.dataproc.corpora import write_lines, write_pipeline


@pytest.fixture
def pipeline(tmp_path) -> str:
    write_lines(tmp_path / "lines.jsonl", 4000, longest=60)
    return write_pipeline(tmp_path / "p.yaml", "[{name: lines, format: jsonl, path: lines.jsonl}]", limits="{unit_mb: 0.05}")


@pytest.fixture
def small_disk(tmp_path) -> Path:
    """A filesystem of 200 kB. Skips where none may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(place)], capture_output=True).returncode:
        pytest.skip("no small filesystem can be mounted here (needs root)")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(pipeline, small_disk, tmp_path):
    expected = run_pipeline(pipeline, str(tmp_path / "roomy"), PlainLoop, quiet=True)["digest"]
    with pytest.raises(Exception, match="the disk is full; free some space and run the same command again"):
        run_pipeline(pipeline, str(small_disk / "store"), PlainLoop, quiet=True)
    assert artefacts.list_artefacts(str(small_disk / "store")) == []
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    assert run_pipeline(pipeline, str(small_disk / "store"), PlainLoop, quiet=True)["digest"] == expected
    assert verify(open_version(str(small_disk / "store"), "corpus@v1")) == []


def test_a_store_that_may_not_be_written_is_told(pipeline):
    with pytest.raises(StoreError, match="cannot write /proc/no-store"):
        run_pipeline(pipeline, "/proc/no-store", PlainLoop, quiet=True)


@pytest.mark.ray
@pytest.mark.timeout(200)
def test_two_runs_at_once_end_in_the_same_version(pipeline, tmp_path):
    command = [sys.executable, "-m", "ops.cli", "data", "run", pipeline, "--store", str(tmp_path / "store"), "--cpus", "1", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=PROJECT) for _ in range(2)
    ]
    results = []
    for process in runs:
        out, errors = process.communicate(timeout=180)
        assert process.returncode == 0, errors[-3000:]
        results.append(json.loads(out.splitlines()[-1]))
    assert results[0]["digest"] == results[1]["digest"] == run_pipeline(pipeline, str(tmp_path / "alone"), PlainLoop, quiet=True)["digest"]
    version = open_version(str(tmp_path / "store"), "corpus@v1")
    assert verify(version) == [] and len(artefacts.list_artefacts(str(tmp_path / "store"))) == 1
