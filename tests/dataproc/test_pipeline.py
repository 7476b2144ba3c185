"""A whole run: same bytes however it is run, nothing lost, every decision can be asked, every mistake is found."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dataproc.decisions import why
from dataproc.documents import DECISION_SCHEMA, document_id
from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.versions import diff, open_version, verify
from store import files
from store.errors import CheckFailed, ConfigError, StoreError
from tests.dataproc.corpora import write_lines, write_pipeline

INPUT = "[{name: lines, format: jsonl, path: lines.jsonl, url_field: url}]"


@pytest.fixture
def folder(tmp_path) -> Path:
    write_lines(tmp_path / "lines.jsonl", 700, longest=12)
    lines = (tmp_path / "lines.jsonl").read_text().splitlines()
    lines[3] = '{"text": "cut'
    lines[5] = "[1, 2]"
    (tmp_path / "lines.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def run(folder: Path, store: str = "store", executor=PlainLoop, **options):
    path = write_pipeline(folder / "p.yaml", INPUT, limits="{unit_mb: 0.005, max_quarantined_fraction: 0.01}", output="{shard_mb: 0.01}")
    return run_pipeline(path, str(folder / store), executor, quiet=True, **options)


def shard_hashes(store: str) -> list[str]:
    return [s["xxh3_128"] for s in open_version(store, "corpus@v1").manifest["shards"]]


def test_every_record_has_one_decision_and_counts_add_up(folder):
    result = run(folder)
    counts = result["counts"]
    assert counts["input"] == 700 == counts["kept"] + sum(counts["dropped"].values()) + counts["quarantined"]
    version = open_version(str(folder / "store"), "corpus@v1")
    assert len(version.manifest["shards"]) > 1
    verdicts, locators = Counter(), []
    for part in version.manifest["decisions"]:
        table = pq.read_table(files.join(version.url, part["path"]))
        assert table.schema.names == DECISION_SCHEMA.names
        verdicts.update(table["verdict"].to_pylist())
        locators += table["locator"].to_pylist()
    assert locators == [f"lines.jsonl#{i}" for i in range(700)]
    assert verdicts == {"kept": counts["kept"], "dropped": counts["dropped"]["exact_dedup.duplicate"], "quarantined": 2}
    assert verify(version) == []


def test_texts_are_unique_and_the_smallest_id_won(folder):
    run(folder)
    ids = {}
    for number, line in enumerate((folder / "lines.jsonl").read_text().splitlines()):
        if number not in (3, 5):
            ids.setdefault(json.loads(line)["text"], []).append(document_id("lines", f"lines.jsonl#{number}"))
    version = open_version(str(folder / "store"), "corpus@v1")
    kept = {row["text"]: row["id"] for batch in version.batches(["id", "text"]) for row in batch.to_pylist()}
    assert kept == {text: min(names) for text, names in ids.items()}


def test_why_explains_kept_duplicate_and_quarantined(folder):
    run(folder)
    version = open_version(str(folder / "store"), "corpus@v1")
    duplicate = next(row for part in version.manifest["decisions"] for row in _rows(version, part) if row["rule"] == "duplicate")
    (answer,) = why(version, duplicate["id"])
    winner = answer["detail"]["winner"]
    assert winner in answer["explanation"]
    (kept,) = why(version, winner)
    assert kept["verdict"] == "kept" and kept["document"]["id"] == winner
    assert why(version, kept["detail"]["url"]) == [kept]
    (bad,) = why(version, "lines.jsonl#5")
    assert (bad["verdict"], bad["rule"]) == ("quarantined", "not_object") and bad["explanation"].startswith(
        "quarantined by read.not_object"
    )
    assert why(version, "nothing") == []


def _rows(version, part):
    return pq.read_table(files.join(version.url, part["path"])).to_pylist()


@pytest.mark.ray
def test_ray_and_a_plain_loop_give_the_same_bytes(folder, ray_pool):
    plain = run(folder)
    on_ray = run(folder, "other", ray_pool)
    assert on_ray["digest"] == plain["digest"]
    assert shard_hashes(str(folder / "store")) == shard_hashes(str(folder / "other"))


def test_unit_size_changes_no_document(folder):
    run(folder)
    path = write_pipeline(folder / "q.yaml", INPUT, limits="{unit_mb: 1, max_quarantined_fraction: 0.01}", output="{shard_mb: 0.01}")
    run_pipeline(path, str(folder / "other"), PlainLoop, quiet=True)
    one, two = (open_version(str(folder / s), "corpus@v1") for s in ("store", "other"))
    assert [b.to_pylist() for b in one.batches(batch_rows=10**6)] != []
    texts = [[row for batch in v.batches() for row in batch.to_pylist()] for v in (one, two)]
    assert texts[0] == texts[1]
    difference = diff(one, two)
    assert difference["entered"]["count"] == difference["left"]["count"] == difference["changed"]["count"] == 0
    assert difference["config"] == [{"key": "limits.unit_mb", "before": 0.005, "after": 1.0}]


class Dies(PlainLoop):
    """Ends like a killed driver after a number of tasks over all steps."""

    left = 0

    def map(self, target, arguments, tasks, demand):
        for receipt in super().map(target, arguments, tasks, demand):
            yield receipt
            Dies.left -= 1
            if Dies.left == 0:
                raise KeyboardInterrupt


@pytest.mark.parametrize("tasks", [1, 5, 9, 12])
def test_an_interrupted_run_goes_on_and_repeats_no_finished_unit(folder, tasks):
    whole = run(folder, "whole")
    Dies.left = tasks
    with pytest.raises(KeyboardInterrupt):
        run(folder, executor=Dies)
    before = {p: p.stat().st_mtime_ns for p in (folder / "store" / ".work").rglob("*.receipt.json")}
    assert before
    finished = {}

    class Watch(PlainLoop):
        def map(self, *arguments):
            yield from super().map(*arguments)
            finished.update({p: p.stat().st_mtime_ns for p in before if p.exists()})

    assert run(folder, executor=Watch)["digest"] == whole["digest"]
    assert finished == before
    assert not (folder / "store" / ".work").exists() or not any((folder / "store" / ".work").iterdir())


class DiesInPass1(PlainLoop):
    """Ends like a killed driver after two units of pass 1."""

    def map(self, target, arguments, tasks, demand):
        for number, receipt in enumerate(super().map(target, arguments, tasks, demand)):
            yield receipt
            if number == 1 and target.endswith("UnitWorker"):
                raise KeyboardInterrupt


def test_a_damaged_intermediate_is_made_again(folder):
    with pytest.raises(KeyboardInterrupt):
        run(folder, executor=DiesInPass1)
    victim = next((folder / "store" / ".work").rglob("*.kept.parquet"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    assert run(folder)["digest"] == run(folder, "whole")["digest"]


def test_a_finished_run_is_not_repeated_unless_asked(folder):
    first = run(folder)
    again = run(folder, executor=None)
    assert again["already"] and again["digest"] == first["digest"]
    fresh = run(folder, fresh=True)
    assert not fresh["already"] and fresh["digest"] == first["digest"]


def test_a_dry_run_writes_nothing(folder):
    plan = run(folder, executor=None, dry_run=True)
    assert plan["units"] > 3 and plan["input_files"] == 1
    assert not (folder / "store").exists()


def test_too_much_quarantine_is_exit_3_with_the_worst_reasons(folder):
    path = write_pipeline(folder / "p.yaml", INPUT, limits="{max_quarantined_fraction: 0.001}")
    with pytest.raises(CheckFailed, match=r"2 of 700 records.*0\.001.*read\.bad_json 1, read\.not_object 1") as caught:
        run_pipeline(path, str(folder / "store"), PlainLoop, quiet=True)
    assert caught.value.exit_code == 3


def test_records_with_an_id_that_is_taken_are_quarantined(folder):
    (folder / "lines.jsonl").write_text("".join(json.dumps({"id": i % 3, "text": f"text {i}"}) + "\n" for i in range(6)))
    path = write_pipeline(
        folder / "p.yaml", "[{name: n, format: jsonl, path: lines.jsonl, id_field: id}]", limits="{max_quarantined_fraction: 0.5}"
    )
    result = run_pipeline(path, str(folder / "store"), PlainLoop, quiet=True)
    assert result["counts"] == {"input": 6, "kept": 3, "quarantined": 3, "dropped": {}}
    version = open_version(str(folder / "store"), "corpus@v1")
    assert version.manifest["quarantine_reasons"] == {"run.duplicate_id": 3}
    assert [row["text"] for b in version.batches(["text"]) for row in b.to_pylist()] == ["text 0", "text 1", "text 2"]


def test_no_record_at_all_gives_an_empty_version(folder):
    (folder / "lines.jsonl").write_text("")
    result = run(folder)
    assert result["counts"] == {"input": 0, "kept": 0, "quarantined": 0, "dropped": {}}
    assert verify(open_version(str(folder / "store"), "corpus@v1")) == []


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda v: _flip(v / "shards/part-00001.parquet"), "shards/part-00001.parquet: its bytes have changed"),
        (lambda v: _flip(v / "decisions/part-00000.parquet"), "decisions/part-00000.parquet: its bytes have changed"),
        (lambda v: _flip(v / "report.html"), "report.html: its bytes have changed"),
        (lambda v: (v / "shards/part-00000.parquet").unlink(), "shards/part-00000.parquet: missing"),
        (lambda v: (v / "shards/part-00000.parquet").write_bytes(b""), "shards/part-00000.parquet: 0 bytes"),
        (lambda v: (v / "shards/extra.parquet").write_bytes(b"x"), "shards/extra.parquet: a foreign file"),
        (lambda v: _edit(v, '"owner": "data@', '"owner": "else@'), "manifest.json: its checksum does not hold"),
    ],
)
def test_verify_finds_every_kind_of_damage(folder, damage, says):
    url = Path(run(folder)["url"])
    damage(url)
    assert any(problem.startswith(says) for problem in verify(open_version(str(folder / "store"), "corpus@v1")))


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _edit(version: Path, old: str, new: str) -> None:
    manifest = version / "manifest.json"
    manifest.write_text(manifest.read_text().replace(old, new))


def test_a_store_that_cannot_be_written_is_one_sentence(folder):
    (folder / "store").write_text("a file where the store should be")
    with pytest.raises(StoreError, match="cannot write"):
        run(folder)


@pytest.mark.parametrize(
    ("inputs", "stages", "sentence"),
    [
        ("[{name: n, format: jsonl, path: none*.jsonl}]", "[]", r"none\*\.jsonl"),
        ("[{name: n, format: jsn, path: lines.jsonl}]", "[]", r"line 4: inputs\.0\.format"),
        ("[{name: n, format: jsonl, path: lines.jsonl, txt_field: t}]", "[]", r'unknown key "txt_field".*did you mean "text_field"'),
        (f"[{INPUT[1:-1]}, {INPUT[1:-1]}]", "[]", r'two inputs are named "lines"'),
        (INPUT, "[languag: {}]", r'line 5: unknown stage "languag": did you mean "language"\?'),
        (INPUT, "[exact_dedup: {}, exact_dedup: {}]", r'stage "exact_dedup" appears twice'),
        (INPUT, "[language: {min_scor: 0.5}]", r'line 5: unknown key "min_scor" in stage language: did you mean "min_score"\?'),
        (INPUT, "[language: {model: none.bin}]", r"stage language: model: file not found: none\.bin"),
        (INPUT, "['no.such:Stage': {}]", r'stage "no.such:Stage" cannot be loaded'),
        (INPUT, "[exact_dedup: {}, clean: {}]", r"exact_dedup must come last"),
        (INPUT, "[rules: {use: [gophr_quality]}]", r"gophr_quality.*gopher_quality"),
        ("[]", "[]", r"inputs"),
        ("[{name: h, format: html, path: lines.jsonl}]", "[]", r'input "h" gives HTML: add the stage extract'),
    ],
)
def test_a_mistake_in_the_file_is_found_before_any_work(folder, inputs, stages, sentence):
    path = write_pipeline(folder / "p.yaml", inputs, stages)
    with pytest.raises(ConfigError, match=sentence) as caught:
        run_pipeline(path, str(folder / "store"), None, quiet=True)
    assert caught.value.exit_code == 2 and "p.yaml" in str(caught.value) or "matches" in str(caught.value)
    assert not (folder / "store").exists()


def test_where_the_input_lies_does_not_change_the_digest(folder):
    first = run(folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(folder / "lines.jsonl", elsewhere / "lines.jsonl")
    assert run(elsewhere)["digest"] == first["digest"]
