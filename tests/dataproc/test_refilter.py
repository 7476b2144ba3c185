"""A refiltered version holds what a full run with the new rules holds, and what it cannot know it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dataproc.decisions import why
from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.refilter import refilter
from dataproc.versions import open_version, verify
from store import files
from store.errors import ConfigError, HeadraceError

WORDS = "the mill and its wheel turn to grind corn that people of a town have brought with them".split()


def text(number: int, words: int) -> str:
    return (
        " ".join(WORDS[(number * 7 + k * (1 + number % 5)) % len(WORDS)] + ("," if k % 9 == number % 9 else "") for k in range(words)) + "."
    )


@pytest.fixture
def folder(tmp_path) -> Path:
    rows = [{"text": text(number, 5 + number % 60), "language": ("en", "de", None)[number % 3]} for number in range(300)]
    rows += [dict(row) for row in rows[::4]]  # copies
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def pipeline(folder: Path, label: str, rules: str, stages: str = "") -> str:
    path = folder / f"{label}.yaml"
    path.write_text(
        f"dataset: web\nversion: {label}\nowner: a@example.org\n"
        "inputs: [{name: lines, format: jsonl, path: lines.jsonl, language_field: language}]\n"
        f"stages:\n{stages}  - rules: {rules}\n  - exact_dedup: {{}}\n"
        "output: {shard_mb: 0.01}\nlimits: {unit_mb: 0.005}\n"
    )
    return str(path)


def run(folder: Path, label: str, rules: str, stages: str = "") -> dict:
    return run_pipeline(pipeline(folder, label, rules, stages), str(folder / "store"), PlainLoop, quiet=True)


def again(folder: Path, reference: str, rules: str, label: str = "again") -> dict:
    (folder / "rules.yaml").write_text(rules)
    return refilter(reference, str(folder / "rules.yaml"), label, str(folder / "store"), PlainLoop, quiet=True)


def test_on_a_ray_pool_it_gives_the_same_bytes(folder, ray_pool):
    assert run(folder, "v1", OLD)["shards"] > 2
    plain = again(folder, "web@v1", OLD.replace("min_words: 10", "min_words: 30"))
    pooled = refilter("web@v1", str(folder / "rules.yaml"), "pooled", str(folder / "store"), ray_pool, quiet=True)
    assert pooled["digest"] == plain["digest"] and pooled["newly_dropped"] == plain["newly_dropped"] != {}
    verify(open_version(str(folder / "store"), "web@pooled"))


def decisions(folder: Path, reference: str) -> dict[str, tuple]:
    version = open_version(str(folder / "store"), reference)
    found = {}
    from dataproc.parquet import iterate_batches

    for part in version.manifest["decisions"]:
        for batch in iterate_batches(files.join(version.url, part["path"])):
            found |= {row["id"]: (row["verdict"], row["stage"], row["rule"], row["value"], row["threshold"]) for row in batch.to_pylist()}
    return found


OLD = "{use: [gopher_quality], set: {gopher_quality.min_words: 10, gopher_quality.min_stop_words: null}}"


@pytest.mark.parametrize(
    "new",
    [
        "{use: [gopher_quality], set: {gopher_quality.min_words: 30, gopher_quality.min_stop_words: null}}",
        "{use: [gopher_quality], set: {gopher_quality.min_words: 10, gopher_quality.min_stop_words: null}, by_language: {de: {gopher_quality.min_words: 40}}}",
        "{use: [gopher_quality, gopher_repetition], set: {gopher_quality.min_words: 10, gopher_quality.min_stop_words: null}}",
        "{use: [gopher_quality], set: {gopher_quality.min_words: 10, gopher_quality.min_stop_words: 7}, signals: [word_entropy]}",
        "{use: [gopher_quality], set: {gopher_quality.min_words: 10, gopher_quality.min_stop_words: null}, by_domain: {web: {set: {gopher_quality.min_words: 30}}}}",
    ],
)
def test_it_is_what_a_full_run_gives(folder, new):
    old = run(folder, "v1", OLD)
    full = run(folder, "v2", new)
    result = again(folder, "web@v1", f"rules: {new}")
    assert full["counts"] == result["counts"] and result["counts"]["kept"] < old["counts"]["kept"]
    before, whole_run, refiltered = (decisions(folder, f"web@{label}") for label in ("v1", "v2", "again"))
    assert {name: row[0] for name, row in whole_run.items()} == {name: row[0] for name, row in refiltered.items()}
    for name, row in refiltered.items():
        # What was dropped before keeps the reason of that time, with the threshold of that time.
        assert row == (before[name] if before[name][1] == "rules" else whole_run[name])
    store = str(folder / "store")
    made, whole = open_version(store, "web@again"), open_version(store, "web@v2")
    assert verify(made) == []
    columns = ["id", "text", "content_hash", "language", "meta"]
    rows = [sorted(str(row) for batch in version.batches(columns) for row in batch.to_pylist()) for version in (made, whole)]
    assert rows[0] == rows[1]
    signals = [
        {row["id"]: row["signals"] for batch in version.batches(["id", "signals"]) for row in batch.to_pylist()}
        for version in (made, whole)
    ]
    assert signals[0] == signals[1]
    assert made.manifest["parents"] == [open_version(store, "web@v1").manifest["digest"]]
    assert made.manifest["config"]["stages"] == whole.manifest["config"]["stages"]


def test_a_second_time_gives_the_same_version(folder):
    run(folder, "v1", OLD)
    new = OLD.replace("min_words: 10", "min_words: 20")
    assert again(folder, "web@v1", new)["digest"] == again(folder, "web@v1", new)["digest"]


def test_why_still_tells_the_story(folder):
    run(folder, "v1", OLD)
    again(folder, "web@v1", OLD.replace("min_words: 10", "min_words: 30"))
    version = open_version(str(folder / "store"), "web@again")
    name = next(name for name, row in decisions(folder, "web@again").items() if row[3] is not None and 10 <= row[3] < 30)
    (answer,) = why(version, name)
    assert "threshold 30" in answer["explanation"]


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (OLD.replace("min_words: 10", "min_words: 5"), "gopher_quality.min_words: the threshold 10 would be 5"),
        (OLD.replace("min_words: 10", "min_words: null"), "gopher_quality.min_words: it would not apply"),
        ("{use: [c4]}", "it would not apply"),
        (OLD[:-1] + ", by_language: {de: {gopher_quality.min_words: 5}}}", "gopher_quality.min_words for de: the threshold 10 would be 5"),
        (
            "{use: [gopher_quality, refinedweb], set: {gopher_quality.min_stop_words: null}}",
            "cut_word_fraction is what a stage that cuts lines measures",
        ),
        ("{use: [gopher_qualty]}", "did you mean"),
        (OLD[:-1] + ", by_domain: {web: {use: [code]}}}", "gopher_quality.min_words for the domain web: it would not apply"),
        (OLD[:-1] + ", by_domain: {wed: {use: [code]}}}", 'unknown domain "wed": did you mean "web"'),
    ],
)
def test_what_would_need_texts_that_are_gone_is_refused(folder, new, says):
    run(folder, "v1", OLD)
    with pytest.raises(ConfigError, match=says):
        again(folder, "web@v1", new)


def test_a_copy_in_other_white_space_is_not_guessed_about(folder):
    """Its normalised text is the same, its signals are not: whether it passes the new rules cannot be known."""
    lines = [{"text": text(1, 40)}, {"text": text(1, 40).replace(" ", "\n")}]
    (folder / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    run(folder, "v1", "{use: [gopher_quality], set: {gopher_quality.min_words: 10}}")
    with pytest.raises(HeadraceError, match="its own text or language is not the same"):
        again(folder, "web@v1", "{use: [gopher_quality], set: {gopher_quality.min_words: 50}}")


def test_signals_that_are_missing_come_from_the_texts_unless_a_later_stage_changed_them(folder):
    path = Path(pipeline(folder, "v1", OLD))
    path.write_text(path.read_text().replace("  - exact_dedup", "  - clean: {}\n  - exact_dedup"))
    run_pipeline(str(path), str(folder / "store"), PlainLoop, quiet=True)
    with pytest.raises(ConfigError, match="its stage clean changed the texts after the rules"):
        again(folder, "web@v1", OLD.replace("[gopher_quality]", "[gopher_quality, c4]"))


DOMAINS = "{use: [gopher_quality], set: {gopher_quality.min_words: 10, gopher_quality.min_stop_words: null}, by_domain: {books: {set: {gopher_quality.min_words: %d}}}}"


def two_domains(folder: Path, label: str, rules: str) -> None:
    path = Path(pipeline(folder, label, rules))
    other = "{name: others, format: jsonl, path: others.jsonl, language_field: language, domain: books}"
    path.write_text(path.read_text().replace("language_field: language}]", "language_field: language}, " + other + "]"))
    run_pipeline(str(path), str(folder / "store"), PlainLoop, quiet=True)


def test_a_domain_gets_stricter_rules_of_its_own(folder):
    (folder / "others.jsonl").write_text(
        "".join(json.dumps({"text": text(number, 15 + number) + f" {number}"}) + "\n" for number in range(20))
    )
    two_domains(folder, "v1", DOMAINS % 12)
    two_domains(folder, "v2", DOMAINS % 25)
    result = again(folder, "web@v1", DOMAINS % 25)
    assert result["newly_dropped"] and open_version(str(folder / "store"), "web@v2").manifest["counts"] == result["counts"]
    with pytest.raises(ConfigError, match="gopher_quality.min_words for the domain books: the threshold 12 would be 10"):
        again(folder, "web@v1", OLD, "looser")


def test_a_copy_in_another_domain_is_not_guessed_about(folder):
    for name in ("lines", "others"):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"text": text(number, 15)}) + "\n" for number in range(8)))
    two_domains(folder, "v1", DOMAINS % 12)
    with pytest.raises(HeadraceError, match="its own domain is not the same"):
        again(folder, "web@v1", DOMAINS % 25)
