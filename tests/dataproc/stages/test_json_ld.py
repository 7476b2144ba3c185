"""What JSON-LD states of a page, and that no JSON-LD does harm."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.stages.json_ld import json_ld_meta
from dataproc.stages.page_meta import page_meta

ARTICLE = {"@type": "NewsArticle", "headline": "The mill", "datePublished": "2024-05-01", "author": {"@type": "Person", "name": "Anna"}}


def page(*values) -> str:
    return "".join(f'<script type="application/ld+json">{v if isinstance(v, str) else json.dumps(v)}</script>' for v in values)


@pytest.mark.parametrize(
    ("value", "meta"),
    [
        (ARTICLE, {"title": "The mill", "date": "2024-05-01", "author": "Anna"}),
        ([ARTICLE], {"title": "The mill", "date": "2024-05-01", "author": "Anna"}),
        ({"@graph": [{"@type": "WebPage", "name": "Mill | Site"}, ARTICLE]}, {"title": "The mill", "date": "2024-05-01", "author": "Anna"}),
        ({"@type": "WebPage", "mainEntity": ARTICLE}, {"title": "The mill", "date": "2024-05-01", "author": "Anna"}),
        ({"@type": ["Thing", "BlogPosting"], "author": [{"name": "Anna"}, "Bo"]}, {"author": "Anna, Bo"}),
        ({"@type": "Article", "author": "https://e.org/anna"}, {}),
        ({"@type": "Article", "publisher": {"name": "The Paper"}}, {"sitename": "The Paper"}),
        ({"@type": "BreadcrumbList", "name": "Home"}, {}),
        ({"@type": 5, "headline": "x"}, {}),
        ("{not json", {}),
        ("[" * 5000, {}),
        ("null", {}),
        ('{"@type": "Article", "headline": "\\ud800"}', {}),
    ],
)
def test_statements(value, meta):
    assert json_ld_meta(page(value)) == meta


def test_meta_elements_come_first_and_the_title_element_last():
    head = page(ARTICLE) + "<meta property='article:published_time' content='2020-01-01'><title>Mill - Site</title>"
    meta = page_meta(f"<html lang='en-GB'><head>{head}")
    assert meta == {"title": "The mill", "date": "2020-01-01", "author": "Anna", "html_lang": "en-GB"}


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda c: st.lists(c) | st.dictionaries(st.sampled_from(["@type", "@graph", "author", "name", "headline"]), c),
        max_leaves=20,
    )
)
def test_any_json_gives_texts(value):
    found = json_ld_meta(page(json.dumps(value), ARTICLE))
    assert all(isinstance(text, str) and text for text in found.values())


@pytest.mark.parametrize("piece", ['<script type="application/ld+json">', "<script ", '<script type="application/ld+json"></', "ld+json"])
def test_hostile_pages_take_bounded_time(piece):
    start = time.process_time()
    page_meta(piece * (3_000_000 // len(piece)))
    assert time.process_time() - start < 4
