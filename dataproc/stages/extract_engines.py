"""The engines that take the main text out of a page. Runs inside the extract stage's child process.

Settings were chosen by measurement on labelled pages (benchmarks/extraction.py, figures in docs/benchmarks.md).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from dataproc.charset import decode
from dataproc.stages.math_html import math_to_tex
from dataproc.stages.page_meta import page_meta

# With tables, and favouring neither precision nor speed had the best F1 on both kinds of labelled pages. `deduplicate` would make a
# page's text depend on the pages before it. `with_metadata` would cost a third of the time, and the dates that it finds depend on the
# day of the run.
TRAFILATURA = {"deduplicate": False, "with_metadata": False}
RESILIPARSE = {"main_content": True, "alt_texts": False, "list_bullets": False, "links": False}


@dataclass(frozen=True)
class Options:
    """How a page is extracted; the settings of the extract stage with these names."""

    engine: str = "trafilatura"
    fast: bool = False
    comments: bool = False
    math: bool = False
    structure: tuple[str, ...] = ()


def extract_page(request: bytes) -> bytes:
    """request: JSON header line {charset, the fields of Options} and the page's bytes; answer: JSON {text, meta}."""
    header, _, page = request.partition(b"\n")
    settings = orjson.loads(header)
    decoded = decode(page, settings.pop("charset"))
    options = Options(**settings)
    html = math_to_tex(decoded.text) if options.math else decoded.text
    text = ENGINES[options.engine](html, options)
    meta = {key: _encodable(value) for key, value in page_meta(decoded.text).items()}
    return orjson.dumps({"text": _encodable(text), "meta": {**meta, "encoding": decoded.encoding}})


def trafilatura_text(html: str, options: Options) -> str:
    """Main text by trafilatura; empty where it finds none."""
    trafilatura, settings = _trafilatura()
    found = trafilatura.bare_extraction(html, config=settings, fast=options.fast, include_comments=options.comments, **TRAFILATURA)
    if found is None:
        return ""
    if options.structure:
        from dataproc.stages.markdown import to_markdown

        parts = [to_markdown(body, options.structure) for body in (found.body, found.commentsbody) if body is not None]
        return "\n\n".join(filter(None, parts))
    return "\n".join(filter(None, (found.text, found.comments)))


@functools.cache
def _trafilatura():
    import trafilatura
    from trafilatura.settings import use_config

    settings = use_config()
    # trafilatura's own timeout uses a signal in this process; the stage ends the whole process instead.
    settings.set("DEFAULT", "EXTRACTION_TIMEOUT", "0")
    return trafilatura, settings


def resiliparse_text(html: str, options: Options) -> str:
    """Main text by resiliparse."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    return extract_plain_text(HTMLTree.parse(html), comments=options.comments, **RESILIPARSE)


def _encodable(text: str) -> str:
    """The text with lone surrogates (from numeric entities) replaced: they have no form in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


ENGINES: dict[str, Callable[[str, Options], str]] = {"trafilatura": trafilatura_text, "resiliparse": resiliparse_text}
