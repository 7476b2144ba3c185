"""Near duplicates: the losers are those of a plain search over all pairs, however the work is cut, and those that people labelled."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasketch.lsh import _optimal_param

from dataproc.decisions import why
from dataproc.dedup import clusters as clusters_module
from dataproc.dedup import near, shuffle
from dataproc.dedup.exact import Losers
from dataproc.dedup.lsh import best_bands, chance
from dataproc.dedup.owners import ranks
from dataproc.dedup.shuffle import even_bounds, read_ranges, write_ranges
from dataproc.execution import PlainLoop
from dataproc.kernels import near as kernels
from dataproc.kernels.minhash import MinHasher
from dataproc.pipeline import Run, load_pipeline, make_plan, run_pipeline, write_job
from dataproc.plan import PASS1, unit_file
from dataproc.progress import Progress
from dataproc.stages.near_dedup import NearDedupConfig
from dataproc.versions import open_version, verify
from store.errors import ConfigError, StoreError
from tests.conftest import PROJECT

INPUT = "[{name: made, format: jsonl, path: made.jsonl, id_field: id}]"


def write(folder: Path, rows: list[dict], stages: str = "[exact_dedup, near_dedup: {}]", unit_mb: float = 0.02) -> str:
    (folder / "made.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return write_pipeline(folder, stages, f"{{unit_mb: {unit_mb}}}")


def write_pipeline(folder: Path, stages: str, limits: str) -> str:
    path = folder / "p.yaml"
    path.write_text(f"dataset: corpus\nversion: v1\nowner: data@example.org\ninputs: {INPUT}\nstages: {stages}\nlimits: {limits}\n")
    return str(path)


def run(folder: Path, rows: list[dict], stages: str = "[exact_dedup, near_dedup: {}]", executor=PlainLoop, store: str = "store", **more):
    path = write(folder, rows, stages, **more)
    result = run_pipeline(path, str(folder / store), executor, quiet=True)
    version = open_version(str(folder / store), "corpus@v1")
    kept = {row["meta"]["name"] for row in _documents(version)}
    return result, version, kept


def _documents(version) -> list[dict]:
    return [{**row, "meta": json.loads(row["meta"])} for batch in version.batches(["id", "meta"]) for row in batch.to_pylist()]


def clusters(seed: int, count: int, words: int = 120, changes: int = 3) -> list[dict]:
    """Documents of which some are others with words replaced, in no order."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        text = [f"w{draw.randrange(2000)}" for _ in range(words)]
        for copy in range(draw.choice([1, 1, 2, 6])):
            rows.append({"id": f"{number}-{copy}", "name": f"{number}-{copy}", "text": " ".join(text)})
            for _ in range(draw.randint(0, changes)):
                text[draw.randrange(words)] = f"w{draw.randrange(2000)}"
    draw.shuffle(rows)
    return rows


def expected_clusters(rows: list[dict], config) -> list[set[str]]:
    """Of documents with different texts: all pairs that share a band and are similar enough, joined."""
    first = {row["text"]: row["name"] for row in sorted(rows, key=lambda row: row["name"], reverse=True)}
    texts = list(first)
    signatures = MinHasher(config.permutations, config.ngram, config.scheme, config.seed).signatures(pa.array(texts, pa.large_string()))
    parents = list(range(len(texts)))

    def root(k: int) -> int:
        while parents[k] != k:
            k = parents[k]
        return k

    banded = signatures.reshape(len(texts), config.bands, config.rows)
    for i, j in combinations(range(len(texts)), 2):
        if (banded[i] == banded[j]).all(axis=1).any() and (signatures[i] == signatures[j]).mean() >= config.verify:
            parents[root(i)] = root(j)
    found: dict[int, set[str]] = {}
    for k, text in enumerate(texts):
        found.setdefault(root(k), set()).add(text)
    return list(found.values())


@pytest.mark.parametrize("stages", ["near_dedup: {}", "near_dedup: {bands: 20, rows: 4, verify: 0.5, ngram: 3, scheme: affine64, seed: 9}"])
def test_one_document_of_each_cluster_is_left(tmp_path, stages):
    rows = clusters(1, 60)
    config = load_pipeline(write(tmp_path, rows, f"[exact_dedup, {stages}]")).near_dedup.config
    result, version, kept = run(tmp_path, rows, f"[exact_dedup, {stages}]")
    text_of = {row["name"]: row["text"] for row in rows}
    expected = expected_clusters(rows, config)
    assert sorted(sum(text_of[name] in cluster for name in kept) for cluster in expected) == [1] * len(expected)
    sizes = Counter(len(cluster) for cluster in expected if len(cluster) > 1)
    assert version.manifest["dedup"]["near_dedup"]["clusters"] == {str(size): sizes[size] for size in sorted(sizes)} and len(sizes) > 2
    assert result["counts"]["input"] == result["counts"]["kept"] + sum(result["counts"]["dropped"].values()) == len(rows)
    assert verify(version) == []


def cut_small(monkeypatch) -> None:
    """Groups of a few documents, ranges of a few keys, files that are merged before they are read."""
    monkeypatch.setattr("dataproc.pipeline.MEGABYTE", 47)  # times 1,024
    monkeypatch.setattr(shuffle, "READS_AT_MOST", 4)
    monkeypatch.setattr(near, "PAIRS_AT_ONCE", 7)
    monkeypatch.setattr(near, "TEXTS_AT_ONCE", 9)


def noted_steps(monkeypatch) -> Counter:
    """Tasks of each step, counted while they run."""
    found: Counter = Counter()
    run_steps = shuffle.Steps.run

    def noted(self, worker, arguments, step, tasks):
        found[re.sub(r"-\d+", "", step)] += len(tasks)
        return run_steps(self, worker, arguments, step, tasks)

    monkeypatch.setattr(shuffle.Steps, "run", noted)
    return found


@pytest.mark.parametrize(
    ("stages", "edge_bytes", "steps"),
    [
        ("near_dedup: {}", 150, {"near-pairs-records-merged", "near-forests"}),
        ("near_dedup: {}", 10_000, {"near-large", "near-small-records-merged"}),
        ("near_dedup: {verify_by: shingles}", 150, {"near-shingles", "near-pairs-records-merged"}),
        ("near_dedup: {all_pairs: 2, star: 2}", 150, {"near-hot"}),
    ],
)
def test_how_the_work_is_cut_changes_nothing(tmp_path, monkeypatch, stages, edge_bytes, steps):
    rows = clusters(2, 80)
    rows += [
        {"id": f"c{k}", "name": f"c{k}", "text": " ".join(f"c{w}" for w in range(60)) + f" end{k % 7} {k}"}
        for k in range(300 if "star" in stages else 60)
    ]
    stages = f"[exact_dedup, {stages}]"
    whole, version, _ = run(tmp_path, rows, stages, unit_mb=0.01)
    cut_small(monkeypatch)
    monkeypatch.setattr(clusters_module, "EDGE_BYTES", edge_bytes)
    monkeypatch.setattr(clusters_module, "LINK_BYTES", 5_000)
    found = noted_steps(monkeypatch)
    cut, parts, _ = run(tmp_path, rows, stages, unit_mb=0.01, store="other")
    assert steps <= found.keys(), found
    assert cut["digest"] == whole["digest"] and cut["counts"] == whole["counts"]
    assert parts.manifest["dedup"] == version.manifest["dedup"]
    assert found["near-first"] > 10 and found["near-pairs"] > 10  # so the work was cut
    assert [_decisions(version, part) for part in version.manifest["decisions"]] == [
        _decisions(parts, part) for part in parts.manifest["decisions"]
    ]


def test_a_ray_pool_gives_the_same_bytes(tmp_path, ray_pool, monkeypatch):
    rows = clusters(3, 40)
    whole, _, _ = run(tmp_path, rows)
    monkeypatch.setattr("dataproc.pipeline.SIGNATURES_COMPARED_HERE", 0)
    pooled, _, _ = run(tmp_path, rows, executor=ray_pool, store="other")
    assert pooled["digest"] == whole["digest"]


def test_a_run_that_stopped_goes_on(tmp_path, monkeypatch):
    rows = clusters(4, 40)
    whole, _, _ = run(tmp_path, rows)
    for step in ("_bands", "_pairs", "_first", "_forests", "_ranked", "_losers"):

        def stop(self, task):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(near.NearWorker, step, stop)
            run(tmp_path, rows, store="other")
    again, _, _ = run(tmp_path, rows, store="other")
    assert again["digest"] == whole["digest"]


def test_odd_corpora(tmp_path):
    def rows(texts):
        return [{"id": str(k), "name": str(k), "text": text} for k, text in enumerate(texts)]

    same = "the mill and its wheel turn to grind the corn of the town"
    for number, (texts, kept) in enumerate(
        [
            ([same] * 50, 1),  # all are the same
            ([f"document number {k} " * 3 + f"x{k} y{k} z{k}" for k in range(50)], 50),  # none is like another
            (["", " ", "...", "!!! ???", same], 5),  # without a word: no shingle, so no duplicate
            (["a b", "A  b", "a c", "a b."], 2),  # fewer words than a shingle: duplicates when their words are the same
            ([same], 1),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert len(run(folder, rows(texts), "[near_dedup: {}]")[2]) == kept
    result, version, _ = run(tmp_path, rows(["{"]), "[rules: {use: [gopher_quality]}, near_dedup: {}]")
    assert result["counts"]["kept"] == 0 and version.manifest["dedup"]["near_dedup"]["edges"] == 0  # no survivor


def test_a_chain_is_one_cluster_and_a_giant_bucket_is_told(tmp_path):
    draw = random.Random(5)
    words = [f"w{k}" for k in range(100)]
    rows = []
    for k in range(60):  # each like the one before it, the last unlike the first
        rows.append({"id": str(k), "name": str(k), "text": " ".join(words)})
        words[(k * 2) % 100] = f"n{k}"
    _, version, kept = run(tmp_path, rows, "[near_dedup: {}]")
    assert len(kept) == 1 and version.manifest["dedup"]["near_dedup"]["clusters"] == {"60": 1}
    rows = [{"id": f"g{k}", "name": f"g{k}", "text": " ".join(words) + " end" * (k % 2)} for k in range(200)]
    draw.shuffle(rows)
    (tmp_path / "giant").mkdir()
    _, version, kept = run(tmp_path / "giant", rows, "[near_dedup: {star: 50}]")
    found = version.manifest["dedup"]["near_dedup"]
    assert len(kept) == 1 and found["giant_buckets"] > 0 and found["candidate_pairs"] < 14 * 200


@pytest.mark.parametrize(("keep", "winner"), [("longest", "long"), ("earliest", "early"), ("quality", "long"), ("smallest_id", None)])
def test_the_winner_is_chosen_by_policy(tmp_path, keep, winner):
    words = " ".join(f"w{k}" for k in range(200))
    rows = [
        {"id": "1", "name": "early", "text": words + " a", "when": "2019-01-01T00:00:00Z"},
        {"id": "2", "name": "long", "text": words + " a longer end", "when": "2020-01-01T00:00:00Z"},
        {"id": "3", "name": "none", "text": words + " b"},
    ]
    path = write(tmp_path, rows, f"[near_dedup: {{keep: {keep}}}]")
    Path(path).write_text(Path(path).read_text().replace("id_field: id", "id_field: id, timestamp_field: when"))
    run_pipeline(path, str(tmp_path / "store"), PlainLoop, quiet=True)
    version = open_version(str(tmp_path / "store"), "corpus@v1")
    (kept,) = _documents(version)
    ids = sorted(row["id"] for part in version.manifest["decisions"] for row in _decisions(version, part))
    assert kept["meta"]["name"] == winner if winner else kept["id"] == ids[0]
    (answer,) = [why(version, name)[0] for name in ids if name != kept["id"]][:1]
    assert answer["rule"] == "near_duplicate" and answer["detail"]["winner"] == kept["id"]
    assert f"nearly the same text as document {kept['id']}" in answer["explanation"]


def _decisions(version, part) -> list[dict]:
    return pq.read_table(f"{version.url}/{part['path']}").to_pylist()


def test_ranks_put_the_better_first_and_what_lacks_it_last():
    table = pa.table(
        {
            "text": pa.array(["aa", "b", None, "cccc"], pa.large_string()),
            "source": ["a", "b", "c", "b"],
            "quality": pa.array([0.5, -1.0, None, float("nan")], pa.float32()),
            "timestamp": pa.array([5, -7, None, 0], pa.timestamp("ms", "UTC")),
        }
    )

    def order(keep, *sources):
        first, second = ranks(table, NearDedupConfig(keep=keep, source_priority=sources))
        return sorted(range(4), key=lambda k: (int(first[k]), int(second[k]), k))

    assert order("longest") == [3, 0, 1, 2]
    assert order("earliest") == [1, 3, 0, 2]
    assert order("quality") == [0, 1, 3, 2]
    assert order("smallest_id") == [0, 1, 2, 3]
    assert order("smallest_id", "b", "a") == [1, 3, 0, 2]
    assert order("longest", "b") == [3, 1, 0, 2]
    assert order("earliest", "c") == [2, 1, 3, 0]
    assert order("quality", "b") == [1, 3, 0, 2]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ("[near_dedup: {}, exact_dedup: {}]", "exact_dedup must come before near_dedup"),
        ("[near_dedup: {}, clean: {}]", "near_dedup must come last"),
        ("[near_dedup: {band: 3}]", 'unknown key "band"'),
        ("[near_dedup: {star: 3, all_pairs: 9}]", "star 3 is less than all_pairs 9"),
        ("[near_dedup: {verify: 1.5}]", "verify"),
        ("[near_dedup: {threshold: 0.8, bands: 5}]", "threshold 0.8 gives .* bands of .* rows: leave bands and rows out"),
        ("[near_dedup: {threshold: 1.5}]", "threshold"),
        ("[near_dedup: {bands: 20, rows: 8, permutations: 128}]", "20 bands of 8 rows need 160 permutations, not 128"),
        ("[near_dedup: {source_priority: [mad]}]", 'source_priority: unknown input "mad": did you mean "made"'),
        ("[near_dedup: {source_priority: [made, made]}]", "source_priority has a name twice"),
    ],
)
def test_mistakes_are_told_before_any_work(tmp_path, stages, message):
    with pytest.raises(ConfigError, match=message):
        load_pipeline(write(tmp_path, [], stages))


# Truth.


def shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[k : k + 5]) for k in range(max(1, len(words) - 4))} if words else set()


def edges_of(folder: Path, rows: list[dict], stages: str = "[near_dedup: {}]") -> set[frozenset[str]]:
    """The pairs that were found similar, by name: all of them, not only those that join clusters."""
    pipeline = load_pipeline(write(folder, rows, stages))
    plan, work = make_plan(pipeline), str(folder / "work")
    write_job(work, pipeline)
    pairs: list[np.ndarray] = []
    spanning = near.spanning

    def noted(edges):
        pairs.append(edges)
        return spanning(edges)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(near, "spanning", noted)
        steps = Run(plan, str(folder / "store"), work, PlainLoop(), Progress(True))
        steps.plan = steps._with_first_rows()
        steps._pass_1()
        losers = steps._near(steps._keys())
    assert any(Losers(work, [losers], 0, len(steps.plan)).of(unit) for unit in range(len(steps.plan)))
    names = {}
    for unit in range(len(steps.plan)):
        kept = pq.read_table(unit_file(work, PASS1, unit, "kept.parquet"), columns=["meta"])
        for place, meta in enumerate(kept.column("meta").to_pylist()):
            names[(unit << 32) + place] = json.loads(meta)["name"]
    return {frozenset((names[int(edge["a"])], names[int(edge["b"])])) for edges in pairs for edge in edges}


def test_recall_and_precision_on_versions_of_documents(shared_data, tmp_path):
    with gzip.open(shared_data / "neardup" / "version_docs.jsonl.gz", "rt", encoding="utf-8") as stream:
        documents = {row["id"]: row["text"] for row in map(json.loads, stream)}
    with open(shared_data / "neardup" / "version_pairs.jsonl", encoding="utf-8") as stream:
        pairs = [json.loads(line) for line in stream]
    rows = [{"id": name, "name": name, "text": text} for name, text in documents.items()]
    found = edges_of(tmp_path, rows)
    sets = {name: shingles(text) for name, text in documents.items()}

    def jaccard(a: str, b: str) -> float:
        return len(sets[a] & sets[b]) / max(1, len(sets[a] | sets[b]))

    similar = [frozenset((pair["a"], pair["b"])) for pair in pairs if pair["jaccard5"] >= 0.85]
    assert len(similar) > 50
    assert sum(pair in found for pair in similar) / len(similar) >= 0.95
    right = [jaccard(*pair) >= 0.65 for pair in found]
    assert sum(right) / len(right) >= 0.95


def test_the_labelled_articles(shared_data, tmp_path):
    with gzip.open(shared_data / "neardup" / "articles.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows = [{"id": row["id"], "name": row["id"], "text": row["text"]} for row in map(json.loads, stream)]
    with open(shared_data / "neardup" / "articles_truth.jsonl", encoding="utf-8") as stream:
        truth = {frozenset((row["a"], row["b"])) for row in map(json.loads, stream)}
    assert edges_of(tmp_path, rows) == truth


# Parts.


def test_pairs_of_buckets():
    draw = random.Random(6)
    for _ in range(50):
        keys = np.sort(np.array([draw.randrange(6) for _ in range(draw.randrange(40))], np.uint64))
        nodes = np.array(draw.sample(range(1000), len(keys)), np.uint64)
        all_pairs, star = draw.choice([(2, 2), (2, 5), (4, 8), (16, 1000)])
        pairs = np.empty((kernels.count_pairs(keys, all_pairs, star), 2), np.uint64)
        sizes = np.zeros(64, np.int64)
        giants = kernels.bucket_pairs(keys, nodes, all_pairs, star, pairs, sizes)
        expected, large = [], 0
        for key in set(keys.tolist()):
            members = nodes[keys == key].tolist()
            large += len(members) > star
            for k in range(1, len(members)):
                others = range(k) if len(members) <= all_pairs else {0} if len(members) > star else {0, k - 1}
                expected += [(min(members[k], members[o]), max(members[k], members[o])) for o in others]
        assert sorted(map(tuple, pairs.tolist())) == sorted(expected) and giants == large
        assert sizes.sum() == sum(count > 1 for count in Counter(keys.tolist()).values())


@pytest.mark.parametrize("permutations", [16, 128])
def test_a_threshold_gives_the_bands_of_datasketch(tmp_path, permutations):
    for threshold in (0.3, 0.5, 0.7, 0.8, 0.9, 0.95):
        assert best_bands(threshold, permutations) == _optimal_param(threshold, permutations, 0.5, 0.5)
    config = load_pipeline(write(tmp_path, [], f"[near_dedup: {{threshold: 0.8, permutations: {permutations}}}]")).near_dedup.config
    assert (config.bands, config.rows) == best_bands(0.8, permutations) and config.permutations == permutations


def test_files_of_ranges(tmp_path):
    draw = np.random.default_rng(7)
    records = np.zeros(1000, near.PAIR)
    records["a"] = np.sort(draw.integers(0, 1 << 64, 1000, dtype=np.uint64))
    records["b"] = np.arange(1000)
    for ranges in (1, 3, 8, 1024):
        path = str(tmp_path / f"{ranges}")
        write_ranges(path, records, "a", even_bounds(ranges))
        parts = [read_ranges(path, near.PAIR, number, number + 1) for number in range(ranges)]
        assert (np.concatenate(parts) == records).all()
        assert all((int(value) * ranges) >> 64 == number for number, part in enumerate(parts) for value in part["a"]) or ranges == 3
    data = Path(path).read_bytes()
    (tmp_path / "cut").write_bytes(data[:-5])
    with pytest.raises(StoreError, match="shorter"):
        read_ranges(str(tmp_path / "cut"), near.PAIR, 1023, 1024)
    (tmp_path / "other").write_bytes(b"something else")
    with pytest.raises(StoreError, match="no file of arrays"):
        read_ranges(str(tmp_path / "other"), near.PAIR, 0, 1)


def test_pairs_are_found_as_often_as_the_theory_says(shared_data, tmp_path):
    """Over the whole range of similarity, within four standard deviations and a pair."""
    with gzip.open(shared_data / "neardup" / "version_docs.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows = [{"id": row["id"], "name": row["id"], "text": row["text"]} for row in map(json.loads, stream)]
    sets = {row["name"]: shingles(row["text"]) for row in rows}
    with open(shared_data / "neardup" / "version_pairs.jsonl", encoding="utf-8") as stream:
        pairs = [(row["a"], row["b"]) for row in map(json.loads, stream)]
    found = edges_of(tmp_path, rows, "[near_dedup: {verify: 0, all_pairs: 1000, star: 1000}]")
    bins: dict[int, list[tuple[float, bool]]] = {}
    for a, b in pairs:
        similarity = len(sets[a] & sets[b]) / max(1, len(sets[a] | sets[b]))
        bins.setdefault(int(similarity * 10), []).append((float(chance(similarity, 14, 8)), frozenset((a, b)) in found))
    assert len(bins) > 5
    for held in bins.values():
        expected, spread = sum(p for p, _ in held), sum(p * (1 - p) for p, _ in held) ** 0.5
        assert abs(sum(hit for _, hit in held) - expected) <= 4 * spread + 1


def test_planted_clusters_above_are_found_and_those_below_are_not(tmp_path):
    draw = random.Random(8)
    rows, planted = [], 0
    for number in range(40):
        words = [f"w{draw.randrange(20000)}" for _ in range(400)]
        rows.append({"id": f"{number}", "name": f"{number}", "text": " ".join(words)})
        half = words[:220] + [f"w{draw.randrange(20000)}" for _ in range(180)]  # 216 of 576 n-grams: 0.375
        rows.append({"id": f"{number}h", "name": f"{number}h", "text": " ".join(half)})
        words[draw.randrange(5, 395)] = "changed"  # 391 of 401: 0.975
        rows.append({"id": f"{number}c", "name": f"{number}c", "text": " ".join(words)})
        planted += 1
    _, version, kept = run(tmp_path, rows)
    assert version.manifest["dedup"]["near_dedup"]["clusters"] == {"2": planted} and len(kept) == 2 * planted


GIANT = """
import json, resource, sys
from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
result = run_pipeline(sys.argv[1], sys.argv[2], PlainLoop, quiet=True)
print(json.dumps({"counts": result["counts"], "url": result["url"], "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}))
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_bucket_and_a_cluster_of_a_million(tmp_path):
    """A million documents with the same words, in bounded memory."""
    count = 1_000_000
    with open(tmp_path / "made.jsonl", "w") as out:
        for k in range(count):
            out.write(json.dumps({"id": k, "text": "the mill and its wheel turn to grind the corn" + "." * (k % 3)}) + "\n")
    path = write_pipeline(tmp_path, "[near_dedup: {}]", limits="{dedup_memory_mb: 256}")
    done = subprocess.run([sys.executable, "-c", GIANT, path, str(tmp_path / "store")], capture_output=True, text=True, cwd=PROJECT)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["counts"]["kept"] == 1 and found["counts"]["dropped"] == {"near_dedup.near_duplicate": count - 1}
    manifest = json.loads((Path(found["url"]) / "manifest.json").read_text())
    assert manifest["dedup"]["near_dedup"]["clusters"] == {str(count): 1}
    assert manifest["dedup"]["near_dedup"]["largest_bucket"] == count and manifest["dedup"]["near_dedup"]["giant_buckets"] == 15
    assert found["peak"] < 2500
