"""A page is refused by its language only where that is plain: nothing that is kept without the guess is lost with it."""

from __future__ import annotations

from collections import Counter

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.charset import decode
from dataproc.stages.base import StageContext
from dataproc.stages.extract import ExtractConfig
from dataproc.stages.extract_engines import Options, trafilatura_text
from dataproc.stages.language import Language, LanguageConfig
from dataproc.stages.language_guess import guess, is_other

MARGIN = ExtractConfig().prefilter_margin
GERMAN = "Das Wasser, das das Rad dreht, kommt durch einen Kanal, den der Müller von Steinen frei hält. "
ENGLISH = "The water that turns the wheel comes down a channel which the miller keeps free of stones. "
RUSSIAN = "Вода крутит колесо мельницы, и мельник следит за тем, чтобы в канале не было камней и листьев. "


def language(*keep: str) -> Language:
    stage = Language(LanguageConfig(keep=keep))
    stage.open(StageContext())
    return stage


def refused(page: str, *keep: str) -> bool:
    stage = language(*keep)
    found = guess(page, stage)
    return found is not None and is_other(found, stage, MARGIN)


def body(*paragraphs: str, head: str = "<html>") -> str:
    return head + "<body>" + "".join(f"<p>{text}</p>" for text in paragraphs) + "</body></html>"


@pytest.mark.parametrize(
    ("page", "keep", "wanted"),
    [
        (body(GERMAN * 8), ["en"], True),
        (body(GERMAN * 8), ["de"], False),
        (body(GERMAN * 8), ["en", "de"], False),
        (body(RUSSIAN * 8, head='<html lang="en">'), ["en"], True),  # a template's declaration saves no long page
        (body(RUSSIAN * 2, head='<html lang="en">'), ["en"], False),  # a short one it does
        (body(RUSSIAN * 2), ["en"], True),
        (body(GERMAN * 8, ENGLISH * 8), ["en"], False),  # mixed
        (body(*[RUSSIAN] * 12, ENGLISH * 12), ["en"], False),
        (body(GERMAN[:80]), ["en"], False),  # too short to tell
        ("<nav>" + ENGLISH * 30 + "</nav>" + body(GERMAN * 10), ["de"], False),
        (f"<ul>{f'<li><a href=/x>{ENGLISH}</a></li>' * 40}</ul>" + body(GERMAN * 10), ["de"], False),  # English links around it
        ("<script>" + ENGLISH * 40 + "</script>" + body(GERMAN * 4), ["en"], True),
        (body("&#1042;&#1086;&#1076;&#1072; &#1082;&#1088;&#1091;&#1090;&#1080;&#1090; " * 30), ["en"], True),
        (body(" 12 34 56 + 78 = 90 " * 40), ["en"], False),
        ("", ["en"], False),
        ("<p>\x00\ufffd</p>" * 100, ["en"], False),
    ],
)
def test_a_page_is_refused_where_its_language_is_plain(page, keep, wanted):
    assert refused(page, *keep) is wanted


def test_a_variant_of_a_kept_language_is_kept():
    assert not refused(body(ENGLISH * 8), "en")
    assert language("en").keeps("en-GB") and not language("en-us").keeps("en-GB")


def test_real_pages_are_not_lost(shared_data):
    """Documentation in 57 languages, some of it not translated: each language in turn is the only one kept."""
    tables = [pq.read_table(path) for path in sorted((shared_data / "corpus_sample").glob("html-*.parquet"))]
    pages = [decode(html).text for table in tables for html in table["html"].to_pylist()[::4]]
    labeller = language()
    truth = [labeller.predict(trafilatura_text(page, Options())) for page in pages]
    kept = lost = other = early = 0
    for name, count in Counter(code for code, _ in truth).items():
        if name is None or count < 3:
            continue
        stage = Language(LanguageConfig(keep=(name,)))
        stage._labeller = labeller._labeller
        for page, (code, score) in zip(pages, truth, strict=True):
            found = guess(page, stage)
            drops = found is not None and is_other(found, stage, MARGIN)
            if code == name and score >= LanguageConfig().min_score:
                kept, lost = kept + 1, lost + drops
            elif code != name:
                other, early = other + 1, early + drops
    assert kept > 150 and lost <= 0.005 * kept + 1
    assert early > 0.75 * other


@given(st.text(max_size=400))
def test_any_text_gives_a_guess_within_bounds(text):
    stage = ANY
    found = guess(f"<p>{text * 3}</p>", stage)
    assert found is None or (0 < found.score <= 1 and 0 <= found.kept <= 1)


ANY = language("en", "de")
