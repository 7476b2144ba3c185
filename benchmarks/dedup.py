"""Near deduplication from end to end, on documents with planted clusters, beside the peers and over growing corpora.

usage: python -m benchmarks.dedup [--documents 20000] [--words 650] [--cpus N] [--peers FOLDER]
       python -m benchmarks.dedup --series 100000 1000000 10000000 --words 30 --cpus 2
Every third document begins a cluster: up to four more are made of it by replacing one word in a hundred. Words are drawn by a law like
that of natural text. Printed: MB/s, GB of text a core-hour, peak memory over all processes, and how many clusters came out as they were
planted; for a series the exponents of time and of memory. With --cpus the run goes to a Ray of so many, else to this process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil

from benchmarks.peer_environments import environment
from dataproc.execution import PlainLoop, RayPool
from dataproc.pipeline import run_pipeline
from dataproc.versions import open_version

PIPELINE = """\
dataset: bench
version: v1
owner: bench@example.org
inputs: [{name: made, format: jsonl, path: made.jsonl, id_field: id}]
stages: [near_dedup: {}]
limits: {unit_mb: 32}
"""
VOCABULARY = 50_000


def write_corpus(path: Path, documents: int, words: int) -> tuple[int, int]:
    """Returns (bytes of text, documents that should be left)."""
    draw = np.random.default_rng(1)
    letters = "etaoinshrdlucmfw"
    names = np.array(
        ["".join(letters[(k >> (4 * d)) & 15] for d in range(1 + (k > 16) + (k > 256) + (k > 4096))) for k in range(VOCABULARY)]
    )
    chances = 1 / (np.arange(VOCABULARY) + 2.7)
    ends = np.cumsum(chances / chances.sum())
    size = left = made = 0
    with open(path, "w") as out:
        while made < documents:
            chosen = np.minimum(np.searchsorted(ends, draw.random(words)), VOCABULARY - 1)
            copies = int(draw.integers(2, 6)) if made % 3 == 0 else 1
            left += 1
            for _ in range(min(copies, documents - made)):
                text = " ".join(names[chosen])
                out.write(json.dumps({"id": made, "text": text}) + "\n")
                size += len(text)
                made += 1
                chosen = chosen.copy()
                chosen[draw.integers(0, words, words // 100)] = draw.integers(0, VOCABULARY, words // 100)
    return size, left


class Peak:
    """The largest sum of the resident memory of this process and those below it, looked at ten times a second. Pages that processes share
    are counted once for each."""

    def __init__(self):
        self.bytes = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *failure) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.1):
            self.bytes = max(self.bytes, held(psutil.Process()))


def held(process: psutil.Process) -> int:
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue  # it ended meanwhile
    return total


def used() -> float:
    """Seconds of processor time of this process and of those that it has waited for."""
    return sum(who.ru_utime + who.ru_stime for who in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def measure(folder: Path, documents: int, words: int, cpus: int | None) -> dict[str, float]:
    """Runs one corpus, prints what came out, and returns bytes, seconds and peak."""
    size, left = write_corpus(folder / "made.jsonl", documents, words)
    (folder / "bench.yaml").write_text(PIPELINE)
    print(f"{documents} documents, {size / 1e6:.0f} MB of text, {size / documents:.0f} bytes each", flush=True)
    start, cpu = time.perf_counter(), used()
    with Peak() as peak:
        make = PlainLoop if cpus is None else lambda: RayPool(cpus=cpus)
        result = run_pipeline(str(folder / "bench.yaml"), str(folder / "store"), make, quiet=True)
    seconds, cpu = time.perf_counter() - start, used() - cpu
    found = open_version(str(folder / "store"), "bench@v1").manifest["dedup"]["near_dedup"]
    print(f"kept {result['counts']['kept']}, planted {left}; {found['candidate_pairs']} pairs compared, {found['edges']} joined")
    # Ray's own processes are not this one's children to wait for: their time is what the cores could have given.
    core = cpu if cpus is None else seconds * cpus
    print(
        f"{seconds:.1f} s, {core:.1f} core-seconds: {size / 1e6 / core:.1f} MB/s, {size / 1e6 / core * 3.6:.0f} GB a core-hour, "
        f"{core / documents * 1e6:.1f} us a document; peak {peak.bytes / (1 << 20):.0f} MiB over all processes",
        flush=True,
    )
    return {"documents": documents, "bytes": size, "core": core, "seconds": seconds, "peak": peak.bytes}


def beside_peers(folder: Path, environments: Path, ours: dict[str, float]) -> None:
    for peer in ("datatrove", "sketches", "textdedup"):
        scratch = folder / peer
        scratch.mkdir()
        command = [str(environment(environments, peer)), str(Path(__file__).with_name("peer_dedup.py")), peer]
        done = subprocess.run([*command, str(folder / "made.jsonl"), str(scratch)], capture_output=True, text=True)
        if done.returncode:
            print(f"  {peer}: failed: {done.stderr.strip().splitlines()[-1:]}")
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        print(
            f"  {peer:10s} {row['seconds']:8.1f} core-seconds, {ours['bytes'] / 1e6 / row['seconds']:6.2f} MB/s, kept {row['kept']}: "
            f"{row['seconds'] / ours['core']:.1f} times ours",
            flush=True,
        )


def series(sizes: list[int], words: int, cpus: int | None) -> None:
    """Each size in a process of its own."""
    rows = []
    for size in sizes:
        command = [sys.executable, "-m", "benchmarks.dedup", "--documents", str(size), "--words", str(words), "--json"]
        done = subprocess.run([*command, *(["--cpus", str(cpus)] if cpus else [])], stdout=subprocess.PIPE, text=True, check=True)
        *lines, last = done.stdout.splitlines()
        print("\n".join(lines), flush=True)
        rows.append(json.loads(last))
    for name in ("seconds", "peak"):
        slope = np.polyfit(np.log([row["documents"] for row in rows]), np.log([row[name] for row in rows]), 1)[0]
        print(f"exponent of {name}: {slope:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=650)
    parser.add_argument("--cpus", type=int)
    parser.add_argument("--peers", type=Path, metavar="FOLDER")
    parser.add_argument("--series", type=int, nargs="+", metavar="DOCUMENTS")
    parser.add_argument("--json", action="store_true", help="figures as JSON on the last line")
    options = parser.parse_args()
    if options.series:
        return series(options.series, options.words, options.cpus)
    with tempfile.TemporaryDirectory() as name:
        ours = measure(Path(name), options.documents, options.words, options.cpus)
        if options.peers:
            beside_peers(Path(name), options.peers, ours)
        if options.json:
            print(json.dumps(ours))


if __name__ == "__main__":
    main()
