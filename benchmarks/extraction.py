"""Extraction quality and speed on labelled pages: F1 of the main text, and pages a second on one core.

usage: python benchmarks/extraction.py WEB_FOLDER [--all]
The folder holds pages.warc.gz and gold.jsonl.gz. Two sets of labels: whole main texts (mean 4-gram F1), and segments that a text must
and must not hold (F1 over all segments). Each engine runs as the pipeline runs it, with its settings and through the child process, over
the first set. --all measures engines and settings without the child on both sets, page by page in turns, so that a busy machine is equally
busy for all.
"""

from __future__ import annotations

import collections
import gzip
import json
import re
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

from dataproc.charset import decode
from dataproc.sources.base import InputSpec, ReadReport
from dataproc.sources.registry import make_source, plan_input
from dataproc.stages.extract_engines import ENGINES, Options
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


def labels(folder: Path, kind: str) -> dict[str, dict]:
    """Labels by URL: `body` (articleBody, the whole main text) or `segments` (with, without)."""
    with gzip.open(folder / "gold.jsonl.gz") as stream:
        rows = [json.loads(line) for line in stream]
    return {row["url"]: row["gold"] for row in rows if row["gold"]["kind"] == kind}


def read_pages(folder: Path, urls: Collection[str]) -> dict[str, bytes]:
    """Page bytes by URL."""
    spec = InputSpec(name="pages", format="warc", path=str(folder / "pages.warc.gz"))
    source, pages = make_source(spec), {}
    for unit in plan_input(spec, 1 << 30):
        for part in unit:
            pages |= {record.url: record.payload for record in source.read(part, ReadReport()) if record.url in urls}
    return pages


def labelled_pages(folder: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """(page bytes by URL, gold main text by URL) of the pages whose whole main text is labelled."""
    gold = {url: found["articleBody"] for url, found in labels(folder, "body").items()}
    return read_pages(folder, gold), gold


def segment_f1(found: dict[str, str], gold: dict[str, dict]) -> tuple[float, float, float]:
    """(precision, recall, F1) over segments: a wanted one that a text holds is right, an unwanted one that it holds is wrong."""
    right = sum(segment in found[url] for url, wanted in gold.items() for segment in wanted["with"])
    wrong = sum(segment in found[url] for url, wanted in gold.items() for segment in wanted["without"])
    precision, recall = right / (right + wrong), right / sum(len(wanted["with"]) for wanted in gold.values())
    return precision, recall, 2 * precision * recall / (precision + recall)


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


def compare_settings(folder: Path) -> None:
    """Prints a line for each engine with settings, over both sets of labels; the speed is of processor time."""
    bodies, segments = {url: found["articleBody"] for url, found in labels(folder, "body").items()}, labels(folder, "segments")
    pages = {url: decode(page).text for url, page in read_pages(folder, {*bodies, *segments}).items()}
    candidates = {
        "trafilatura": Options(),
        "trafilatura, fast": Options(fast=True),
        "trafilatura, comments": Options(comments=True),
        "resiliparse": Options("resiliparse"),
    }
    texts: dict[str, dict[str, str]] = {name: {} for name in candidates}
    seconds = dict.fromkeys(candidates, 0.0)
    for url, page in pages.items():
        for name, options in candidates.items():
            start = time.process_time()
            texts[name][url] = ENGINES[options.engine](page, options)
            seconds[name] += time.process_time() - start
    for name, found in texts.items():
        shown = "  ".join("P {:.3f} R {:.3f} F1 {:.4f}".format(*f) for f in (mean_f1(found, bodies), segment_f1(found, segments)))
        print(
            f"{name:24s} {len(pages) / seconds[name]:6.1f} pages/s  {len(bodies)} bodies: {shown} of {len(segments)} with segments",
            flush=True,
        )


def main() -> None:
    """Runs the measurements and prints a line each."""
    folder = Path(sys.argv[1])
    if "--all" in sys.argv:
        compare_settings(folder)
        return
    pages, gold = labelled_pages(folder)
    for engine, function in ENGINES.items():
        call, child = through_child(engine)
        measure(f"{engine}, as the stage runs it", call, pages, gold)
        child.close()
        options = Options(engine)
        measure(f"{engine}, without the child", lambda page, f=function, o=options: f(decode(page).text, o), pages, gold)


if __name__ == "__main__":
    main()
