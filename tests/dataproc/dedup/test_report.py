"""What the report says of deduplication is what happened."""

from __future__ import annotations

import json
import random

from store import files
from tests.dataproc.dedup.running import decisions, run_rows
from tests.dataproc.dedup.test_paragraphs import sentence


def test_the_report_shows_clusters_buckets_overlaps_and_bytes(tmp_path):
    draw = random.Random(1)
    shared = sentence(draw, 20)
    old = sentence(draw, 100)
    run_rows(tmp_path, {"a": [{"id": "old", "text": old}]}, "[exact_dedup: {}, near_dedup: {}, paragraph_dedup: {}]")
    words = sentence(draw, 200).split()
    near = []
    for k in range(30):
        near.append({"id": f"n{k}", "text": " ".join(words), "language": "en" if k % 2 else "de"})
        words[draw.randrange(200)] = f"x{k}"
    twins = [{"id": f"t{k}", "text": sentence(random.Random(2), 50) + "\n\n" + shared} for k in range(3)]
    other = [{"id": "o", "text": sentence(draw, 50) + "\n\n" + shared}, {"id": "same", "text": old}, {"id": "like", "text": old + " end"}]
    against = '{against: ["corpus@v1"]}'
    stages = f"[exact_dedup: {against}, near_dedup: {against}, paragraph_dedup: {against}]"
    version = run_rows(tmp_path, {"b": near + twins, "c": other}, stages, label="v2")
    report = json.loads(files.read_bytes(f"{version.url}/report.json"))
    found = report["stats"]["dedup"]
    lost = {stage: [row for row in decisions(version) if row["stage"] == stage] for stage in found}
    assert [len(lost[stage]) for stage in ("exact_dedup", "near_dedup")] == [3, 30]
    assert found["exact_dedup"]["overlaps"]["sources"] == [["b", "b", 2], ["c", version.manifest["parent_references"][0], 1]]
    assert ["c", version.manifest["parent_references"][0], 1] in found["near_dedup"]["overlaps"]["sources"]
    assert sum(count for *_, count in found["near_dedup"]["overlaps"]["languages"]) == 30
    assert found["near_dedup"]["clusters"] == [
        {"from": 2, "to": 3, "clusters": 1, "documents": 2},
        {"from": 16, "to": 31, "clusters": 1, "documents": 30},
    ]
    assert found["near_dedup"]["largest_bucket"] > 2 and found["near_dedup"]["buckets"]
    largest = found["near_dedup"]["largest"]
    assert [cluster["size"] for cluster in largest] == [30, 2]
    assert largest[1]["members"][0]["excerpt"] == old[:200]  # of the earlier version
    texts = {row["text"] for row in near}
    assert all(any(text.startswith(member["excerpt"]) for text in texts) for member in largest[0]["members"])
    assert found["exact_dedup"]["removed_bytes"] == len(old) + 2 * len(twins[0]["text"])
    assert found["paragraph_dedup"]["removed_bytes"] == len(shared) + 2 and found["paragraph_dedup"]["cuts"] == 1
    page = files.read_bytes(f"{version.url}/report.html").decode()
    for words in ("Text that deduplication took", "Largest clusters of near duplicates", "who lost to whom, by source", "giant buckets"):
        assert words in page
