"""What lists of a million domains cost: to load, a URL, and in memory, beside a plain Python set.

usage: python -m benchmarks.urls [--domains 1000000] [--urls 1000000]
Domains and URLs are made up, one URL in a hundred lies below a listed domain. Processor time of one core, best of three
rounds; memory is private memory of a new process (what the index maps is shared between the workers of a machine).
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pyarrow as pa

from dataproc.documents import BATCH_SCHEMA
from dataproc.stages.base import StageContext
from dataproc.stages.url_filter import UrlFilter, UrlFilterConfig
from dataproc.stages.url_index import open_index
from dataproc.stages.url_lists import UrlList
from store.strict_yaml import DataFile

BATCH_ROWS = 64  # as in a run
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
HIT_EVERY = 100
ROUNDS = 3
WORDS = ("porn", "casino", "viagra", "xxx", "escort")


def make_domains(count: int, seed: int) -> list[str]:
    """Names of two or three labels, all different."""
    draw = random.Random(seed)
    ends = [".com", ".net", ".org", ".de", ".co.uk", ".com.br", ".ru", ".info"]
    return [f"{''.join(draw.choices(LETTERS, k=draw.randint(3, 12)))}{number:x}{draw.choice(ends)}" for number in range(count)]


def make_urls(domains: list[str], count: int) -> list[str]:
    """URLs, of which every hundredth lies below one of the domains."""
    draw, others = random.Random(2), make_domains(50_000, seed=3)
    made = []
    for number in range(count):
        host = draw.choice(domains) if number % HIT_EVERY == 0 else "x" + draw.choice(others)
        page = f"articles/{draw.randint(2000, 2026)}/{draw.randint(1, 10**6)}-some-title.html?id=7"
        made.append(f"https://{draw.choice(['www.', '', 'blog.'])}{host}/{page}")
    return made


def in_new_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def private_bytes() -> int:
    found = psutil.Process().memory_info()
    return found.rss - found.shared


def load_index(path: str, folder: str) -> tuple[float, int]:
    """(seconds, private bytes) of opening the index."""
    lists = (UrlList("blocked_domain", "list.txt", DataFile(path)),)
    small = Path(folder) / "small.txt"
    small.write_text("a.example\n")
    open_index((UrlList("blocked_domain", "small.txt", DataFile(small)),), Path(folder))  # kernels are compiled, or read
    before, start = private_bytes(), time.perf_counter()
    index = open_index(lists, Path(folder))
    seconds = time.perf_counter() - start
    return seconds, private_bytes() - before + 0 * len(index)


def load_set(path: str) -> tuple[float, int]:
    """(seconds, private bytes) of a set of the lines."""
    before, start = private_bytes(), time.perf_counter()
    with open(path) as lines:
        domains = {line.strip() for line in lines}
    return time.perf_counter() - start, private_bytes() - before + 0 * len(domains)


def batches(urls: list[str]) -> list[pa.RecordBatch]:
    made = []
    for at in range(0, len(urls), BATCH_ROWS):
        part = urls[at : at + BATCH_ROWS]
        made.append(pa.record_batch([pa.array(part, pa.string())], schema=pa.schema([BATCH_SCHEMA.field("url")])))
    return made


def best(work: Callable[[], int], urls: int) -> tuple[float, int]:
    """(microseconds of processor time a URL in the best of the rounds, refused)."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        refused = work()
        times.append(time.process_time() - start)
    return min(times) / urls * 1e6, refused


def time_stage(path: str, urls: list[str], words: tuple[str, ...]) -> tuple[float, int]:
    """(microseconds a URL, refused) of the stage."""
    stage = UrlFilter(UrlFilterConfig.model_validate({"block_domains": [path], "block_url_words": words}, context={"base": None}))
    stage.open(StageContext())
    made = batches(urls)
    stage.process(made[0])
    return best(lambda: sum(len(stage.process(batch).verdicts) for batch in made), len(urls))


def time_set(path: str, urls: list[str]) -> tuple[float, int]:
    """(microseconds a URL, refused) of a plain set and urllib."""
    with open(path) as lines:
        domains = {line.strip() for line in lines}
    made = batches(urls)

    def look() -> int:
        refused = 0
        for batch in made:
            for url in batch.column(0).to_pylist():
                host = urlsplit(url).hostname or ""
                while host and host not in domains:
                    host = host.partition(".")[2]
                refused += bool(host)
        return refused

    return best(look, len(urls))


def main() -> None:
    """Reads the arguments and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, default=1_000_000)
    parser.add_argument("--urls", type=int, default=1_000_000)
    arguments = parser.parse_args()
    domains = make_domains(arguments.domains, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "list.txt")
        Path(path).write_text("\n".join(domains) + "\n")
        print(f"{len(domains)} domains, {Path(path).stat().st_size / 1e6:.1f} MB")
        for title in ("index, first time", "index, later"):
            seconds, memory = in_new_process(load_index, path, folder)
            print(f"{title}: {seconds:.2f} s, {memory / 1e6:.1f} MB private", flush=True)
        sizes = [file.stat().st_size for file in Path(folder).glob("urls-*")]
        seconds, memory = in_new_process(load_set, path)
        print(f"plain set: {seconds:.2f} s, {memory / 1e6:.1f} MB private; the index's file has {max(sizes) / 1e6:.1f} MB", flush=True)
        urls = make_urls(domains, arguments.urls)
        for title, found in (
            ("stage, domains", time_stage(path, urls, ())),
            ("stage, domains and words", time_stage(path, urls, WORDS)),
            ("plain set and urllib, domains", time_set(path, urls)),
        ):
            print(f"{title}: {found[0]:.2f} us a URL, {found[1]} of {len(urls)} refused", flush=True)


if __name__ == "__main__":
    main()
