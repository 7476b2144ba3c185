"""Tables of the page: a caption, typed columns, rows in a box that scrolls by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dataproc.report.markup import Child, Markup, h
from dataproc.report.numbers import whole

TALL = 14  # rows beyond which a table scrolls in its box


@dataclass(frozen=True)
class Column:
    """`numeric` columns are aligned right and sorted by value; the first column heads its row."""

    title: str
    numeric: bool = False


@dataclass(frozen=True)
class Cell:
    """What a cell shows and, in a numeric column, the number it is sorted by."""

    shown: Child
    value: int | float | None = None


def count(number: int) -> Cell:
    return Cell(whole(number), number)


def cell(content: Any) -> Cell:
    """An integer as a count, a text (or nothing) as itself."""
    if isinstance(content, Cell):
        return content
    return count(content) if isinstance(content, int) else Cell(content)


def name(text: str | None, missing: str) -> Markup:
    """A name out of the data, in its own writing direction; a grey word where there is none."""
    return h("span", missing, class_="note") if text is None else h("bdi", text)


def breakable(text: str) -> Markup:
    """A dotted or underscored name that may be broken after its parts."""
    return h("span", [(part, h("wbr")) for part in re.split(r"(?<=[._])", text)])


def table(caption: Child, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> Markup:
    """A sortable table. Cells are `Cell`s, integers (shown as counts) or texts."""
    head = h("tr", [h("th", c.title, scope="col", class_="num" if c.numeric else "word") for c in columns])
    body = [h("tr", [_cell(i, c, cell(x)) for i, (c, x) in enumerate(zip(columns, row, strict=True))]) for row in rows]
    content = h("table", h("caption", caption), h("thead", head), h("tbody", body), data_sort=True)
    return box(content, len(rows) > TALL, str(columns[0].title))


def box(content: Markup, tall: bool, label: str) -> Markup:
    """A box that scrolls by itself, by keyboard too."""
    return h("div", content, class_="box tall" if tall else "box", tabindex=0, role="region", aria_label=f"Table: {label}")


def _cell(position: int, column: Column, content: Cell) -> Markup:
    kind = "num" if column.numeric else "word"
    if position == 0:
        return h("th", content.shown, scope="row", class_=kind)
    return h("td", content.shown, class_=kind, data_v=content.value)


def bar(parts: Sequence[tuple[str, int | float]], total: int | float) -> Markup:
    """A bar of coloured parts, each (class, amount) of `total`; the same figures stand beside it as text."""
    drawn = [h("i", class_=kind, style=f"width:{100 * amount / total:.3g}%") for kind, amount in parts if amount] if total else []
    return h("div", drawn, class_="bar", aria_hidden="true")
