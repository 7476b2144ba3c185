"""The HTTP message in a WARC response: status, type and decoded body, read as far as it can be."""

from __future__ import annotations

import io
import re
import zlib
from dataclasses import dataclass

from fastwarc.warc import ArchiveIterator

_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?:[ \t][^\r\n]*)?\r*\n")
_HEADER_END = re.compile(rb"\r*\n\r*\n")


@dataclass(frozen=True)
class Response:
    """An HTTP response with its transfer and content encodings taken off."""

    status: int | None
    content_type: str | None  # as stated, with parameters
    body: bytes


def read_response(data: bytes) -> Response | None:
    """Reads the response in a WARC record's bytes; None when the record holds no HTTP message (a DNS answer, for example).

    FastWARC reads it; where it finds no status (no reason phrase) or cannot decode the body, the parts are read leniently here.
    """
    block = data[_HEADER_END.search(data).end() :]
    line = _STATUS_LINE.match(block)
    if line is None:
        return None
    try:
        record = next(ArchiveIterator(io.BytesIO(data), parse_http=True, auto_decode="all", stream_detect=False, quirks_mode=True))
        headers = record.http_headers
        if headers is not None and headers.status_code:
            return Response(int(headers.status_code), headers.get("Content-Type"), record.reader.read())
    except (OSError, ValueError, StopIteration):
        return _lenient(int(line[1]), block[line.end() :])
    return _lenient(int(line[1]), block[line.end() :])


def _lenient(status: int, rest: bytes) -> Response:
    end = _HEADER_END.search(rest)
    head, body = (rest[: end.start()], rest[end.end() :]) if end else (rest, b"")
    headers = {}
    for line in head.decode("latin-1").splitlines():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _dechunk(body)
    if headers.get("content-encoding", "").lower() in ("gzip", "x-gzip", "deflate"):
        body = _inflate(body)
    return Response(status, headers.get("content-type"), body)


def _dechunk(body: bytes) -> bytes:
    """The chunks as far as their sizes hold; a body that does not begin with a size is taken as it is."""
    parts, position = [], 0
    while size := re.compile(rb"([0-9a-fA-F]+)[^\r\n]*\r?\n").match(body, position):
        count = int(size[1], 16)
        if not count:
            break
        parts.append(body[size.end() : size.end() + count])
        position = size.end() + count
        if body[position : position + 2] == b"\r\n":
            position += 2
    return b"".join(parts) if parts else body


def _inflate(body: bytes) -> bytes:
    """What can be inflated of a gzip, zlib or raw deflate body; the body itself when nothing can."""
    for window_bits in (47, -15):
        out, inflate = b"", zlib.decompressobj(window_bits)
        for start in range(0, len(body), 1024):
            try:
                out += inflate.decompress(body[start : start + 1024])
            except zlib.error:
                break
        if out:
            return out
    return body
