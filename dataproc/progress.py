"""What a person sees while a run goes on: records in, kept, dropped and quarantined, MB/s, time left, the slowest stage."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

LINE_EVERY_S = 10.0


class Progress:
    """Shows the state of a run on standard error: one live line on a terminal, a plain line every ten seconds elsewhere."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.counts: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._last_line = 0.0
        self.begin("", 0, 0)

    def begin(self, step: str, tasks: int, total_bytes: int) -> None:
        """A step of `tasks` tasks over `total_bytes` stored bytes starts."""
        self.step, self.tasks, self.total_bytes = step, tasks, total_bytes
        self.done, self.done_bytes, self._start = 0, 0, time.monotonic()
        if self._live is None and not self.quiet and self._console.is_terminal:
            self._live = Live(Text(""), console=self._console, refresh_per_second=4, transient=True)
            self._live.start()

    def advance(self, receipt: dict[str, Any]) -> None:
        """One task of the step has ended with this receipt."""
        self.done += 1
        self.done_bytes += receipt.get("input_bytes", 0)
        if "records" in receipt:  # of pass 1; later steps decide on the same records again
            self.counts["in"] += receipt["records"]
            self.counts["kept"] += receipt["survivors"]
            self.counts["dropped"] += sum(receipt["dropped"].values())
            self.counts["quarantined"] += receipt["quarantined"]
        self.seconds.update(receipt.get("seconds", {}))
        self._show()

    def _show(self) -> None:
        if self._live is not None:
            self._live.update(Text(self.line()))
        elif not self.quiet and (time.monotonic() - self._last_line >= LINE_EVERY_S or self.done == self.tasks):
            self._last_line = time.monotonic()
            print(self.line(), file=sys.stderr, flush=True)

    def line(self) -> str:
        """The state as one line."""
        elapsed = max(1e-9, time.monotonic() - self._start)
        share = self.done_bytes / self.total_bytes if self.total_bytes else self.done / max(1, self.tasks)
        parts = [f"{self.step} {self.done:,}/{self.tasks:,}"]
        parts += [f"{name} {self.counts[name]:,}" for name in ("in", "kept", "dropped", "quarantined")]
        if self.done_bytes:
            parts.append(f"{self.done_bytes / 1e6 / elapsed:.1f} MB/s")
        if 0 < share < 1:
            parts.append(f"{clock(elapsed * (1 - share) / share)} left")
        if self.seconds:
            name, seconds = max(self.seconds.items(), key=lambda item: item[1])
            parts.append(f"slowest {name} {seconds / max(1e-9, sum(self.seconds.values())):.0%}")
        return " | ".join(parts)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
