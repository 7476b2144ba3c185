"""The HTTP message in a WARC response: status, type and decoded body, read as far as it can be."""

from __future__ import annotations

import io
import re
import zlib
from dataclasses import dataclass

from fastwarc.stream_io import BrotliReader
from fastwarc.warc import ArchiveIterator

from dataproc.sources.streams import MOST_RECORD_BYTES

_MOST_READ = MOST_RECORD_BYTES + 1  # one byte more tells that the body goes on
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?:[ \t][^\r\n]*)?\r*\n")
_HEADER_END = re.compile(rb"\r*\n\r*\n")
_ROBOTS = "x-robots-tag"
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,16})[^\r\n]*\r?\n")


@dataclass(frozen=True)
class Response:
    """An HTTP response with its transfer and content encodings taken off; a body over MOST_RECORD_BYTES is cut right after them."""

    status: int | None
    content_type: str | None  # as stated, with parameters
    body: bytes
    robots: str | None = None  # what X-Robots-Tag says, a line a header


def read_response(data: bytes) -> Response | None:
    """Reads the response in a WARC record's bytes; None when the record holds no HTTP message (a DNS answer, for example).

    FastWARC takes encodings off; where it cannot (a status without a reason phrase, a damaged body), that is done leniently here.
    """
    start = _HEADER_END.search(data).end()
    line = _STATUS_LINE.match(data, start)
    if line is None:
        return None
    end = _HEADER_END.search(data, line.end() - 1)
    headers = _headers(data[line.end() : end.start() if end else len(data)])
    status, content_type, robots = int(line[1]), headers.get("content-type"), headers.get(_ROBOTS)
    if end and ("transfer-encoding" in headers or "content-encoding" in headers):
        body = _decoded_by_fastwarc(data)
        return Response(status, content_type, _decoded(data[end.end() :], headers) if body is None else body, robots)
    return Response(status, content_type, data[end.end() :] if end else b"", robots)


def _headers(head: bytes) -> dict[str, str]:
    """Headers by their names in lower case; of several with one name the last counts, but each X-Robots-Tag is a line."""
    headers: dict[str, str] = {}
    name = ""
    for line in head.decode("latin-1").split("\n"):
        if line[:1] in (" ", "\t") and name:  # the value goes on (RFC 9112, section 5.2)
            headers[name] += " " + line.strip()
            continue
        name, _, value = line.partition(":")
        name = name.strip().lower()
        earlier = headers.get(name) if name == _ROBOTS else None
        headers[name] = f"{earlier}\n{value.strip()}" if earlier else value.strip()
    return headers


def _decoded_by_fastwarc(data: bytes) -> bytes | None:
    try:
        record = next(ArchiveIterator(io.BytesIO(data), parse_http=True, auto_decode="all", stream_detect=False, quirks_mode=True), None)
        parsed = record is not None and record.http_headers is not None and record.http_headers.status_code
        return record.reader.read(_MOST_READ) if parsed else None
    except (OSError, ValueError):
        return None


def _decoded(body: bytes, headers: dict[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _dechunk(body)
    for coding in reversed(headers.get("content-encoding", "").lower().split(",")):
        decoder = _DECODERS.get(coding.strip())
        body = decoder(body) if decoder else body
    return body


def _dechunk(body: bytes) -> bytes:
    """The chunks as far as their sizes hold; a body that does not begin with a size is taken as it is."""
    parts, position = [], 0
    while size := _CHUNK_SIZE.match(body, position):
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
        parts, size, inflate = [], 0, zlib.decompressobj(window_bits)
        for start in range(0, len(body), 1024):
            try:
                parts.append(inflate.decompress(body[start : start + 1024]))
            except zlib.error:
                break
            size += len(parts[-1])
            if size >= _MOST_READ:
                break
        if size:
            return b"".join(parts)[:_MOST_READ]
    return body


def _unbrotli(body: bytes) -> bytes:
    """What can be decompressed of a Brotli body; the body itself when nothing can."""
    reader, parts, size = BrotliReader(io.BytesIO(body)), [], 0
    try:
        while size < _MOST_READ and (part := reader.read(1024)):
            parts.append(part)
            size += len(part)
    except OSError:
        return b"".join(parts) or body
    return b"".join(parts) or body


_DECODERS = {"gzip": _inflate, "x-gzip": _inflate, "deflate": _inflate, "br": _unbrotli}
