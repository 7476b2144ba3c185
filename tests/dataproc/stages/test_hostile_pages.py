"""Thousands of hostile pages: none ends the worker, none costs a neighbour, and all of them end in bounded time."""

from __future__ import annotations

import gzip
import time

import pytest

from dataproc.stages.base import StageContext
from dataproc.stages.extract import Extract, ExtractConfig
from dataproc.stages.language import Language, LanguageConfig
from tests.dataproc.stages.helpers import pages
from tests.dataproc.stages.hostile_pages import hostile, neighbour

LIMIT = 2.0  # processor seconds a page
LONGEST = 60.0  # seconds by the clock for a page and its neighbour, on a machine that others use too
ALLOWED = {"empty", "not_html", "too_large_page", "robots", "prefilter_language", "timeout", "out_of_memory", "failed", "crashed"}
EVERYTHING = {"respect_robots_meta": ("noindex", "noai"), "prefilter_language": True, "comments": True, "math": True}
SETTINGS = {
    "trafilatura": ExtractConfig(timeout_s=LIMIT, memory_mb=1024, markdown=True, **EVERYTHING),
    "resiliparse": ExtractConfig(timeout_s=LIMIT, memory_mb=1024, engine="resiliparse", **EVERYTHING),
}


def opened(engine: str) -> Extract:
    extract, language = Extract(SETTINGS[engine]), Language(LanguageConfig(keep=("en",)))
    extract.meet([extract, language])
    extract.open(StageContext())
    language.open(StageContext())
    return extract


def check(extract: Extract, bad: list[bytes], first: int) -> None:
    """Runs hostile pages, each with an ordinary one after it."""
    for number, page in enumerate(bad, first):
        start = time.process_time()
        wall = time.perf_counter()
        result = extract.process(pages(page, neighbour(number)))
        assert time.perf_counter() - wall < LONGEST
        assert time.process_time() - start < 10 * LIMIT  # what the parent itself does
        texts = result.batch.column("text").to_pylist()
        assert f"Mill {number}." in texts[1], page[:200]
        assert {v.row for v in result.verdicts} <= {0} and {v.rule for v in result.verdicts} <= ALLOWED
        texts[0] is None or texts[0].encode()


@pytest.mark.parametrize("engine", list(SETTINGS))
def test_two_hundred_hostile_pages(engine):
    extract = opened(engine)
    check(extract, [hostile(number, 60_000) for number in range(200)], 0)
    extract.close()


@pytest.mark.slow
@pytest.mark.timeout(1800)  # pages that are ended at their limit alone take some minutes
@pytest.mark.parametrize("engine", list(SETTINGS))
def test_ten_thousand_hostile_pages(engine, shared_data):
    extract = opened(engine)
    real = [path.read_bytes() for path in sorted((shared_data / "nasty" / "html").iterdir())]
    real = [gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for data in real]
    giants = [b"<html><body><p>" + b"word " * 20_000_000, b"<html><body>" + b"<div>" * 3_900_000, b"<html><p a='" + b"x" * 19_000_000]
    check(extract, real + giants, 0)
    for first in range(0, 10_000, 100):
        check(extract, [hostile(number) for number in range(first, first + 100)], first)
    extract.close()


@pytest.mark.slow
def test_a_line_of_a_hundred_megabytes_under_a_limit_that_lets_it_through():
    extract = Extract(ExtractConfig(timeout_s=LIMIT, max_page_bytes=200_000_000))
    extract.open(StageContext())
    check(extract, [b"<html><body><p>" + b"word " * 20_000_000], 0)
    extract.close()
