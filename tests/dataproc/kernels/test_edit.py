"""Line rules against a plain reference, and lines that a person would cut or leave."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.kernels.edit import FRAME_WORDS, edited, phrases, plain, spelled
from dataproc.kernels.lists import POLICY_PHRASES
from tests.dataproc.kernels.reference import formulas

_LOWER = str.maketrans({chr(c): chr(c + 32) for c in range(65, 91)})


def cut(line: str, *rules: str) -> str | None:
    """What is left of a line; None when it is cut."""
    result = edited(pa.array([line]), rules)
    return result.texts[0].as_py() if not result.cut[0] else None


def c4(line: str) -> str | None:
    line = re.sub(r"\[(?:\d{1,4}|edit|citation needed)\]", "", line, flags=re.I | re.A).rstrip()
    if not line.endswith((".", "!", "?", '"')) or line.endswith("..."):
        return None
    words = line.split()
    if len(words) < 3 or max(map(len, words)) > 1000:
        return None
    return None if any(phrase in line.translate(_LOWER) for phrase in POLICY_PHRASES) else line


PIECES = st.sampled_from(
    ["a ", "word", " ", "\t", "\u3000", ".", "...", "!", '"', "[1]", "[12345]", "[Edit]", "[citation needed]", "[", "]", "\n", "\n\n", "é", "漢字 ", "JavaScript ", "use  cookies",
     "Terms of use ", "x" * 1001, "two three four."]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
@settings(max_examples=400)
def test_c4_is_what_its_rules_say(text):
    kept = [line if not line.strip() else c4(line) for line in text.split("\n")]
    result = edited(pa.array([text]), ("c4",))
    assert result.texts[0].as_py() == "\n".join(line for line in kept if line is not None)
    assert (result.lines[0], result.cut[0]) == (sum(bool(line.strip()) for line in text.split("\n")), kept.count(None))


@pytest.mark.parametrize(
    "line",
    ["Accept all cookies", "  Read more... ", "Sign in", "12 comments", "1,204 likes", "3k views", "© 2024 Example Ltd", "Share on Facebook", "3 items in cart", "E-Mail",
     "We use cookies to improve your experience.", "Posted in: News", "Tags: a, b", "FORGOT YOUR PASSWORD?", "Copyright © 2001-2004 by us", "Skip to main content"],
)  # fmt: skip
def test_lines_of_a_pages_frame_go(line):
    assert cut(line, "boilerplate") is None


@pytest.mark.parametrize(
    "line",
    [
        "We accept that cookies are eaten.",
        "The home team won",
        "Share the load between both wheels of the mill and rest.",
        "Back home",
        "He has 12 comments to make",
        "漢字",
    ],
)
def test_lines_of_a_text_stay(line):
    assert cut(line, "boilerplate") == line


@pytest.mark.parametrize(
    "line",
    [
        "12",
        "1 2 3",
        "5 likes",
        "Word",
        "THIS IS ALL LOUD here",
        "Sign-in to see",
        "For all of it: Read more...",
        "You have 2 items in cart now",
        "***",
    ],
)
def test_the_line_rules_of_refinedweb(line):
    assert cut(line, "refinedweb") is None


@pytest.mark.parametrize("line", ["Two words", "In 1999 it rained.", "The sign in the window was red.", "NATO and the UN agreed on that."])
def test_refinedweb_leaves_text(line):
    assert cut(line, "refinedweb") == line


def test_only_short_lines_are_frame_lines():
    line = "read more " + " ".join("abcdefghij")
    assert len(line.split()) > FRAME_WORDS and cut(line + " read more", "refinedweb") == line + " read more"


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.sampled_from([("boilerplate",), ("refinedweb",), ("boilerplate", "refinedweb", "c4")]),
)
@settings(max_examples=300)
def test_any_text_loses_whole_lines_only(text, rules):
    result = edited(pa.array([text, text]), rules)
    assert result.texts[0] == result.texts[1] and result.cut[0] == result.cut[1] <= result.lines[0]
    if "c4" not in rules:
        lines, left = text.split("\n"), iter(result.texts[0].as_py().split("\n"))
        wanted = next(left)
        for line in lines:
            if line == wanted:
                wanted = next(left, None)
        assert wanted is None or result.texts[0].as_py() == ""


def test_nulls_slices_and_chunks():
    column = pa.array(["Read more\nReal text here", None, "", "Home"], pa.string())
    assert edited(column, ("boilerplate",)).texts.to_pylist() == ["Real text here", None, "", ""]
    assert edited(pa.chunked_array([column.slice(0, 1), column.slice(1)]), ("boilerplate",)).cut.tolist() == [1, 0, 0, 1]
    assert edited(column.slice(3), ("boilerplate",)).texts.to_pylist() == [""]


def test_templates_spell_out():
    assert spelled("a (b|c)( d)?") == ["a b d", "a b", "a c d", "a c"]
    assert plain("© 1,204 E-Mails…") == "c # emails"
    assert (phrases()[1] > 0).sum() > 150


MATH_PIECES = st.sampled_from(
    ["$", "$$", "\\(", "\\)", "\\[", "\\]", "\n", "\n\n", " ", "x", "[1]", "[edit]", "word word word.", "Read more", "Home", "THIS IS ALL LOUD", "\\begin{align}", "\\end{align}", "é"]
)  # fmt: skip


@given(st.lists(MATH_PIECES, max_size=30).map("".join), st.sampled_from([("c4",), ("boilerplate", "refinedweb"), ("refinedweb", "c4")]))
@settings(max_examples=400)
def test_lines_with_formulas_stay_and_others_are_judged_as_ever(text, rules):
    data, kept, start = text.encode(), [], 0
    spans = formulas(data)
    for line in data.split(b"\n"):
        end = start + len(line)
        inside = [k for k in range(start, end) if any(a <= k < b for a, b in spans)]
        if inside and line.strip():
            # Citation marks go where no formula begins before they end.
            marks = [m.span() for m in re.finditer(rb"\[(?:\d{1,4}|edit)\]", line) if "c4" in rules and start + m.start() not in inside]
            gone = {k for a, b in marks for k in range(a, b)}
            left = bytes(byte for k, byte in enumerate(line) if k not in gone).decode()
            left = left.rstrip() if "c4" in rules else left
            kept += [left] if left else []
        elif (plainly := edited(pa.array([line.decode()]), rules)).cut[0] == 0:
            kept.append(plainly.texts[0].as_py())
        start = end + 1
    assert edited(pa.array([text]), rules, keep_math=True).texts[0].as_py() == "\n".join(kept)
