"""Peak memory: of a worker over one unit of growing size, and of the driver over a plan of 100,000 units.

usage: python -m benchmarks.memory worker TEXT.jsonl.gz MEGABYTES   |   python -m benchmarks.memory driver [UNITS]
Each prints the peak resident size of its own process; run it once for each size.
"""

from __future__ import annotations

import gzip
import resource
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.overhead import PIPELINE, write_corpus
from dataproc.execution import Executor, PlainLoop, RayPool, run_units
from dataproc.pipeline import run_pipeline


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def worker(source: str, megabytes: str) -> None:
    """One gzip file, which is one unit whatever its size, through all text stages in this process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents, size = write_corpus(Path(source), folder / "plain.jsonl", float(megabytes))
        with open(folder / "plain.jsonl", "rb") as stream, gzip.open(folder / "text.jsonl.gz", "wb", 1) as out:
            while data := stream.read(1 << 20):
                out.write(data)
        pipeline = PIPELINE.replace("text.jsonl", "text.jsonl.gz").replace("  - clean: {}\n", "")
        (folder / "bench.yaml").write_text(pipeline.replace("gopher_quality, gopher_repetition, c4, fineweb", "fineweb"))
        before = peak_mib()
        result = run_pipeline(str(folder / "bench.yaml"), str(folder / "store"), PlainLoop, quiet=True)
        print(
            f"worker: {documents} documents, {size / 1e6:.0f} MB of text in one unit, kept {result['counts']['kept']}: "
            f"peak {peak_mib():.0f} MiB (before {before:.0f})"
        )


class Receipts(Executor):
    """Answers every task of pass 1 with a receipt of ordinary size, and runs the others: what is measured is the driver."""

    guarded = False

    def map(self, target, arguments, tasks, demand):
        if not target.endswith("UnitWorker"):
            raise Measured
        for task in tasks:
            part = task["slices"][0]
            read = {
                "path": part["relative_path"],
                "file_bytes": part["file_bytes"],
                "start": part["start"],
                "bytes": 4000,
                "xxh3_128": "0" * 32,
            }
            yield {
                "index": task["unit"], "records": 300, "survivors": 100, "groups": [{"rows": 100, "bytes": 300_000}], "quarantined": 1,
                "dropped": {f"rules.gopher.rule{i}": 10 for i in range(20)}, "quarantine_reasons": {"read.bad_json": 1},
                "text_bytes": 900_000, "inputs": [read], "input_bytes": 4000, "not_documents": {"request": 300},
                "seconds": {f"stage{i}": 1.0 for i in range(6)}, "files": {},
            }  # fmt: skip


class Measured(Exception):
    """Pass 1 is over."""


class Nothing:
    """A worker that does nothing: what is measured is Ray's own state in the driver."""

    def run(self, task):
        return {"index": task["index"]}

    def close(self) -> None:
        """Holds nothing."""


def driver(units: str = "100000") -> None:
    """A plan of many units through the driver's own code, and tasks through Ray Data for its share."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = b'{"text": "' + b"x" * 3990 + b'"}\n'
        with open(folder / "text.jsonl", "wb") as out:
            for _ in range(int(units)):
                out.write(line)
        (folder / "bench.yaml").write_text(
            PIPELINE.replace("unit_mb: 4", f"unit_mb: {len(line) / 1e6}").replace("path: text.jsonl", "path: text.jsonl, id_field: text")
        )
        start = time.perf_counter()
        try:
            run_pipeline(str(folder / "bench.yaml"), str(folder / "store"), Receipts, quiet=True)
        except Measured:
            print(f"driver: plan and pass 1 of {units} units: peak {peak_mib():.0f} MiB, {time.perf_counter() - start:.0f} s")
    from benchmarks import memory  # workers find the class by its module, which is not __main__ for them

    pool = RayPool(None, 2)
    for count in (500, 2000, 2000):
        start = time.perf_counter()
        done = sum(1 for _ in run_units(pool, memory.Nothing, {}, [{"index": i} for i in range(count)]))
        print(
            f"driver with Ray: {done} more tasks, {(time.perf_counter() - start) / count * 1000:.1f} ms each: peak {peak_mib():.0f} MiB",
            flush=True,
        )
    pool.close()


if __name__ == "__main__":
    {"worker": worker, "driver": driver}[sys.argv[1]](*sys.argv[2:])
