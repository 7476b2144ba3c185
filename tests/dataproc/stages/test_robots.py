"""What a page asks of robots, in its head and in its headers."""

from __future__ import annotations

import pytest

from dataproc.sources.http import read_response
from dataproc.stages.robots import refused_by

ALL = {"noindex", "noai"}


@pytest.mark.parametrize(
    ("head", "directive"),
    [
        ("<meta name='robots' content='noindex'>", "noindex"),
        ('<META CONTENT="NOFOLLOW, NoAI" NAME="ROBOTS">', "noai"),
        ("<meta name=googlebot content=noindex>", "noindex"),
        ("<meta name=GPTBot content='none'>", "noindex"),
        ("<meta name='otherbot' content='noindex'>", None),
        ("<meta name='robots' content='index, follow, noarchive'>", None),
        ("<!-- <meta name='robots' content='noindex'> --><p>", None),
        ("<meta name='description' content='noindex'>", None),
        ("", None),
    ],
)
def test_meta_elements(head, directive):
    found = refused_by(ALL, f"<html><head>{head}</head>".encode(), None)
    assert found == (directive and {"directive": directive, "where": "meta"})


def test_pages_in_utf_16_are_read():
    assert refused_by(ALL, "<meta name='robots' content='noindex'>".encode("utf-16-le"), None)


@pytest.mark.parametrize(
    ("header", "directive"),
    [
        ("noindex", "noindex"),
        ("NoAI, noimageai", "noai"),
        ("otherbot: noindex, nofollow", None),
        ("otherbot: noindex\nnoai", "noai"),
        ("googlebot: nofollow, noindex", "noindex"),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST, noindex", "noindex"),
        ("max-snippet: 5", None),
        ("", None),
        (None, None),
    ],
)
def test_headers(header, directive):
    assert refused_by(ALL, b"<html>", header) == (directive and {"directive": directive, "where": "header"})


def test_each_header_of_a_response_is_read():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Robots-Tag: otherbot: noindex\r\nx-robots-tag: noai\r\n\r\n<html>"
    response = read_response(b"WARC/1.0\r\nWARC-Type: response\r\n\r\n" + head)
    assert response.robots == "otherbot: noindex\nnoai" and response.body == b"<html>"
