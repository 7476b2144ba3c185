"""The command line: help that teaches, one-sentence errors, exit codes, one JSON object on the last line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from ops.cli import app
from ops.console import run
from tests.conftest import PROJECT
from tests.dataproc.corpora import write_lines, write_pipeline


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """A store with two versions of a small corpus."""
    folder = tmp_path_factory.mktemp("cli")
    write_lines(folder / "lines.jsonl", 60, {5: "same", 9: "same"})
    inputs = "[{name: lines, format: jsonl, path: lines.jsonl, url_field: url}]"
    path = write_pipeline(folder / "one.yaml", inputs)
    run_pipeline(path, str(folder / "store"), PlainLoop, quiet=True)
    text = Path(path).read_text().replace("version: v1", "version: v2").replace("[exact_dedup]", "[rules: {use: [c4]}, exact_dedup: {}]")
    (folder / "two.yaml").write_text(text)
    run_pipeline(str(folder / "two.yaml"), str(folder / "store"), PlainLoop, quiet=True)
    return folder


def call(world: Path, capsys, *arguments: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a command on the world's store."""
    code = run(app, [*arguments, "--store", str(world / "store")])
    out, errors = capsys.readouterr()
    return code, out, errors


def commands() -> list[list[str]]:
    """Every command, as the words that call it."""
    import typer.main

    root = typer.main.get_command(app)
    return [[group, name] for group, made in root.commands.items() for name in made.commands]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_commands_help_has_an_example_that_parses(words, capsys):
    assert run(app, [*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"example: headrace {' '.join(words)}" in " ".join(text.split())


def test_help_is_quick():
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "ops.cli", "--help"], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0 and all(group in done.stdout for group in ("data", "mix", "train", "eval"))
    assert time.monotonic() - start < 5


def test_verify_list_and_report(world, capsys, tmp_path):
    assert call(world, capsys, "data", "verify", "corpus@v1")[0] == 0
    code, out, _ = call(world, capsys, "data", "list", "--json")
    assert code == 0 and [v["version"].split("-")[0] for v in json.loads(out.splitlines()[-1])["versions"]] == ["corpus@v1", "corpus@v2"]
    code, out, _ = call(world, capsys, "data", "report", "corpus@v1", "--out", str(tmp_path / "r.html"))
    assert code == 0 and "<html" in (tmp_path / "r.html").read_text()[:500]


def test_why_tells_of_each_kind(world, capsys):
    code, out, _ = call(world, capsys, "data", "why", "corpus@v1", "https://example.org/5", "--json")
    one = json.loads(out.splitlines()[-1])["answers"][0]
    code, out, _ = call(world, capsys, "data", "why", "corpus@v1", "lines.jsonl#9", "--json")
    other = json.loads(out.splitlines()[-1])["answers"][0]
    winner, loser = sorted((one, other), key=lambda a: a["verdict"] != "kept")
    assert (winner["verdict"], loser["rule"], loser["detail"]["winner"]) == ("kept", "duplicate", winner["id"])
    code, out, _ = call(world, capsys, "data", "why", "corpus@v2", "lines.jsonl#0")
    assert code == 0 and "dropped by rules.c4.min_sentences: the value is 0, the threshold 5" in out


def test_diff_says_what_left_and_why(world, capsys):
    code, out, _ = call(world, capsys, "data", "diff", "corpus@v1", "corpus@v2")
    assert code == 0 and "rules.c4.min_sentences" in out and "version: 'v1' -> 'v2'" in out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["data", "why", "corpus@v1", "nothing"], 2, "has no record"),
        (["data", "verify", "corpus@v9"], 2, "no version corpus@v9"),
        (["data", "verify", "corpus"], 2, "is not a version"),
        (["data", "verify"], 2, "Missing argument"),
        (["data", "verfy", "corpus@v1"], 2, "No such command"),
        (["data", "run", "none.yaml"], 2, "no such file"),
        (["data", "tokenize", "corpus@v1", "--tokenizer", "none", "--name", "t", "--label", "v1"], 2, "no such file"),
        (["train", "docs", "nothing", "--step", "1"], 2, "no run nothing"),
        (["eval", "run", "nothing"], 2, "no run nothing"),
        (["mix", "show", "none.yaml"], 2, "no such file"),
    ],
)
def test_mistakes_are_one_sentence_with_their_exit_code(world, capsys, arguments, code, says):
    found, out, errors = call(world, capsys, *arguments)
    assert found == code and says in errors and errors.startswith("headrace: ") and len(errors.strip().splitlines()) == 1
    assert "Traceback" not in out + errors


def test_damage_is_exit_code_3_and_the_json_says_what(world, capsys, tmp_path):
    import shutil

    shutil.copytree(world / "store", tmp_path / "store")
    shard = next((tmp_path / "store").glob("corpus/v1-*/shards/*.parquet"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    code, out, errors = call(tmp_path, capsys, "data", "verify", "corpus@v1", "--json")
    assert code == 3 and "its bytes have changed" in errors
    assert json.loads(out.splitlines()[-1])["problems"][0].startswith("shards/part-00000.parquet")


def test_an_unexpected_error_is_one_sentence_and_a_log(capsys):
    broken = typer.Typer()

    @broken.command()
    def fail() -> None:
        raise ZeroDivisionError("not foreseen")

    assert run(broken, []) == 1
    errors = capsys.readouterr().err
    assert "unexpected ZeroDivisionError: not foreseen" in errors and "Traceback" not in errors
    log = Path(errors.split("details in ")[1].strip().rstrip(")"))
    assert "ZeroDivisionError" in log.read_text()
    log.unlink()


def test_output_into_a_closed_pipe_is_no_error(world):
    command = f"{sys.executable} -m ops.cli data why corpus@v1 lines.jsonl#1 --store {world / 'store'} | head -0"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=PROJECT, capture_output=True, text=True, env=dict(os.environ))
    assert "Traceback" not in done.stderr


@pytest.mark.ray
def test_a_dry_run_and_a_run_as_the_script_and_the_command(world, tmp_path):
    environment = {**os.environ, "PYTHONPATH": ""}
    script = [sys.executable, "dataproc/run.py", str(world / "one.yaml"), "--store", str(tmp_path / "s"), "--cpus", "1", "--json"]
    dry = subprocess.run([*script, "--dry-run"], cwd=PROJECT, capture_output=True, text=True, env=environment)
    assert dry.returncode == 0 and json.loads(dry.stdout.splitlines()[-1])["units"] >= 1 and not (tmp_path / "s").exists()
    done = subprocess.run(script, cwd=PROJECT, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    (expected,) = (world / "store" / "corpus").glob("v1-*")
    assert json.loads(done.stdout.splitlines()[-1])["version"] == f"corpus@{expected.name}"
    bad = subprocess.run([*script[:2], "none.yaml"], cwd=PROJECT, capture_output=True, text=True, env=environment)
    assert bad.returncode == 2 and bad.stderr.strip() == "headrace: none.yaml: no such file"


def test_rules_are_listed(capsys):
    assert run(app, ["data", "rules", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out.splitlines()[-1])["presets"]
    assert {"gopher_quality", "gopher_repetition", "c4", "fineweb", "refinedweb", "gopher_repetition@dolma"} <= listed.keys()
    assert run(app, ["data", "rules", "gopher_quality"]) == 0
    shown = capsys.readouterr().out
    assert "min_words" in shown and "50" in shown and "max_top_2gram" not in shown


def test_a_preset_that_is_none_is_named_with_the_nearest(capsys):
    assert run(app, ["data", "rules", "gopher_qualty"]) == 2
    assert "gopher_quality" in capsys.readouterr().err


def test_refilter_makes_a_version_and_refuses_rules_that_let_documents_in(world, capsys, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("use: [c4, gopher_quality]\nset: {gopher_quality.min_words: 1000}\n")
    code, out, _ = call(world, capsys, "data", "refilter", "corpus@v1", str(rules), "--label", "v3", "--json")
    result = json.loads(out.splitlines()[-1])
    assert code == 0 and result["parent"].startswith("corpus@v1") and sum(result["newly_dropped"].values()) > 0
    assert call(world, capsys, "data", "verify", "corpus@v3")[0] == 0
    rules.write_text("use: [gopher_quality]\n")
    code, out, errors = call(world, capsys, "data", "refilter", "corpus@v2", str(rules), "--label", "v4")
    assert code == 2 and "c4" in errors and not out


def test_a_rule_on_edited_lines_asks_for_the_edit(world, capsys):
    path = world / "edited.yaml"
    path.write_text((world / "two.yaml").read_text().replace("use: [c4]", "use: [refinedweb]"))
    code, _, errors = call(world, capsys, "data", "run", str(path), "--dry-run")
    assert code == 2 and "cut_word_fraction" in errors and "drop_lines" in errors
    path.write_text(path.read_text().replace("[rules:", "[clean: {drop_lines: [refinedweb]}, rules:"))
    assert call(world, capsys, "data", "run", str(path), "--dry-run")[0] == 0
