"""The body of an HTTP response: encodings are taken off as far as they hold."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest
from fastwarc.stream_io import BrotliWriter
from hypothesis import given
from hypothesis import strategies as st

from dataproc.sources.http import read_response
from tests.dataproc.sources.reading import http_message, warc_record

BODY = b"<html><p>The channel feeds the wheel of the mill.</p></html>" * 40


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


def brotli(data: bytes) -> bytes:
    out = io.BytesIO()
    writer = BrotliWriter(out)
    writer.write(data)
    writer.close()
    return out.getvalue()


def chunked(data: bytes, size: int = 100) -> bytes:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def read(body: bytes, *headers: str, status: str = "200 OK"):
    return read_block(http_message(body, "Content-Type: text/html", *headers, status=status))


def read_block(block: bytes):
    return read_response(warc_record("a", block).removesuffix(b"\r\n\r\n"))


ENCODERS = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli, "x-gzip": gzip.compress}


@pytest.mark.parametrize("coding", ENCODERS)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_encodings_are_taken_off(coding, is_chunked):
    body = ENCODERS[coding](BODY)
    headers = [f"Content-Encoding: {coding}"] + (["Transfer-Encoding: chunked"] if is_chunked else [])
    response = read(chunked(body) if is_chunked else body, *headers)
    assert (response.status, response.content_type, response.body) == (200, "text/html", BODY)


def test_deflate_without_its_wrapper():
    assert read(raw_deflate(BODY), "Content-Encoding: deflate").body == BODY


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_body_that_was_decoded_before_it_was_stored(coding):
    """Crawlers store the decoded page under the headers as they were sent."""
    assert read(BODY, f"Content-Encoding: {coding}").body == BODY


def test_a_body_that_says_chunked_and_is_not():
    assert read(BODY, "Transfer-Encoding: chunked").body == BODY


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_cut_body_is_kept_as_far_as_it_goes(coding):
    varied = b"".join(b"%d bottles on the wall. " % i for i in range(3000))
    whole = ENCODERS[coding](varied)
    body = read(whole[: len(whole) // 2], f"Content-Encoding: {coding}").body
    assert len(body) > len(varied) // 4 and varied.startswith(body)


def test_chunk_sizes_that_are_wrong():
    body = chunked(BODY).replace(b"64\r\n", b"63\r\n", 1)
    assert read(body, "Transfer-Encoding: chunked").body[:99] == BODY[:99]


@pytest.mark.parametrize("status, code", [("200", 200), ("404 ", 404), ("301 Moved  Permanently", 301), ("200 Très bien", 200)])
def test_status_lines(status, code):
    response = read(BODY, status=status)
    assert (response.status, response.body) == (code, BODY)


@pytest.mark.parametrize("block", [b"", b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1\r\n\r\n", b"20240518 example.org"])
def test_what_is_no_response(block):
    assert read_block(block) is None


def test_header_lines_that_go_on_and_a_head_without_headers():
    folded = read_block(b"HTTP/1.0 200 OK\nContent-Type: text/html;\n  charset=utf-8\n\nbody\n\nmore")
    assert (folded.content_type, folded.body) == ("text/html; charset=utf-8", b"body\n\nmore")
    bare = read_block(b"HTTP/1.1 200 OK\r\n\r\nbody\r\n\r\nmore")
    assert (bare.content_type, bare.body) == (None, b"body\r\n\r\nmore")
    unended = read_block(b"HTTP/1.1 200 OK\r\nContent-Type: text/html")
    assert (unended.content_type, unended.body) == ("text/html", b"")


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "br", "gzip, br", "zstd", "identity"]), st.booleans())
def test_no_body_makes_it_fail(body, coding, is_chunked):
    headers = [f"Content-Encoding: {coding}"] + (["Transfer-Encoding: chunked"] if is_chunked else [])
    assert isinstance(read(body, *headers).body, bytes)


@given(st.binary(max_size=400))
def test_no_block_makes_it_fail(block):
    response = read_block(b"HTTP/1.1 200 OK\r\n" + block)
    assert response is not None and response.status == 200
