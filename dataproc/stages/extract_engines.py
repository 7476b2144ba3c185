"""The engines that take the main text out of a page. Runs inside the extract stage's child process.

Settings were chosen by measurement on labelled pages (benchmarks/extraction.py, figures in docs/benchmarks.md).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import orjson

from dataproc.charset import decode

# Without comments, with tables, and favouring neither precision nor speed had the best F1 on both kinds of labelled pages.
# `deduplicate` would make a page's text depend on the pages before it.
TRAFILATURA = {"include_comments": False, "deduplicate": False}
RESILIPARSE = {"main_content": True, "alt_texts": False, "list_bullets": False, "links": False, "comments": False}
METADATA = ("title", "author", "date", "sitename", "description")


def extract_page(request: bytes) -> bytes:
    """request: JSON header line {engine, charset} and the page's bytes; answer: JSON {text, meta, encoding}."""
    header, _, page = request.partition(b"\n")
    options = orjson.loads(header)
    decoded = decode(page, options["charset"])
    text, meta = ENGINES[options["engine"]](decoded.text)
    return orjson.dumps({"text": text, "meta": {**meta, "encoding": decoded.encoding}})


def trafilatura_text(html: str) -> tuple[str, dict[str, Any]]:
    """Main text and metadata by trafilatura; empty text where it finds none."""
    trafilatura, settings = _trafilatura()
    found = trafilatura.bare_extraction(html, config=settings, with_metadata=True, **TRAFILATURA)
    if found is None:
        return "", {}
    values = found.as_dict()
    meta = {name: values[name] for name in METADATA if values.get(name)}
    return values.get("text") or "", meta


@functools.cache
def _trafilatura():
    import trafilatura
    from trafilatura.settings import use_config

    settings = use_config()
    # trafilatura's own timeout uses a signal in this process; the stage ends the whole process instead.
    settings.set("DEFAULT", "EXTRACTION_TIMEOUT", "0")
    return trafilatura, settings


def resiliparse_text(html: str) -> tuple[str, dict[str, Any]]:
    """Main text by resiliparse, and the page's title."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(html)
    title = (tree.title or "").strip()
    return extract_plain_text(tree, **RESILIPARSE), {"title": title} if title else {}


ENGINES: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {"trafilatura": trafilatura_text, "resiliparse": resiliparse_text}
