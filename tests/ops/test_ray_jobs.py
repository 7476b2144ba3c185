"""The pipeline on a Ray that was started from outside: `ray job submit`, and `ray up` with `ray submit`, token authentication on."""

from __future__ import annotations

import json
import re
import stat
import threading
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.versions import open_version, verify
from tests.conftest import PROJECT
from tests.dataproc.corpora import write_lines, write_pipeline
from tests.ops.ray_nodes import free_ports, ray_place


@pytest.fixture
def corpus(tmp_path) -> tuple[Path, str]:
    """A pipeline file and the digest that a plain loop gives."""
    write_lines(tmp_path / "lines.jsonl", 500, longest=12)
    path = write_pipeline(tmp_path / "p.yaml", "[{name: lines, format: jsonl, path: lines.jsonl}]")
    return Path(path), run_pipeline(path, str(tmp_path / "plain"), PlainLoop, quiet=True)["digest"]


def check(store: Path, digest: str) -> None:
    version = open_version(str(store), "corpus@v1")
    assert version.manifest["digest"] == digest and verify(version) == []


@pytest.mark.ray
@pytest.mark.timeout(500)
def test_ray_job_submit(tmp_path, corpus):
    path, digest = corpus
    with ray_place() as place:
        port, dashboard, agent = free_ports(3)
        started = place.run(
            "ray", "start", "--head", f"--port={port}", f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}",
            "--num-cpus=2", "--include-dashboard=true", "--object-store-memory=100000000",
        )  # fmt: skip
        assert started.returncode == 0, started.stderr
        excludes = {"excludes": [".git", ".venv", "headrace-demo", "headrace-store"]}
        done = place.run(
            "ray", "job", "submit", "--address", f"http://127.0.0.1:{dashboard}", "--working-dir", ".",
            "--runtime-env-json", json.dumps(excludes), "--",
            "python", "dataproc/run.py", str(path), "--store", str(tmp_path / "store"),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert "kept" in done.stdout and "on the Ray cluster at" in done.stdout
    check(tmp_path / "store", digest)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_jobs_counters_are_on_the_nodes_metrics_port(tmp_path):
    """Also with a stage of the user's own, which the workers find in the submitted folder."""
    write_lines(tmp_path / "lines.jsonl", 700, longest=12)
    stages = "[{'tests.dataproc.slow_stage:Slow': {seconds: 1.0}}, exact_dedup]"
    path = write_pipeline(tmp_path / "p.yaml", "[{name: lines, format: jsonl, path: lines.jsonl}]", stages)
    with ray_place() as place:
        place.environment["RAY_metrics_report_interval_ms"] = "500"
        port, dashboard, agent, metrics = free_ports(4)
        started = place.run(
            "ray", "start", "--head", f"--port={port}", f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}",
            f"--metrics-export-port={metrics}", "--num-cpus=2", "--include-dashboard=true", "--object-store-memory=100000000",
        )  # fmt: skip
        assert started.returncode == 0, started.stderr
        excludes = {"excludes": [".git", ".venv", "headrace-demo", "headrace-store"]}
        submit = ("ray", "job", "submit", "--address", f"http://127.0.0.1:{dashboard}", "--working-dir", ".")
        seen: set[str] = set()
        stop = threading.Event()
        watcher = threading.Thread(target=watch_metrics, args=(metrics, seen, stop))
        watcher.start()
        done = place.run(
            *submit, "--runtime-env-json", json.dumps(excludes), "--",
            "python", "dataproc/run.py", path, "--store", str(tmp_path / "store"),
        )  # fmt: skip
        stop.set()
        watcher.join()
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert "kept" in done.stdout and "on the Ray cluster at" in done.stdout
        assert {"ray_headrace_records_in", "ray_headrace_records_kept", "ray_headrace_input_bytes", "ray_headrace_stage_seconds"} <= seen
        bad = place.run(*submit, "--runtime-env-json", json.dumps(excludes), "--", "python", "dataproc/run.py", str(tmp_path / "none.yaml"))
        assert bad.returncode != 0 and "no such file" in bad.stdout
    check(tmp_path / "store", run_pipeline(path, str(tmp_path / "plain"), PlainLoop, quiet=True)["digest"])


def watch_metrics(port: int, seen: set[str], stop: threading.Event) -> None:
    """Collects the names of Headrace's counters on a node's metrics port, with `_total` taken off, until told to stop."""
    while not stop.wait(0.5):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                names = re.findall(r"^(ray_headrace_\w+?)(?:_total)?\{", answer.read().decode(), re.M)
        except OSError:
            continue  # the node is still starting
        seen.update(names)


SSH = """#!/bin/sh
# Stands in for ssh: runs the remote command, all that follows user@host, on this machine.
case "$*" in *"-O exit"*) exit 0 ;; esac
while [ "$#" -gt 0 ]; do case "$1" in *@*) shift; break ;; esac; shift; done
exec bash -c "$*"
"""
RSYNC = """#!/bin/sh
# Stands in for rsync: copies the last but one argument to the last, `host:` taken off and `~` meaning this HOME.
for last; do source="$target"; target="$last"; done
target="${target#*:}"; source="${source#*:}"
case "$target" in "~/"*) target="$HOME/${target#??}" ;; esac
case "$source" in "~/"*) source="$HOME/${source#??}" ;; esac
mkdir -p "$(dirname "$target")"
[ "$source" -ef "$target" ] || cp -r "$source" "$target"
"""


@pytest.mark.ray
@pytest.mark.timeout(500)
def test_ray_up_and_ray_submit(tmp_path, corpus):
    path, digest = corpus
    with ray_place() as place:
        stand_ins = place.folder / "bin"
        stand_ins.mkdir()
        for name, text in (("ssh", SSH), ("rsync", RSYNC)):
            (stand_ins / name).write_text(text)
            (stand_ins / name).chmod(stat.S_IRWXU)
        place.environment["PATH"] = f"{stand_ins}:{place.environment['PATH']}"
        # A login shell starts with the system's PATH: cluster.yaml's setup puts the environment's folder into .bashrc, as is done here.
        (place.home / ".bashrc").write_text(f"export PATH={place.environment['PATH']} RAY_AUTH_MODE=token\n")
        port = free_ports(1)[0]
        config = yaml.safe_load((PROJECT / "cluster.yaml").read_text())
        config["provider"] = {"type": "local", "head_ip": "127.0.0.1", "worker_ips": []}
        # What cannot be done here: the project is installed in this environment already, and no other Ray may be stopped.
        config["setup_commands"] = ["python -c 'import dataproc, store'"]
        config["file_mounts"] = {"~/.ray/auth_token": str(place.home / ".ray" / "auth_token")}
        config["head_start_ray_commands"] = [
            f"RAY_AUTH_MODE=token ray start --head --port={port} --num-cpus=2 --include-dashboard=false --object-store-memory=100000000"
        ]
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(config))
        up = place.run("ray", "up", "-y", "--no-config-cache", str(tmp_path / "cluster.yaml"))
        assert up.returncode == 0, up.stdout[-3000:] + up.stderr[-3000:]
        deadline = time.monotonic() + 30
        while place.run("ray", "status").returncode and time.monotonic() < deadline:
            time.sleep(1)
        done = place.run(
            "ray", "submit", "--no-config-cache", str(tmp_path / "cluster.yaml"), "dataproc/run.py", str(path),
            "--store", str(tmp_path / "store"),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert (place.home / "run.py").exists()
        assert "on the Ray cluster at auto: 2 CPUs" in done.stdout + done.stderr
    check(tmp_path / "store", digest)
