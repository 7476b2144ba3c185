"""Real pages through the whole pipeline: the same bytes for one worker and two, and after kills at random moments."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from dataproc.versions import open_version, verify
from tests.conftest import PROJECT

STAGES = """
  - url_filter: {block_url_words: [porn]}
  - extract: {engine: ENGINE}
  - language: {keep: [], min_score: 0.65}
  - clean: {drop_lines: [boilerplate]}
  - rules: {use: [gopher_quality, gopher_repetition, fineweb], set: {gopher_quality.min_stop_words: null}}
  - exact_dedup: {}
limits: {unit_mb: UNIT}
output: {shard_mb: 0.2}
"""


def pipeline(folder: Path, warc: Path, html: Path, engine: str, unit_mb: float) -> Path:
    path = folder / "web.yaml"
    inputs = f'  - {{name: crawl, format: warc, path: "{warc}"}}\n  - {{name: folder, format: html, path: "{html}", domain: books}}\n'
    stages = STAGES.replace("ENGINE", engine).replace("UNIT", str(unit_mb))
    path.write_text(f"dataset: web\nversion: v1\nowner: data@example.org\ninputs:\n{inputs}stages:{stages}")
    return path


def start(path: Path, store: Path, cpus: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "ops.cli", "data", "run", str(path), "--store", str(store), "--cpus", str(cpus), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=PROJECT, start_new_session=True
    )


def finish(process: subprocess.Popen) -> dict:
    out, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(out.splitlines()[-1])


def shards(store: Path) -> list[str]:
    version = open_version(str(store), "web@v1")
    assert verify(version) == []
    return [s["xxh3_128"] for s in version.manifest["shards"] + version.manifest["decisions"]]


def wait_for_receipts(store: Path, process: subprocess.Popen, count: int) -> bool:
    while process.poll() is None:
        if len(list(store.glob(".work/*/pass1/*.receipt.json"))) >= count:
            return True
        time.sleep(0.02)
    return False


def kill_a_worker(process: subprocess.Popen) -> bool:
    """Kills one of the run's actors with SIGKILL, as an operating system short of memory would."""
    try:
        for child in psutil.Process(process.pid).children(recursive=True):
            if "MapWorker" in " ".join(child.cmdline()[:1]):
                child.kill()
                return True
    except psutil.NoSuchProcess:
        return False  # one that ended while it was looked at
    return False


def check(tmp_path: Path, path: Path) -> None:
    generator = random.Random(11)
    one, two = finish(start(path, tmp_path / "one", 1)), finish(start(path, tmp_path / "two", 2))
    assert one["counts"]["input"] == one["counts"]["kept"] + sum(one["counts"]["dropped"].values()) + one["counts"]["quarantined"]
    assert one["counts"]["kept"] > 20
    assert one["digest"] == two["digest"] and shards(tmp_path / "one") == shards(tmp_path / "two")
    store = tmp_path / "killed"
    process = start(path, store, 2)
    assert wait_for_receipts(store, process, 1)
    time.sleep(generator.random())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not list(store.glob("web/*/manifest.json"))
    process = start(path, store, 2)
    deadline = time.monotonic() + 60
    while not kill_a_worker(process) and time.monotonic() < deadline:
        time.sleep(0.05 + generator.random() / 5)
    assert time.monotonic() < deadline, "no worker was there to kill"
    killed = finish(process)
    assert killed["digest"] == one["digest"] and shards(store) == shards(tmp_path / "one")


@pytest.mark.ray
@pytest.mark.timeout(500)
def test_one_worker_two_workers_and_killed_ones(tmp_path, shared_data):
    web = shared_data / "web"
    check(tmp_path, pipeline(tmp_path, web / "pages-transfer.warc.gz", web / "html" / "readability", "trafilatura", 0.2))


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_same_on_all_pages(tmp_path, shared_data):
    web = shared_data / "web"
    check(tmp_path, pipeline(tmp_path, web / "pages.warc.gz", web / "html", "trafilatura", 1))
