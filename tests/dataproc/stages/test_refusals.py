"""What the extract stage refuses before it extracts, what an empty page says of itself, and that forums keep their posts."""

from __future__ import annotations

import json

import pytest

from dataproc.config import load_pipeline
from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.sources.base import Record
from dataproc.stages.base import StageContext
from dataproc.stages.empty_pages import why_empty
from dataproc.stages.extract import Extract, ExtractConfig
from dataproc.stages.language import Language, LanguageConfig
from dataproc.versions import open_version
from store import files
from store.errors import ConfigError
from tests.dataproc.stages.helpers import batch_of, pages, rules, run
from tests.dataproc.stages.test_language_guess import ENGLISH, GERMAN, body


def html(text: str, head: str = "") -> bytes:
    return f"<html><head><title>t</title>{head}</head><body>{text}</body></html>".encode()


GOOD = html(f"<article><p>{ENGLISH * 3}</p><p>{ENGLISH * 3}</p></article>")


def prefiltered(batch, *keep: str):
    extract = Extract(ExtractConfig(prefilter_language=True))
    language = Language(LanguageConfig(keep=keep))
    extract.meet([extract, language])
    extract.open(StageContext())
    language.open(StageContext())
    try:
        return extract.process(batch), extract.measures()
    finally:
        extract.close()


def test_a_page_over_the_limit_is_refused_with_its_size():
    result = run(Extract, pages(GOOD, b"<html>" + b"x" * 2000), max_page_bytes=1500)
    assert [(v.row, v.rule, v.value, v.threshold, v.verdict) for v in result.verdicts] == [(1, "too_large_page", 2006.0, 1500.0, "dropped")]


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (b"%PDF-1.7 ...", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"PK\x03\x04rest", "application/zip"),
        (bytes(range(1, 256)) * 40, "binary"),
        (b"<html><body>" + bytes(range(1, 256)) * 40, "binary"),
        (b"\0" * 5000, "binary"),
    ],
)
def test_bytes_that_pose_as_html_are_no_page(payload, found):
    verdict = run(Extract, pages(payload)).verdicts[0]
    assert verdict.rule == "not_html" and verdict.detail == {"content_type": "text/html", "found": found}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1251", "koi8-r", "shift_jis", "iso2022_jp", "gb18030", "utf-32"])
def test_text_in_any_set_is_a_page(encoding):
    text = "水車" if encoding in ("shift_jis", "iso2022_jp", "gb18030") else "мельница"
    assert not rules(run(Extract, pages((f"<p>{text}</p> " * 200).encode(encoding)), engine="resiliparse"))


def test_robots_are_asked_only_where_it_is_set():
    page = html(ENGLISH * 8, "<meta name='robots' content='noai'>")
    assert not rules(run(Extract, pages(page)))
    result = run(Extract, pages(page, GOOD), respect_robots_meta=["noindex", "noai"])
    assert rules(result) == {0: "robots"} and result.verdicts[0].detail == {"directive": "noai", "where": "meta"}
    record = Record(key="a", locator="a", payload=GOOD, content_type="text/html", robots="noindex")
    assert rules(run(Extract, batch_of(record), respect_robots_meta=["noindex"])) == {0: "robots"}


def test_pages_in_other_languages_are_refused_with_score_and_threshold():
    result, measures = prefiltered(pages(GOOD, body(GERMAN * 8).encode()), "en")
    assert rules(result) == {1: "prefilter_language"} and measures["refused"] == measures["extracted"] == 1
    verdict = result.verdicts[0]
    assert verdict.value < verdict.threshold == 0.1 and verdict.detail["language"] == "de" and verdict.detail["score"] > 0.9


@pytest.mark.parametrize(("declared", "refused"), [("de", True), ("en-US", False)])
def test_a_language_that_the_source_declares_stands(declared, refused):
    record = Record(key="a", locator="a", payload=body(GERMAN * 8).encode(), content_type="text/html", language=declared)
    result, _ = prefiltered(batch_of(record), "en")
    assert rules(result) == ({0: "prefilter_language"} if refused else {})


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (b"", "no bytes"),
        (b"<html></html>", "no body"),
        (b"<html><body></body></html>", "no text"),
        (b"<html><frameset><frame src=a></frameset></html>", "only frames"),
        (b"<html><body><iframe src=a></iframe></body></html>", "only frames"),
        (b"<html><head><meta http-equiv='refresh' content='0;url=/x'></head><body></body></html>", "meta refresh"),
        (b"<html><body><div id=app></div><script>render('words')</script></body></html>", "only script"),
        (b"<html><!-- <script> --><body></body></html>", "no text"),
    ],
)
def test_an_empty_page_says_why(page, reason):
    (verdict,) = run(Extract, pages(page), engine="trafilatura").verdicts
    assert verdict.rule == "empty" and verdict.detail["reason"] == reason and verdict.detail["page_bytes"] == len(page)


def test_a_page_whose_text_is_not_main_text_says_so():
    moved = b"<html><head><meta http-equiv='refresh' content='0;url=/x'></head><body>Moved.</body></html>"
    assert why_empty(moved, None) == {"reason": "meta refresh", "page_bytes": len(moved), "text_bytes": 6}
    assert why_empty(b"<html><body><p>a few words</p></body></html>", None)["reason"] == "too little text"


POST = (
    '<div class="post" id="p{0}"><div class="postauthor">member{0}</div><div class="content"><p>Answer number {0}: the wheel of my mill turns '
    "{0} times a minute when the channel is free of leaves, and I grease its axle every spring.</p></div></div>"
)
COMMENT = '<li class="comment" id="comment-{0}"><p>Comment number {0}: I have seen {0} such mills in the valley.</p></li>'


@pytest.mark.parametrize("comments", [True, False])
def test_a_forum_keeps_its_posts(comments):
    page = f"<html><body><nav>Index</nav><h1>Mill wheels</h1><div id='posts'>{''.join(POST.format(i) for i in range(1, 13))}</div></body></html>"
    text = run(Extract, pages(page.encode()), comments=comments).batch.column("text")[0].as_py()
    assert [i for i in range(1, 13) if f"Answer number {i}:" not in text] == []


@pytest.mark.parametrize("markdown", [False, True])
def test_comments_below_an_article_are_taken_where_they_are_asked_for(markdown):
    comments = "".join(COMMENT.format(i) for i in range(1, 6))
    page = f"<html><body><article><h1>Mills</h1><p>{ENGLISH * 6}</p><p>{GERMAN * 4}</p></article><div id='comments'><ol class='commentlist'>{comments}</ol></div></body></html>"
    for asked in (True, False):
        text = run(Extract, pages(page.encode()), comments=asked, markdown=markdown).batch.column("text")[0].as_py()
        assert ("Comment number 3" in text) is asked and "turns the wheel" in text


STAGES = "stages:\n  - extract: {EXTRACT}\n  - language: {LANGUAGE}\n"


def pipeline(folder, extract: str, language: str = "keep: [en]") -> str:
    stages = STAGES.replace("EXTRACT", extract).replace("LANGUAGE", language)
    inputs = 'inputs: [{name: pages, format: html, path: "pages"}]\n'
    path = folder / "p.yaml"
    path.write_text(f"dataset: pages\nversion: v1\nowner: o@example.org\n{inputs}{stages}")
    return str(path)


@pytest.mark.parametrize(
    ("extract", "language", "words"),
    [
        ("prefilter_language: true", "keep: []", "add `- language: {keep: [...]}`"),
        ("engine: resiliparse, markdown: true", "keep: [en]", "markdown is a setting of trafilatura"),
        ("structure: [heading]", "keep: [en]", "headings"),
        ("respect_robots_meta: [no-index]", "keep: [en]", "noindex"),
        ("max_page_bytes: 0", "keep: [en]", "max_page_bytes"),
        ("prefilter_margin: 0.9", "keep: [en]", "prefilter_margin"),
        ("prefilter: true", "keep: [en]", 'did you mean "prefilter'),
    ],
)
def test_a_mistake_in_the_settings_is_told_with_its_place(tmp_path, extract, language, words):
    with pytest.raises(ConfigError) as caught:
        load_pipeline(pipeline(tmp_path, extract, language))
    assert words in str(caught.value) and "p.yaml" in str(caught.value)


def test_a_run_keeps_the_same_documents_and_says_what_was_saved(tmp_path):
    (tmp_path / "pages").mkdir()
    for i in range(12):
        text = (GERMAN if i % 3 else ENGLISH) * 6
        (tmp_path / "pages" / f"{i:02d}.html").write_bytes(html(f"<article><p>Mill {i}. {text}</p><p>{text}</p></article>"))
    kept, reports = [], []
    for name in ("false", "true"):
        result = run_pipeline(pipeline(tmp_path, f"prefilter_language: {name}"), str(tmp_path / name), PlainLoop, quiet=True)
        version = open_version(str(tmp_path / name), result["version"])
        kept.append([shard["xxh3_128"] for shard in version.manifest["shards"]])
        reports.append(json.loads(files.read_bytes(files.join(version.url, "report.json"))))
        page = files.read_bytes(result["report"]).decode()
        assert ("8 pages refused before extraction" in page) is (name == "true")
    assert kept[0] == kept[1] and result["counts"]["dropped"] == {"extract.prefilter_language": 8}
    assert reports[0]["savings"] is None
    savings = reports[1]["savings"]
    assert savings["refused"] == 8 and savings["extracted"] == 4
    assert savings["saved_seconds"] == pytest.approx(8 * savings["seconds_a_page"]) and savings["saved_seconds"] > 0
