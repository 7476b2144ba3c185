"""Language labels, on sentences of 75 languages and on whole pages, and what is kept."""

from __future__ import annotations

import gzip
import json

import pytest

from dataproc.sources.base import Record
from dataproc.stages.base import StageContext
from dataproc.stages.language import Language, LanguageConfig
from tests.dataproc.stages.helpers import batch_of, rules, run, texts

ENGLISH = "The water that turns the wheel comes down a channel which the miller keeps free of stones."
GERMAN = "Das Wasser, das das Rad dreht, kommt durch einen Kanal, den der Müller von Steinen frei hält."


def opened() -> Language:
    stage = Language(LanguageConfig())
    stage.open(StageContext())
    return stage


def test_languages_and_scores_are_set():
    result = run(Language, texts(ENGLISH, GERMAN))
    assert result.batch.column("language").to_pylist() == ["en", "de"]
    assert all(score > 0.9 for score in result.batch.column("language_score").to_pylist()) and not result.verdicts


def test_only_kept_languages_that_are_sure_enough_pass():
    result = run(Language, texts(ENGLISH, GERMAN, "ok 12 go"), keep=["en"], min_score=0.65)
    assert rules(result) == {1: "language", 2: "score"} or rules(result) == {1: "language", 2: "language"}
    assert result.verdicts[0].detail == {"language": "de"} and result.verdicts[0].value > 0.9


def test_a_declared_language_stands_without_a_score():
    batch = batch_of(Record(key="a", locator="a", text=GERMAN, language="en"))
    result = run(Language, batch, keep=["en"])
    assert result.batch.column("language").to_pylist() == ["en"] and result.batch.column("language_score").to_pylist() == [None]
    assert not result.verdicts


@pytest.mark.parametrize("text", ["", "\n\n", "\0", "🙂", "1234 5678", "a" * 100_000])
def test_odd_texts_have_a_score_from_0_to_1(text):
    score = run(Language, texts(text)).batch.column("language_score").to_pylist()[0]
    assert 0 <= score <= 1


def test_the_start_of_a_page_tells_as_much_as_the_whole(shared_data, monkeypatch):
    with gzip.open(shared_data / "lid" / "docs.jsonl.gz", "rt") as stream:
        rows = [json.loads(line) for line in stream][::4]
    stage = opened()
    start = [stage.predict(row["text"])[0] for row in rows]
    monkeypatch.setattr("dataproc.stages.language.SAMPLE_CHARACTERS", 10**9)
    whole = [stage.predict(row["text"])[0] for row in rows]
    assert sum(a == b for a, b in zip(start, whole, strict=True)) / len(rows) > 0.99


def test_sentences_are_labelled_as_well_as_by_the_model_itself(shared_data):
    with gzip.open(shared_data / "lid" / "lingua_sentences.jsonl.gz", "rt") as stream:
        rows = [json.loads(line) for line in stream][::3]
    stage = opened()
    ours = sum(stage.predict(row["text"])[0] == row["lang"] for row in rows)
    plain = sum(stage._model.predict(row["text"].replace("\n", " "))[0][0] == f"__label__{row['lang']}" for row in rows)
    assert ours >= plain > 0.75 * len(rows)
