"""Ray started from outside by the tests: in a folder of its own, with a home of its own, and stopped by what belongs to that folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.conftest import PROJECT

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class RayPlace:
    """A private place for Ray: its temporary folder, its home with the token, and the environment that points to both."""

    folder: Path
    home: Path
    environment: dict[str, str]

    def run(self, *command: str, timeout: int = 240, cwd: Path = PROJECT) -> subprocess.CompletedProcess:
        """Runs a command in this environment. Its output goes through files: daemons that it starts may hold on to a pipe."""
        with open(self.folder / "out", "w+") as out, open(self.folder / "err", "w+") as err:
            try:
                done = subprocess.run(
                    command, env=self.environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=timeout
                )
                code = done.returncode
            except subprocess.TimeoutExpired:
                code = 124
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(command, code, out.read(), err.read())


def free_ports(count: int) -> list[int]:
    """Ports that are free now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@contextmanager
def ray_place() -> Iterator[RayPlace]:
    """A private place for Ray with token authentication on; whatever runs in it at the end is ended."""
    folder = Path(tempfile.mkdtemp(prefix="hrn-", dir="/tmp"))
    home = folder / "home"
    (folder / "ray").mkdir()
    home.mkdir()
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("RAY_") and k != "PYTHONPATH"}
    environment = {
        **inherited,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(home),
        "RAY_TMPDIR": str(folder),
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONUNBUFFERED": "1",
    }
    place = RayPlace(folder, home, environment)
    done = place.run("ray", "get-auth-token", "--generate")
    assert done.returncode == 0, done.stderr
    try:
        yield place
    finally:
        _end_all(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _end_all(folder: Path) -> None:
    mark = str(folder)
    ours = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("RAY_TMPDIR") == mark:
                ours.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    for process in ours:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(ours, timeout=10)
