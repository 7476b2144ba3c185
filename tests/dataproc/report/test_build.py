"""The figures: conserved through the funnel, equal to a count of the records, the same for any order of parts, strict JSON."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc.report.build import SAMPLES_SHOWN, build_report
from dataproc.statistics import SAMPLES_PER_RULE, DropSamples, Statistics
from store.errors import CheckFailed
from tests.dataproc.report.made_up import MadeUp


@settings(max_examples=15)
@given(st.integers(0, 400), st.integers(0, 99), st.integers(0, 45), st.integers(0, 20))
def test_the_funnel_conserves_records(records, seed, rules, signals):
    made = MadeUp(records, seed=seed, rules=rules, signals=signals)
    manifest, *rest = made.arguments()
    report = build_report(manifest, *rest)
    counts, stages = report["counts"], report["stats"]["stages"]
    assert counts["input"] == counts["kept"] + counts["dropped"] + counts["quarantined"] == records
    left = records
    for stage in stages:
        assert stage["entered"] == left
        assert stage["dropped"] + stage["quarantined"] == sum(rule["records"] for rule in stage["rules"])
        left = stage["left"] = stage["entered"] - stage["dropped"] - stage["quarantined"]
    assert left == counts["kept"] == report["stats"]["documents"]
    taken = {f"{s['name']}.{r['rule']}": r["records"] for s in stages for r in s["rules"] if r["verdict"] == "dropped"}
    assert taken == manifest["counts"]["dropped"]
    assert sum(row["records"] for row in report["quarantine"]) == counts["quarantined"]
    assert sum(row["input"] for row in report["sources"]) == records
    for key in ("source", "domain", "language"):
        assert sum(row["documents"] for row in report["stats"]["groups"][key]["rows"]) == counts["kept"]
    for document in (d for rule in report["samples"] for d in rule["documents"]):
        assert document["id"] and document["excerpt"]


def test_stages_stand_in_order_and_faults_of_the_run_before_the_global_step():
    stages = MadeUp(3000).report()["stats"]["stages"]
    assert [stage["name"] for stage in stages] == ["read", "url_filter", "extract", "language", "rules", "run", "exact_dedup"]
    assert stages[1]["idle"] == ["blocked_word"]


def test_the_report_is_strict_json_and_does_not_depend_on_the_order_of_parts():
    made = MadeUp(800)
    manifest, statistics, samples, stages, timings = made.arguments()
    text = json.dumps(build_report(manifest, statistics, samples, stages, timings), allow_nan=False)
    again, more = Statistics(), DropSamples()
    again.merge(Statistics.from_json(json.loads(json.dumps(statistics.to_json()))))
    more.merge(DropSamples.from_json(json.loads(json.dumps(samples.to_json()))))
    assert json.dumps(build_report(manifest, again, more, stages, timings)) == text


def test_samples_are_the_smallest_ids_and_bounded_over_many_rules():
    report = MadeUp(6000, rules=60, signals=3).report()
    rules = [rule for stage in report["stats"]["stages"] for rule in stage["rules"]]
    assert len(rules) > SAMPLES_SHOWN // SAMPLES_PER_RULE
    shown = [len(rule["documents"]) for rule in report["samples"]]
    assert 3 <= max(shown) < SAMPLES_PER_RULE and sum(shown) <= SAMPLES_SHOWN
    for rule in report["samples"]:
        ids = [document["id"] for document in rule["documents"]]
        assert ids == sorted(ids)


def test_counts_that_do_not_add_up_are_refused():
    manifest, statistics, samples, stages, timings = MadeUp(50).arguments()
    wrong = {**manifest, "counts": {**manifest["counts"], "input": 51}}
    with pytest.raises(CheckFailed, match="51 records came in, 50 are accounted for"):
        build_report(wrong, statistics, samples, stages, timings)
    wrong = {**manifest, "counts": {**manifest["counts"], "input": 51, "kept": manifest["counts"]["kept"] + 1}}
    with pytest.raises(CheckFailed, match="differ"):
        build_report(wrong, statistics, samples, stages, timings)


def test_clusters_are_counted_by_size():
    manifest, statistics, samples, stages, timings = MadeUp(0).arguments()
    statistics.cluster_sizes = Counter({1: 100, 2: 5, 3: 1, 4: 2, 7: 1, 1000: 1})
    found = build_report(manifest, statistics, samples, stages, timings)["stats"]["duplicate_clusters"]
    assert found == [
        {"from": 2, "to": 3, "clusters": 6, "documents": 13},
        {"from": 4, "to": 7, "clusters": 3, "documents": 15},
        {"from": 512, "to": 1023, "clusters": 1, "documents": 1000},
    ]


def test_long_lists_are_cut_and_say_so():
    manifest, *rest = MadeUp(0).arguments()
    manifest["inputs"] = [{"source": "s", "path": f"{i}", "bytes": 1, "hash": ""} for i in range(1234)]
    report = build_report(manifest, *rest)
    assert report["inputs"]["count"] == 1234 and len(report["inputs"]["rows"]) == 200 and report["totals"]["input_bytes"] == 1234
