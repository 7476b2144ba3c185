"""Extraction: quality on labelled pages, and no page takes its neighbours down."""

from __future__ import annotations

import gzip
import json

import pytest

from benchmarks.extraction import labelled_pages, mean_f1
from dataproc.sources.base import Record
from dataproc.stages import extract_engines
from dataproc.stages.extract import Extract
from dataproc.stages.killable import KillableWorker
from tests.dataproc.stages.helpers import batch_of, pages, rules, run

ARTICLE = "<html><head><title>The mill</title></head><body><nav>Home | About</nav><article><h1>The mill</h1>{}</article></body></html>"
PROSE = "<p>The water that turns the wheel comes down a channel which the miller keeps free of leaves and stones all year round.</p>"


def page(paragraphs: int = 6) -> bytes:
    return ARTICLE.format(PROSE * paragraphs).encode()


@pytest.mark.parametrize(("engine", "least"), [("trafilatura", 0.960), ("resiliparse", 0.925)])
def test_main_text_of_labelled_pages(shared_data, engine, least):
    found, gold = labelled_pages(shared_data / "web")
    child = KillableWorker("dataproc.stages.extract_engines:extract_page", 60, 4_000_000_000)
    header = json.dumps({"engine": engine, "charset": None}).encode() + b"\n"
    texts = {url: json.loads(child.call(header + data))["text"] for url, data in found.items()}
    child.close()
    assert len(gold) == 96 and mean_f1(texts, gold)[2] >= least


@pytest.mark.parametrize("engine", list(extract_engines.ENGINES))
def test_text_and_title_come_out_and_the_payload_goes(engine):
    result = run(Extract, pages(page()), engine=engine)
    row = result.batch.to_pylist()[0]
    assert "turns the wheel" in row["text"] and "Home | About" not in row["text"]
    assert json.loads(row["meta"])["title"] == "The mill" and row["payload"] is None and not result.verdicts


def test_records_with_a_text_pass_untouched():
    batch = batch_of(Record(key="a", locator="a", text="as it was"), Record(key="b", locator="b", payload=page(), content_type="text/html"))
    assert run(Extract, batch).batch.column("text").to_pylist()[0] == "as it was"


@pytest.mark.parametrize(
    ("content_type", "payload", "rule"),
    [
        ("application/pdf", b"%PDF-1.4", "not_html"),
        ("image/png", b"\x89PNG", "not_html"),
        (None, b"\x00\x01\x02", "not_html"),
        ("text/html", b"", "empty"),
        ("text/html", b"<html><body></body></html>", "empty"),
        ("text/plain", b"  ", "empty"),
        (None, page(), None),
        ("application/xhtml+xml", page(), None),
    ],
)
def test_what_is_no_page_is_dropped_with_its_reason(content_type, payload, rule):
    assert rules(run(Extract, pages(payload, content_type=content_type))) == ({0: rule} if rule else {})


def test_plain_text_is_decoded_and_taken_as_it_is():
    result = run(Extract, pages("Mühle".encode("cp1252"), content_type="text/plain", charset="latin-1"))
    assert result.batch.column("text").to_pylist() == ["Mühle"]


@pytest.mark.parametrize("declared", ["cp1251", None])
def test_the_declared_or_detected_character_set_is_used(declared):
    text = "Вода крутит колесо мельницы, и мельник следит за тем, чтобы в канале не было камней и листьев. " * 5
    result = run(Extract, pages(f"<html><body><article><p>{text}</p></article></body></html>".encode("cp1251"), charset=declared))
    assert "крутит колесо" in result.batch.column("text").to_pylist()[0]


class FaultyExtract(Extract):
    """The stage with an engine that pages can crash, hang or fill."""

    target = "tests.dataproc.stages.faulty_functions:faulty_page"


@pytest.mark.parametrize(
    ("fault", "rule", "error"),
    [
        ("SEGFAULT", "crashed", "extraction ended its process"),
        ("EXIT", "crashed", "extraction ended its process"),
        ("LOOP", "timeout", "extraction took longer than 1 s"),
        ("EAT MEMORY", "out_of_memory", "extraction takes more than 300 MB of memory"),
        ("RAISE", "failed", "extraction RuntimeError: this record is not to be processed"),
    ],
)
def test_a_page_that_breaks_the_engine_is_quarantined_alone(fault, rule, error):
    bad = f"<html><body>{fault}</body></html>".encode()
    batch = pages(page(), bad, page(), bad, page())
    result = run(FaultyExtract, batch, timeout_s=1, memory_mb=300)
    assert [(v.row, v.rule, v.verdict, v.detail) for v in result.verdicts] == [
        (row, rule, "quarantined", {"error": error}) for row in (1, 3)
    ]
    assert [bool(text) for text in result.batch.column("text").to_pylist()] == [True, False, True, False, True]


@pytest.mark.parametrize("engine", list(extract_engines.ENGINES))
def test_a_text_does_not_depend_on_the_pages_before_it(shared_data, engine):
    found = list(labelled_pages(shared_data / "web")[0].values())[:24]
    forward = run(Extract, pages(*found), engine=engine).batch.select(["text", "meta"]).to_pylist()
    backward = run(Extract, pages(*found[::-1]), engine=engine).batch.select(["text", "meta"]).to_pylist()
    assert forward == backward[::-1] and all(row["text"] for row in forward)


@pytest.mark.parametrize("engine", list(extract_engines.ENGINES))
@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 200_000 + b"deep",
        b"<b><i><a><font>" * 20_000,
        b"<table><tr><td>" * 5_000,
        b"<p>&#xD800;&#xFFFF;\0 words</p>" * 100,
        b"<!--" * 100_000,
        b"<p a='" * 50_000,
    ],
    ids=["nested", "formatting", "tables", "surrogates", "comments", "quotes"],
)
def test_hostile_markup_costs_no_neighbour(engine, body):
    result = run(Extract, pages(page(), b"<html><body>" + body, page()), engine=engine, timeout_s=5)
    assert {v.row for v in result.verdicts} <= {1}
    assert ["turns the wheel" in (text or "") for text in result.batch.column("text").to_pylist()][::2] == [True, True]


@pytest.mark.parametrize("engine", list(extract_engines.ENGINES))
def test_odd_pages_cost_no_neighbour(shared_data, engine):
    odd = []
    for path in sorted((shared_data / "nasty" / "html").iterdir()):
        data = path.read_bytes()
        odd.append(gzip.decompress(data) if path.suffix == ".gz" else data)
    interleaved = [p for data in odd for p in (data, page())]
    result = run(Extract, pages(*interleaved), engine=engine, timeout_s=4)  # resiliparse takes minutes for 20,000 nested elements
    assert all("turns the wheel" in text for text in result.batch.column("text").to_pylist()[1::2])
    assert not {v.row for v in result.verdicts} & set(range(1, len(interleaved), 2))
