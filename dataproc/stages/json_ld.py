"""What a page states about itself as JSON-LD (https://schema.org): found by a search for its script elements, read in bounded steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

_SCRIPT = re.compile(r"""<script\b[^<>]{0,500}\bapplication/ld\+json\b[^<>]{0,500}>""", re.IGNORECASE)
_MOST_SCRIPTS = 10
_MOST_CHARACTERS = 200_000  # of one script
_MOST_OBJECTS = 500
# Types whose object is the page or the work on it: only these are about the document, others about its site, crumbs or pictures.
_WORKS = re.compile(r"(Article|Posting|Page|CreativeWork|Report|Recipe|Review|Book|Thesis|VideoObject|Course|QAPage|Question)$")
_KEYS = {
    "headline": "title",
    "name": "title",
    "author": "author",
    "creator": "author",
    "datePublished": "date",
    "description": "description",
    "license": "licence_url",
}


def json_ld_meta(page: str) -> dict[str, str]:
    """title, author, date, description, licence_url and sitename, as far as an article or page object states them; the first counts."""
    meta: dict[str, str] = {}
    if "ld+json" not in page:
        return meta
    works = [found for found in _objects(page) if _is_work(found)]
    # A page's own name is what its window shows; an article's headline is better where both are stated.
    for work in sorted(works, key=lambda found: _types(found)[-1].endswith("Page")):
        for name, key in _KEYS.items():
            if (value := _text(work.get(name))) and not (key == "author" and "://" in value):
                meta.setdefault(key, value)
        publisher = work.get("publisher")
        if isinstance(publisher, dict) and (value := _text(publisher.get("name"))):
            meta.setdefault("sitename", value)
    return meta


def _objects(page: str) -> Iterator[dict[str, Any]]:
    """All objects of the first scripts, outer ones first. What is not JSON is passed over."""
    left = _MOST_OBJECTS
    for count, script in enumerate(_SCRIPT.finditer(page)):
        if count == _MOST_SCRIPTS:
            return
        end = page.find("</", script.end(), script.end() + _MOST_CHARACTERS)
        while end >= 0 and page[end + 2 : end + 8].lower() != "script":
            end = page.find("</", end + 2, script.end() + _MOST_CHARACTERS)
        try:
            waiting = [orjson.loads(page[script.end() : end])] if end >= 0 else []
        except ValueError:
            continue
        while waiting and left:
            value = waiting.pop(0)
            if isinstance(value, dict):
                left -= 1
                yield value
                waiting += value.get("@graph", ()) if isinstance(value.get("@graph"), list) else [value.get("mainEntity")]
            elif isinstance(value, list):
                waiting += value[:_MOST_OBJECTS]


def _types(found: dict[str, Any]) -> list[str]:
    kinds = found.get("@type")
    return [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)] or [""]


def _is_work(found: dict[str, Any]) -> bool:
    return any(_WORKS.search(kind) for kind in _types(found))


def _text(value: Any) -> str:
    """A text, the name of a thing, or the names of several."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return value["name"] if isinstance(value.get("name"), str) else ""
    if isinstance(value, list):
        return ", ".join(filter(None, (_text(item) for item in value[:10] if not isinstance(item, list))))
    return ""
