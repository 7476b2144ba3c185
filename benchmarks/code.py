"""Presets for code and licences on real source files: MB/s on one core, and what is kept and found.

usage: python -m benchmarks.code FOLDER [--files N] [--ending .py]
FOLDER: source files, for example an environment's installed packages. Processor time, best of several runs.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.kernels import best
from dataproc.documents import SIGNAL_PREFIX
from dataproc.licences import GATE, find_licence
from dataproc.rules.presets import select
from dataproc.rules.signals import compute
from dataproc.stages.clean import clean
from dataproc.stages.rules import judge

PRESETS = ("code", "code@starcoder", "code@santacoder", "code@redpajama", "math", "gopher_quality", "c4")


def read(folder: Path, ending: str, most: int) -> list[str]:
    """That many files of UTF-8 text, chosen by a fixed seed."""
    paths = sorted(folder.rglob(f"*{ending}"))
    random.Random(1).shuffle(paths)
    found: list[str] = []
    for path in paths:
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        if text.strip() and len(found) < most:
            found.append(text)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--ending", default=".py")
    arguments = parser.parse_args()
    texts = read(arguments.folder, arguments.ending, arguments.files)
    column, nothing = pa.array(texts, pa.large_string()), [None] * len(texts)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{len(texts)} files, {megabytes:.1f} MB")
    for preset in PRESETS:
        rules = select((preset,), {})

        def run(rules=rules):
            values = {SIGNAL_PREFIX + name: found for name, found in compute(column, rules.signals()).items()}
            return judge(rules, nothing, nothing, pa.table(values))

        rate, verdicts = megabytes / best(run), run()
        took = ", ".join(f"{name.rpartition('.')[2]} {count}" for name, count in Counter(v.rule for v in verdicts).most_common())
        print(f"{preset:16} {rate:6.0f} MB/s, kept {1 - len(verdicts) / len(texts):.2%}; {took}")

    def licences():
        suspects = pc.match_substring_regex(column, GATE, ignore_case=True).to_pylist()
        return [find_licence(text) if suspect else None for text, suspect in zip(texts, suspects, strict=True)]

    rate, found = megabytes / best(licences), licences()
    kinds = Counter(finding.kind if finding else "none stated" for finding in found)
    print(f"{'licence':16} {rate:6.0f} MB/s; {dict(kinds)}")
    for keep in (False, True):
        print(f"clean, keep_math {str(keep).lower():5} {megabytes / best(lambda keep=keep: clean(column, True, keep_math=keep)):6.1f} MB/s")


if __name__ == "__main__":
    main()
