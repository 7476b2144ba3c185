"""The text between tags: equal to a plain reference on random markup, linear in time on hostile markup."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.kernels import markup
from dataproc.kernels.markup import LEAST_BLOCK_BYTES, page_text

PIECES = [
    "<p>", "</p>", "<a href='x'>", "</a>", "<b>", "</b>", "<script>", "</script>", "<!--", "-->", "<!-->", "<", ">", '"', "'", "<nav>", "</nav>",
    '<p title=">">', "<br/>", "</", "<!doctype html>", "<?xml?>", " ", "\n", "word ", "a longer run of words that makes a block ", "Wörter",
    "<STYLE x>", "</sTyLe>", "<textarea>", "<x", "< y",
]  # fmt: skip
NAME = re.compile(r"[a-z0-9]{0,8}", re.IGNORECASE)


def reference(page: str) -> tuple[list[tuple[str, int]], int]:
    """([(text, bytes of link text)] of the blocks, visible bytes), in plain Python."""
    blocks: list[tuple[str, int]] = []
    text, linked, visible, in_link, i = b"", 0, 0, False, 0
    data = page.encode()

    def end_block() -> None:
        nonlocal text, linked
        if len(text) >= LEAST_BLOCK_BYTES:
            blocks.append((text.decode(), linked))
        text, linked = b"", 0

    while i < len(data):
        if data[i : i + 4] == b"<!--":
            end = data.find(b"-->", i + 2)
            i = len(data) if end < 0 else end + 3
            continue
        if data[i : i + 1] == b"<" and i + 1 < len(data):
            closes = data[i + 1 : i + 2] == b"/"
            first = i + 2 if closes else i + 1
            name = NAME.match(data[first : first + 8].decode("latin-1"))[0].lower()
            if not name and not closes and data[i + 1 : i + 2] not in (b"!", b"?"):
                text, i = text + b"<", i + 1
                continue
            i = tag_end(data, first)
            if name == "a":
                in_link = not closes
            if name not in {inline[:8] for inline in markup._INLINE}:
                if not closes and name in {skipped[:8] for skipped in markup._SKIPPED}:
                    i = next((at for at in range(i, len(data) - 2) if closing_name(data, at) == name), i)
                end_block()
            continue
        c = data[i : i + 1]
        if c > b" ":
            text, visible, linked = text + c, visible + 1, linked + in_link
        elif text and text[-1:] != b" ":
            text += b" "
        i += 1
    end_block()
    return blocks, visible


def closing_name(data: bytes, at: int) -> str | None:
    return NAME.match(data[at + 2 : at + 10].decode("latin-1"))[0].lower() if data[at : at + 2] == b"</" else None


def tag_end(data: bytes, i: int) -> int:
    while i < len(data):
        c = data[i : i + 1]
        if c == b">":
            return i + 1
        if c in (b'"', b"'") and (end := data.find(c, i + 1)) >= 0:
            i = end
        i += 1
    return len(data)


def found(page: str) -> tuple[list[tuple[str, int]], int]:
    text = page_text(page.encode())
    return [(text.text[start:stop].tobytes().decode(), linked) for start, stop, linked in text.blocks.tolist()], text.visible


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_equals_the_reference(page):
    assert found(page) == reference(page)


@given(st.binary(max_size=2000))
def test_any_bytes_give_text_inside_the_page(page):
    text = page_text(page)
    assert text.visible <= len(page)
    assert all(0 <= start < stop <= len(page) and linked <= stop - start for start, stop, linked in text.blocks.tolist())


def test_scripts_and_menus_are_passed_over_and_links_counted():
    prose = "The miller keeps the channel free of leaves and stones all the year."
    page = (
        f"<title>T</title><script>if (a < b) 'x'</script><nav>Home of the many long menus of this site, with many words</nav><p>{prose}</p>"
    )
    assert found(f"{page}<li><a href=x>{prose}</a></li>")[0] == [(prose, 0), (prose, len(prose.replace(" ", "")))]


@pytest.mark.parametrize("piece", ["<script>", "<p a='", "<p a=\"'", "<!--", "<nav", "</", "<a>", "<textarea><style>", "<"])
def test_hostile_markup_takes_linear_time(piece):
    page_text(b"<p>compiled")
    page = (piece * (4_000_000 // len(piece))).encode()
    start = time.process_time()
    page_text(page)
    assert time.process_time() - start < 2


def test_an_empty_page_has_no_text():
    text = page_text(b"")
    assert text.visible == 0 and text.blocks.shape == (0, 3) and text.text.dtype == np.uint8
