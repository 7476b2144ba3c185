"""Training: the same bytes again, nothing of a site or text on both sides, and what the models are worth on data they have not seen."""

from __future__ import annotations

import gzip
import json
import random

import fasttext
import numpy as np
import pytest
import yaml

from dataproc.quality_models import training
from dataproc.quality_models.config import load_training
from dataproc.quality_models.examples import each_text_once, read_examples, site_of, split
from dataproc.quality_models.metrics import roc_auc
from dataproc.quality_models.scoring import open_scorer
from dataproc.quality_models.training import read_report, train_quality
from dataproc.versions import verify
from store.errors import CheckFailed, ConfigError

GOOD = "river stone garden teacher window science letter morning history bridge forest music".split()
BAD = "casino winner prize click bonus offer viagra lottery cheap jackpot deal loan".split()


def write_rows(path, count: int = 400, seed: int = 0) -> str:
    """Documents of two kinds from forty sites, told apart by their words."""
    rng = random.Random(seed)
    rows = []
    for k in range(count):
        words = (GOOD, BAD)[k % 2]
        text = " ".join(rng.choice(words) for _ in range(12)) + f" number{rng.randrange(10**6)}"
        rows.append({"text": text, "label": ("good", "bad")[k % 2], "url": f"https://www.site{rng.randrange(40)}.org/{k}"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def file_of(tmp_path):
    """Writes a training file and gives its path."""

    def write(rows: str, **settings) -> str:
        raw = {
            "name": "quality",
            "version": "v1",
            "owner": "data@example.org",
            "data": [{"path": rows, "url_field": "url"}],
            "labels": {"high": "good", "low": "bad"},
            "fasttext": {"epochs": 5, "bucket": 4096},
        } | settings
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(yaml.safe_dump(raw))
        return str(path)

    return write


@pytest.mark.parametrize("engine", ["fasttext", "signals"])
def test_the_same_data_in_any_order_gives_the_same_model(tmp_path, file_of, engine):
    data = write_rows(tmp_path / "rows.jsonl")
    lines = (tmp_path / "rows.jsonl").read_text().splitlines(keepends=True)
    with gzip.open(tmp_path / "again.jsonl.gz", "wt") as stream:
        stream.writelines(random.Random(3).sample(lines, len(lines)))
    made = []
    for k, path in enumerate((data, data, str(tmp_path / "again.jsonl.gz"))):
        config = file_of(path, engine=engine, data=[{"path": path, "url_field": "url", "id_field": "url"}])
        out = tmp_path / f"model{k}"
        version = train_quality(config, str(tmp_path / f"store{k}"), str(out))
        assert verify(version) == []
        made.append((out.read_bytes(), version.manifest["digest"]))
    assert made[0] == made[1] and made[2][0] == made[0][0]


def test_no_site_is_on_both_sides_and_the_report_says_what_was_read(tmp_path, file_of):
    data = write_rows(tmp_path / "rows.jsonl")
    with open(data, "a") as stream:
        stream.write((tmp_path / "rows.jsonl").read_text().splitlines()[0].replace("/0", "/copy") + "\n")
        stream.write("{broken\n")
        stream.write(json.dumps({"text": "neither", "label": "unknown"}) + "\n")
    config = load_training(file_of(data))
    examples, facts = read_examples(config)
    unique, joined = each_text_once(examples, config)
    parts, _ = split(unique, config)
    assert not set(parts.train.sites) & set(parts.heldout.sites)
    assert joined["equal"] == 1 and facts["other_labels"] == {"unknown": 1} and sum(facts["damaged"].values()) == 1
    report = read_report(train_quality(file_of(data), str(tmp_path / "store")))
    assert report["data"]["sites_on_both_sides"] == 0 and report["heldout"]["roc_auc"] == 1.0
    assert {entry["feature"] for entry in report["features"]["for"]} & set(GOOD)
    assert {entry["feature"] for entry in report["features"]["against"]} & set(BAD)
    assert sum(report["data"]["train"].values()) + sum(report["data"]["heldout"].values()) == 400


def test_texts_with_contradicting_labels_are_left_out(tmp_path, file_of):
    data = write_rows(tmp_path / "rows.jsonl")
    first = json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[0])
    with open(data, "a") as stream:
        stream.write(json.dumps({**first, "label": "bad"}) + "\n")
    report = read_report(train_quality(file_of(data), str(tmp_path / "store")))
    assert report["data"]["joined"]["contradicting"] == 1
    assert sum(report["data"]["train"].values()) + sum(report["data"]["heldout"].values()) == 399


def test_balance_takes_as_many_of_each_label(tmp_path, file_of):
    rows = [json.loads(line) for line in open(write_rows(tmp_path / "all.jsonl"))]
    kept = [row for k, row in enumerate(rows) if row["label"] == "good" or k % 10 == 1]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    data = str(tmp_path / "rows.jsonl")
    plain = read_report(train_quality(file_of(data), str(tmp_path / "store")))["data"]
    even = read_report(train_quality(file_of(data, balance="undersample"), str(tmp_path / "store")))["data"]
    assert even["train"]["high"] == even["train"]["low"] == plain["train"]["low"]
    assert even["left_out_for_balance"] == plain["train"]["high"] - plain["train"]["low"] and even["heldout"] == plain["heldout"]


def test_the_fasttext_library_reads_the_model_and_gives_the_same_scores(tmp_path, file_of):
    out = str(tmp_path / "model.bin")
    train_quality(file_of(write_rows(tmp_path / "rows.jsonl")), str(tmp_path / "store"), out)
    library, ours = fasttext.load_model(out), open_scorer(out, None, "test")
    texts = ["river stone cheap", "casino", "unseen words only", "garden number17 é 東京", "river </s> casino"]
    import pyarrow as pa

    scores = ours.scores(pa.array(texts, pa.large_string()))[:, ours.labels.index("high")]
    for text, score in zip(texts[:4], scores.tolist(), strict=False):
        named = {label: value for value, label in library.f.predict(text + "\n", -1, 0.0, "strict")}
        assert named["__label__high"] == pytest.approx(score, abs=5e-5)  # the library adds 1e-5 to every probability


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"labels": {"high": "good", "low": "good"}}, "stands for two labels"),
        ({"labels": {"high": "good", "low": "nowhere"}}, 'label "low": no document has it'),
        ({"positive": "hihg"}, 'did you mean "high"'),
        ({"holdout": 0}, "holdout"),
        ({"fasttext": {"min_n": 3, "max_n": 2}}, "no lengths of character n-grams"),
        ({"signals": {"use": ["wrods"]}}, 'did you mean "words"'),
        ({"epochs": 3}, "unknown key"),
    ],
)
def test_mistakes_in_the_file_are_told_in_a_sentence(tmp_path, file_of, settings, told):
    with pytest.raises(ConfigError, match=told):
        train_quality(file_of(write_rows(tmp_path / "rows.jsonl"), **settings), str(tmp_path / "store"))


def test_damaged_data_is_refused_and_one_site_cannot_be_split(tmp_path, file_of):
    data = tmp_path / "rows.jsonl"
    write_rows(data)
    data.write_text(data.read_text() + "broken\n" * 40)
    with pytest.raises(CheckFailed, match=r"40 of 440 labelled records cannot be read"):
        train_quality(file_of(str(data)), str(tmp_path / "store"))
    rows = [{**json.loads(line), "url": "https://one.example.org/"} for line in open(write_rows(data))]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ConfigError, match="side of the split"):
        train_quality(file_of(str(data)), str(tmp_path / "store"))


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://www.example.org/a", "example.org"),
        ("http://a.b.example.co.uk:8080/x", "example.co.uk"),
        ("https://Example.ORG./", "example.org"),
        ("http://192.168.0.1/", "192.168.0.1"),
    ],
)
def test_the_site_of_a_url(url, site):
    assert site_of(url) == site


def heldout_auc(config) -> float:
    """Of a model that learns from one side of the split and is judged on the other."""
    unique, _ = each_text_once(read_examples(config)[0], config)
    parts, _ = split(unique, config)
    return auc_of(config, parts.train, parts.heldout)


def auc_of(config, train, heldout) -> float:
    import tempfile

    content, _ = training._trained(config, train)
    with tempfile.NamedTemporaryFile(suffix=".bin") as stream:
        stream.write(content)
        stream.flush()
        scorer = open_scorer(stream.name, None, "test")
        return roc_auc(*training._scores(config, scorer, heldout))


def real_file(file_of, shared_data, name: str, **settings) -> str:
    data = [{"path": str(shared_data / "quality" / f"{name}.jsonl.gz")}]
    return file_of("", data=data, labels={"high": "high", "low": "low"}, fasttext={}, **settings)


@pytest.mark.parametrize("name", ["sms_spam", "youtube_spam"])
def test_spam_is_told_apart_on_documents_that_were_not_seen(file_of, shared_data, name):
    assert heldout_auc(load_training(real_file(file_of, shared_data, name))) >= 0.95


def test_labels_that_were_shuffled_teach_nothing(file_of, shared_data):
    """A score far from one half would mean that the held-out side leaks into training. One shuffle's AUC has a standard deviation of
    0.015 on these 1,500 held-out documents, the mean of six one of 0.006."""
    config = load_training(real_file(file_of, shared_data, "clickbait_headlines", engine="signals"))
    unique, _ = each_text_once(read_examples(config)[0], config)
    found = []
    for seed in range(6):
        labels = np.random.default_rng(seed).permutation(unique.labels)
        parts, _ = split(type(unique)(unique.texts, labels, unique.ids, unique.sites, unique.languages, unique.sources), config)
        found.append(auc_of(config, parts.train, parts.heldout))
    assert np.mean(found) == pytest.approx(0.5, abs=0.03)
