"""What a page states about itself, read from its head."""

from __future__ import annotations

import gzip
import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.charset import decode
from dataproc.sources.base import InputSpec, ReadReport
from dataproc.sources.registry import make_source, plan_input
from dataproc.stages.page_meta import page_meta


@pytest.mark.parametrize(
    ("head", "meta"),
    [
        ("<title>\n The  mill\n</title>", {"title": "The mill"}),
        ("<title>Mill | Site</title><meta property='og:title' content='Mill'>", {"title": "Mill"}),
        ('<META CONTENT="Anna &amp; Bo" NAME="Author"/>', {"author": "Anna & Bo"}),
        ('<meta name=description content="a > b">', {"description": "a > b"}),
        ('<meta property="og:description" content="second"><meta name="description" content="first">', {"description": "first"}),
        ('<meta itemprop="datePublished" content="2024-05-01T10:00:00Z">', {"date": "2024-05-01T10:00:00Z"}),
        ('<meta property="og:site_name" content=""><meta name="viewport" content="width=1">', {}),
        ('<meta name="author" content="https://e.org/anna"><meta property="article:author" content="Anna">', {"author": "Anna"}),
        ("<title></title>", {}),
        ("", {}),
    ],
)
def test_statements_of_a_head(head, meta):
    assert page_meta(f"<html><head>{head}</head><body>text</body></html>") == meta


def plain(value: str | list | None) -> str:
    return " ".join(re.findall(r"\w+", (value or "").lower())) if not isinstance(value, list) else plain(" ".join(value))


def test_real_pages_state_the_title_and_date_that_people_noted(shared_data):
    """481 pages with metadata by people, who often took a headline where the page states another title for search engines."""
    with gzip.open(shared_data / "web" / "gold.jsonl.gz", "rt") as stream:
        gold = {row["url"]: row["gold"] for row in map(json.loads, stream) if row["gold"]["kind"] == "segments"}
    spec = InputSpec(name="pages", format="warc", path=str(shared_data / "web" / "pages.warc.gz"))
    records = [
        r for unit in plan_input(spec, 1 << 30) for part in unit for r in make_source(spec).read(part, ReadReport()) if r.url in gold
    ]
    titles, dates = [], []
    for record in records:
        wanted, meta = gold[record.url], page_meta(decode(record.payload, record.charset).text)
        if plain(wanted.get("title")):
            ours = plain(meta.get("title"))
            titles.append(bool(ours) and (ours in plain(wanted.get("title")) or plain(wanted.get("title")) in ours))
        if wanted.get("date") and "date" in meta:
            dates.append(meta["date"][:10] == wanted["date"])
    assert len(records) == 481 and len(titles) > 400 and len(dates) > 150
    assert sum(titles) > 0.8 * len(titles) and sum(dates) > 0.8 * len(dates)


@given(st.sampled_from(["<meta ", '<meta x="', "<meta a='", "<title>", '<meta name="a" ', "<meta ><", "'", '"']), st.integers(1, 15_000))
def test_hostile_heads_are_read_in_bounded_time(piece, times):
    start = time.process_time()
    page_meta(piece * times)
    assert time.process_time() - start < 2


@given(st.text(max_size=300))
def test_any_text_gives_bounded_values(text):
    for value in page_meta(f"<title>{text}</title><meta name=author content='{text}'>").values():
        assert 0 < len(value) <= 500 and value == " ".join(value.split())
