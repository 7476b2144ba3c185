"""A main text with its structure as Markdown: headings, lists, tables and code blocks, each where it is asked for.

Written from trafilatura's own tree (elements head, p, list, item, table, row, cell, code, quote, lb). Nothing in the text is escaped:
a model is to read what the page says. A structure that is not asked for leaves its words, a line each.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from lxml.etree import _Element

Structure = Literal["headings", "lists", "tables", "code"]
_BLOCKS = frozenset(("body", "div", "head", "item", "list", "p", "quote", "row", "table"))
_SPACES = re.compile(r"[^\S\n]+")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source)-([\w+#.-]{1,30})")


def to_markdown(body: _Element, structure: Collection[Structure]) -> str:
    """The text below an element; blocks stand apart by a blank line."""
    return "\n\n".join(_Writer(structure).blocks(body))


class _Writer:
    def __init__(self, structure: Collection[Structure]):
        self.structure = frozenset(structure)

    def blocks(self, element: _Element) -> list[str]:
        """The blocks inside an element: runs of inline text, and what its block children come to."""
        found: list[str] = []
        line = [element.text or ""]

        def flush() -> None:
            text = _tidy("".join(line))
            line.clear()
            if text:
                found.append(text)

        for child in element:
            if child.tag == "code" and _is_block(child):
                flush()
                found.append(self._code(child))
            elif child.tag in _BLOCKS:
                flush()
                found += self._block(child)
            else:
                line.append(self._inline(child))
            line.append(child.tail or "")
        flush()
        return [block for block in found if block]

    def _block(self, element: _Element) -> list[str]:
        if element.tag == "head":
            return [self._heading(element)]
        if element.tag == "list":
            return [self._list(element)]
        if element.tag == "table":
            return [self._table(element)]
        return self.blocks(element)

    def _inline(self, element: _Element) -> str:
        """Text of an inline element and all below it."""
        if element.tag == "lb":
            return "\n"
        text = "".join([element.text or "", *(self._inline(child) + (child.tail or "") for child in element)])
        if element.tag == "code" and "code" in self.structure and text.strip():
            mark = "`" * _longer_than("`", text, 1)
            return f"{mark} {text} {mark}" if "`" in text else f"{mark}{text}{mark}"
        return text

    def _heading(self, element: _Element) -> str:
        text = " ".join(" ".join(self.blocks(element)).split())
        level = (element.get("rend") or "h2")[1:]
        marks = "#" * (int(level) if level in "123456" and level else 2)
        return f"{marks} {text}" if text and "headings" in self.structure else text

    def _list(self, element: _Element) -> str:
        lines, number = [], 0
        for item in element:
            text = "\n".join(self.blocks(item))
            if not text:
                continue
            number += 1
            if "lists" not in self.structure:
                lines.append(text)
                continue
            mark = f"{number}. " if element.get("rend") == "ol" else "- "
            if (item.get("rend") or "").startswith("dd"):  # what a term means stands below the term
                mark = "  "
            lines.append(mark + text.replace("\n", "\n" + " " * len(mark)))
        return "\n".join(lines)

    def _table(self, element: _Element) -> str:
        rows = [[" ".join(" ".join(self.blocks(cell)).split()) for cell in row] for row in element.iter("row")]
        rows = [row for row in rows if any(row)]
        if "tables" not in self.structure or not rows:
            return "\n".join(" ".join(filter(None, row)) for row in rows)
        width = max(map(len, rows))
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row + [""] * (width - len(row))) + " |" for row in rows]
        return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])  # the first row is the head: Markdown has no table without

    def _code(self, element: _Element) -> str:
        text = "".join(_verbatim(element)).strip("\n").rstrip()
        if "code" not in self.structure or not text.strip():
            return text
        fence = "`" * _longer_than("`", text, 3)
        language = next((found[1] for part in element.iter() if (found := _LANGUAGE.search(part.get("class") or ""))), "")
        return f"{fence}{language}\n{text}\n{fence}"


def _is_block(code: _Element) -> bool:
    """Whether a code element is a block: it has several lines, or stands beside paragraphs instead of inside one."""
    parent = code.getparent()
    alone = parent is not None and parent.tag == "body" and not (code.tail or "").strip()
    return alone or any("\n" in part for part in _verbatim(code))


def _verbatim(element: _Element) -> list[str]:
    """The texts below an element as they are, line breaks as such."""
    parts = [element.text or ""]
    for child in element:
        parts += ["\n"] if child.tag == "lb" else _verbatim(child)
        parts.append(child.tail or "")
    return parts


def _longer_than(mark: str, text: str, least: int) -> int:
    """How long a run of marks must be that no run inside the text is mistaken for it."""
    return max([least, *(len(run) + 1 for run in re.findall(f"{re.escape(mark)}+", text))])


def _tidy(text: str) -> str:
    """Inline text with its spaces joined; its lines stay."""
    return "\n".join(filter(None, (_SPACES.sub(" ", line).strip() for line in text.split("\n"))))
