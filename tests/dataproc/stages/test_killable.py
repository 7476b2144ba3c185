"""A child that crashes, hangs or eats memory costs its own call alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from dataproc.stages.killable import ChildFailure, KillableWorker
from tests.conftest import PROJECT

TARGET = "tests.dataproc.stages.faulty_functions:"


@pytest.fixture
def worker():
    made = KillableWorker(TARGET + "echo", 5.0, 500_000_000)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("SEGFAULT", "crashed"), ("EXIT", "crashed"), ("EXIT CLEANLY", "crashed"), ("RAISE", "failed"), ("EAT MEMORY", "out_of_memory")],
)
def test_a_fault_is_told_and_the_next_call_works(worker, fault, reason):
    assert worker.call(b"before") == b"before"
    with pytest.raises(ChildFailure) as caught:
        worker.call(fault.encode())
    assert caught.value.reason == reason
    assert worker.call(b"after") == b"after"


@pytest.mark.parametrize("target", ["catastrophic_regex", "echo"])
def test_an_endless_call_is_ended_in_time(target):
    worker = KillableWorker(TARGET + target, 1.0, 500_000_000)
    start = time.monotonic()
    with pytest.raises(ChildFailure) as caught:
        worker.call(b"LOOP")
    assert caught.value.reason == "timeout" and time.monotonic() - start < 30
    worker.close()


def test_large_messages_pass_both_ways(worker):
    data = os.urandom(5_000_000)
    assert worker.call(data) == data


def test_closing_leaves_no_process(worker):
    worker.call(b"x")
    pid = worker._child.pid
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_child_ends_with_its_killed_parent():
    code = (
        "from dataproc.stages.killable import KillableWorker\n"
        f"w = KillableWorker('{TARGET}echo', 5, 500_000_000); w.call(b'x'); print(w._child.pid, flush=True); input()"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=PROJECT)
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _alive(child):
        time.sleep(0.05)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
