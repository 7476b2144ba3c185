"""Near deduplication from end to end, in one process, on documents with planted clusters.

usage: python -m benchmarks.dedup [--documents 20000] [--words 650]
Every third document begins a cluster: up to four more are made of it by replacing one word in a hundred. Words are drawn by a law like
that of natural text. Printed: seconds of each step, MB/s, GB of text a core-hour, and how many clusters came out as they were planted.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from dataproc.execution import PlainLoop
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
    chances /= chances.sum()
    size = left = made = 0
    with open(path, "w") as out:
        while made < documents:
            chosen = draw.choice(VOCABULARY, words, p=chances)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=650)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size, left = write_corpus(folder / "made.jsonl", options.documents, options.words)
        (folder / "bench.yaml").write_text(PIPELINE)
        print(f"{options.documents} documents, {size / 1e6:.0f} MB of text, {size / options.documents:.0f} bytes each", flush=True)
        start, cpu = time.perf_counter(), time.process_time()
        result = run_pipeline(str(folder / "bench.yaml"), str(folder / "store"), PlainLoop)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        found = open_version(str(folder / "store"), "bench@v1").manifest["dedup"]["near_dedup"]
        print(f"kept {result['counts']['kept']}, planted {left}; {found['candidate_pairs']} pairs compared, {found['edges']} joined")
        rate = size / 1e6 / cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{seconds:.1f} s, {cpu:.1f} s of processor: {rate:.1f} MB/s, {rate * 3.6:.0f} GB a core-hour; peak {peak:.0f} MiB")


if __name__ == "__main__":
    main()
