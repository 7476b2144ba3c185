"""A full disk, a store that may not be written, two runs at once: a clear error or the same bytes, never a broken version."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.versions import CHECKSUM, open_version, publish, verify, version_digest
from store import artefacts, files
from store.digests import bytes_digest
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


def _finished_work(folder: Path, said: str) -> tuple[dict, dict[str, str]]:
    """A finished run's manifest and files; every run of it has the same digest and a report of its own."""
    folder.mkdir()
    (folder / "report").write_text(said)
    entry = {"path": "report", "bytes": len(said), "xxh3_128": bytes_digest(said.encode())}
    manifest = {"name": "corpus", "label": "v1", "kind": "tokens", "schema": [], "shards": [], "config_digest": "0", "parents": []}
    return {**manifest, "digest": version_digest(manifest), "files": [entry]}, {"report": str(folder / "report")}


def test_many_publications_at_once_are_those_of_one(tmp_path):
    for attempt in range(20):
        store = str(tmp_path / f"store{attempt}")
        works = [_finished_work(tmp_path / f"work{attempt}-{i}", f"took {i} seconds") for i in range(8)]
        with ThreadPoolExecutor(8) as pool:
            versions = list(pool.map(lambda work: publish(store, *work), works))  # noqa: B023
        assert len({version.manifest[CHECKSUM] for version in versions}) == 1
        assert verify(versions[0]) == [] and files.list_files(f"{store}/.claims") == []


@pytest.mark.parametrize("work_is_left", [True, False])
def test_the_claim_of_a_killed_run_is_finished_or_dropped(tmp_path, work_is_left, monkeypatch):
    store, killed, second = str(tmp_path / "store"), *(_finished_work(tmp_path / name, name) for name in ("killed", "second"))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(artefacts, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        publish(store, *killed)
    assert artefacts.list_artefacts(store) == []
    if not work_is_left:
        shutil.rmtree(tmp_path / "killed")
    version = publish(store, *second)
    assert verify(version) == [] and files.list_files(f"{store}/.claims") == []
    assert Path(version.url, "report").read_text() == ("killed" if work_is_left else "second")
