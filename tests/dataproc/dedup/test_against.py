"""Deduplication against earlier versions: what they hold is dropped, and the earlier document is named."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dataproc.decisions import why
from dataproc.dedup import near, shuffle
from dataproc.dedup.arrays import Column, open_arrays, write_arrays
from dataproc.dedup.earlier import ENTRY, KEY
from dataproc.execution import PlainLoop
from dataproc.refilter import refilter
from dataproc.versions import open_version, verify
from store import files
from store.errors import ConfigError, StoreError
from tests.dataproc.dedup.running import decisions, kept, run_rows

ALL = "[exact_dedup: {}, near_dedup: {}, paragraph_dedup: {}]"
AGAINST = '[exact_dedup: {against: ["corpus@v1"]}, near_dedup: {against: ["corpus@v1"]}, paragraph_dedup: {against: ["corpus@v1"]}]'


def corpus(seed: int, count: int, prefix: str = "") -> list[dict]:
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        words = [f"w{draw.randrange(3000)}" for _ in range(80)]
        for copy in range(draw.choice([1, 1, 3])):
            text = " ".join(words[:40]) + "\n\n" + " ".join(words[40:])
            rows.append({"id": f"{prefix}{number}-{copy}", "name": f"{prefix}{number}-{copy}", "text": text})
            words[draw.randrange(80)] = f"w{draw.randrange(3000)}"
    return rows


@pytest.mark.parametrize(
    "stages",
    ['[exact_dedup: {against: ["corpus@v1"]}]', '[near_dedup: {against: ["corpus@v1"]}]', AGAINST],
    ids=["exact", "near", "all"],
)
def test_a_version_against_itself_keeps_nothing(tmp_path, stages):
    rows = corpus(1, 60)
    first = run_rows(tmp_path, {"a": rows}, stages.replace('against: ["corpus@v1"]', ""))
    again = run_rows(tmp_path, {"b": rows}, stages, label="v2")
    assert again.manifest["counts"]["kept"] == 0 and again.manifest["counts"]["input"] == len(rows)
    assert again.manifest["parents"] == [first.manifest["digest"]]
    ids = {row["id"] for row in decisions(first) if row["verdict"] == "kept"}
    lost = [row for row in decisions(again) if row["stage"] in ("exact_dedup", "near_dedup")]
    assert len(lost) == len(rows)
    assert all(row["detail"]["version"] == first.reference and row["detail"]["winner"] in ids for row in lost)
    answer = why(again, lost[0]["id"])[0]
    assert first.reference in answer["explanation"]


def test_a_month_is_compared_with_all_versions_before_it(tmp_path):
    old, newer = corpus(2, 30, "old"), corpus(3, 30, "newer")
    run_rows(tmp_path, {"a": old}, ALL, label="v1")
    both = AGAINST.replace('["corpus@v1"]', '["corpus@v1", "corpus@v2"]')
    second = run_rows(tmp_path, {"b": newer}, ALL, label="v2")
    fresh = [{**row, "id": f"x{row['id']}", "name": f"x{row['name']}"} for row in corpus(4, 30, "fresh")]
    changed = [{**row, "id": f"c{row['id']}", "text": row["text"] + " more"} for row in (old[0], newer[0])]
    month = run_rows(tmp_path, {"c": fresh + changed + newer[3:5]}, both, label="v3")
    alone = run_rows(tmp_path, {"c": fresh}, ALL, label="v4")
    assert kept(month) == kept(alone)  # what is new is as if there were no earlier version
    lost = {row["id"]: row for row in decisions(month) if "version" in row["detail"]}
    assert len(lost) == 4 and {row["detail"]["version"].split("-")[0] for row in lost.values()} == {"corpus@v1", "corpus@v2"}
    assert second.reference in month.manifest["parent_references"]


def test_similarity_and_the_way_to_the_winner_are_told(tmp_path):
    words = [f"w{k}" for k in range(100)]
    chain = []
    for k in range(5):
        chain.append({"id": f"{k}", "name": f"{k}", "when": f"2020-01-0{k + 1}T00:00:00Z", "text": " ".join(words)})
        words[10 * k + 5] = f"n{k}"
    run_rows(tmp_path, {"a": chain[:1]}, "[near_dedup: {}]")
    version = run_rows(tmp_path, {"b": chain[1:]}, '[near_dedup: {against: ["corpus@v1"], keep: earliest, verify: 0.8}]', label="v2")
    assert version.manifest["counts"]["kept"] == 0
    answers = [why(version, row["id"])[0] for row in decisions(version)]
    assert [len(answer["chain"]) for answer in answers] == [1, 2, 3, 4]
    assert all(0.8 <= step["similarity"] < 1 for answer in answers for step in answer["chain"])
    assert all(answer["chain"][-1]["document"] == answer["detail"]["winner"] for answer in answers)
    assert "similarity 0.8" in answers[0]["explanation"] or "similarity 0.9" in answers[0]["explanation"]


def test_how_the_work_is_cut_changes_nothing(tmp_path, monkeypatch):
    old, month = corpus(5, 60), corpus(6, 30, "m") + corpus(5, 20, "again")
    run_rows(tmp_path, {"a": old}, ALL, unit_mb=0.005)
    whole = run_rows(tmp_path, {"b": month}, AGAINST, label="v2")
    monkeypatch.setattr("dataproc.pipeline.MEGABYTE", 47)
    monkeypatch.setattr(shuffle, "READS_AT_MOST", 4)
    monkeypatch.setattr(near, "PAIRS_AT_ONCE", 3)
    files.delete(whole.url)
    cut = run_rows(tmp_path, {"b": month}, AGAINST, label="v2", limits=", dedup_memory_mb: 1000")
    assert cut.manifest["digest"] == whole.manifest["digest"] and cut.manifest["dedup"] == whole.manifest["dedup"]


def test_a_refiltered_version_can_be_compared_with(tmp_path):
    rows = corpus(7, 30)
    short = [{"id": f"s{k}", "name": f"s{k}", "text": f"a short one number {k}"} for k in range(5)]
    run_rows(tmp_path, {"a": rows + short}, "[rules: {use: []}, exact_dedup: {}, near_dedup: {}]")
    (tmp_path / "rules.yaml").write_text(
        "use: [gopher_quality]\nset: {gopher_quality.min_stop_words: null, gopher_quality.min_words: 20}\n"
    )
    result = refilter("corpus@v1", str(tmp_path / "rules.yaml"), "v1b", str(tmp_path / "store"), PlainLoop, quiet=True)
    filtered = open_version(str(tmp_path / "store"), result["version"])
    assert verify(filtered) == [] and result["counts"]["kept"] > 0
    again = run_rows(
        tmp_path, {"b": rows + short}, '[exact_dedup: {against: ["corpus@v1b"]}, near_dedup: {against: ["corpus@v1b"]}]', label="v2"
    )
    assert set(kept(again)) == {row["name"] for row in short} - set(kept(filtered))


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ('[exact_dedup: {against: ["corpus@v9"]}]', "no version corpus@v9"),
        ('[near_dedup: {against: ["corpus@v1"], bands: 7}]', "was made with permutations 112|was made with bands 14"),
        ('[near_dedup: {against: ["corpus@v1"], ngram: 4}]', "was made with ngram 5, this pipeline says 4"),
        ('[paragraph_dedup: {against: ["corpus@v1"]}]', "keeps no paragraphs: it was made without paragraph_dedup"),
        ('[exact_dedup: {against: ["corpus@v2"]}]', "which is what this pipeline makes"),
        ('[exact_dedup: {against: ["corpus"]}]', "is not a version"),
        ('[exact_dedup: {against: ["corpus@v1", "corpus@v1"]}]', "against has a name twice"),
    ],
)
def test_what_cannot_be_compared_is_told(tmp_path, stages, message):
    run_rows(tmp_path, {"a": corpus(8, 3)}, "[exact_dedup: {}, near_dedup: {}]")
    with pytest.raises(ConfigError, match=message):
        run_rows(tmp_path, {"b": corpus(8, 3)}, stages, label="v2")


def test_look_ups_read_what_they_look_for(tmp_path, monkeypatch):
    """The bytes read of an earlier version do not grow with it."""
    read = []
    take, find = Column.take, Column.find

    def counted(method):
        def noted(self, values, *more):
            read.append(len(values))
            return method(self, values, *more)

        return noted

    monkeypatch.setattr(Column, "take", counted(take))
    monkeypatch.setattr(Column, "find", counted(find))
    counts = []
    month = corpus(9, 20, "m")
    for label, size in (("v1", 10), ("v2", 200)):
        run_rows(tmp_path, {"a": corpus(10, size, label)}, ALL, label=label, unit_mb=8)
        read.clear()
        whole = Column.read

        def refused(self, first=0, after=None, whole=whole):
            assert "/index/" not in self.url, "an index was read whole"
            return whole(self, first, after)

        with monkeypatch.context() as patched:
            patched.setattr(Column, "read", refused)
            stages = AGAINST.replace("corpus@v1", f"corpus@{label}")
            run_rows(tmp_path, {"b": month}, stages, label=f"{label}-month", unit_mb=8)
        counts.append(sum(read))
    assert counts[0] == counts[1]


def test_arrays_in_files(tmp_path):
    draw = np.random.default_rng(1)
    keys = np.sort(draw.integers(0, 50, 1000).astype(KEY))
    entries = np.zeros(1000, ENTRY)
    entries["row"] = np.arange(1000)
    path = str(tmp_path / "a")
    write_arrays(path, keys, entries)
    remote = f"memory://{tmp_path.name}/a"
    files.write_bytes(remote, (tmp_path / "a").read_bytes())
    rows = np.array([0, 3, 3, 999])
    for url in (path, remote):
        one, other = open_arrays(url, KEY, ENTRY)
        assert (one.read() == keys).all() and (other.read(10, 20)["row"] == np.arange(10, 20)).all()
        assert (other.take(rows)["row"] == rows).all() and len(other.take(rows[:0])) == 0
        for side in ("left", "right"):
            assert (one.find(np.arange(60, dtype=KEY), side) == np.searchsorted(keys, np.arange(60), side)).all()
        assert sum(len(part) for part in one.parts(300)) == 1000
    (tmp_path / "short").write_bytes((tmp_path / "a").read_bytes()[:-1])
    with pytest.raises(StoreError, match="shorter"):
        open_arrays(str(tmp_path / "short"), KEY, ENTRY)[1].read()
    with pytest.raises(StoreError, match="records of"):
        open_arrays(path, ENTRY, KEY)
