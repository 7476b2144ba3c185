"""A reusable child process for work that may crash, hang or eat memory: it can be killed without harm to its parent.

The child is a fresh interpreter, not a fork (forking a process with threads is unsafe), and serves one call after the other over
pipes. Whether a call fails depends on the call alone: time is the processor's, so that a busy machine fails nothing, and a crash or
a lack of memory counts only when a fresh child meets it too. The child ends with its parent: its input reaches its end, and a call
that hangs is ended by the kernel.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

_LENGTH = struct.Struct("<cQ")
_OK, _FAILED, _MEMORY = b"o", b"f", b"m"
_PIPE_BYTES = 1 << 20  # most pages pass in one piece
_START_SECONDS = 120.0  # imports on a busy machine
_WALL_FACTOR = 5.0


class ChildFailure(Exception):
    """A call that gave no result. `reason`: timeout, crashed, out_of_memory or failed (the function raised)."""

    def __init__(self, reason: str, error: str):
        super().__init__(error)
        self.reason = reason


class KillableWorker:
    """Runs `module:function` (bytes -> bytes) in a child process, call by call.

    `timeout_s`: processor seconds a call may take; `wall_timeout_s`: seconds by the clock, for a call that waits for something
    (five times as many where it is not given). `memory_bytes`: what the child may allocate beyond its start. A child that was killed
    is replaced at the next call.
    """

    def __init__(self, target: str, timeout_s: float, memory_bytes: int, wall_timeout_s: float | None = None):
        self.target = target
        self.timeout_s = timeout_s
        self.wall_timeout_s = wall_timeout_s or _WALL_FACTOR * timeout_s
        self.memory_bytes = memory_bytes
        self._child: subprocess.Popen | None = None

    def call(self, data: bytes) -> bytes:
        """The function's result. Raises ChildFailure; its texts are the same in every run."""
        if self._child is not None and self._child.poll() is not None:
            self.close()  # it was killed from outside while it waited
        used = self._child is not None
        try:
            return self._call(data)
        except ChildFailure as failure:
            # What earlier calls left behind, or a kill from outside, may be to blame: a fresh child tells.
            if failure.reason == "crashed" or (failure.reason == "out_of_memory" and used):
                return self._call(data)
            raise

    def _call(self, data: bytes) -> bytes:
        child = self._child or self._start()
        try:
            kind, answer = self._exchange(child, data)
        except TimeoutError:
            self.close()
            raise ChildFailure("timeout", self._too_long()) from None
        except (EOFError, ConnectionError):
            timed_out = self._end_code() == -signal.SIGPROF
            self.close()
            raise (ChildFailure("timeout", self._too_long()) if timed_out else ChildFailure("crashed", "ended its process")) from None
        if kind == _MEMORY:
            self.close()
            raise ChildFailure("out_of_memory", f"takes more than {self.memory_bytes // 1_000_000} MB of memory")
        if kind == _FAILED:
            raise ChildFailure("failed", answer.decode("utf-8", "replace"))
        return answer

    def _too_long(self) -> str:
        return f"took longer than {self.timeout_s:g} s"

    def _end_code(self) -> int | None:
        """The exit status of a child whose pipes have ended; None where it lives on without them."""
        try:
            return self._child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return None

    def _start(self) -> subprocess.Popen:
        # Without a fixed hash seed the order of a set of strings, and with it a text, would differ from child to child.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-m", __name__, self.target, str(self.timeout_s), str(self.memory_bytes)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        os.set_blocking(self._child.stdin.fileno(), False)
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(PermissionError):  # a user over the system's limit for pipes keeps the small ones
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            kind, answer = self._receive(self._child, time.monotonic() + _START_SECONDS)
        except (EOFError, TimeoutError) as error:
            self.close()
            raise RuntimeError(f"the child process for {self.target} does not start") from error
        if kind != _OK:
            self.close()
            raise RuntimeError(f"the child process for {self.target} does not start: {answer.decode('utf-8', 'replace')}")
        return self._child

    def _exchange(self, child: subprocess.Popen, data: bytes) -> tuple[bytes, bytes]:
        deadline = time.monotonic() + self.wall_timeout_s
        view = memoryview(_LENGTH.pack(_OK, len(data)) + data)
        while view:
            _wait(child.stdin.fileno(), select.POLLOUT, deadline)
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
            _wait(handle, select.POLLIN, deadline)
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


def _wait(handle: int, event: int, deadline: float) -> None:
    """Waits until a pipe is ready or has ended. Not by select(), which refuses the handles above 1023 of a large process."""
    poll = select.poll()
    poll.register(handle, event)
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise TimeoutError


def serve(target: str, timeout_s: float, memory_bytes: int) -> None:
    """The child's life: load the function, report readiness, answer calls until the input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    module, _, name = target.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:
        _answer(answers, _FAILED, _told(error))
        return
    with open("/proc/self/statm") as stream:
        used = int(stream.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, resource.RLIM_INFINITY))
    _answer(answers, _OK, b"")
    for data in _requests(requests):
        # The signal's default action ends the process, also inside native code that never returns to the interpreter.
        signal.setitimer(signal.ITIMER_PROF, timeout_s)
        try:
            kind, result = _OK, function(data)
        except MemoryError:
            kind, result = _MEMORY, b""
        except Exception as error:
            kind, result = _FAILED, _told(error)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _answer(answers, kind, result)


def _told(error: Exception) -> bytes:
    return f"{type(error).__name__}: {error}"[:300].encode("utf-8", "replace")


def _requests(stream: BinaryIO) -> Iterator[bytes]:
    while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
        yield stream.read(_LENGTH.unpack(head)[1])


def _answer(stream: BinaryIO, kind: bytes, data: bytes) -> None:
    stream.write(_LENGTH.pack(kind, len(data)) + data)
    stream.flush()


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
