"""What Ray costs: the same pipeline in a plain loop, on two workers of a Ray that is started for the run, and of one that is there
already, as on a cluster, over the same text.

usage: python -m benchmarks.overhead TEXT.jsonl.gz [--megabytes 1000] [--light]
--light leaves out cleaning and rules: more bytes go through in the same time, so start-up and overhead weigh more.
The floor is what a private Ray of two CPUs costs with workers that do nothing: seconds to start, pass two tasks and stop, and the share of
a core that its processes (and this one) use while two workers sleep. No pipeline on it can cost less.
TEXT holds documents in a field `text`; they are repeated, each time with a line of their own, until there are that many megabytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dataproc.execution import Executor, PlainLoop, RayPool, run_units, start_ray, stop_ray
from dataproc.pipeline import run_pipeline

PIPELINE = """\
dataset: bench
version: v1
owner: bench@example.org
inputs: [{name: text, format: jsonl, path: text.jsonl}]
stages:
  - language: {keep: []}
  - clean: {}
  - rules: {use: [gopher_quality, gopher_repetition, c4, fineweb]}
  - exact_dedup: {}
limits: {unit_mb: 4}
"""


def write_corpus(source: Path, target: Path, megabytes: float) -> tuple[int, int]:
    """Returns (documents, bytes of text) written."""
    with gzip.open(source, "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line in stream]
    documents = size = 0
    with open(target, "w", encoding="utf-8") as out:
        while size < megabytes * 1e6:
            text = f"{texts[documents % len(texts)]}\ncopy {documents // len(texts)}"
            out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            documents += 1
            size += len(text.encode())
    return documents, size


class PassTimer:
    """Wraps an executor and notes the seconds from the first receipt of pass 1 to its last, and how many came between."""

    def __init__(self, inner: Executor):
        self.inner, self.guarded = inner, inner.guarded
        self.times: list[float] = []

    def map(self, target, arguments, tasks, demand):
        for receipt in self.inner.map(target, arguments, tasks, demand):
            if target.endswith("UnitWorker"):
                self.times.append(time.perf_counter())
            yield receipt

    def close(self) -> None:
        self.inner.close()


def measure(name: str, make: Callable[[], Executor], folder: Path, size: int) -> tuple[float, float]:
    """Runs once; returns (seconds in all, MB/s of pass 1 between its first and last receipt)."""
    timers = []

    def wrapped() -> PassTimer:
        timers.append(PassTimer(make()))
        return timers[0]

    start = time.perf_counter()
    result = run_pipeline(str(folder / "bench.yaml"), str(folder / name), wrapped, quiet=True)
    seconds = time.perf_counter() - start
    times = timers[0].times
    steady = size / 1e6 * (len(times) - 1) / len(times) / (times[-1] - times[0])
    print(
        f"{name:16s} {seconds:8.1f} s  {size / 1e6 / seconds:6.2f} MB/s  steady {steady:6.2f} MB/s  kept {result['counts']['kept']}",
        flush=True,
    )
    return seconds, steady


class Sleeper:
    """A worker that uses no processor."""

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        time.sleep(task["seconds"])
        return task

    def close(self) -> None:
        """Holds nothing open."""


def processor_seconds() -> float:
    """Of this process and all below it that live."""
    found = {}  # process -> (parent, seconds)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            tasks = [(each / "schedstat").read_text().split()[0] for each in (path.parent / "task").iterdir()]
        except OSError:  # it has ended
            continue
        found[int(path.parent.name)] = (int(fields[1]), sum(map(int, tasks)) / 1e9)

    def ours(process: int) -> bool:
        return process == os.getpid() or (process in found and ours(found[process][0]))

    return sum(seconds for process, (_, seconds) in found.items() if ours(process))


def floor() -> None:
    """Prints what Ray costs when workers do nothing."""
    from benchmarks.overhead import Sleeper  # by a name that a worker can import

    start = time.perf_counter()
    pool = RayPool(None, 2)
    try:
        list(run_units(pool, Sleeper, {}, [{"seconds": 0}] * 2))
        used = time.perf_counter() - start
        moments = []
        for number, _ in enumerate(run_units(pool, Sleeper, {}, [{"seconds": 0.7}] * 60)):
            if number in (7, 51):  # not while the pool starts and ends
                moments.append((time.perf_counter(), processor_seconds()))
        stop = time.perf_counter()
    finally:
        pool.close()
    used += time.perf_counter() - stop
    (since, before), (until, after) = moments
    print(f"floor: {used:.1f} s to start, pass two tasks and stop; {(after - before) / (until - since):.1%} of a core while workers sleep")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--light", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents, size = write_corpus(options.text, folder / "text.jsonl", options.megabytes)
        heavy = ("  - clean: {}\n", "  - rules: {use: [gopher_quality, gopher_repetition, c4, fineweb]}\n")
        text = PIPELINE
        for stage in heavy if options.light else ():
            text = text.replace(stage, "")
        (folder / "bench.yaml").write_text(text)
        floor()
        print(f"{documents} documents, {size / 1e6:.0f} MB of text", flush=True)
        plain, plain_steady = measure("plain loop", PlainLoop, folder, size)
        runs = {"Ray started": measure("ray started", lambda: RayPool(None, 2), folder, size)}
        started = start_ray(None, 2)
        try:
            runs["Ray there"] = measure("ray there", lambda: RayPool(None, 2), folder, size)
        finally:
            stop_ray(started)
        for name, (seconds, steady) in runs.items():
            print(f"{name}, against one plain loop: {plain / seconds:.2f}x in all, {steady / plain_steady:.2f}x at steady state, ", end="")
            print(f"overhead per worker {1 - steady / plain_steady / 2:.1%}")


if __name__ == "__main__":
    main()
