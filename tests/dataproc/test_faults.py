"""A record that kills, hangs or exhausts its worker is quarantined alone; its neighbours are kept and the run ends."""

from __future__ import annotations

import pytest

from dataproc.decisions import why
from dataproc.faults import MOST_ATTEMPTS_AT_ONE_PLACE, Cursor
from dataproc.pipeline import run_pipeline
from dataproc.versions import open_version, verify
from store.errors import HeadraceError
from tests.dataproc.corpora import write_lines, write_pipeline

FAULTS = {
    "SEGFAULT": "worker_died",
    "EXIT": "worker_died",
    "EXIT CLEANLY": "worker_died",
    "SYSTEM EXIT": "failed",
    "LOOP": "worker_died",
    "RAISE": "failed",
    "EAT MEMORY": "out_of_memory",
}


@pytest.mark.ray
def test_every_kind_of_fault_is_quarantined_alone(tmp_path, ray_pool):
    rows = {30 + 50 * i: text for i, text in enumerate(FAULTS)}
    write_lines(tmp_path / "lines.jsonl", 400, rows)
    path = write_pipeline(
        tmp_path / "p.yaml",
        "[{name: lines, format: jsonl, path: lines.jsonl}]",
        "[{'tests.dataproc.faulty_stage:Faulty': {}}]",
        "{unit_mb: 0.02, max_quarantined_fraction: 0.1, record_timeout_s: 3, worker_memory_mb: 1500}",
    )
    result = run_pipeline(path, str(tmp_path / "store"), ray_pool, quiet=True)
    assert result["counts"] == {"input": 400, "kept": 393, "quarantined": 7, "dropped": {}}
    version = open_version(str(tmp_path / "store"), "corpus@v1")
    assert verify(version) == []
    for row, text in rows.items():
        (answer,) = why(version, f"lines.jsonl#{row}")
        assert (answer["verdict"], answer["stage"], answer["rule"]) == ("quarantined", "run", FAULTS[text])
    clean = {f"lines.jsonl#{row}" for row in range(400)} - {f"lines.jsonl#{row}" for row in rows}
    assert {a["locator"] for name in clean for a in why(version, name) if a["verdict"] == "kept"} == clean


def attempt(run: str, *steps) -> Cursor:
    """A new attempt at a unit that dies right after `steps` on its cursor."""
    cursor = Cursor(run, "pass1", 7)
    for name, *arguments in steps:
        getattr(cursor, name)(*arguments)
    return cursor


def test_a_dead_batch_is_run_with_care_and_two_deaths_convict_a_record(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert not attempt("a", ("batch", 0, 64), ("batch", 64, 128)).is_careful(0, 1000)
    second = attempt("a", ("processing", 70))
    assert second.is_careful(64, 65) and second.is_careful(127, 128) and not second.is_careful(0, 64)
    assert not second.case.convicted(70)
    third = attempt("a", ("processing", 70))
    assert not third.case.convicted(70)
    fourth = attempt("a", ("reading", 80))
    assert fourth.case.convicted(70) and not fourth.case.convicted(71)
    assert attempt("a", ("reading", 80)).case.unreadable(80) is False
    last = attempt("a")
    assert last.case.unreadable(80) and not last.case.convicted(80)
    last.close()
    assert attempt("a").case.attempts == 0


def test_other_runs_and_idle_moments_leave_no_strike(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    attempt("a", ("processing", 3), ("idle",))
    attempt("b", ("processing", 3))
    cursor = attempt("a")
    assert cursor.case.strikes == {} and cursor.case.attempts == 1


def test_a_unit_that_dies_for_ever_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for _ in range(MOST_ATTEMPTS_AT_ONE_PLACE + 1):
        attempt("a", ("idle",))
    with pytest.raises(HeadraceError, match="not the fault of single records"):
        attempt("a")
