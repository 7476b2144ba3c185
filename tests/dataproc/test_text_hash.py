"""The hash of a text is that of its normal form, however it is computed."""

from __future__ import annotations

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.text_hash import content_hashes, normalise

PIECES = st.sampled_from(
    [
        *map(chr, range(34)),
        "a",
        "b",
        "\x7f",
        "é",
        "e\u0301",
        "\u00a0",
        "\u2000",
        "\u2019",
        "\u3000",
        "\x85",
        "漢",
        "\u1100\u1161",
        "\u212b",
        "  ",
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=40, alphabet=st.characters(exclude_categories=["Cs"])))


@given(st.lists(TEXTS, max_size=5), st.integers(0, 2), st.sampled_from([pa.string(), pa.large_string()]))
@settings(deadline=None)
def test_hashes_are_those_of_the_normal_forms(texts, skipped, kind):
    column = pa.array(texts, kind).slice(skipped)
    assert content_hashes(column).to_pylist() == [xxhash.xxh3_128_hexdigest(normalise(text).encode()) for text in texts[skipped:]]


@given(TEXTS)
@settings(deadline=None)
def test_white_space_and_composition_make_no_difference(text):
    one, other, third = content_hashes(pa.array([text, normalise(text), f"\n {text}\t"])).to_pylist()
    assert one == other == third


def test_invalid_utf8_is_refused():
    column = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff"))
    with pytest.raises(ValueError, match="row 0"):
        content_hashes(column)
