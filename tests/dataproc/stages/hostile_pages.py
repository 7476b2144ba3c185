"""Generated pages that hurt parsers, each another one by its number; every so often an ordinary page, which must come out whole."""

from __future__ import annotations

import random

SMALL, LARGE = 4_000, 1_000_000
PROSE = b"<p>The water that turns the wheel comes down a channel which the miller keeps free of leaves and stones all year round.</p>"
TAGS = (
    b"div",
    b"span",
    b"b",
    b"font",
    b"a",
    b"table",
    b"ul",
    b"li",
    b"blockquote",
    b"p",
    b"form",
    b"select",
    b"svg",
    b"math",
    b"template",
    b"frameset",
)


def neighbour(number: int) -> bytes:
    """An ordinary page that names its number."""
    return b"<html><head><title>Mill</title></head><body><article><p>Mill %d.</p>%s</article></body></html>" % (number, PROSE * 4)


def hostile(number: int, largest: int = LARGE) -> bytes:
    """The number-th page: one of the kinds below, of a size that mostly is small and now and then up to `largest` bytes."""
    chance = random.Random(number)
    size = chance.randrange(1, SMALL) if chance.random() < 0.9 else chance.randrange(SMALL, largest)
    return chance.choice(KINDS)(chance, size)


def _nested(chance: random.Random, size: int) -> bytes:
    tag = b"<" + chance.choice(TAGS) + b">"
    return b"<html><body>" + tag * (size // len(tag)) + b"deep" + b"</div>" * chance.randrange(10)


def _one_line(chance: random.Random, size: int) -> bytes:
    return b"<html><body><p>" + chance.choice((b"a", b"word ", b"\xd0\xb2", b"\xff")) * (size // 2)


def _attributes(chance: random.Random, size: int) -> bytes:
    if chance.random() < 0.5:
        return b"<html><body><p " + b" ".join(b"a%d='%d'" % (i, i) for i in range(size // 12)) + b">text</p>"
    return b"<html><body><p title='" + b"x" * size + chance.choice((b"'>", b"", b'">')) + b"text"


def _entities(chance: random.Random, size: int) -> bytes:
    entity = chance.choice((b"&amp;", b"&#xD800;", b"&#99999999999;", b"&nosuch", b"&" * 8, b"&#0;", b"&lt;script&gt;", b"&NotEqualTilde;"))
    return b"<html><body><p>" + entity * (size // len(entity))


def _binary(chance: random.Random, size: int) -> bytes:
    head = chance.choice((b"", b"<html>", b"<html><body>", b"\x89PNG\r\n\x1a\n", b"%PDF-1.4", b"\xff\xfe", b"\0\0\xfe\xff", b"\x1b$B"))
    return head + chance.randbytes(size)


def _unclosed(chance: random.Random, size: int) -> bytes:
    piece = chance.choice(
        (b"<!--", b"<p a='", b'<p a="', b"<![CDATA[", b"<script>", b"<?php ", b"<style>", b"<textarea>", b"<title>", b"<meta ", b"</")
    )
    return b"<html><body>" + piece * (size // len(piece))


def _soup(chance: random.Random, size: int) -> bytes:
    pieces = (
        [b"<" + t + b">" for t in TAGS] + [b"</" + t + b">" for t in TAGS] + [b"text ", b"<", b"&", b'"', b"\0", b"\xed\xa0\x80", PROSE]
    )
    return b"<html><body>" + b"".join(chance.choices(pieces, k=max(1, size // 8)))


def _declared_wrongly(chance: random.Random, size: int) -> bytes:
    label = chance.choice((b"utf-16", b"utf-7", b"idna", b"no-such-set", b"hz", b"iso-2022-jp", b"rot13", b"\xff"))
    return b"<html><head><meta charset='" + label + b"'></head><body>" + chance.randbytes(min(size, 20_000)) + PROSE


KINDS = (_nested, _one_line, _attributes, _entities, _binary, _unclosed, _soup, _declared_wrongly)
