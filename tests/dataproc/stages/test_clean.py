"""Cleaning mends what is broken and leaves the rest."""

from __future__ import annotations

import gzip
import json
import re

import ftfy
import pytest
from ftfy.badness import MOJIBAKE_CATEGORIES
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.stages.clean import _FTFY, ALONE, PAIRED, Clean, clean_text, mend
from tests.dataproc.stages.helpers import rules, run, texts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("schÃ¶n", "schön"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\x00b\x07c\ufeffd", "abcd"),
        ("a\xa0b", "a b"),
        ("a  \nb\t\n\n\n\nc", "a\nb\n\nc"),
        ("  padded \n", "padded"),
        ("“quoted” — and，全角", "“quoted” — and，全角"),
        ("\u3000\u3000段落", "段落"),
        ("e\u0301", "é"),
        ("👩‍👩‍👧 family", "👩‍👩‍👧 family"),
        ("&lt;b&gt; &amp; co", "<b> & co"),
    ],
)
def test_known_texts(before, after):
    assert clean_text(before) == after


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_without_mending_it_is_idempotent_and_leaves_no_control_character(text):
    once = clean_text(text, fix_unicode=False)
    assert clean_text(once, fix_unicode=False) == once
    assert not any(ord(c) < 32 and c not in "\n\t" or c == "\x7f" or c == "\ufeff" for c in once)
    assert "\n\n\n" not in once and once == once.strip()


SUSPICIOUS = st.sampled_from(
    ["Ã©", "Ã", "Â ", " Â", "â€œ", "œ", "é", "É", "’", "“", "—", "£", "²", "\x85", "\x1b[31m", "&lt;", "&amp;", "<b>", "\n", "\n", "a", "A", " ", "ﬁ", "Ĳ", "е", "В°", "Г",
     "e\u0301", "漢", "ك", "\ufeff", "\ufffd", "\r\n", "\u2028", "\x00", "°", "×²", "\xa0", ".", "\uf8ff", "Ø", "Ù", "√±", "β€™", "1"]
)  # fmt: skip


@given(st.one_of(st.lists(SUSPICIOUS, max_size=40).map("".join), st.text(st.characters(exclude_categories=["Cs"]), max_size=60)))
@settings(max_examples=500)
def test_mending_is_what_ftfy_does(text):
    assert mend(text) == ftfy.fix_text(text, _FTFY)


def test_mending_real_text_is_what_ftfy_does(shared_data):
    with gzip.open(shared_data / "corpus_sample" / "text-00000.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["text"][:10_000] for line in stream][:300]
    with gzip.open(shared_data / "lid" / "udhr_articles.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts += [json.loads(line)["text"] for line in stream][::20]
    for text in texts:
        assert mend(text) == ftfy.fix_text(text, _FTFY)


def test_no_rule_of_ftfy_knows_a_character_that_is_not_looked_for():
    """An upgrade of ftfy that looks at other characters must not pass unseen."""
    paired = re.compile(f"[{PAIRED}{ALONE}]")
    for letters in MOJIBAKE_CATEGORIES.values():
        known = re.compile(f"[{letters}]")
        assert all(paired.match(chr(code)) for code in range(0x110000) if known.match(chr(code)))


def test_mojibake_is_mended_and_what_only_looks_like_it_stays(shared_data):
    cases = [json.loads(line) for line in (shared_data / "nasty" / "unicode" / "ftfy_mojibake.jsonl").open()]
    mended = [case for case in cases if case["expect"] == "pass"]
    straight = str.maketrans("“”„‘’", '"""\'\'')  # quotation marks are left as written here
    wide = str.maketrans("，", ",")
    right = sum(
        clean_text(c["original"]).translate(straight).translate(wide) == clean_text(c["fixed"], False).translate(straight) for c in mended
    )
    assert right >= len(mended) - 3
    for case in cases:
        if "negative" in case["set"]:
            assert clean_text(case["original"]).translate(straight) == clean_text(case["fixed"], False).translate(straight)


def test_right_to_left_texts_and_emoji_keep_every_letter(shared_data):
    for line in (shared_data / "nasty" / "unicode" / "rtl_udhr.jsonl").open():
        text = json.loads(line)["text"]
        kept = "".join(clean_text(text).split())
        assert len(kept) >= 0.99 * len("".join(text.split()))


def test_a_document_of_which_nothing_is_left_is_dropped():
    result = run(Clean, texts("menu\nhome", "A good line that ends."), drop_lines=["c4"])
    assert rules(result) == {0: "empty"} and result.batch.column("signals.cut_line_fraction").to_pylist() == [1.0, 0.0]


def test_what_is_cut_is_counted():
    text = "A good line that ends.\nmenu\nhome page\n\nAnother good line!"
    result = run(Clean, texts(text), drop_lines=["c4"])
    assert result.batch.column("text").to_pylist() == ["A good line that ends.\n\nAnother good line!"]
    cut = {name: result.batch.column(f"signals.cut_{name}_fraction")[0].as_py() for name in ("line", "character", "word")}
    assert cut == pytest.approx({"line": 2 / 4, "character": 15 / len(text), "word": 3 / 11})


MATH = [
    "$f(x) = \\frac{1}{2}$",
    "\\(a &lt; b \\)",
    "\\[ x_{[1]} = Ã© \\]",
    "\\begin{equation}\na &amp; b \\\\\n\\{ c \\}\n\\end{equation}",
    "$$\n\\sum_{n=1}^{\\infty} a_n[1]\n$$",
    "$漢[2]$",
]


@pytest.mark.parametrize("formula", MATH)
@pytest.mark.parametrize("drop_lines", [[], ["c4"], ["boilerplate", "refinedweb"], ["c4", "boilerplate", "refinedweb"]])
def test_formulas_stay_as_they_are(formula, drop_lines):
    page = f"The sum is what it ever was.[1]\n{formula}\nwhere {formula} is found\n\nHome"
    cleaned = run(Clean, texts(page), keep_math=True, drop_lines=drop_lines).batch.column("text")[0].as_py()
    assert cleaned.count(formula) == 2
    assert ("was.[1]" in cleaned) == ("c4" not in drop_lines) and ("Home" in cleaned) == (not drop_lines)


def test_without_keep_math_formulas_are_lines_like_others():
    page = "The sum is what it ever was.\n$$x_{[1]}$$\nIt is found here, too."
    assert (
        run(Clean, texts(page), drop_lines=["c4"]).batch.column("text")[0].as_py() == "The sum is what it ever was.\nIt is found here, too."
    )


def test_what_stands_between_formulas_is_mended():
    assert clean_text("schÃ¶n $Ã©$ &amp; schÃ¶n", keep_math=True) == "schön $Ã©$ & schön"
    assert clean_text("$a<b$ &amp; co", keep_math=True) == "$a<b$ & co"
    assert clean_text("<b> $a$ &amp; co", keep_math=True) == "<b> $a$ &amp; co"


@given(st.one_of(st.lists(SUSPICIOUS, max_size=40).map("".join), st.text(st.characters(exclude_categories=["Cs"]), max_size=60)))
def test_a_text_without_formulas_is_cleaned_alike(text):
    text = text.replace("$", "").replace("\\", "")
    assert clean_text(text, keep_math=True) == clean_text(text)
