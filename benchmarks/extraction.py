"""Extraction quality and speed on labelled pages: mean 4-gram F1 of the main text, and pages a second on one core.

usage: python benchmarks/extraction.py WEB_FOLDER [--all]
The folder holds pages.warc.gz and gold.jsonl.gz. Each engine runs as the pipeline runs it (with its settings, through the child
process) and without the child, which gives the child's cost. --all also measures other settings of each engine.
"""

from __future__ import annotations

import collections
import gzip
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dataproc.charset import decode
from dataproc.sources.base import InputSpec, ReadReport
from dataproc.sources.registry import make_source, plan_input
from dataproc.stages import extract_engines
from dataproc.stages.killable import KillableWorker

Grams = collections.Counter


def grams(text: str, n: int = 4) -> Grams:
    """Multiset of word n-grams; a text shorter than n words counts as one gram."""
    words = re.findall(r"\w+", text or "")
    return Grams(tuple(words[i : i + n]) for i in range(max(1, len(words) - n + 1))) if words else Grams()


def mean_f1(found: dict[str, str], gold: dict[str, str]) -> tuple[float, float, float]:
    """(precision, recall, F1) as the article extraction benchmark defines them: shares are averaged over pages, then combined."""
    tp = fp = fn = 0.0
    for url, body in gold.items():
        wanted, got = grams(body), grams(found.get(url, ""))
        both, extra, missing = sum((wanted & got).values()), sum((got - wanted).values()), sum((wanted - got).values())
        size = both + extra + missing or 1
        tp, fp, fn = tp + both / size, fp + extra / size, fn + missing / size
    precision, recall = tp / (tp + fp), tp / (tp + fn)
    return precision, recall, 2 * precision * recall / (precision + recall)


def labelled_pages(folder: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """(page bytes by URL, gold main text by URL) of the pages whose whole main text is labelled."""
    with gzip.open(folder / "gold.jsonl.gz") as stream:
        rows = [json.loads(line) for line in stream]
    gold = {row["url"]: row["gold"]["articleBody"] for row in rows if row["gold"]["kind"] == "body"}
    spec = InputSpec(name="pages", format="warc", path=str(folder / "pages.warc.gz"))
    source, pages = make_source(spec), {}
    for unit in plan_input(spec, 1 << 30):
        for part in unit:
            pages |= {record.url: record.payload for record in source.read(part, ReadReport()) if record.url in gold}
    return pages, gold


def through_child(engine: str) -> tuple[Callable[[bytes], str], KillableWorker]:
    """The engine as the extract stage calls it."""
    child = KillableWorker("dataproc.stages.extract_engines:extract_page", 60, 4_000_000_000)
    header = json.dumps({"engine": engine, "charset": None}).encode() + b"\n"
    return lambda page: json.loads(child.call(header + page))["text"], child


def measure(name: str, function: Callable[[bytes], str], pages: dict[str, bytes], gold: dict[str, str], rounds: int = 3) -> None:
    """Prints quality and the best speed of some rounds."""
    function(next(iter(pages.values())))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        found = {url: function(page) for url, page in pages.items()}
        best = min(best, time.perf_counter() - start)
    precision, recall, f1 = mean_f1(found, gold)
    print(f"{name:44s} {len(pages)} pages {len(pages) / best:7.1f} pages/s  P {precision:.3f} R {recall:.3f} F1 {f1:.3f}", flush=True)


def main() -> None:
    """Runs the measurements and prints a line each."""
    pages, gold = labelled_pages(Path(sys.argv[1]))
    for engine, function in extract_engines.ENGINES.items():
        call, child = through_child(engine)
        measure(f"{engine}, as the stage runs it", call, pages, gold)
        child.close()
        measure(f"{engine}, without the child", lambda page, f=function: f(decode(page).text), pages, gold)
    if "--all" in sys.argv:
        for settings in ({}, {"favor_precision": True}, {"include_comments": False}, {"fast": True, "include_comments": False},
                         {"favor_precision": True, "include_comments": False, "include_tables": False}):  # fmt: skip
            extract_engines.TRAFILATURA = settings
            measure(f"trafilatura {settings}", lambda page: extract_engines.trafilatura_text(decode(page).text), pages, gold, 1)


if __name__ == "__main__":
    main()
