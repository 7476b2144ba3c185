"""The stage quality: scores as columns, thresholds, chance that favours good documents, models of the store."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import yaml

from dataproc.config import load_pipeline
from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.plan import make_plan
from dataproc.quality_models import on_signals
from dataproc.quality_models.training import train_quality
from dataproc.stages.quality import Quality, pareto_draw
from store.errors import ConfigError
from tests.dataproc.quality_models.test_training import write_rows
from tests.dataproc.stages.helpers import rules, run, texts

SHORT, LONG = "one two", "one two three four five six seven eight nine ten"


def model_of(tmp_path, name: str = "model.json", weight: float = 1.0) -> str:
    """A model whose log odds of "high" are weight * (words - 5)."""
    entry = {"name": "words", "log": False, "mean": 5.0, "scale": 1.0, "weight": weight}
    model = {"format": on_signals.FORMAT, "version": 1, "labels": ["low", "high"], "intercept": 0.0, "signals": [entry]}
    (tmp_path / name).write_text(json.dumps(model))
    return str(tmp_path / name)


def probability(words: int, weight: float = 1.0) -> float:
    return float(np.float32(1 / (1 + np.exp(-weight * (words - 5)))))


def test_scores_are_columns_and_the_threshold_drops(tmp_path):
    result = run(Quality, texts(SHORT, LONG, "", " \0 "), model=model_of(tmp_path), min_score=0.5)
    expected = [probability(2), probability(10), 0.0, 0.0]
    assert result.batch.column("quality").to_pylist() == pytest.approx(expected)
    assert result.batch.column("signals.quality").to_pylist() == pytest.approx(expected)
    assert rules(result) == {0: "low_score", 2: "low_score", 3: "low_score"}
    assert (result.verdicts[0].value, result.verdicts[0].threshold) == (pytest.approx(probability(2)), 0.5)


def test_several_models_are_columns_and_their_weighted_mean_counts(tmp_path):
    models = [
        {"name": "one", "model": model_of(tmp_path), "label": "high", "weight": 3},
        {"name": "two", "model": model_of(tmp_path, "two.json", -1.0), "label": "high"},
    ]
    result = run(Quality, texts(LONG), models=models)
    one, two = probability(10), probability(10, -1.0)
    assert result.batch.column("signals.quality_one").to_pylist() == pytest.approx([one])
    assert result.batch.column("signals.quality_two").to_pylist() == pytest.approx([two])
    assert result.batch.column("quality").to_pylist() == pytest.approx([(3 * one + two) / 4])
    assert not result.verdicts


def test_a_language_has_its_own_threshold(tmp_path):
    batch = texts(SHORT, SHORT, SHORT)
    batch = batch.set_column(batch.schema.get_field_index("language"), "language", pa.array(["de", "en-GB", None]))
    result = run(Quality, batch, model=model_of(tmp_path), min_score=0.5, min_score_by_language={"en": 0.01})
    assert rules(result) == {0: "low_score", 2: "low_score"}


def test_the_pareto_rule_keeps_by_chance_that_belongs_to_the_document(tmp_path):
    draws = np.array([pareto_draw(f"document {k}", 9, 0) for k in range(20_000)])
    for threshold in (0.05, 0.1, 0.3):  # P(x > t) = (1 + t)^-9
        assert (draws > threshold).mean() == pytest.approx((1 + threshold) ** -9, abs=0.012)
    assert pareto_draw("a", 9, 0) == pareto_draw("a", 9, 0) != pareto_draw("a", 9, 1)
    batch = texts(*[SHORT] * 50, *[LONG] * 50)
    result = run(Quality, batch, model=model_of(tmp_path), pareto_alpha=9)
    dropped = set(rules(result))
    assert len([row for row in dropped if row >= 50]) < 10 < 40 < len([row for row in dropped if row < 50])
    for verdict in result.verdicts:
        document = batch.column("id")[verdict.row].as_py()
        assert verdict.threshold == 1 - pareto_draw(document, 9, 0) >= verdict.value


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "name one model"),
        ({"model": "M", "models": [{"name": "a", "model": "M", "label": "high"}]}, "name one model"),
        ({"models": [{"name": "a", "model": "M", "label": "high"}] * 2}, 'two models are named "a"'),
        ({"model": "nowhere.bin"}, "file not found: nowhere.bin"),
        ({"model": "M", "label": "hihg"}, 'did you mean "high"'),
    ],
)
def test_mistakes_are_told(tmp_path, settings, told):
    path = model_of(tmp_path)
    filled = yaml.safe_load(yaml.safe_dump(settings).replace(" M\n", f" {path}\n").replace("{model: M", f"{{model: {path}"))
    with pytest.raises((ConfigError, ValueError), match=told):
        run(Quality, texts(SHORT), **filled)


def test_what_is_no_model_is_told(tmp_path):
    (tmp_path / "some.txt").write_text("words")
    with pytest.raises(ConfigError, match="is no quality model"):
        run(Quality, texts(SHORT), model=str(tmp_path / "some.txt"))


@pytest.fixture
def pipeline(tmp_path):
    """Writes a pipeline over forty documents with these stages, and gives its path."""

    def write(*stages) -> str:
        write_rows(tmp_path / "rows.jsonl", 40)
        raw = {
            "dataset": "web",
            "version": "v1",
            "owner": "data@example.org",
            "inputs": [{"name": "rows", "format": "jsonl", "path": "rows.jsonl"}],
            "stages": list(stages),
        }
        (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(raw))
        return str(tmp_path / "pipeline.yaml")

    return write


def test_a_model_of_the_store_scores_a_run_and_stands_in_its_manifest(tmp_path, pipeline):
    store = str(tmp_path / "store")
    training = {
        "name": "good_words",
        "version": "v1",
        "owner": "data@example.org",
        "data": [{"path": write_rows(tmp_path / "training.jsonl", seed=5), "url_field": "url"}],
        "labels": {"high": "good", "low": "bad"},
        "fasttext": {"epochs": 5, "bucket": 4096},
    }
    (tmp_path / "training.yaml").write_text(yaml.safe_dump(training))
    model = train_quality(str(tmp_path / "training.yaml"), store)
    path = pipeline({"quality": {"model": "good_words@v1", "min_score": 0.5}}, {"keep_rate": {"rate": 0.25}})
    result = run_pipeline(path, store, PlainLoop, quiet=True)
    assert result["counts"]["dropped"] == {"keep_rate.below_quantile": 15, "quality.low_score": 20} and result["counts"]["kept"] == 5
    manifest = json.loads((tmp_path / "store" / "web").glob("*/manifest.json").__next__().read_text())
    assert list(manifest["artefacts"].values()) == [model.manifest["model"]["xxh3_128"]]
    stated = next(stage["quality"] for stage in manifest["config"]["stages"] if "quality" in stage)
    assert stated["model"] == model.reference


def test_another_model_makes_another_version(tmp_path, pipeline):
    path = pipeline({"quality": {"model": model_of(tmp_path), "min_score": 0.2}})
    store = str(tmp_path / "store")
    before = make_plan(load_pipeline(path).resolved(store)).digest
    assert make_plan(load_pipeline(path).resolved(store)).digest == before
    model_of(tmp_path, weight=2.0)
    assert make_plan(load_pipeline(path).resolved(store)).digest != before
