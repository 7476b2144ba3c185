"""The engines that take the main text out of a page. Runs inside the extract stage's child process.

Settings were chosen by measurement on labelled pages (benchmarks/extraction.py, figures in docs/benchmarks.md).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from dataproc.charset import decode

# Without comments, with tables, and favouring neither precision nor speed had the best F1 on both kinds of labelled pages.
# `deduplicate` would make a page's text depend on the pages before it. `with_metadata` would cost a third of the time, and the dates
# that it finds depend on the day of the run.
TRAFILATURA = {"include_comments": False, "deduplicate": False, "with_metadata": False}
RESILIPARSE = {"main_content": True, "alt_texts": False, "list_bullets": False, "links": False, "comments": False}
# What a page states about itself in its meta elements -> our key. Where several say the same, the first in this order counts.
_META_KEYS = {
    "og:title": "title",
    "twitter:title": "title",
    "author": "author",
    "article:author": "author",
    "dc.creator": "author",
    "article:published_time": "date",
    "datepublished": "date",
    "date": "date",
    "dc.date": "date",
    "og:site_name": "sitename",
    "description": "description",
    "og:description": "description",
}
_LONGEST_VALUE = 500

Meta = dict[str, Any]


def extract_page(request: bytes) -> bytes:
    """request: JSON header line {engine, charset} and the page's bytes; answer: JSON {text, meta}."""
    header, _, page = request.partition(b"\n")
    options = orjson.loads(header)
    decoded = decode(page, options["charset"])
    text, meta = ENGINES[options["engine"]](decoded.text)
    return orjson.dumps({"text": _encodable(text), "meta": {**meta, "encoding": decoded.encoding}})


def trafilatura_text(html: str) -> tuple[str, Meta]:
    """Main text by trafilatura, empty where it finds none, and what the page states about itself."""
    trafilatura, settings = _trafilatura()
    tree = trafilatura.load_html(html)
    if tree is None:
        return "", {}
    stated = [(e.get("property") or e.get("name") or e.get("itemprop"), e.get("content")) for e in tree.iterfind(".//meta")]
    meta = page_meta(stated, tree.findtext(".//title"))
    found = trafilatura.bare_extraction(tree, config=settings, **TRAFILATURA)
    return (found.text or "" if found is not None else ""), meta


@functools.cache
def _trafilatura():
    import trafilatura
    from trafilatura.settings import use_config

    settings = use_config()
    # trafilatura's own timeout uses a signal in this process; the stage ends the whole process instead.
    settings.set("DEFAULT", "EXTRACTION_TIMEOUT", "0")
    return trafilatura, settings


def resiliparse_text(html: str) -> tuple[str, Meta]:
    """Main text by resiliparse, and what the page states about itself."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(html)
    stated = [
        (e.getattr("property") or e.getattr("name") or e.getattr("itemprop"), e.getattr("content"))
        for e in tree.document.get_elements_by_tag_name("meta")
    ]
    return extract_plain_text(tree, **RESILIPARSE), page_meta(stated, tree.title)


def page_meta(stated: Iterable[tuple[str | None, str | None]], title: str | None) -> Meta:
    """Title, author, date, site name and description from (name, content) of meta elements; the title element is the second choice."""
    values: dict[str, str] = {}
    for name, content in stated:
        key = (name or "").strip().lower()
        text = _encodable(" ".join((content or "").split()))[:_LONGEST_VALUE]
        if key in _META_KEYS and text:
            values.setdefault(key, text)
    meta: Meta = {}
    for key, name in _META_KEYS.items():
        if key in values:
            meta.setdefault(name, values[key])
    if "title" not in meta and title and title.strip():
        meta["title"] = _encodable(" ".join(title.split()))[:_LONGEST_VALUE]
    return meta


def _encodable(text: str) -> str:
    """The text with lone surrogates (from numeric entities) replaced: they have no form in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


ENGINES: dict[str, Callable[[str], tuple[str, Meta]]] = {"trafilatura": trafilatura_text, "resiliparse": resiliparse_text}
