"""Runs the global steps of deduplication over made-up signatures, in a process of its own: how much memory does each of them take?

python memory_run.py WORK PIPELINE UNITS DOCUMENTS_OF_A_UNIT MEGABYTES: prints {step: peak MB above the start}.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

import numpy as np

from dataproc.dedup.arrays import write_arrays
from dataproc.dedup.exact import HASH, run_keys
from dataproc.dedup.near import run_near
from dataproc.dedup.owners import OWNER
from dataproc.dedup.shuffle import MEGABYTE, Steps
from dataproc.execution import PlainLoop, run_units
from dataproc.pipeline import load_pipeline
from dataproc.plan import PASS1, unit_file, write_job

VALUES = 112


def write_units(work: str, units: int, count: int) -> None:
    """Units in which three documents in ten are near copies of a document of any unit, and one in ten is an exact copy."""
    random = np.random.default_rng(1)
    total = units * count
    origin = np.arange(total)
    near, exact = random.random(total) < 0.3, random.random(total) < 0.1
    origin[near | exact] = (origin * random.random(total)).astype(np.int64)[near | exact]
    for unit in range(units):
        mine = slice(unit * count, (unit + 1) * count)
        owned = np.zeros(count, OWNER)
        owned["high"], owned["low"] = random.integers(0, 1 << 63, (2, count), np.uint64)
        owned["first"], owned["row"] = 1, np.arange(count)
        signatures = np.stack([np.random.default_rng(seed).integers(0, 1 << 32, VALUES, np.uint32) for seed in origin[mine]])
        changed = random.random((count, VALUES)) < 0.08 * near[mine, None]
        signatures[changed] = random.integers(0, 1 << 32, int(changed.sum()), np.uint32)
        hashes = np.zeros(count, HASH)
        hashes["high"] = np.where(exact[mine] & ~near[mine], origin[mine], np.arange(total)[mine]).astype(np.uint64)
        hashes["high"] *= np.uint64(0x9E3779B97F4A7C15)  # spread as a hash is
        for name, arrays in (
            ("keys", (owned, hashes)),
            ("signatures", (owned, signatures.view(np.dtype((np.void, 4 * VALUES))).reshape(-1))),
        ):
            path = unit_file(work, PASS1, unit, name)
            os.makedirs(Path(path).parent, exist_ok=True)
            write_arrays(path, *arrays)


def resident(name: str) -> float:
    """A figure of this process's memory, in MB."""
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1000


def run_steps(work: str, units: int, count: int, memory: int, config) -> dict[str, float]:
    peaks: dict[str, float] = {}

    def run(worker, arguments, step, tasks):
        ctypes.CDLL(None).malloc_trim(0)  # what the step before has freed
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts anew from here
        before = resident("VmRSS")
        receipts = list(run_units(PlainLoop(), worker, arguments, tasks))
        peaks[step] = resident("VmHWM") - before
        return receipts

    steps = Steps(work, memory, run)
    _, losers = run_keys(steps, [count] * units, True)
    run_near(steps, "documents", [count] * units, config, losers)
    return peaks


def main(work: str, pipeline: str, units: int, count: int, megabytes: int) -> None:
    loaded = load_pipeline(pipeline)
    config = loaded.near_dedup.config
    for folder, number, size in ((f"{work}-small", 2, 2000), (work, units, count)):  # the small one compiles and imports
        write_job(folder, loaded)
        write_units(folder, number, size)
        peaks = run_steps(folder, number, size, megabytes * MEGABYTE, config)
    print(json.dumps(peaks))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
