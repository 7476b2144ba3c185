"""Functions that fail for real when their bytes say so: what hostile pages do to a child process."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

from dataproc.stages.extract_engines import extract_page
from tests.dataproc.faulty_stage import fault

_hoard: list[bytearray] = []


def echo(data: bytes) -> bytes:
    """The bytes themselves, unless they name a fault."""
    fault(data.decode("utf-8", "replace"))
    return data


def catastrophic_regex(data: bytes) -> bytes:
    """A backtracking regular expression: native code that holds the interpreter lock for ever."""
    re.match(r"(a+)+$", "a" * 60 + "b")
    return data


def wait(data: bytes) -> bytes:
    """Waits as many seconds as the data say, without taking processor time."""
    time.sleep(float(data))
    return data


def busy(data: bytes) -> bytes:
    """Takes as many processor seconds as the data say."""
    start = time.process_time()
    while time.process_time() - start < float(data):
        pass
    return data


def killed_once(data: bytes) -> bytes:
    """Is killed, as by the system when memory is short, at the first call with a path; the second finds the file and answers."""
    mark = Path(os.fsdecode(data))
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return data


def leaky(data: bytes) -> bytes:
    """Keeps as many megabytes as the data say, in all later calls too."""
    _hoard.append(bytearray(int(data) * 1_000_000))
    return data


def order_of_a_set(data: bytes) -> bytes:
    """The order in which a set of strings comes out: it depends on the hash seed."""
    return ",".join({f"{data.decode()}{i}" for i in range(50)}).encode()


def faulty_page(request: bytes) -> bytes:
    """Extraction that fails for real on pages whose body names a fault."""
    found = re.search(rb"<body>([A-Z ]+)</body>", request)
    if found:
        fault(found[1].decode())
    return extract_page(request)
