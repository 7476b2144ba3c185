"""Finding the one record that kills a worker, so that it is quarantined alone and its neighbours are kept.

A native crash, an endless loop or a kill for memory ends the process without a word, and Ray starts the same unit again, for
ever. So a worker notes in a small memory-mapped file (it survives the process) which batch, or in careful mode which record,
is in hand. The next attempt reads the note:

- a batch was in hand: that batch is run in careful mode, one record at a time;
- one record was in hand: it gets a strike, and at the second it is convicted: quarantined without being touched again.

Two strikes, because a worker may be killed for reasons that are not the record's fault (an operator, another process's memory).
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dataproc.plan import scratch_folder
from store.errors import HeadraceError

STRIKES = 2
MOST_ATTEMPTS = 200  # of one unit: beyond it the fault is not in some records
MOST_ATTEMPTS_AT_ONE_PLACE = 8
NOTHING, READING, PROCESSING = -1, -2, -3
# A batch: its first row, the row after its last, NOTHING. A record in careful mode: READING or PROCESSING, NOTHING, its row.
_NOTE = struct.Struct("<qqq")


@dataclass
class CaseFile:
    """What earlier attempts at a unit have shown."""

    attempts: int = 0
    last_place: int = NOTHING
    attempts_at_place: int = 0
    careful: list[tuple[int, int]] = field(default_factory=list)  # row ranges to run one record at a time
    strikes: dict[int, int] = field(default_factory=dict)  # row -> times a worker died while processing it
    read_strikes: dict[int, int] = field(default_factory=dict)  # row -> times a worker died while reading it

    def convicted(self, row: int) -> bool:
        return self.strikes.get(row, 0) >= STRIKES

    def unreadable(self, row: int) -> bool:
        return self.read_strikes.get(row, 0) >= STRIKES


class Cursor:
    """The note of one unit's current attempt. `run` names the invocation, so that two runs of one plan keep apart."""

    def __init__(self, run: str, step: str, index: int):
        folder = Path(scratch_folder()) / "cursors" / run
        folder.mkdir(parents=True, exist_ok=True)
        self._case_path = folder / f"{step}-{index:06d}.json"
        note_path = folder / f"{step}-{index:06d}.note"
        self.case = self._read_case()
        previous = note_path.read_bytes() if note_path.exists() else b""
        with open(note_path, "wb") as stream:
            stream.write(_NOTE.pack(NOTHING, NOTHING, NOTHING))
        with open(note_path, "r+b") as stream:
            self._note = mmap.mmap(stream.fileno(), _NOTE.size)
        self._note_path = note_path
        if len(previous) == _NOTE.size:
            self._learn(*_NOTE.unpack(previous))

    def _read_case(self) -> CaseFile:
        if not self._case_path.exists():
            return CaseFile()
        value = json.loads(self._case_path.read_text())
        value["careful"] = [tuple(pair) for pair in value["careful"]]
        for name in ("strikes", "read_strikes"):
            value[name] = {int(row): count for row, count in value[name].items()}
        return CaseFile(**value)

    def _learn(self, first: int, after: int, record: int) -> None:
        """Takes what the note of the attempt that died says into the case file."""
        case = self.case
        case.attempts += 1
        place = record if record != NOTHING else first
        case.attempts_at_place = case.attempts_at_place + 1 if place == case.last_place else 1
        case.last_place = place
        if record != NOTHING:
            strikes = case.read_strikes if first == READING else case.strikes
            strikes[record] = strikes.get(record, 0) + 1
        elif first != NOTHING and (first, after) not in case.careful:
            case.careful.append((first, after))
        temporary = self._case_path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(case)))
        os.replace(temporary, self._case_path)
        if case.attempts > MOST_ATTEMPTS or case.attempts_at_place > MOST_ATTEMPTS_AT_ONE_PLACE:
            raise HeadraceError(
                f"a work unit killed its worker {case.attempts} times, last near record {place}: not the fault of single records; "
                "see the worker's log for the crash"
            )

    def is_careful(self, first: int, after: int) -> bool:
        """Whether rows [first, after) touch a range that killed a worker."""
        return any(first < stop and start < after for start, stop in self.case.careful)

    def batch(self, first: int, after: int) -> None:
        _NOTE.pack_into(self._note, 0, first, after, NOTHING)

    def reading(self, row: int) -> None:
        _NOTE.pack_into(self._note, 0, READING, NOTHING, row)

    def processing(self, row: int) -> None:
        _NOTE.pack_into(self._note, 0, PROCESSING, NOTHING, row)

    def idle(self) -> None:
        _NOTE.pack_into(self._note, 0, NOTHING, NOTHING, NOTHING)

    def close(self) -> None:
        """The unit is done: its notes are of no more use."""
        self._note.close()
        self._note_path.unlink(missing_ok=True)
        self._case_path.unlink(missing_ok=True)


class Watchdog:
    """Ends the process when one step takes longer than allowed, also from inside native code that never returns to Python.

    The kernel's timer sends SIGALRM, faulthandler writes down where every thread was, and the signal's own effect ends the process. To
    set the timer costs a system call, so that every record can have its own limit. (faulthandler's own timer makes a thread each time:
    with documents of 2 kB that took more time than their cleaning.)
    """

    def __init__(self, enabled: bool):
        self.enabled = enabled
        self._timeout_s = 0.0
        if enabled:
            faulthandler.register(signal.SIGALRM, file=sys.__stderr__, all_threads=True, chain=True)

    @contextmanager
    def limit(self, timeout_s: float) -> Iterator[None]:
        self._timeout_s = timeout_s
        self.restart()
        try:
            yield
        finally:
            if self.enabled:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def restart(self) -> None:
        """The step has made progress: its time counts anew."""
        if self.enabled:
            signal.setitimer(signal.ITIMER_REAL, self._timeout_s)


def limit_memory(extra_bytes: int) -> None:
    """Caps what this process may allocate beyond what it has now, so that one record cannot take the node's memory.

    An allocation beyond it raises MemoryError in Python; native code that cannot handle it ends the process, which the cursor
    then accounts for. The cap is on address space, the only one that the kernel enforces at once.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + extra_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
