"""The perplexity of a text is what back-off over its n-grams says, normalised as CCNet's models want it."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from dataproc.stages.base import set_column
from dataproc.stages.perplexity import MISSING, Perplexity, normalised
from store.errors import ConfigError
from store.strict_yaml import validate
from tests.dataproc.stages.helpers import rules, run, texts

pytest.importorskip("kenlm", reason="the extra `perplexity` is not installed")
sentencepiece = pytest.importorskip("sentencepiece", reason="the extra `perplexity` is not installed")

# log10 probability and back-off weight of each n-gram.
UNIGRAMS = {
    "<unk>": (-2.0, 0.0),
    "<s>": (-99.0, -0.3),
    "</s>": (-1.1, 0.0),
    "the": (-0.7, -0.2),
    "mill": (-1.2, -0.4),
    "turns": (-1.5, -0.1),
}
BIGRAMS = {("<s>", "the"): -0.2, ("the", "mill"): -0.3, ("mill", "turns"): -0.5, ("turns", "</s>"): -0.25}


def arpa() -> str:
    one = "\n".join(f"{p}\t{word}\t{backoff}" for word, (p, backoff) in UNIGRAMS.items())
    two = "\n".join(f"{p}\t{' '.join(pair)}" for pair, p in BIGRAMS.items())
    return f"\\data\\\nngram 1={len(UNIGRAMS)}\nngram 2={len(BIGRAMS)}\n\n\\1-grams:\n{one}\n\n\\2-grams:\n{two}\n\n\\end\\\n"


def plain_perplexity(text: str) -> float:
    """The same by the definition, line by line."""
    total, count = 0.0, 0
    for line in text.split("\n"):
        words = [w if w in UNIGRAMS else "<unk>" for w in line.split()]
        for before, word in zip(["<s>", *words], [*words, "</s>"], strict=True) if words else ():
            total += BIGRAMS.get((before, word), UNIGRAMS[before][1] + UNIGRAMS[word][0])
            count += 1
    return 10 ** (-total / count)


@pytest.fixture
def model(tmp_path) -> str:
    (tmp_path / "en.arpa").write_text(arpa())
    return str(tmp_path / "en.arpa")


def in_language(batch, *languages):
    return set_column(batch, "language", pa.array(languages, pa.string()))


def signal(result, name="perplexity"):
    return result.batch.column(f"signals.{name}").to_pylist()


TEXTS = ["the mill turns", "The Mill\n\n turns the the", "mill", "the wheel turns\nturns", "the mill " * 2000]


def test_perplexity_is_that_of_the_definition(model):
    batch = in_language(texts(*TEXTS), *["en"] * len(TEXTS))
    result = run(Perplexity, batch, models={"en": {"model": model}})
    assert signal(result) == pytest.approx([plain_perplexity(text.lower()) for text in TEXTS], rel=1e-5)
    assert signal(result, "perplexity_unknown") == pytest.approx([0, 0, 0, 1 / 4, 0])


def test_a_text_without_words_or_model_has_none(model):
    batch = in_language(texts("", " \n\t", "the mill", "die Mühle", "the mill", "the mill"), "en", "en", None, "de", "en_gb", "en-GB")
    found = signal(run(Perplexity, batch, models={"en": {"model": model}}))
    assert found[:4] == [None] * 4
    assert found[4] == found[5] == pytest.approx(plain_perplexity("the mill"), rel=1e-5)


def test_thresholds_drop_with_value_and_threshold(model):
    batch = in_language(texts("the mill turns", "mill mill mill mill", "the mill", "zzz zzz zzz"), *["en"] * 4)
    low, high = plain_perplexity("the mill turns") + 0.01, plain_perplexity("mill mill mill mill")
    result = run(Perplexity, batch, models={"en": {"model": model}}, min_perplexity=low, max_perplexity=high * 1.0001)
    assert rules(result) == {0: "low_perplexity", 3: "high_perplexity"}
    assert [(v.value, v.threshold) for v in result.verdicts] == [
        (pytest.approx(plain_perplexity("the mill turns"), rel=1e-5), low),
        (pytest.approx(plain_perplexity("zzz zzz zzz"), rel=1e-5), high * 1.0001),
    ]


def test_a_language_has_thresholds_of_its_own(model):
    settings = {"models": {"en": {"model": model}, "de": {"model": model}}, "max_perplexity": 1.0, "max_by_language": {"de": 1e9}}
    batch = in_language(texts("the mill", "the mill"), "en", "de")
    assert rules(run(Perplexity, batch, **settings)) == {0: "high_perplexity"}
    shown = Perplexity(Perplexity.Config.model_validate(settings)).thresholds()["perplexity"]
    assert {entry["rule"] for entry in shown} == {"high_perplexity", "high_perplexity (de)"}


def test_unnormalised_text_is_scored_as_it_is(model):
    batch = in_language(texts("The Mill turns"), "en")
    (kept,) = signal(run(Perplexity, batch, models={"en": {"model": model}}, normalise="none"))
    assert kept == pytest.approx(plain_perplexity("The Mill turns"), rel=1e-5) != plain_perplexity("the mill turns")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  Straße Café №12３ ", "straße cafe №000"),
        ("“Hello” – it’s…", '"hello" - it\'s...'),
        ("a\x00b\x85c", "abc"),
        ("中文，标点。", "中文,标点."),
    ],
)
def test_normalised_lines(line, expected):
    assert normalised(line) == expected


def test_pieces_of_a_tokenizer_are_scored(tmp_path):
    corpus = tmp_path / "lines.txt"
    corpus.write_text("the mill turns the wheel turns\n" * 50)
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(tmp_path / "sp"), vocab_size=24, hard_vocab_limit=False, minloglevel=2
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "sp.model")).encode_as_pieces("the mill turns")
    vocabulary = {"<unk>": -3.0, "<s>": -99.0, "</s>": -1.0} | {piece: -0.5 - 0.1 * k for k, piece in enumerate(dict.fromkeys(pieces))}
    listed = "\n".join(f"{p}\t{piece}" for piece, p in vocabulary.items())
    (tmp_path / "sp.arpa").write_text(f"\\data\\\nngram 1={len(vocabulary)}\n\n\\1-grams:\n{listed}\n\n\\end\\\n", encoding="utf-8")
    settings = {"models": {"en": {"model": str(tmp_path / "sp.arpa"), "tokenizer": str(tmp_path / "sp.model")}}}
    result = run(Perplexity, in_language(texts("The mill turns"), "en"), **settings)
    expected = 10 ** (-(sum(vocabulary[piece] for piece in pieces) - 1.0) / (len(pieces) + 1))
    assert signal(result) == [pytest.approx(expected, rel=1e-5)]
    assert signal(result, "perplexity_unknown") == [0]


def test_very_unlikely_text_stays_a_number(tmp_path):
    (tmp_path / "x.arpa").write_text("\\data\\\nngram 1=3\n\n\\1-grams:\n-5000\t<unk>\n-99\t<s>\n-5000\t</s>\n\n\\end\\\n")
    (value,) = signal(run(Perplexity, in_language(texts("a b"), "en"), models={"en": {"model": str(tmp_path / "x.arpa")}}))
    assert math.isfinite(value) and value > 1e200


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"models": {}}, "at least 1 item"),
        ({"models": {"en": {}}}, '"model" is missing'),
        ({"max_by_language": {"fr": 3}}, 'names "fr", for which there is no model'),
        ({"min_perplexity": 10, "max_perplexity": 5}, "nothing can be kept in en"),
        ({"max_perplexity": -1}, "greater than 0"),
    ],
)
def test_mistakes_are_named(model, settings, problem):
    with pytest.raises(ConfigError, match=problem):
        validate({"models": {"en": {"model": model}}} | settings, Perplexity.Config, "web.yaml")


def test_files_of_another_kind_are_refused(tmp_path, model):
    broken = tmp_path / "broken.bin"
    broken.write_bytes(b"\x00\x01" * 500)
    with pytest.raises(ConfigError, match="is not a KenLM model"):
        run(Perplexity, texts("a"), models={"en": {"model": str(broken)}})
    with pytest.raises(ConfigError, match="is not a SentencePiece model"):
        run(Perplexity, texts("a"), models={"en": {"model": model, "tokenizer": str(broken)}})


def test_a_missing_library_is_named(model, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        run(Perplexity, texts("a"), models={"en": {"model": model}})
    assert MISSING in str(caught.value)
