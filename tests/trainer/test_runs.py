"""A run's folder tells what the run is, and refuses to go on as another."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mixtures.mixture import load_mixture
from store.errors import ConfigError
from tests.trainer.made import recipe, world
from trainer.recipe import load_recipe
from trainer.runs import RunFolder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    world(made)
    return made


def kept(folder: Path, name: str) -> RunFolder:
    store, spec = str(folder / "store"), load_recipe(recipe(folder, name))
    run = RunFolder.of(store, name)
    run.write(spec, load_mixture(spec.mixture, store))
    return run


def test_a_run_may_move_with_its_store_and_outlive_its_mixture_file(folder, tmp_path):
    run = kept(folder, "moved")
    digest = run.mixture().digest
    shutil.copytree(folder / "store", tmp_path / "elsewhere")
    text = (folder / "mix.yaml").read_text()
    (folder / "mix.yaml").unlink()
    moved = RunFolder.of(str(tmp_path / "elsewhere"), "moved")
    assert moved.mixture().digest == digest and moved.mixture().sources[0].version.url.startswith(str(tmp_path))
    assert moved.recipe().digest() == run.recipe().digest()
    (folder / "mix.yaml").write_text(text)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"optimizer": {"lr": 0.02}}, r"\(optimizer.lr: 0.01 -> 0.02\)"),
        ({"seed": 1, "workers": 1}, r"\(seed: 0 -> 1\)"),
        ({"model": {"layers": 2, "width": 32, "heads": 2}}, r"\(model.layers: 1 -> 2\)"),
    ],
)
def test_what_decides_the_losses_may_not_change(folder, changes, says):
    run = kept(folder, "fixed")
    changed = load_recipe(recipe(folder, "fixed", **changes))
    with pytest.raises(ConfigError, match=says):
        run.require_same(changed, load_mixture(changed.mixture, str(folder / "store")))


def test_what_does_not_decide_them_may(folder):
    run = kept(folder, "free")
    changed = load_recipe(recipe(folder, "free", workers=1, owner="you@example.org", checkpoint={"every": 5, "keep": 9}, eval={"every": 3}))
    run.require_same(changed, load_mixture(changed.mixture, str(folder / "store")))


def test_another_mixture_is_refused(folder):
    run = kept(folder, "mixed")
    (folder / "other.yaml").write_text((folder / "mix.yaml").read_text().replace("seed: 3", "seed: 4"))
    changed = load_recipe(recipe(folder, "mixed", mixture="other.yaml"))
    with pytest.raises(ConfigError, match=r"mixture.seed: 3 -> 4"):
        run.require_same(changed, load_mixture(changed.mixture, str(folder / "store")))


def test_workers_that_cannot_share_the_batch_are_refused(folder):
    path = recipe(folder, "odd")
    with pytest.raises(ConfigError, match=r"odd.recipe.yaml: batch_size 4 must be a multiple of workers 3"):
        load_recipe(path).with_workers(3, path)


def test_an_unknown_run_names_those_there_are(folder):
    kept(folder, "known")
    with pytest.raises(ConfigError, match=r"no run nothing in .*runs there: .*known"):
        RunFolder.of(str(folder / "store"), "nothing").describe()


def row(step: int) -> dict:
    return {"step": step, "loss": 1.0 / (step + 1)}


def test_metrics_after_a_checkpoint_are_forgotten_and_a_torn_row_is_none(tmp_path):
    run = RunFolder(tmp_path)
    assert run.last_metrics() is None and run.read_metrics() == []
    for step in range(200):
        run.append_metrics(row(step))
    with open(run.metrics, "ab") as stream:
        stream.write(b'{"step": 200, "lo')
    assert run.last_metrics() == row(199) and len(run.read_metrics()) == 200
    run.cut_metrics(150)
    assert run.read_metrics() == [row(step) for step in range(150)]
    run.cut_metrics(0)
    assert run.read_metrics() == [] and run.last_metrics() is None


def test_a_torn_first_row_is_none(tmp_path):
    RunFolder(tmp_path).metrics.write_bytes(b'{"st')
    assert RunFolder(tmp_path).last_metrics() is None


def test_a_new_attempt_ends_the_one_before(tmp_path):
    run = RunFolder(tmp_path)
    first = run.begin_attempt()
    assert run.is_current(first)
    second = run.begin_attempt()
    assert run.is_current(second) and not run.is_current(first)


def test_scratch_of_killed_attempts_is_removed(tmp_path):
    run = RunFolder(tmp_path)
    (tmp_path / "ray-dead").mkdir()
    with run.scratch("alive") as place:
        assert [p.name for p in tmp_path.iterdir()] == ["ray-alive"] and place == str(tmp_path / "ray-alive")
    assert list(tmp_path.iterdir()) == []
