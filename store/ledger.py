"""Append-only ledgers: JSON lines, one file per writer, merged on read. A torn last line (a killed writer) is passed over."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from typing import Any

from store import files


class Ledger:
    """One writer's file inside a local ledger folder. Each record gets `time` (seconds since 1970) and `writer`."""

    def __init__(self, folder: str):
        self.folder = files.local_path(folder)
        self.writer = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        os.makedirs(self.folder, exist_ok=True)
        self._path = os.path.join(self.folder, f"{self.writer}.jsonl")

    def append(self, record: dict[str, Any]) -> None:
        """Adds one record and flushes it to the disk before returning."""
        line = json.dumps({"time": time.time(), "writer": self.writer, **record}, allow_nan=False) + "\n"
        with open(self._path, "ab") as stream:
            stream.write(line.encode())
            stream.flush()
            os.fsync(stream.fileno())


def read_ledger(folder: str) -> list[dict[str, Any]]:
    """All records of all writers, in order of time, then writer. An unfinished last line is left out."""
    records = []
    for file in files.list_files(folder):
        if not file.url.endswith(".jsonl"):
            continue
        lines = files.read_bytes(file.url).split(b"\n")
        records += [json.loads(line) for line in lines[:-1]]
    return sorted(records, key=lambda r: (r["time"], r["writer"]))
