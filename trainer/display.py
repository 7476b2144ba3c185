"""What a person sees while a run trains: the newest step as it stands in the run's metrics."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from dataproc.progress import clock
from trainer.runs import RunFolder

LOOK_EVERY_S = 0.5
LINE_EVERY_S = 10.0  # where standard error is no terminal


class StepDisplay:
    """Follows a run's metrics from the driver, on standard error, until the block ends. Workers know nothing of it."""

    def __init__(self, folder: RunFolder, steps: int):
        self.folder, self.steps = folder, steps
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="step-display", daemon=True)
        self._first: tuple[int, float] | None = None  # the step that was seen first, and when

    def __enter__(self) -> StepDisplay:
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def line(self, row: dict, now: float) -> str:
        """One step as a line: `row` as in the metrics, `now` on the monotonic clock."""
        done = row["step"] + 1
        parts = [
            f"step {done:,}/{self.steps:,}",
            f"loss {row['loss']:.4f}",
            f"rate {row['lr']:.2e}",
            f"gradient norm {row['grad_norm']:.2f}",
        ]
        if self._first is None or done < self._first[0]:  # a run that was resumed does some steps again
            self._first = (done, now)
        elif done > self._first[0]:
            seconds = (now - self._first[1]) / (done - self._first[0])  # a step, with what lies between steps
            parts += [f"{row['tokens'] / done / max(1e-9, seconds):,.0f} tokens/s", f"{clock((self.steps - done) * seconds)} left"]
        return " | ".join(parts)

    def _follow(self) -> None:
        terminal, shown, told = sys.stderr.isatty(), -1, time.monotonic()
        while not self._ended.wait(LOOK_EVERY_S):
            row, now = self.folder.last_metrics(), time.monotonic()
            if row is None or row["step"] == shown:
                continue
            text = self.line(row, now)
            if terminal or now - told >= LINE_EVERY_S:
                print(f"\r\x1b[K{text}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)
                shown, told = row["step"], now
        if terminal and shown >= 0:
            print(file=sys.stderr)
