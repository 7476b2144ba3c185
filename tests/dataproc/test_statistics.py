"""Statistics: merged in any order they are the same bits, and equal to a slow count over rows."""

from __future__ import annotations

import json
import random
from collections import Counter
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc import statistics as module
from dataproc.documents import BASE_SIGNALS, DECISION_SCHEMA, shard_schema
from dataproc.statistics import EXCERPT_CHARACTERS, SAMPLES_PER_RULE, DropSamples, Statistics, excerpt, hosts
from store.errors import HeadraceError

SIGNALS = [*BASE_SIGNALS, "odd"]
ROW = st.fixed_dictionaries(
    {
        "source": st.sampled_from(["crawl", "notes"]),
        "domain": st.sampled_from(["web", "books", None]),
        "language": st.sampled_from(["en", "de", "ar", None]),
        "url": st.sampled_from([None, "no url", "https://a.example/x", "http://u:p@B.example:80/?q", "https://c.example.:1#x"]),
        "words": st.integers(0, 500),
        "odd": st.one_of(st.none(), st.floats()),
    }
)
DECISION = st.tuples(
    st.sampled_from(["crawl", "notes"]),
    st.sampled_from([("kept", None, None), ("dropped", "rules", "min_words"), ("quarantined", "read", "bad_json")]),
)
PART = st.tuples(st.lists(ROW, max_size=12), st.lists(DECISION, max_size=12), st.lists(st.integers(1, 5), max_size=4))


def kept_table(rows: list[dict]) -> pa.Table:
    documents = [
        {
            **{name: row[name] for name in ("source", "domain", "language", "url")},
            "signals": {"bytes": row["words"] * 6.0, "characters": row["words"] * 5.0, "words": float(row["words"]), "odd": row["odd"]},
        }
        for row in rows
    ]
    return pa.Table.from_pylist(documents, schema=shard_schema(SIGNALS))


def decision_table(rows: list[tuple]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"source": s, "verdict": v, "stage": stage, "rule": rule} for s, (v, stage, rule) in rows], schema=DECISION_SCHEMA
    )


def part(rows, decisions, clusters) -> Statistics:
    statistics = Statistics()
    statistics.observe_signals({"odd": pa.array([row["odd"] for row in rows], pa.float64())})
    statistics.observe_kept(kept_table(rows))
    statistics.observe_decisions(decision_table(decisions))
    for size in clusters:
        statistics.observe_duplicates(size)
    return statistics


def merged(parts: list[Statistics]) -> str:
    whole = Statistics()
    for each in parts:
        whole.merge(Statistics.from_json(json.loads(json.dumps(each.to_json(), allow_nan=False))))
    return json.dumps(whole.to_json(), allow_nan=False)


@settings(max_examples=40)
@given(st.lists(PART, min_size=1, max_size=4), st.randoms())
def test_any_order_of_merges_and_one_part_alone_give_the_same_bits(parts, generator):
    one_by_one = merged([part(*each) for each in parts])
    shuffled = list(parts)
    generator.shuffle(shuffled)
    assert merged([part(*each) for each in shuffled]) == one_by_one
    together = part(*(sum((each[i] for each in parts), []) for i in range(3)))
    assert json.dumps(together.to_json()) == one_by_one


@settings(max_examples=40)
@given(PART)
def test_counts_equal_a_slow_count_over_rows(each):
    rows, decisions, clusters = each
    statistics = part(*each)
    assert statistics.kept["documents"] == len(rows) and statistics.kept["words"] == sum(r["words"] for r in rows)
    for name in ("source", "domain", "language"):
        got = {row["name"]: (row["documents"], row["words"], row["bytes"]) for row in statistics.groups[name].rows()}
        keys = {row[name] for row in rows}
        words = {key: sum(r["words"] for r in rows if r[name] == key) for key in keys}
        assert got == {key: (sum(r[name] == key for r in rows), words[key], 6 * words[key]) for key in keys}
    assert {r["name"]: r["documents"] for r in statistics.groups["host"].rows()} == Counter(slow_host(r["url"]) for r in rows)
    dropped = sum(verdict == "dropped" for _, (verdict, _, _) in decisions)
    assert statistics.losses("dropped") == ({("rules", "min_words"): dropped} if dropped else {})
    assert statistics.verdicts_by_source() == {s: Counter(v[0] for t, v in decisions if t == s) for s in sorted({s for s, _ in decisions})}
    assert statistics.cluster_sizes == Counter(clusters)


def slow_host(url: str | None) -> str | None:
    name = urlsplit(url).hostname if url else None
    return name.rstrip(".") if name else None


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.ORG/a?b#c", "example.org"),
        ("http://user:pass@example.org:8080/", "example.org"),
        ("http://[2001:db8::1]:80/x", "[2001:db8::1]"),
        ("https://example.org?x@y", "example.org"),
        ("https://example.org.", "example.org"),
        ("s3://bucket/key", "bucket"),
        ("https://bücher.example/", "bücher.example"),
        ("mailto:someone@example.org", None),
        ("/relative/path", None),
        ("https://", None),
        ("", None),
        (None, None),
    ],
)
def test_hosts(url, host):
    assert hosts(pa.array([url], pa.string())).to_pylist() == [host]
    assert hosts(pa.chunked_array([pa.array([url], pa.string())])).to_pylist() == [host]


def host_rows(counts: dict[str, int]) -> list[dict]:
    row = {"source": "s", "domain": "web", "language": "en", "words": 1, "odd": None}
    return [{**row, "url": f"http://{host}/"} for host, count in counts.items() for _ in range(count)]


def test_hosts_of_a_part_are_cut_to_the_largest_ties_by_name(monkeypatch):
    monkeypatch.setattr(module, "NAMES_PER_PART", 3)
    first, second = Statistics(), Statistics()
    first.observe_kept(kept_table(host_rows({"e": 1, "d": 1, "c": 2, "b": 2, "a": 5})))
    second.observe_kept(kept_table(host_rows({"z": 7, "a": 1})))
    parts = [first.to_json(), second.to_json()]
    assert [r["name"] for r in Statistics.from_json(parts[0]).groups["host"].rows()] == ["a", "b", "c"]
    orders = [merged([Statistics.from_json(p) for p in order]) for order in (parts, parts[::-1])]
    assert orders[0] == orders[1]
    whole = Statistics.from_json(json.loads(orders[0]))
    assert whole.groups["host"].truncated and not whole.groups["source"].truncated
    assert [(r["name"], r["documents"]) for r in whole.groups["host"].rows(2)] == [("z", 7), ("a", 6)]
    assert whole.kept["documents"] == 19


def test_a_merged_result_stays_bounded(monkeypatch):
    monkeypatch.setattr(module, "NAMES_MERGED", 4)
    whole = Statistics()
    for number in range(6):
        each = Statistics()
        each.observe_kept(kept_table(host_rows({f"h{number}{i}": 1 for i in range(3)} | {"large": 5})))
        whole.merge(each)
        assert len(whole.groups["host"]) <= 8
    assert whole.groups["host"].truncated
    assert whole.groups["host"].rows(1)[0] == {"name": "large", "documents": 30, "bytes": 180, "characters": 150, "words": 30}


def test_documents_without_their_base_signals_are_an_error():
    with pytest.raises(HeadraceError, match="lack the signals characters, words"):
        Statistics().observe_kept(shard_schema(["bytes"]).empty_table())


def test_empty_tables_count_nothing():
    statistics = part([], [], [])
    assert statistics.kept["documents"] == 0 and statistics.losses("dropped") == {}
    assert json.dumps(Statistics().to_json()["groups"]) == json.dumps(statistics.to_json()["groups"])


OFFERS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 60), st.sampled_from(["x", "y"]), st.one_of(st.none(), st.floats())), max_size=80
)


def offered(offers) -> DropSamples:
    samples = DropSamples()
    for rule, number, text, value in offers:
        samples.offer("stage", rule, f"{number:032x}", "source", None, "en", value, 1.0, text)
    return samples


@settings(max_examples=60)
@given(OFFERS, OFFERS, st.randoms())
def test_samples_do_not_depend_on_order(a, b, generator):
    whole = offered(a + b).to_json()
    shuffled = a + b
    generator.shuffle(shuffled)
    text = json.dumps(whole, allow_nan=False)
    assert json.dumps(offered(shuffled).to_json()) == text
    left, right = offered(a), DropSamples.from_json(json.loads(json.dumps(offered(b).to_json())))
    left.merge(right)
    right.merge(offered(a))
    assert json.dumps(left.to_json()) == json.dumps(right.to_json()) == text
    for entry in whole:
        ids = sorted(f"{n:032x}" for rule, n, _, _ in a + b if rule == entry["rule"])
        assert [document["id"] for document in entry["documents"]] == ids[:SAMPLES_PER_RULE]


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("\n \t\x00\x85\ud800")), max_size=900))
def test_an_excerpt_is_short_clean_and_settled(text):
    short = excerpt(text)
    assert len(short) <= EXCERPT_CHARACTERS
    assert short.encode().decode() == short
    assert not any(ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 for c in short)
    assert excerpt(short) == short


def test_an_excerpt_keeps_lines_and_marks_the_cut():
    assert excerpt("  one\t two \r\n\n\n three\n") == "one two\nthree"
    assert excerpt("word " * 500).endswith("…") and len(excerpt("x" * 401)) == EXCERPT_CHARACTERS
    assert excerpt("x" * 400) == "x" * 400


def test_a_hostile_url_is_cut_and_can_be_written():
    samples = DropSamples()
    samples.offer("s", "r", "0" * 32, "src", "http://\ud800/" + "a" * 10_000, None, float("nan"), float("inf"), "")
    (sample,) = samples.of("s", "r")
    assert len(sample["url"].encode()) <= 400 and (sample["value"], sample["threshold"]) == ("nan", "inf")


def test_speed_of_observing_is_not_per_row():
    """100,000 documents in the batches of a run: a bound so wide that only a loop over rows can break it."""
    import time

    generator = random.Random(0)
    rows = host_rows({f"host{i}": 10 for i in range(100)})
    table = kept_table([{**row, "words": generator.randint(1, 999)} for row in rows])
    start = time.process_time()
    statistics = Statistics()
    for _ in range(100):
        statistics.observe_kept(table)
    statistics.to_json()
    assert time.process_time() - start < 3
    assert statistics.kept["documents"] == 100_000
