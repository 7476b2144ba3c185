"""Winners of texts and ids equal those of a plain dictionary, for any units, ranges and key values."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.dedup import exact, shuffle
from dataproc.dedup.exact import KeyCollector, Losers, plan_groups, run_keys
from dataproc.dedup.shuffle import Steps
from dataproc.execution import PlainLoop, run_units
from dataproc.pipeline import load_pipeline
from dataproc.plan import PASS1, unit_file, write_job
from dataproc.stages.winners import WinnerConfig
from store import files

# Few distinct values, spread over all ranges and beyond 2^63, so that copies are common.
hashes = st.sampled_from([f"{(i * 0x1357_9BDF_0246_8ACE_1122_3344_5566_7788 + i) % 2**128:032x}" for i in range(12)] + ["0" * 32, "f" * 32])
units = st.lists(st.lists(st.tuples(hashes, hashes, st.integers(0, 2)), max_size=12), min_size=1, max_size=5)


def write_units(work: str, rows_of_units, config: WinnerConfig) -> None:
    for unit, rows in enumerate(rows_of_units):
        keys = KeyCollector(config, ["made"])
        if rows:
            content, ids, lengths = zip(*rows, strict=True)
            nothing = pa.nulls(len(rows), pa.float32())
            keys.add(
                pa.table(
                    {
                        "content_hash": content,
                        "id": ids,
                        "row": pa.array(range(len(rows)), pa.int64()),
                        "source": ["made"] * len(rows),
                        "language": ["en"] * len(rows),
                        "text": ["x" * length for length in lengths],
                        "quality": nothing,
                        "timestamp": nothing,
                    }
                )
            )
        path = unit_file(work, PASS1, unit, "keys")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        keys.write(path)


def plain_steps(work: str, memory: int) -> Steps:
    def run(worker, arguments, step, tasks):
        return list(run_units(PlainLoop(), worker, arguments, tasks))

    return Steps(work, memory, run)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A work folder's job file, by `keep`."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "made.jsonl").write_text('{"text": "a"}\n')

    def made(work: str, keep: str) -> None:
        (folder / "p.yaml").write_text(
            "dataset: c\nversion: v1\nowner: a@b.c\ninputs: [{name: made, format: jsonl, path: made.jsonl}]\n"
            f"stages: [exact_dedup: {{keep: {keep}}}]\n"
        )
        write_job(work, load_pipeline(str(folder / "p.yaml")))

    return made


@pytest.mark.parametrize("keep", ["smallest_id", "longest"])
@pytest.mark.parametrize("memory", [1 << 30, 1000], ids=["one range", "many ranges, merged"])
@given(rows_of_units=units)
@settings(max_examples=40, deadline=None)
def test_losers_equal_a_plain_dictionary(tmp_path_factory, job, keep, memory, rows_of_units):
    work = str(tmp_path_factory.mktemp("work"))
    job(work, keep)
    write_units(work, rows_of_units, WinnerConfig(keep=keep))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shuffle, "READS_AT_MOST", 4)
        receipts, losers = run_keys(plain_steps(work, memory), [len(rows) for rows in rows_of_units], True)
    by_content, by_id = defaultdict(list), defaultdict(list)
    for unit, rows in enumerate(rows_of_units):
        for row, (content, name, length) in enumerate(rows):
            by_content[content].append((-length if keep == "longest" else 0, name, unit, row))
            by_id[name].append((unit, row))
    expected = {}
    taken = {place for members in by_id.values() for place in sorted(members)[1:]}
    for place in taken:
        expected[place] = ("id", None)
    for members in by_content.values():
        first, *others = sorted(members, key=lambda m: ((m[2], m[3]) in taken, m))
        if (first[2], first[3]) not in taken:  # the text of a document whose id is taken wins over nothing
            for _, _, unit, row in others:
                expected[(unit, row)] = ("content", first[1])
    held = Losers(work, losers, 0, len(rows_of_units))
    found = {
        (unit, row): (value["kind"], value["winner"] if value["kind"] == "content" else None)
        for unit in range(len(rows_of_units))
        for row, value in held.of(unit).items()
    }
    assert found == expected
    sizes = sorted(len(m) for m in by_content.values() if len(m) > 1)
    counted = sorted(int(size) for r in receipts for size, count in r["cluster_sizes"].items() for _ in range(count))
    assert counted == sizes
    assert files.exists(unit_file(work, "keys", 0, "receipt.json")) == (sum(map(len, rows_of_units)) <= memory // exact.RECORD_BYTES)


def test_groups_follow_from_counts_alone():
    assert plan_groups([], 10, 100) == [0]
    assert plan_groups([5, 5, 5, 50, 1], 10, 100) == [0, 2, 3, 4, 5]
    assert plan_groups([0, 0, 0], 10, 100) == [0, 3]
    assert exact.CONTENT.itemsize < exact.RECORD_BYTES
