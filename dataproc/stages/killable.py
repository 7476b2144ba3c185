"""A reusable child process for work that may crash, hang or eat memory: it can be killed without harm to its parent.

The child is a fresh interpreter, not a fork (forking a process with threads is unsafe), and serves one call after the other over
pipes. It ends when its parent does: its input reaches its end.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import resource
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

_LENGTH = struct.Struct("<cQ")
_OK, _FAILED, _MEMORY = b"o", b"f", b"m"
_PIPE_BYTES = 1 << 20  # most pages pass in one piece
_START_SECONDS = 60.0  # imports on a busy machine


class ChildFailure(Exception):
    """A call that gave no result. `reason`: timeout, crashed, out_of_memory or failed (the function raised)."""

    def __init__(self, reason: str, error: str):
        super().__init__(error)
        self.reason = reason


class KillableWorker:
    """Runs `module:function` (bytes -> bytes) in a child process, call by call.

    `timeout_s` bounds a call, `memory_bytes` what the child may allocate beyond its start. A child that was killed is replaced at the
    next call.
    """

    def __init__(self, target: str, timeout_s: float, memory_bytes: int):
        self.target = target
        self.timeout_s = timeout_s
        self.memory_bytes = memory_bytes
        self._child: subprocess.Popen | None = None

    def call(self, data: bytes) -> bytes:
        """The function's result. Raises ChildFailure; its texts are the same in every run."""
        child = self._child or self._start()
        try:
            kind, answer = self._exchange(child, data)
        except TimeoutError:
            self.close()
            raise ChildFailure("timeout", f"took longer than {self.timeout_s:g} s") from None
        except (EOFError, BrokenPipeError, ConnectionError):
            self.close()
            raise ChildFailure("crashed", "ended its process") from None
        if kind == _MEMORY:
            self.close()
            raise ChildFailure("out_of_memory", f"takes more than {self.memory_bytes // 1_000_000} MB of memory")
        if kind == _FAILED:
            raise ChildFailure("failed", answer.decode("utf-8", "replace"))
        return answer

    def _start(self) -> subprocess.Popen:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        command = [sys.executable, "-m", __name__, self.target, str(self.memory_bytes)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        os.set_blocking(self._child.stdin.fileno(), False)
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(PermissionError):  # a user over the system's limit for pipes keeps the small ones
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            self._receive(self._child, time.monotonic() + _START_SECONDS)
        except (EOFError, TimeoutError) as error:
            self.close()
            raise RuntimeError(f"the child process for {self.target} does not start") from error
        return self._child

    def _exchange(self, child: subprocess.Popen, data: bytes) -> tuple[bytes, bytes]:
        deadline = time.monotonic() + self.timeout_s
        view = memoryview(_LENGTH.pack(_OK, len(data)) + data)
        while view:
            _wait([], [child.stdin.fileno()], deadline)
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(child.stdin.fileno(), view[:_PIPE_BYTES]) :]
        return self._receive(child, deadline)

    def _receive(self, child: subprocess.Popen, deadline: float) -> tuple[bytes, bytes]:
        head = self._read(child, _LENGTH.size, deadline)
        kind, length = _LENGTH.unpack(head)
        return kind, self._read(child, length, deadline)

    def _read(self, child: subprocess.Popen, count: int, deadline: float) -> bytes:
        parts, handle = [], child.stdout.fileno()
        while count:
            _wait([handle], [], deadline)
            data = os.read(handle, min(count, 1 << 20))
            if not data:
                raise EOFError
            parts.append(data)
            count -= len(data)
        return b"".join(parts)

    def close(self) -> None:
        """Kills the child and waits for its end."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _wait(readable: list[int], writable: list[int], deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0 or select.select(readable, writable, [], left) == ([], [], []):
        raise TimeoutError


def serve(target: str, memory_bytes: int) -> None:
    """The child's life: load the function, report readiness, answer calls until the input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    with open("/proc/self/statm") as stream:
        used = int(stream.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _answer(answers, _OK, b"")
    for data in _requests(requests):
        try:
            kind, result = _OK, function(data)
        except MemoryError:
            kind, result = _MEMORY, b""
        except Exception as error:
            kind, result = _FAILED, f"{type(error).__name__}: {error}"[:300].encode("utf-8", "replace")
        _answer(answers, kind, result)


def _requests(stream: BinaryIO) -> Iterator[bytes]:
    while head := stream.read(_LENGTH.size):
        yield stream.read(_LENGTH.unpack(head)[1])


def _answer(stream: BinaryIO, kind: bytes, data: bytes) -> None:
    stream.write(_LENGTH.pack(kind, len(data)) + data)
    stream.flush()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
