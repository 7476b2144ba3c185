"""Winners of texts and ids equal those of a plain dictionary, for any units, ranges and key values."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.dedup.exact import STEP as KEYS
from dataproc.dedup.exact import KeyWorker, range_tasks, read_losers
from dataproc.dedup.keys import BUCKETS, KeyCollector, read_keys
from dataproc.plan import unit_file
from dataproc.unit import STEP as PASS1

# Few distinct values, spread over all buckets and beyond 2^63, so that copies are common.
hashes = st.sampled_from([f"{(i * 0x1357_9BDF_0246_8ACE_1122_3344_5566_7788 + i) % 2**128:032x}" for i in range(12)] + ["0" * 32, "f" * 32])
units = st.lists(st.lists(st.tuples(hashes, hashes), max_size=12), min_size=1, max_size=5)


def write_units(work: str, rows_of_units) -> None:
    for unit, rows in enumerate(rows_of_units):
        keys = KeyCollector()
        if rows:
            content, ids = zip(*rows, strict=True)
            keys.add(pa.table({"content_hash": content, "id": ids, "row": pa.array(range(len(rows)), pa.int64())}))
        path = unit_file(work, PASS1, unit, "keys")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        keys.write(path)


@given(rows_of_units=units)
@settings(max_examples=60, deadline=None)
def test_losers_equal_a_plain_dictionary(tmp_path_factory, rows_of_units):
    work = str(tmp_path_factory.mktemp("work"))
    write_units(work, rows_of_units)
    tasks = [{"index": i, "first_bucket": i * 64, "after_bucket": (i + 1) * 64, "units": len(rows_of_units)} for i in range(4)]
    worker = KeyWorker(work, ["content", "id"])
    receipts = [worker.run(task) for task in tasks]
    by_content, by_id = defaultdict(list), defaultdict(list)
    for unit, rows in enumerate(rows_of_units):
        for row, (content, name) in enumerate(rows):
            by_content[content].append((name, unit, row))
            by_id[name].append((unit, row))
    expected = {}
    for members in by_id.values():
        for unit, row in sorted(members)[1:]:
            expected[(unit, row)] = "id"
    for members in by_content.values():
        for _, unit, row in sorted(members)[1:]:
            expected[(unit, row)] = ("content", min(members)[0])
    losers = read_losers(work, [(KEYS, len(tasks))], 0, len(rows_of_units))
    found = {(unit, row): value if value[0] == "content" else "id" for unit, rows in losers.items() for row, value in rows.items()}
    assert found == expected
    sizes = sorted(len(m) for m in by_content.values() if len(m) > 1)
    counted = sorted(int(size) for r in receipts for size, count in r["cluster_sizes"].items() for _ in range(count))
    assert counted == sizes


def test_buckets_partition_the_keys(tmp_path):
    generator = np.random.default_rng(5)
    rows = [(generator.bytes(16).hex(), generator.bytes(16).hex()) for _ in range(500)]
    write_units(str(tmp_path), [rows])
    path = unit_file(str(tmp_path), PASS1, 0, "keys")
    parts = [read_keys(path, "content", b, b + 1) for b in range(BUCKETS)]
    assert [k["high"] >> 56 for part in parts for k in part] == sorted(int(content[:2], 16) for content, _ in rows)
    assert sorted(k["row"] for part in parts for k in part) == list(range(500))


def test_ranges_follow_from_counts_alone():
    assert len(range_tasks(10, 1000)) == 1
    tasks = range_tasks(3, 40_000_000)
    assert [t["first_bucket"] for t in tasks] == [t["after_bucket"] for t in [{"after_bucket": 0}, *tasks]][: len(tasks)]
    assert tasks[-1]["after_bucket"] == BUCKETS and len(tasks) == 8
