"""Order on the buffers is what a few regular expressions say, and no text that needs mending is overlooked."""

from __future__ import annotations

import re
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.kernels.tidy import CONTROLS, SPACES, suspicious, tidied
from dataproc.stages.clean import ALONE, ALWAYS, PAIRED, mend

PIECES = st.sampled_from(
    [" ", "  ", "\t", "\n", "\n\n\n", "\r", "\r\n", "\x0b", "\x85", "\u2028", "\xa0", "\u2003", "\u3000", "\x00", "\x07", "\ufeff", "\x7f", "\x1c", "a", "b c", "é",
     "漢", "🙂", "\u1680", "\ufdd0", "\uffff", ".", "Ã©", "&amp;", "&;", "&#12;", "& ", "e\u0301", "ﬁ", "’", "“—", "\u1100\u1161", "ك", "œ", "œu"]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(st.characters(exclude_categories=["Cs"]), max_size=40))


def reference(text: str) -> str:
    text = re.sub("\r\n|[\r\x0b\x0c\x85\u2028\u2029]", "\n", text)
    text = re.sub(f"[{SPACES}]", " ", CONTROLS.sub("", text))
    text = re.sub(r"[ \t]+(?=\n|$)", "", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


@given(st.lists(TEXTS, min_size=1, max_size=5))
@settings(max_examples=300)
def test_order_is_what_the_expressions_say(texts):
    assert tidied(pa.array(texts)).to_pylist() == [reference(text) for text in texts]


@given(st.lists(TEXTS, min_size=1, max_size=5))
@settings(max_examples=300)
def test_a_text_that_mending_changes_is_suspicious(texts):
    flags = suspicious(pa.array(texts), ALWAYS + ALONE, PAIRED)
    for text, flag in zip(texts, flags, strict=True):
        assert flag or (mend(text) == text and unicodedata.is_normalized("NFC", text))


def test_plain_english_and_other_scripts_are_not_suspicious():
    texts = ["It’s “so” — isn't it? Q&A at 5 €.", "漢字とカナ。", "한국어 문장", "نص عربي", "Crème brûlée"]
    assert not suspicious(pa.array(texts), ALWAYS + ALONE, PAIRED).any()


@given(st.lists(st.one_of(st.none(), TEXTS), max_size=8), st.integers(0, 7))
@settings(max_examples=100)
def test_nulls_slices_and_chunks(texts, cut):
    whole = pa.array(texts, pa.string())
    chunked = pa.chunked_array([whole.slice(0, cut), whole.slice(cut)], pa.string())
    expected = [None if text is None else reference(text) for text in texts]
    assert tidied(chunked).to_pylist() == expected == tidied(whole).to_pylist()
    assert tidied(whole.slice(cut)).to_pylist() == expected[cut:]


def test_invalid_utf8_is_refused():
    column = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff"))
    with pytest.raises(ValueError, match="row 0 is not valid UTF-8"):
        tidied(column)
