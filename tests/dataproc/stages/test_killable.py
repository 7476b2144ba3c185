"""A child that crashes, hangs or eats memory costs its own call alone, and no call fails for what others did."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from dataproc.stages.killable import ChildFailure, KillableWorker
from tests.conftest import PROJECT

TARGET = "tests.dataproc.stages.faulty_functions:"


@pytest.fixture
def make():
    made = []

    def make_worker(function: str = "echo", timeout_s: float = 5.0, memory_bytes: int = 500_000_000, **more) -> KillableWorker:
        made.append(KillableWorker(TARGET + function, timeout_s, memory_bytes, **more))
        return made[-1]

    yield make_worker
    for worker in made:
        worker.close()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("SEGFAULT", "crashed"),
        ("EXIT", "crashed"),
        ("EXIT CLEANLY", "crashed"),
        ("SYSTEM EXIT", "crashed"),
        ("RAISE", "failed"),
        ("EAT MEMORY", "out_of_memory"),
    ],
)
def test_a_fault_is_told_and_the_next_call_works(make, fault, reason):
    worker = make()
    assert worker.call(b"before") == b"before"
    with pytest.raises(ChildFailure) as caught:
        worker.call(fault.encode())
    assert caught.value.reason == reason
    assert worker.call(b"after") == b"after"


@pytest.mark.parametrize(("function", "data"), [("catastrophic_regex", b"x"), ("echo", b"LOOP"), ("wait", b"3600")])
def test_an_endless_call_is_ended_in_time(make, function, data):
    worker = make(function, timeout_s=0.5)
    start = time.monotonic()
    with pytest.raises(ChildFailure, match=r"took longer than 0\.5 s") as caught:
        worker.call(data)
    assert caught.value.reason == "timeout" and time.monotonic() - start < 30


def test_the_limit_is_of_processor_time(make):
    assert make("wait", timeout_s=0.5, wall_timeout_s=60).call(b"1.5") == b"1.5"


def test_each_call_has_the_whole_limit(make):
    worker = make("busy", timeout_s=1.0, wall_timeout_s=60)
    assert [worker.call(b"0.6") for _ in range(3)] == [b"0.6"] * 3
    with pytest.raises(ChildFailure) as caught:
        worker.call(b"30")
    assert caught.value.reason == "timeout"


def test_a_child_killed_from_outside_costs_no_call(make, tmp_path):
    worker = make("killed_once")
    path = os.fsencode(tmp_path / "mark")
    assert worker.call(path) == path
    idle = make()
    idle.call(b"x")
    os.kill(idle._child.pid, signal.SIGKILL)
    assert idle.call(b"y") == b"y"


def test_what_earlier_calls_keep_does_not_fail_a_later_one(make):
    worker = make("leaky")
    for _ in range(4):
        assert worker.call(b"200") == b"200"  # 800 MB in all, 500 MB at a time
    with pytest.raises(ChildFailure) as caught:
        worker.call(b"600")
    assert caught.value.reason == "out_of_memory"


def test_large_messages_pass_both_ways(make):
    data = os.urandom(5_000_000)
    assert make().call(data) == data


def test_every_child_has_the_same_hash_seed(make):
    assert make("order_of_a_set").call(b"word") == make("order_of_a_set").call(b"word")


def test_a_target_that_cannot_be_loaded_is_named():
    worker = KillableWorker("dataproc.no_such_module:f", 5, 500_000_000)
    with pytest.raises(RuntimeError, match="dataproc.no_such_module"):
        worker.call(b"x")


def test_works_in_a_process_with_thousands_of_open_files(make):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    handles = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        assert max(handles) > 1023
        assert make().call(b"x") == b"x"
    finally:
        for handle in handles:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_closing_leaves_no_process(make):
    worker = make()
    worker.call(b"x")
    pid = worker._child.pid
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("busy_with", [b"nothing", b"LOOP"])
def test_a_child_ends_with_its_killed_parent(busy_with):
    code = (
        "import sys, threading, time\n"
        "from dataproc.stages.killable import KillableWorker\n"
        f"w = KillableWorker('{TARGET}echo', 2, 500_000_000, 60); w.call(b'x'); print(w._child.pid, flush=True)\n"
        f"threading.Thread(target=w.call, args=({busy_with!r},)).start(); time.sleep(60)"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=PROJECT)
    with parent:
        child = int(parent.stdout.readline())
        time.sleep(0.5)  # the call has begun
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and _alive(child):
            time.sleep(0.05)
        assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
