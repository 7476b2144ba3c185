"""Three nodes, one of them killed in the middle: the run ends with the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from tests.conftest import PROJECT
from tests.dataproc.corpora import write_lines, write_pipeline


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_a_killed_node_changes_no_byte(tmp_path):
    write_lines(tmp_path / "lines.jsonl", 3000, longest=12)
    path = write_pipeline(
        tmp_path / "p.yaml",
        "[{name: lines, format: jsonl, path: lines.jsonl}]",
        "[{'tests.dataproc.slow_stage:Slow': {seconds: 0.3}}, exact_dedup]",
        "{unit_mb: 0.01}",
    )
    private = tempfile.mkdtemp(prefix="hrc-", dir="/tmp")
    os.mkdir(f"{private}/ray")
    command = [sys.executable, "-m", "tests.dataproc.cluster_run", path, str(tmp_path / "killed")]
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "RAY_TMPDIR": private,
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "2000",
    }
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment, cwd=PROJECT)
    assert done.returncode == 0, done.stderr[-3000:]
    killed = json.loads(done.stdout.strip().splitlines()[-1])
    assert killed["killed_after"] and killed["killed_after"][0] < 20
    assert killed["counts"]["input"] == 3000
    assert killed["digest"] == run_pipeline(path, str(tmp_path / "alone"), PlainLoop, quiet=True)["digest"]
    shutil.rmtree(private, ignore_errors=True)
