"""From document versions to scores, command by command, without Ray: tokenize, mix, train docs, eval."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mixtures.mixture import load_mixture
from ops.cli import app
from ops.console import run
from tests.trainer.made import recipe, world
from trainer import checkpoint
from trainer.model import Decoder
from trainer.recipe import load_recipe
from trainer.runs import RunFolder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("commands")
    world(made)
    return made


def call(folder: Path, capsys, *arguments: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a command on the folder's store."""
    code = run(app, [*arguments, "--store", str(folder / "store")])
    out, errors = capsys.readouterr()
    return code, out, errors


def result(folder: Path, capsys, *arguments: str) -> dict:
    code, out, errors = call(folder, capsys, *arguments, "--json")
    assert code == 0, errors
    return json.loads(out.splitlines()[-1])


def test_tokenize_makes_a_version_and_says_where(folder, capsys):
    made = result(folder, capsys, "data", "tokenize", "one@v1", "two@v1", "--tokenizer", "train:300", "--name", "all", "--label", "v1")
    manifest = json.loads((Path(made["url"]) / "manifest.json").read_text())
    assert made["digest"] == manifest["digest"] and made["counts"]["documents"] + made["counts"]["heldout_documents"] == 500
    assert call(folder, capsys, "data", "verify", "all@v1")[0] == 0
    code, _, errors = call(folder, capsys, "data", "tokenize", "one@v1", "--tokenizer", "none.json", "--name", "x", "--label", "v1")
    assert code == 2 and len(errors.splitlines()) == 1 and "none.json: no such file" in errors


def test_check_takes_a_length_or_finds_the_longest(folder, capsys):
    mix = str(folder / "mix.yaml")
    longest = result(folder, capsys, "mix", "check", mix)
    assert max(row["epochs"] / row["max_epochs"] for row in longest["sources"]) == pytest.approx(1, abs=0.01)
    planned = result(folder, capsys, "mix", "check", mix, "--tokens", "1600")
    assert planned["samples"] == 100 and [row["samples"] for row in planned["sources"]] == [75, 25]
    code, _, errors = call(folder, capsys, "mix", "check", mix, "--tokens", "1e9")
    assert code == 2 and "max_epochs is 4" in errors


def test_show_prints_each_source(folder, capsys):
    code, out, _ = call(folder, capsys, "mix", "show", str(folder / "mix.yaml"))
    assert code == 0 and "one_tokens@v1" in out and "two_tokens@v1" in out and "block of 4 samples" in out


def test_documents_of_a_step_and_scores_of_a_checkpoint(folder, capsys):
    spec = load_recipe(recipe(folder, "asked"))
    store = RunFolder.of(str(folder / "store"), "asked")
    mixture = load_mixture(spec.mixture, str(folder / "store"))
    store.write(spec, mixture)
    model = Decoder(spec.model, mixture.tokenizer["vocabulary"])
    model.initialise(0)
    path = checkpoint.save(store.checkpoints, 12, {"model": model.state_dict()}, {"reader": {}}, 2)
    samples = result(folder, capsys, "train", "docs", "asked", "--step", "5")["samples"]
    assert [sample["position"] for sample in samples] == [20, 21, 22, 23]
    assert all(sum(after - first for first, after in (d["tokens"] for d in s["documents"])) == 17 for s in samples)
    assert call(folder, capsys, "train", "docs", "asked", "--step", "12")[0] == 2
    scored = result(folder, capsys, "eval", "run", "asked")
    assert scored["step"] == 12 and scored["scores"]["total"]["bits_per_byte"] > 0
    assert result(folder, capsys, "eval", "run", str(path))["scores"] == scored["scores"]
    code, out, _ = call(folder, capsys, "eval", "run", "asked", "--step", "12")
    assert code == 0 and "bits per byte" in out and "source one" in out
    code, _, errors = call(folder, capsys, "eval", "run", str(path), "--step", "4")
    assert code == 2 and "--step says 4" in errors
