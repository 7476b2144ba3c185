"""Signatures against datasketch over the same shingle hashes, shingles against a plain definition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.kernels import unicode as u
from dataproc.kernels.minhash import MinHasher, shingle_hashes

PIECES = st.sampled_from(
    [
        "The ",
        "mill ",
        "wheel",
        ", ",
        "turns\n",
        "漢字",
        "カタカナ",
        "é",
        "e\u0301 ",
        "ŠĐ ",
        "123 ",
        "_",
        "ส",
        "\u0e31",
        "x" * 300 + " ",
        "Ж" * 200,
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(st.characters(exclude_categories=["Cs"]), max_size=40))


def split(text: str) -> list[str]:
    """Words of a shingle, by the definition."""
    words, current, alone = [], "", False
    for character in text + " ":
        bits = u.code_class(character)
        inside = bits & (u.ALPHA | u.DIGIT | u.MARK)
        if current and (not inside or bits & u.UNSPACED or (alone and not bits & u.MARK)):
            words.append(current)
            current, alone = "", False
        if inside:
            current += u.simple_lower(character)
            alone = alone or bool(bits & u.UNSPACED)
    return words


@given(TEXTS, TEXTS, st.integers(1, 6))
@settings(max_examples=300)
def test_shingles_are_equal_where_their_words_are(first, second, n):
    def shingles(text):
        words = split(text)
        return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)] or ([tuple(words)] if words else [])

    hashes = dict(zip(shingles(first) + shingles(second), [*shingle_hashes(first, n), *shingle_hashes(second, n)], strict=True))
    assert len(shingle_hashes(first, n)) == len(shingles(first))
    assert len(set(hashes.values())) == len(hashes)
    for text in (first, second):
        assert [hashes[gram] for gram in shingles(text)] == list(shingle_hashes(text, n))


@given(
    st.lists(TEXTS, min_size=1, max_size=4),
    st.sampled_from(["affine32", "affine64"]),
    st.integers(1, 6),
    st.integers(1, 130),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=100)
def test_signatures_are_those_of_datasketch(texts, scheme, n, permutations, seed):
    got = MinHasher(permutations, n, scheme, seed).signatures(pa.array(texts))
    for row, text in enumerate(texts):
        hashes = shingle_hashes(text, n)
        values = [int(h) if scheme == "affine64" else int(h) >> 32 for h in hashes]
        oracle = MinHash(permutations, seed=seed, hashfunc=lambda value: value, scheme=scheme)
        if values:
            oracle.update_batch(values)
        assert (got[row] == oracle.hashvalues).all()


def test_a_long_text_goes_through_in_blocks_with_the_same_signature():
    text = " ".join(f"word{i}" for i in range(5000))
    oracle = MinHash(112, hashfunc=lambda value: value, scheme="affine32")
    oracle.update_batch([int(h) >> 32 for h in shingle_hashes(text)])
    assert (MinHasher().signatures(pa.array([text]))[0] == oracle.hashvalues).all()


@pytest.mark.parametrize("words", [1023, 1024, 1025, 1027, 1028, 1029, 2052])
def test_texts_that_end_where_a_block_ends(words):
    text = " ".join(f"word{i}" for i in range(words))
    oracle = MinHash(8, hashfunc=lambda value: value, scheme="affine32")
    oracle.update_batch([int(h) >> 32 for h in shingle_hashes(text)])
    assert (MinHasher(8).signatures(pa.array([text]))[0] == oracle.hashvalues).all()


def test_a_test_vector():
    """Pinned: signatures are stored with versions, so the same text must have the same one for ever."""
    signature = MinHasher(4).signatures(pa.array(["The miller's wheel turns all day long."]))[0]
    assert signature.tolist() == VECTOR


VECTOR = [283650069, 367993818, 778930569, 101843239]


def test_nulls_slices_and_chunks():
    texts = ["one two three four five six", None, "", "seven eight nine ten eleven twelve"]
    whole = pa.array(texts, pa.large_string())
    alone = np.concatenate([MinHasher().signatures(pa.array([text or ""])) for text in texts])
    assert (MinHasher().signatures(pa.chunked_array([whole.slice(0, 1), whole.slice(1, 3)])) == alone).all()
    assert (MinHasher().signatures(whole.slice(2, 2)) == alone[2:]).all()
    assert (alone[1] == np.iinfo(np.uint32).max).all()


def test_invalid_utf8_is_refused_with_its_row():
    column = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 2, 4], np.int32)), pa.py_buffer(b"okn\xff"))
    with pytest.raises(ValueError, match="row 1 is not valid UTF-8"):
        MinHasher().signatures(column)
