"""HTML and SVG made of elements. Whatever is not `Markup` is escaped, so a text can never become markup by being forgotten."""

from __future__ import annotations

import html
from collections.abc import Iterable

from dataproc.statistics import CONTROLS

VOID = {"meta", "br", "hr", "input", "wbr"}


class Markup(str):
    """Text that is HTML already."""


Child = str | int | float | None | Iterable["Child"]


def escape(text: str) -> Markup:
    """Text as HTML, fit for content and for quoted attributes. Control characters and lone surrogates are replaced."""
    writable = text.translate(CONTROLS).encode("utf-8", "replace").decode()
    return Markup(html.escape(writable, quote=True))


def render(child: Child) -> Markup:
    """A child as HTML: None is nothing, an iterable is its items one after the other."""
    if child is None:
        return Markup("")
    if isinstance(child, Markup):
        return child
    if isinstance(child, (str, int, float)):
        return escape(str(child))
    return Markup("".join(render(item) for item in child))


def h(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element. `class_` is `class`, `_` in other names is `-`; an attribute that is None or False is left out."""
    parts = []
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        key = name.rstrip("_").replace("_", "-")
        parts.append(f" {key}" if value is True else f' {key}="{escape(str(value))}"')
    start = f"<{tag}{''.join(parts)}>"
    return Markup(start if tag in VOID else f"{start}{render(children)}</{tag}>")
