"""MB/s of every text kernel on one core, the limits beside them, and the peers' rules on the same documents.

usage: python -m benchmarks.kernels TEXT [--peers FOLDER] [--megabytes N]
TEXT: JSON lines (.gz or not) or Parquet with a field `text`. With --peers each peer is installed into an environment of its own below
FOLDER, once, and its rules are timed in the same run (processor time of one core, as ours).
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peer_environments import environment
from dataproc.documents import SIGNAL_PREFIX
from dataproc.kernels import edit, tidy
from dataproc.kernels.columns import text_buffers
from dataproc.kernels.compiling import kernel
from dataproc.kernels.counts import COMPRESSION, DISTINCT, LINE_COPIES, REPEATS, STOPS
from dataproc.kernels.measure import Measurer
from dataproc.kernels.minhash import MinHasher
from dataproc.kernels.primitives import decode
from dataproc.rules.presets import select
from dataproc.rules.signals import SIGNALS, compute
from dataproc.stages.clean import ALONE, ALWAYS, PAIRED
from dataproc.stages.rules import judge

# What a peer runs, and the presets of ours that hold the same rules.
SAME_RULES = {
    "gopher_quality": ("gopher_quality",),
    "gopher_repetition": ("gopher_repetition",),
    "c4": ("c4",),
    "fineweb": ("fineweb",),
    "gopher_quality and gopher_repetition": ("gopher_quality", "gopher_repetition"),
}
RULES_OF = ("datatrove", "dolma", "nemo", "sketches")  # peers whose rules or signatures are run
PRESETS = ("gopher_quality", "gopher_repetition", "c4", "fineweb")
REPEATED = 5  # times that ours are run; the best counts


@kernel
def decode_walk(data):
    """The limit: every code point is found and looked at, nothing else."""
    i, seen = 0, 0
    while i < len(data):
        code = np.int64(data[i])
        size = 1
        if code >= 128:
            code, size = decode(data, i, len(data))
        seen ^= code
        i += size
    return seen


def read(path: Path, megabytes: float) -> list[str]:
    if path.suffix == ".parquet":
        texts = pq.read_table(path, columns=["text"]).column("text").to_pylist()
    else:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as stream:
            texts = [json.loads(line)["text"] for line in stream]
    chosen, size = [], 0.0
    for text in texts:
        if text and size < megabytes * 1e6:
            chosen.append(text)
            size += len(text.encode())
    return chosen


def best(function: Callable[[], object]) -> float:
    """Least seconds of processor time of several runs, after one that compiles."""
    function()
    seconds = []
    for _ in range(REPEATED):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def ours(column: pa.Array, megabytes: float) -> dict[str, float]:
    """Prints MB/s of each kernel; returns seconds by name."""
    data = text_buffers(column).data
    measurer, tidied = Measurer(), tidy.tidied(column)
    wanted = dict.fromkeys(rule.signal for rule in select(PRESETS, {}).rules)
    of_presets = {" ".join(presets): dict.fromkeys(rule.signal for rule in select(presets, {}).rules) for presets in SAME_RULES.values()}
    runs: dict[str, Callable[[], object]] = {
        "memory copy (limit)": lambda: data.copy(),
        "UTF-8 decode walk (limit)": lambda: decode_walk(data),
        "walk: words, lines, classes": lambda: measurer.count(column, None, 0),
        "walk and stop words": lambda: measurer.count(column, None, STOPS),
        "walk and copies of lines": lambda: measurer.count(column, None, LINE_COPIES),
        "walk and distinct words": lambda: measurer.count(column, None, DISTINCT),
        "walk and n-gram repeats": lambda: measurer.count(column, None, REPEATS),
        "walk and compression": lambda: measurer.count(column, None, COMPRESSION),
        "signals of all presets": lambda: compute(column, wanted),
        **{f"signals of {name}": lambda wanted=signals: compute(column, wanted) for name, signals in of_presets.items()},
        "all signals": lambda: compute(column, SIGNALS),
        "MinHash 112 x 5-gram, affine32": lambda: MinHasher().signatures(column),
        "MinHash 112 x 5-gram, affine64": lambda: MinHasher(scheme="affine64").signatures(column),
        "look for broken Unicode": lambda: tidy.suspicious(column, ALWAYS + ALONE, PAIRED),
        "tidy: white space and controls": lambda: tidy.tidied(column),
        "line rules: c4, boilerplate, refinedweb": lambda: edit.edited(tidied, ("c4", "boilerplate", "refinedweb")),
    }
    found = {}
    for name, run in runs.items():
        found[name] = best(run)
        print(f"  {name:42s} {megabytes / found[name]:10.1f} MB/s", flush=True)
    return found


def kept_by_rule(column: pa.Array) -> None:
    """Prints how many documents each rule alone keeps, and each preset."""
    for preset in PRESETS:
        chosen = select((preset,), {})
        values = {SIGNAL_PREFIX + name: signal for name, signal in compute(column, chosen.signals()).items()}
        verdicts = judge(chosen, [None] * len(column), [None] * len(column), pa.table(values))
        broken = Counter(name for verdict in verdicts for name in (verdict.rule, *verdict.detail.get("also", ())))
        parts = [f"{rule.name.partition('.')[2]} {len(column) - broken[rule.name]}" for rule in chosen.rules]
        print(f"  {preset}: {len(column) - len(verdicts)} of {len(column)} kept ({', '.join(parts)})")


def peers(folder: Path, texts: list[str], megabytes: float, found: dict[str, float]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as documents:
        json.dump(texts, documents)
        documents.flush()
        for peer in RULES_OF:
            try:
                python = environment(folder, peer)
            except subprocess.CalledProcessError as error:
                print(f"  {peer}: could not be installed ({error})")
                continue
            done = subprocess.run(
                [str(python), str(Path(__file__).with_name("peer_rules.py")), peer, documents.name], capture_output=True, text=True
            )
            if done.returncode:
                print(f"  {peer}: failed: {done.stderr.strip().splitlines()[-1:]}")
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            for row in rows:
                sketch = row["what"].startswith("minhash")
                mine = "MinHash 112 x 5-gram, affine32" if sketch else f"signals of {' '.join(SAME_RULES[row['what']])}"
                print(
                    f"  {peer:10s} {row['what']:38s} {megabytes / row['seconds']:8.3f} MB/s  kept {row['kept']} failed {row['failed']}  "
                    f"{mine}: {row['seconds'] / found[mine]:.0f}x"
                )
            rules = sum(row["seconds"] for row in rows if not row["what"].startswith("minhash"))
            if rules:
                mine = found["signals of all presets"]
                print(f"  {peer:10s} {'all its rules above':38s} {megabytes / rules:8.3f} MB/s  all presets: {rules / mine:.0f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--peers", type=Path, metavar="FOLDER")
    parser.add_argument("--megabytes", type=float, default=1e9, help="use at most so much of the text")
    options = parser.parse_args()
    texts = read(options.text, options.megabytes)
    column = pa.array(texts, pa.large_string())
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{len(texts)} documents, {megabytes:.1f} MB of text, {megabytes * 1e3 / len(texts):.1f} kB each")
    found = ours(column, megabytes)
    kept_by_rule(column)
    if options.peers:
        peers(options.peers, texts, megabytes, found)


if __name__ == "__main__":
    main()
