"""The share that is kept is that of a plain sort of the whole corpus, for any units and groups of units."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.dedup.exact import Losers
from dataproc.execution import PlainLoop
from dataproc.keep_rate import ScoreWriter, run_keep_rate
from dataproc.parquet import read_table
from dataproc.plan import PASS1, unit_file
from dataproc.refilter import refilter
from dataproc.stages.base import Stage, StageResult, set_column
from dataproc.stages.keep_rate import KeepRateConfig
from store.errors import ConfigError
from tests.dataproc.dedup.running import decisions, kept, run_rows
from tests.dataproc.dedup.test_exact import plain_steps

ids = st.integers(0, 2**32 - 1).map(lambda number: f"{number:08x}" + "0" * 24)  # what ties are broken by
scores = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 0.5, 1.0, -2.5]), st.floats(-(2.0**40), 2.0**40, width=32, allow_subnormal=False))
documents = st.tuples(ids, scores, st.sampled_from(["en", "de", None]))
units = st.lists(st.lists(documents, max_size=10), min_size=1, max_size=6)
MODULE = "tests.dataproc.test_keep_rate"


class Scored(Stage):
    """Scores a document by the number that stands first in its text; none where there is none."""

    name = "scored"
    outputs = ("quality",)

    def process(self, batch):
        found = [float(w) if w.replace(".", "").isdigit() else None for w in (t.split(" ")[0] for t in batch.column("text").to_pylist())]
        return StageResult(set_column(batch, "quality", pa.array(found, pa.float32())))


def write_units(work: str, rows_of_units, config: KeepRateConfig) -> None:
    for unit, rows in enumerate(rows_of_units):
        writer = ScoreWriter(config)
        if rows:
            names, quality, languages = zip(*rows, strict=True)
            columns = {"id": names, "quality": pa.array(quality, pa.float32()), "language": languages}
            writer.add(pa.table({**columns, "row": pa.array(range(len(rows)), pa.int64())}))
        path = unit_file(work, PASS1, unit, "scores")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        writer.write(path)


def best(rows_of_units, config: KeepRateConfig) -> set[str]:
    """Ids that stay, by sorting each group."""
    groups: dict[str, list] = {}
    for name, score, language in (row for rows in rows_of_units for row in rows):
        groups.setdefault((language or "unknown") if config.by else "all", []).append((score is None, -(score or 0.0), name))
    stay = set()
    for group, rows in groups.items():
        count = math.ceil(Fraction(str(config.of(group))) * len(rows))
        stay |= {name for _, _, name in sorted(rows)[:count]}
    return stay


@pytest.mark.parametrize("memory", [1 << 30, 500], ids=["one group of units", "several"])
@pytest.mark.parametrize("config", [{"rate": 0.3}, {"rate": 0.5, "by": "language", "set": {"de": 0.1, "unknown": 1.0}}])
@given(rows_of_units=units)
@settings(max_examples=40, deadline=None)
def test_who_stays_is_what_a_plain_sort_says(tmp_path_factory, memory, config, rows_of_units):
    once = {row[0]: (unit, row) for unit, rows in enumerate(rows_of_units) for row in rows}
    rows_of_units = [[row for place, row in once.values() if place == unit] for unit in range(len(rows_of_units))]
    work, config = str(tmp_path_factory.mktemp("work")), KeepRateConfig(**config)
    write_units(work, rows_of_units, config)
    found, losers = run_keep_rate(plain_steps(work, memory), [len(rows) for rows in rows_of_units], config, [])
    lost = Losers(work, [losers], 0, len(rows_of_units))
    stay = {row[0] for unit, rows in enumerate(rows_of_units) for k, row in enumerate(rows) if k not in lost.of(unit)}
    assert stay == best(rows_of_units, config)
    assert sum(group["kept"] for group in found.values()) == len(stay)
    assert sum(group["documents"] for group in found.values()) == sum(map(len, rows_of_units))


def test_a_pipeline_keeps_the_best_of_what_duplicates_leave(tmp_path):
    rows = [{"id": f"{k}", "text": f"{k / 100:.2f} document of its own number {k}"} for k in range(100)]
    copies = [{"id": f"c{k}", "text": rows[k]["text"]} for k in range(50, 100)]
    stages = f"[{MODULE}:Scored: {{}}, exact_dedup: {{}}, keep_rate: {{rate: 0.2}}]"
    version = run_rows(tmp_path, {"made": rows, "copied": copies}, stages)
    assert sorted(kept(version)) == sorted(row["text"] for row in rows[80:])
    assert version.manifest["counts"]["dropped"] == {"exact_dedup.duplicate": 50, "keep_rate.below_quantile": 80}
    assert version.manifest["keep_rate"] == {"all": {"documents": 100, "kept": 20, "threshold": pytest.approx(0.8)}}
    assert "The share that was kept, by group" in Path(version.url, "report.html").read_text()
    for row in decisions(version):
        if row["stage"] == "keep_rate":
            assert row["value"] < row["threshold"] == pytest.approx(0.8)


def test_the_same_shards_for_any_units_and_by_group(tmp_path):
    sources = {
        name: [{"id": f"{name}{k}", "text": f"{k * 7 % 100} text {name} {k}"} for k in range(size)]
        for name, size in (("large", 90), ("small", 11), ("nothing", 0))
    }
    stages = f"[{MODULE}:Scored: {{}}, keep_rate: {{rate: 0.1, by: source, set: {{small: 0.5}}}}]"
    version = run_rows(tmp_path, sources, stages)
    assert Counter(text.split()[2] for text in kept(version)) == {"large": 9, "small": 6}
    other = run_rows(tmp_path, sources, stages, limits=", dedup_memory_mb: 1", store="other")
    assert version.manifest["digest"] == other.manifest["digest"]
    table = read_table(f"{version.url}/{version.manifest['shards'][0]['path']}", ["quality"])
    assert table.num_rows == 15


def test_what_cannot_be_meant_is_refused(tmp_path):
    rows = {"made": [{"id": "1", "text": "1 text"}]}
    for stages, message in (
        ("[keep_rate: {rate: 0.5}]", "no stage scores it"),
        (f"[{MODULE}:Scored: {{}}, keep_rate: {{rate: 0.5}}, exact_dedup: {{}}]", "exact_dedup must come before keep_rate"),
        (f"[{MODULE}:Scored: {{}}, keep_rate: {{}}]", "keeps everything"),
        (f"[{MODULE}:Scored: {{}}, keep_rate: {{rate: 0}}]", "greater than 0"),
        (f"[{MODULE}:Scored: {{}}, keep_rate: {{rate: 0.5, set: {{en: 0.1}}}}]", "by: language"),
    ):
        with pytest.raises(ConfigError, match=message):
            run_rows(tmp_path, rows, stages)


def test_a_share_cannot_be_refiltered(tmp_path):
    rows = {"made": [{"id": f"{k}", "text": f"{k} text"} for k in range(4)]}
    version = run_rows(tmp_path, rows, f"[{MODULE}:Scored: {{}}, keep_rate: {{rate: 0.5}}]")
    (tmp_path / "r.yaml").write_text("use: [gopher_quality]\n")
    with pytest.raises(ConfigError, match="holds a share of its corpus"):
        refilter(version.reference, str(tmp_path / "r.yaml"), "v2", str(tmp_path / "store"), PlainLoop, quiet=True)
