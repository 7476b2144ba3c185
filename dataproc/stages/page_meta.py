"""What a page states about itself: title, author, date, site name, description, language, licence. Read without parsing the page, so
that it costs a small part of the fastest engine; a statement inside a script is believed, one inside a comment is not."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from dataproc.stages.json_ld import json_ld_meta

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
HEAD_CHARACTERS = 100_000
_LONGEST_VALUE = 500
_META = re.compile(r"""<meta\s((?:[^>"']|"[^"<]{0,4000}"|'[^'<]{0,4000}'){1,400}+)>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""(property|name|itemprop|content)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,2000})", re.IGNORECASE)
_LANGUAGE = re.compile(r"""<html\s[^>]{0,1000}?\blang\s*=\s*["']?([a-z]{2,3}(?:[-_][a-z0-9]{1,8}){0,3})["'\s>]""", re.IGNORECASE)


# A licence may be stated anywhere on a page, most often at its end.
_LICENSED = re.compile(
    r"""<(?:a|link)\s(?=[^<>]{0,1000}?\brel\s*=\s*["']?[^"'<>]{0,100}?\blicen[cs]e\b)[^<>]{0,1000}?\bhref\s*=\s*(?:"([^"<>]{1,500})"|'([^'<>]{1,500})'|([^\s"'<>]{1,500}))""",
    re.IGNORECASE,
)
_LICENCE_NAMES = ("dcterms.license", "dc.license", "dcterms.rights", "dc.rights", "license", "copyright")
_CREATIVE_COMMONS = re.compile(r"creativecommons\.org/(?:licenses/[a-z-]{2,11}/\d\.\d|publicdomain/(?:zero|mark)/1\.0)")


def stated_licence(page: str) -> str | None:
    """The address of the licence that a page states by a link of the relation `license` or in a meta element."""
    if found := _LICENSED.search(page):
        return html.unescape(found[1] or found[2] or found[3])
    stated = dict(meta_elements(page[:HEAD_CHARACTERS]))
    return next((_clean(stated[name]) for name in _LICENCE_NAMES if "://" in stated.get(name, "")), None)


def linked_licence(page: str) -> str | None:
    """The Creative Commons licence that a page links to; None where it links to several, as one does whose pictures have theirs."""
    linked = {found[0] for found in _CREATIVE_COMMONS.finditer(page)}
    return f"https://{linked.pop()}/" if len(linked) == 1 else None


def page_meta(page: str) -> dict[str, str]:
    """Our keys and what a page states for them, entities resolved, white space joined, at most 500 characters each.

    What stands in meta elements comes before what stands in JSON-LD, which comes before the title element.
    """
    head = without_comments(page[:HEAD_CHARACTERS])
    stated: dict[str, str] = {}
    for name, content in meta_elements(head):
        value = _clean(content)
        if value and not (name.endswith("author") and "://" in value):  # a profile's address names nobody
            stated.setdefault(name, value)
    meta: dict[str, str] = {}
    for name, key in _KEYS.items():
        if name in stated:
            meta.setdefault(key, stated[name])
    for key, value in json_ld_meta(page).items():
        if _clean(value):
            meta.setdefault(key, _clean(value))
    title = _TITLE.search(head)
    if "title" not in meta and title and _clean(title[1]):
        meta["title"] = _clean(title[1])
    if language := declared_language(head):
        meta["html_lang"] = language
    licence = stated_licence(page) or meta.pop("licence_url", None) or linked_licence(page)
    if licence and "//" in licence:
        meta["licence_url"] = licence
    return meta


def meta_elements(head: str) -> Iterator[tuple[str, str]]:
    """(name in lower case, content as written) of each meta element that names something and is not in a comment."""
    for element in _META.finditer(without_comments(head)):
        attributes = {found[1].lower(): found[2] or found[3] or found[4] or "" for found in _ATTRIBUTE.finditer(element[1])}
        name = (attributes.get("property") or attributes.get("name") or attributes.get("itemprop") or "").strip().lower()
        if name:
            yield name, attributes.get("content", "")


def declared_language(page: str) -> str | None:
    """The language that the html element declares, as written there; None where it declares none."""
    found = _LANGUAGE.search(page[:HEAD_CHARACTERS])
    return found[1] if found else None


def without_comments(head: str) -> str:
    """A head without its comments; one that is never closed takes the rest."""
    parts, position = [], 0
    while (start := head.find("<!--", position)) >= 0:
        parts.append(head[position:start])
        end = head.find("-->", start + 2)
        if end < 0:
            return "".join(parts)
        position = end + 3
    return head if not parts else "".join(parts) + head[position:]


def _clean(value: str) -> str:
    text = html.unescape(value) if "&" in value else value
    return " ".join(text.split())[:_LONGEST_VALUE]
