"""What a page states about itself in its head: title, author, date, site name, description. Read without parsing the page, so that
it costs a small part of the fastest engine; a statement inside a comment or script is believed."""

from __future__ import annotations

import html
import re

# Names of meta elements -> our key. Where several say the same, the first in this order counts.
_KEYS = {
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
_HEAD_CHARACTERS = 100_000
_LONGEST_VALUE = 500
_META = re.compile(r"""<meta\s((?:[^>"']|"[^"<]{0,4000}"|'[^'<]{0,4000}'){1,400}+)>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""(property|name|itemprop|content)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,2000})", re.IGNORECASE)


def page_meta(page: str) -> dict[str, str]:
    """Our keys and what a page states for them, entities resolved, white space joined, at most 500 characters each."""
    head = page[:_HEAD_CHARACTERS]
    stated: dict[str, str] = {}
    for element in _META.finditer(head):
        attributes = {found[1].lower(): found[2] or found[3] or found[4] or "" for found in _ATTRIBUTE.finditer(element[1])}
        name = (attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or "").strip().lower()
        value = _clean(attributes.get("content", ""))
        if value and not (name.endswith("author") and "://" in value):  # a profile's address names nobody
            stated.setdefault(name, value)
    meta: dict[str, str] = {}
    for name, key in _KEYS.items():
        if name in stated:
            meta.setdefault(key, stated[name])
    title = _TITLE.search(head)
    if "title" not in meta and title and _clean(title[1]):
        meta["title"] = _clean(title[1])
    return meta


def _clean(value: str) -> str:
    text = html.unescape(value) if "&" in value else value
    return " ".join(text.split())[:_LONGEST_VALUE]
