"""The first look at URLs leaves out no row that plain Python finds, and lines of lists are read as plain Python reads them."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from dataproc.kernels.columns import TextBuffers, text_buffers
from dataproc.kernels.urls import gathered, hash_table, hashes, list_lines, may_be_listed, may_hold_words, places, word_table
from dataproc.urls import parse

DOMAINS = ["bad.example", "b.c", "xn--bcher-kva.example", "a-rather-long-name-of-a-host.example.org"]
PIECE = st.sampled_from(
    ["http://", "HTTPS://", "//", "bad", ".example", "b.c", "B.C", "www.", "a-rather-long-name-of-a-host.example.org", "bücher", "ü", ".", "/", ":80",
     ":", "@", "?", "#", "%62", "\\", "\t", " ", "x", "1", "_", "-", "xn--bcher-kva"]
)  # fmt: skip
URLS = st.lists(st.lists(PIECE, max_size=7).map("".join), min_size=1, max_size=5)


def buffers(texts: list[str]) -> TextBuffers:
    return text_buffers(pa.array(texts, pa.string()))


def below(host: str) -> bool:
    return any(host == domain or host.endswith("." + domain) for domain in DOMAINS)


@given(URLS)
@example(["http://bad.example", "https://x.BAD.example.:80/", "http://" + "a." * 200 + "bad.example", "http://notbad.example"])
def test_every_host_below_a_listed_domain_is_found(urls):
    found = may_be_listed(buffers(urls), hash_table(np.sort(hashes(buffers(DOMAINS)))))
    assert all(found[row] for row, url in enumerate(urls) if below(parse(url).host))


def test_plain_hosts_that_are_not_listed_are_passed_over():
    urls = ["http://good.example/", "https://Bad.example.org:8080/x?y#z", "http://notbad.example", "http://a_b.xn--p1ai?q", ""]
    assert not may_be_listed(buffers(urls), hash_table(np.sort(hashes(buffers(DOMAINS))))).any()


@given(URLS)
@example(["http://x.example/BAD", "http://x.example/bad1", "bad", ""])
def test_every_url_with_a_word_is_found_and_no_plain_one_without(urls):
    found = may_hold_words(buffers(urls), word_table(hashes(buffers(["bad", "c", "example", "1"]))))
    for row, url in enumerate(urls):
        holds = not {"bad", "c", "example", "1"}.isdisjoint(re.findall("[a-z0-9]+", url.lower()))
        assert found[row] == (holds or "%" in url or not url.isascii())


@given(
    st.lists(
        st.sampled_from(
            ["a.b", "www.c.d", "0.0.0.0 e.f", "127.0.0.1 g", "# x", "", "A.b", "h.i # x", "1.2.3.4", "j/k", "l.", "www.", "ü.m"]
        )
    )
)
def test_lines_of_a_list(lines):
    plain = {"a.b": "a.b", "www.c.d": "c.d", "0.0.0.0 e.f": "e.f", "127.0.0.1 g": "g", "l.": "l", "www.": "www"}
    for end in ("\n", "\r\n"):
        raw = end.join(lines).encode()
        data = np.frombuffer(raw, np.uint8)
        starts, ends = list_lines(data)
        domains = (starts >= 0) & (starts < ends)
        texts = gathered(data, starts[domains], ends[domains])
        read = [texts.data[a:b].tobytes().decode() for a, b in zip(texts.offsets[:-1], texts.offsets[1:], strict=True)]
        assert read == [plain[line] for line in lines if line in plain]
        closer = [raw[-1 - start : end_].decode() for start, end_ in zip(starts, ends, strict=True) if start < 0]
        assert closer == [line for line in lines if line in {"A.b", "h.i # x", "1.2.3.4", "j/k", "ü.m"}]


@given(st.sets(st.text("ab.", min_size=1, max_size=4), max_size=40))
def test_a_text_is_found_where_its_hash_stands(texts):
    ordered = sorted(texts)
    keys = hashes(buffers(ordered))
    order = np.argsort(keys)
    table = hash_table(keys[order])
    for number, text in enumerate(ordered):
        assert number in order[list(places(text.encode(), table))]
    assert list(places(b"not among them", table)) == []
