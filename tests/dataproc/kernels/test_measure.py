"""The kernels against the plain definitions, on text made to be awkward and on real text, however the column is cut."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.kernels import scratch
from dataproc.kernels.counts import (
    COMPRESSION,
    DISTINCT,
    EVERYTHING,
    LINE_COPIES,
    PARAGRAPH_COPIES,
    PHRASES,
    REPEATS,
    SENTENCES,
    SHAPES,
    STOPS,
    Count,
)
from dataproc.kernels.lists import BULLETS, CLOSERS, POLICY_PHRASES, STOP_WORDS, STRIPPED, TERMINALS
from dataproc.kernels.measure import Measurer
from tests.dataproc.kernels import reference

# Text of few pieces, so that words, lines and phrases recur, with all the characters that a signal looks at, and any other.
PIECES = st.sampled_from(
    [" ", " ", "\n", "\n\n", "\t", "\u3000", "\x85", "\r\n", "a", "b", "The", "and", "of", "…", "...", "..", "#", "{", "}", "http://", "HTTPS://", "www.",
     "Lorem ipsum", "漢", "字", "カタ", "か", "\u0e2a\u0e27\u0e31\u0e2a", "é", "e\u0301", "Ünï", "ß", "İ", "\u0661", "५", "한국", "привет", "🙂", "\U0001d400",
     "\u200d", "\ufe0f", "-", "*", "und", "der", "xyzzy" * 3, *POLICY_PHRASES, *BULLETS, *CLOSERS, *TERMINALS, *STRIPPED]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(st.characters(exclude_categories=["Cs"]), max_size=60))


# The counts that are made for each flag alone.
COUNTED_FOR = {
    DISTINCT: "DISTINCT_WORDS",
    LINE_COPIES: "(DUPLICATE|COPIED)_LINE.*",
    PARAGRAPH_COPIES: "(DUPLICATE|COPIED)_PARAGRAPH.*",
    SENTENCES: "SENTENCES",
    STOPS: ".*STOP_WORD.*",
    COMPRESSION: "COMPRESSED",
    PHRASES: "LOREM_IPSUM|POLICY_PHRASES",
    SHAPES: "(ALPHABETIC|SYMBOL|NON_SYMBOL)_WORD.*|LONGEST_WORD|TWICE_MEDIAN_WORD",
    REPEATS: r"TOP_\d.*|(DUPLICATE|ALL)_\d.*|LONGEST_REPEAT",
}


@pytest.fixture(scope="module")
def measurer() -> Measurer:
    return Measurer()


def assert_counts(measurer: Measurer, texts: list[str], languages: list[str | None] | None = None) -> None:
    counted = measurer.count(pa.array(texts, pa.large_string()), languages, EVERYTHING)
    for row, text in enumerate(texts):
        expected = reference.count(text, languages[row] if languages else None)
        got = {count.name: int(counted.counts[row, count]) for count in Count}
        assert got == expected, {k: (got[k], expected[k]) for k in got if got[k] != expected[k]}
        assert counted.entropy[row] == reference.entropy(text)


@given(st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_counts_are_those_of_the_definitions(measurer, texts):
    assert_counts(measurer, texts)


@given(TEXTS, st.sampled_from([*STOP_WORDS, "xx"]))
@settings(max_examples=100, deadline=None)
def test_stop_words_are_those_of_the_language(measurer, text, language):
    spiced = f"{text} {' '.join(STOP_WORDS.get(language, ()))} {' '.join(STOP_WORDS.get(language, ())).title()}"
    assert_counts(measurer, [spiced], [language])


@given(st.lists(st.sampled_from("abc"), max_size=80).map(" ".join))
@settings(max_examples=200, deadline=None)
def test_repeated_ngrams(measurer, text):
    assert_counts(measurer, [text])


@given(
    st.lists(st.one_of(st.none(), TEXTS), min_size=1, max_size=8),
    st.integers(0, 7),
    st.integers(0, 7),
    st.sampled_from([pa.string(), pa.large_string()]),
)
@settings(max_examples=100, deadline=None)
def test_nulls_slices_and_chunks(measurer, texts, cut, more, kind):
    whole = pa.array(texts, kind)
    chunked = pa.chunked_array([whole.slice(0, cut), whole.slice(cut, more), whole.slice(min(len(whole), cut + more))], kind)
    assert chunked.to_pylist() == texts
    alone = np.array([measurer.count(pa.array([text or ""]), None, EVERYTHING).counts[0] for text in texts])
    counted = measurer.count(chunked, None, EVERYTHING)
    assert (counted.counts == alone).all()
    assert counted.null.tolist() == [text is None for text in texts]
    assert (measurer.count(whole.slice(cut, more), None, EVERYTHING).counts == alone[cut : cut + more]).all()


def test_an_empty_column(measurer):
    assert measurer.count(pa.array([], pa.string()), None, EVERYTHING).counts.shape == (0, len(Count))
    assert measurer.count(pa.chunked_array([], pa.string()), None, EVERYTHING).counts.shape == (0, len(Count))


@pytest.mark.parametrize(
    "damage", [b"\xff", b"ab\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"a \xf0\x9f\x99 b", b"\x80"]
)
def test_invalid_utf8_is_refused_with_its_row(measurer, damage):
    buffers = [None, pa.py_buffer(np.array([0, 2, 2 + len(damage)], np.int32)), pa.py_buffer(b"ok" + damage)]
    with pytest.raises(ValueError, match="row 1 is not valid UTF-8"):
        measurer.count(pa.StringArray.from_buffers(2, buffers[1], buffers[2]), None, EVERYTHING)


def test_real_text(measurer, shared_data):
    with gzip.open(shared_data / "corpus_sample" / "text-00000.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"][:20_000] for _, line in zip(range(150), stream, strict=False)]
    assert_counts(measurer, texts)


def test_every_language(measurer, shared_data):
    with gzip.open(shared_data / "lid" / "udhr_articles.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line in stream]
    assert_counts(measurer, texts[:: max(1, len(texts) // 400)])


def test_arrays_grow_to_a_large_document_and_back():
    measurer = Measurer()
    measurer.sizes = scratch.Sizes(words=16, groups=8, lines=2, paragraphs=2)
    measurer.scratch = scratch.make_scratch(measurer.sizes)
    long = "x" * 70_000
    text = "\n\n".join(f"word{i} word{i % 7} {long}{i % 3}" for i in range(9))
    assert_counts(measurer, [text, text + " tail"])
    assert measurer.sizes == scratch.Sizes()


@pytest.fixture(scope="module")
def in_parts() -> Measurer:
    """Takes every document of a few bytes for a giant, whose tables are so small that it takes many parts."""
    return Measurer(giant=3, giant_sizes=lambda size: scratch.Sizes(size // 2 + 1, 4, 2, 2, size // 255 + 1, size // 2 + 1))


@given(st.lists(st.one_of(TEXTS, st.lists(st.sampled_from("abc"), max_size=80).map(" ".join)), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_giants_are_counted_alike(in_parts, texts):
    assert_counts(in_parts, texts)


def test_giants_of_real_text(in_parts, shared_data):
    with gzip.open(shared_data / "corpus_sample" / "text-00000.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"][:3_000] for _, line in zip(range(30), stream, strict=False)]
    long = ["x" * size for size in (254, 255, 256, 700)]
    assert_counts(in_parts, [*texts, "\n\n".join(long + long), " ".join([*long, "a", *long[1:]])])


def test_a_giant_that_is_not_valid_is_refused(in_parts):
    column = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 8, 20], np.int32)), pa.py_buffer(b"ok ok ok" + b"a b c d e f\xff"))
    with pytest.raises(ValueError, match="row 1 is not valid UTF-8"):
        in_parts.count(column, None, EVERYTHING)


def test_stamps_wrap(measurer):
    text = "a b c a b c d"
    measurer.scratch.bases[:3] = (1 << 31) + 1
    measurer.scratch.table[:] = 1 << 31
    assert_counts(measurer, [text, text])


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=3), st.integers(0, EVERYTHING))
def test_what_is_not_wanted_changes_nothing_else(measurer, texts, wanted):
    wanted |= DISTINCT if wanted & REPEATS & ~DISTINCT else 0
    whole, part = (measurer.count(pa.array(texts, pa.string()), None, flags) for flags in (EVERYTHING, wanted))
    for flag, names in COUNTED_FOR.items():
        columns = [count for count in Count if re.fullmatch(names, count.name)]
        assert columns
        if wanted & flag != flag:
            assert not part.counts[:, columns].any(), names
            part.counts[:, columns] = whole.counts[:, columns]
    assert (part.counts == whole.counts).all()
    assert (part.entropy == (whole.entropy if wanted & DISTINCT else 0)).all()
