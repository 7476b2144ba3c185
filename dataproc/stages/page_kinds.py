"""Which payloads are pages: by what their source says of them, and by their first bytes, which often know better."""

from __future__ import annotations

import codecs
import re
from typing import Literal

from dataproc.charset_guess import wide_encoding

HTML_TYPES = frozenset(("text/html", "application/xhtml+xml", "application/xml", "text/xml", "application/xhtml"))
_HTML_MARKS = (b"<!doctype html", b"<html", b"<head", b"<body")
# First bytes of formats that servers send as HTML, or without a type (https://mimesniff.spec.whatwg.org, section 6).
_MAGIC = {
    b"%PDF-": "application/pdf",
    b"\x89PNG\r\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b\x08": "application/gzip",
    b"Rar!\x1a\x07": "application/x-rar-compressed",
    b"7z\xbc\xaf\x27\x1c": "application/x-7z-compressed",
    b"\x28\xb5\x2f\xfd": "application/zstd",
    b"ID3": "audio/mpeg",
    b"OggS": "application/ogg",
    b"\x7fELF": "application/x-executable",
    b"wOFF": "font/woff",
    b"wOF2": "font/woff2",
    b"%!PS": "application/postscript",
}
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)  # UTF-32-LE's begins with UTF-16-LE's
_HEAD_BYTES = 4096
# Control characters that no text has; ESC, SO and SI are the shifts of ISO-2022, NUL stands alone in broken pages.
_CONTROLS = re.compile(rb"[\x01-\x08\x10-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROLS = 0.05


def page_kind(payload: bytes, content_type: str | None) -> Literal["html", "text", None]:
    """Whether a payload is a page, plain text, or neither. A page may come without a usable type."""
    if content_type in HTML_TYPES:
        return "html"
    if content_type in (None, "text/plain", "application/octet-stream") and looks_like_html(payload):
        return "html"
    return "text" if content_type == "text/plain" else None


def looks_like_html(payload: bytes) -> bool:
    """Whether the start of a payload is HTML, in UTF-16 too."""
    head = payload[:1024].replace(b"\0", b"").lower()
    return any(mark in head for mark in _HTML_MARKS)


def binary_kind(payload: bytes) -> str | None:
    """What a payload that says it is a page really is: a type, `binary` for one unknown, None for what may be text."""
    found = next((kind for magic, kind in _MAGIC.items() if payload.startswith(magic)), None)
    if found or payload.startswith(_MARKS):
        return found
    head = payload[:_HEAD_BYTES]
    controls = len(_CONTROLS.findall(head)) + (head.count(0) if 2 * head.count(0) > len(head) and not looks_like_html(payload) else 0)
    return "binary" if controls > _MOST_CONTROLS * len(head) and wide_encoding(payload) is None else None
