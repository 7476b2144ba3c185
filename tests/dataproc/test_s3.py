"""Input and store on an object store: the same digest as on a disk, also when requests fail now and then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataproc.decisions import why
from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.tokens import tokenize
from dataproc.versions import open_version, verify
from store import artefacts, files
from tests.conftest import PROJECT
from tests.dataproc.corpora import write_lines, write_pipeline
from tests.dataproc.s3_servers import flaky_proxy, s3_server

LIMITS = "{unit_mb: 0.02}"


@pytest.fixture(scope="module")
def port():
    with s3_server() as found:
        yield found


@pytest.fixture
def endpoint(port, monkeypatch):
    """Points the S3 drivers at a port of this machine; returns the way to point them elsewhere."""
    import s3fs

    def point(where: int) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{where}")
        s3fs.S3FileSystem.clear_instance_cache()

    for name, value in {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    point(port)
    yield point
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(endpoint, tmp_path) -> str:
    import s3fs

    name = f"b-{tmp_path.name.replace('_', '-').lower()}"[:60]
    s3fs.S3FileSystem().mkdir(name)
    return f"s3://{name}"


@pytest.fixture
def local(tmp_path) -> tuple[Path, dict]:
    """A corpus on the disk and the outcome of its run there."""
    write_lines(tmp_path / "lines.jsonl", 900, longest=12)
    path = write_pipeline(tmp_path / "local.yaml", "[{name: lines, format: jsonl, path: '*.jsonl', url_field: url}]", limits=LIMITS)
    return tmp_path, run_pipeline(path, str(tmp_path / "store"), PlainLoop, quiet=True)


def remote_pipeline(folder: Path, bucket: str) -> str:
    files.write_bytes(f"{bucket}/in/lines.jsonl", (folder / "lines.jsonl").read_bytes())
    inputs = f"[{{name: lines, format: jsonl, path: '{bucket}/in/*.jsonl', url_field: url}}]"
    return write_pipeline(folder / "remote.yaml", inputs, limits=LIMITS)


def test_the_digest_is_that_of_the_local_run(local, bucket):
    folder, expected = local
    result = run_pipeline(remote_pipeline(folder, bucket), f"{bucket}/store", PlainLoop, quiet=True)
    assert result["digest"] == expected["digest"] and result["url"].startswith("s3://")
    version = open_version(f"{bucket}/store", "corpus@v1")
    assert verify(version) == []
    (answer,) = why(version, "lines.jsonl#7")
    assert answer["verdict"] in ("kept", "dropped")
    assert [a.reference for a in artefacts.list_artefacts(f"{bucket}/store")] == [version.reference]
    assert not files.list_files(f"{bucket}/store/.work")
    assert run_pipeline(remote_pipeline(folder, bucket), f"{bucket}/store", None, quiet=True)["already"]
    tokens = tokenize(f"{bucket}/store", ["corpus@v1"], "train:300", "t", "v1")
    assert verify(tokens) == []


def test_requests_that_fail_now_and_then_are_tried_again(local, bucket, port, endpoint):
    folder, expected = local
    path = remote_pipeline(folder, bucket)
    with flaky_proxy(port, 7) as proxy:
        endpoint(proxy.server_address[1])
        result = run_pipeline(path, f"{bucket}/store", PlainLoop, quiet=True)
        assert proxy.failures > 10
    assert result["digest"] == expected["digest"]
    endpoint(port)
    assert verify(open_version(f"{bucket}/store", "corpus@v1")) == []


@pytest.mark.ray
def test_ray_workers_read_and_write_the_object_store(local, bucket):
    folder, expected = local
    command = [
        sys.executable,
        "-m",
        "ops.cli",
        "data",
        "run",
        remote_pipeline(folder, bucket),
        "--store",
        f"{bucket}/store",
        "--cpus",
        "2",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PROJECT)}, cwd=PROJECT, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1])["digest"] == expected["digest"]


def test_a_bucket_that_is_not_there_is_one_sentence(local, endpoint):
    from store.errors import HeadraceError

    folder, _ = local
    with pytest.raises(HeadraceError, match="no-such-bucket"):
        run_pipeline(str(folder / "local.yaml"), "s3://no-such-bucket/store", PlainLoop, quiet=True)
