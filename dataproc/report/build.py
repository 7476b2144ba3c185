"""The figures of a version's report, as one JSON value. The page shows these and no others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import yaml

from dataproc.report.histograms import histogram, summary
from dataproc.stages.registry import GLOBAL_STAGES
from dataproc.statistics import GROUPS, SAMPLES_PER_RULE, DropSamples, Statistics
from store.artefacts import Artefact
from store.errors import CheckFailed

FORMAT = 1
NAMES_SHOWN = 100  # of each grouping
FILES_SHOWN = 200  # inputs and shards listed one by one
SAMPLES_SHOWN = 800  # over all rules: with excerpts of 400 characters this bounds the page
FEWEST_SAMPLES = 3
LABELLING = "label_domain."  # how the measures of that stage begin: documents by the rule that decided
ABOUT = ("name", "label", "digest", "kind", "owner", "created_at", "code_version", "config_digest", "plan_digest", "libraries")


def build_report(
    manifest: dict[str, Any],
    statistics: Statistics,
    samples: DropSamples,
    stages: list[dict[str, Any]],
    timings: dict[str, float],
    measures: dict[str, float] | None = None,
) -> dict[str, Any]:
    """The report of a version as JSON without NaN or infinity.

    manifest: the version's, but for `stats`; stages: [{name, config, rules, thresholds}] in order, `read` first; timings: seconds of
    processor time by stage; measures: `stage.name` -> figure of the stages' work (`Stage.measures`).
    `stats` in the result is what the manifest keeps. Raises CheckFailed when the counts of the manifest and
    those of the statistics do not agree.
    """
    _check(manifest["counts"], statistics)
    taken = _stages(manifest["counts"]["input"], statistics, stages)
    thresholds = _thresholds(stages)
    return {
        "format": FORMAT,
        "version": {key: manifest[key] for key in ABOUT if key in manifest} | {"reference": Artefact("", manifest).reference},
        "counts": _counts(manifest["counts"]),
        "totals": _totals(manifest, statistics),
        "stats": _stats(manifest, statistics, taken),
        "sources": _sources(statistics),
        "histograms": _histograms(statistics, thresholds),
        "quarantine": _quarantine(statistics),
        "samples": _samples(taken, samples),
        "timings": _timings(taken, timings),
        "savings": _savings(measures or {}),
        "labelled": _labelled(measures or {}),
        "not_documents": dict(sorted(manifest.get("not_documents", {}).items())),
        "parents": manifest.get("parents", []),
        "inputs": _listed(manifest.get("inputs", [])),
        "config_yaml": yaml.safe_dump(manifest.get("config", {}), sort_keys=False, allow_unicode=True, width=100),
        "schema": manifest.get("schema", []),
        "shards": _listed(manifest.get("shards", [])),
    }


def _check(counts: dict[str, Any], statistics: Statistics) -> None:
    """Conservation, and that manifest and statistics counted the same."""
    dropped = sum(counts["dropped"].values())
    seen: Counter[str] = Counter()
    for by_verdict in statistics.verdicts_by_source().values():
        seen.update(by_verdict)
    wanted = {"kept": counts["kept"], "dropped": dropped, "quarantined": counts["quarantined"]}
    if counts["input"] != sum(wanted.values()):
        raise CheckFailed(f"{counts['input']} records came in, {sum(wanted.values())} are accounted for ({wanted}): the run is not sound")
    if any(seen[name] != count for name, count in wanted.items()) or statistics.kept["documents"] != counts["kept"]:
        raise CheckFailed(
            f"the counts of the run ({wanted}) and its statistics ({dict(seen)}, {statistics.kept['documents']} documents kept) differ: "
            "the run is not sound"
        )


def _counts(counts: dict[str, Any]) -> dict[str, int]:
    dropped = sum(counts["dropped"].values())
    return {"input": counts["input"], "kept": counts["kept"], "dropped": dropped, "quarantined": counts["quarantined"]}


def _totals(manifest: dict[str, Any], statistics: Statistics) -> dict[str, int]:
    shards, inputs = manifest.get("shards", []), manifest.get("inputs", [])
    return {
        **{name: statistics.kept[name] for name in ("documents", "bytes", "characters", "words")},
        "shards": len(shards),
        "shard_bytes": sum(shard["bytes"] for shard in shards),
        "input_bytes": sum(entry["bytes"] for entry in inputs),
    }


def _stages(records: int, statistics: Statistics, stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """[{name, entered, dropped, quarantined, left, rules: [{rule, verdict, records}], idle: [rule]}] in order of the run."""
    losses = [(key, verdict, n) for verdict in ("dropped", "quarantined") for key, n in statistics.losses(verdict).items()]
    declared = {stage["name"]: _declared_rules(stage) for stage in stages}
    rows = []
    for name in _order([stage["name"] for stage in stages], {stage for (stage, _), _, _ in losses}):
        rules = [{"rule": rule, "verdict": verdict, "records": n} for (stage, rule), verdict, n in losses if stage == name]
        rules.sort(key=lambda rule: (-rule["records"], rule["rule"], rule["verdict"]))
        taken = {verdict: sum(r["records"] for r in rules if r["verdict"] == verdict) for verdict in ("dropped", "quarantined")}
        left = records - sum(taken.values())
        took = {rule["rule"] for rule in rules}
        idle = [rule for rule in declared.get(name, []) if rule not in took]
        rows.append({"name": name, "entered": records, **taken, "left": left, "rules": rules, "idle": idle})
        records = left
    return rows


def _declared_rules(stage: dict[str, Any]) -> list[str]:
    """Rules that a stage says it has, also those that took nothing."""
    by_signal = (t["rule"] for found in stage.get("thresholds", {}).values() for t in found)
    return list(dict.fromkeys([*stage.get("rules", []), *by_signal]))


def _order(named: list[str], losing: set[str]) -> list[str]:
    """The stages of the run, and those that only decisions name (faults of the run itself) before the global stages."""
    extra = sorted(losing - set(named))
    cut = next((i for i, name in enumerate(named) if name in GLOBAL_STAGES), len(named))
    return [*named[:cut], *extra, *named[cut:]]


def _thresholds(stages: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """signal -> [{stage, rule, min, max}]."""
    found: dict[str, list[dict[str, Any]]] = {}
    for stage in stages:
        for signal, limits in stage.get("thresholds", {}).items():
            for limit in limits:
                entry = {"stage": stage["name"], "rule": limit["rule"], "min": limit.get("min"), "max": limit.get("max")}
                found.setdefault(signal, []).append(entry)
    return found


def _stats(manifest: dict[str, Any], statistics: Statistics, taken: list[dict[str, Any]]) -> dict[str, Any]:
    names = sorted(statistics.signals_all.keys() | statistics.signals_kept.keys())
    return {
        **{name: statistics.kept[name] for name in ("documents", "bytes", "characters", "words")},
        "groups": {name: _group(statistics, name) for name in GROUPS},
        "signals": {name: {key: summary(held[name]) for key, held in _sketches(statistics).items() if name in held} for name in names},
        "stages": taken,
        "duplicate_clusters": _clusters(statistics.cluster_sizes),
        "dedup": _dedup(manifest.get("dedup", {})),
        "keep_rate": [{"group": group, **found} for group, found in manifest.get("keep_rate", {}).items()],
    }


def _sketches(statistics: Statistics) -> dict[str, dict[str, Any]]:
    return {"all": statistics.signals_all, "kept": statistics.signals_kept}


def _group(statistics: Statistics, name: str) -> dict[str, Any]:
    """`names` is how many there are; `truncated` says that small ones were let go, so that counts are lower bounds."""
    counts = statistics.groups[name]
    return {"names": len(counts), "truncated": counts.truncated, "rows": counts.rows(NAMES_SHOWN)}


def _clusters(sizes: Counter[int]) -> list[dict[str, int]]:
    """Clusters of two or more by size in powers of two: [{from, to, clusters, documents}]."""
    found: dict[int, list[int]] = {}
    for size, clusters in sizes.items():
        if size > 1 and clusters:
            row = found.setdefault(size.bit_length() - 1, [0, 0])
            row[0] += clusters
            row[1] += clusters * size
    return [{"from": 1 << k, "to": (2 << k) - 1, "clusters": c, "documents": d} for k, (c, d) in sorted(found.items())]


def _dedup(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What each kind of deduplication found, by stage: removed_bytes, clusters, buckets, overlaps (the largest counts of [loser, winner,
    documents]), the largest clusters; what a stage has not is left out."""
    shown = {}
    for stage, facts in found.items():
        entry = {
            name: facts[name] for name in ("removed_bytes", "candidate_pairs", "giant_buckets", "largest_bucket", "cuts") if name in facts
        }
        for name in ("clusters", "copies"):
            if name in facts:
                entry["clusters"] = _clusters(Counter({int(size): count for size, count in facts[name].items()}))
        if "buckets" in facts:
            entry["buckets"] = [{"from": int(size), "to": 2 * int(size) - 1, "buckets": n} for size, n in facts["buckets"].items()]
        overlaps = facts.get("overlaps", facts)
        entry["overlaps"] = {kind: _largest_overlaps(overlaps[kind]) for kind in ("sources", "languages")}
        entry["largest"] = facts.get("largest", [])
        shown[stage] = entry
    return shown


def _largest_overlaps(counts: dict[str, int]) -> list[list[Any]]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:NAMES_SHOWN]
    return [[*pair.split("\t"), count] for pair, count in ordered]


def _sources(statistics: Statistics) -> list[dict[str, Any]]:
    rows = []
    for source, verdicts in statistics.verdicts_by_source().items():
        rows.append({"source": source, "input": verdicts.total(), **{v: verdicts[v] for v in ("kept", "dropped", "quarantined")}})
    return rows


def _histograms(statistics: Statistics, thresholds: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One entry for each signal: those with thresholds first, then by name. `bars` is None where no number was seen."""
    everything, kept = statistics.signals_all, statistics.signals_kept
    rows = []
    for name in sorted(everything.keys() | kept.keys(), key=lambda name: (name not in thresholds, name)):
        limits = thresholds.get(name, [])
        rows.append({"signal": name, "thresholds": limits, "bars": histogram(everything.get(name), kept.get(name), limits)})
    return rows


def _quarantine(statistics: Statistics) -> list[dict[str, Any]]:
    found = [{"stage": stage, "reason": rule, "records": n} for (stage, rule), n in statistics.losses("quarantined").items()]
    return sorted(found, key=lambda row: (-row["records"], row["stage"], row["reason"]))


def _samples(taken: list[dict[str, Any]], samples: DropSamples) -> list[dict[str, Any]]:
    """Lost documents for each rule in the order of the funnel; fewer of each when there are very many rules."""
    rules = sum(len(stage["rules"]) for stage in taken)
    most = max(FEWEST_SAMPLES, min(SAMPLES_PER_RULE, SAMPLES_SHOWN // max(rules, 1)))
    return [
        {"stage": stage["name"], **rule, "documents": samples.of(stage["name"], rule["rule"])[:most]}
        for stage in taken
        for rule in stage["rules"]
    ]


def _timings(taken: list[dict[str, Any]], timings: dict[str, float]) -> list[dict[str, Any]]:
    """Seconds by stage in order of the run; `records_per_second` counts what entered the stage, None where no time was measured."""
    entered = {stage["name"]: stage["entered"] for stage in taken}
    names = [name for name in entered if name in timings] + sorted(timings.keys() - entered.keys())
    total = sum(timings.values())
    return [
        {
            "stage": name,
            "seconds": timings[name],
            "share": timings[name] / total if total else 0.0,
            "records_per_second": entered[name] / timings[name] if name in entered and timings[name] > 0 else None,
        }
        for name in names
    ]


def _savings(measures: dict[str, float]) -> dict[str, float] | None:
    """What refusing pages before extraction saved: their number times the mean seconds of a page that was extracted. None where none
    was refused, or none extracted so that there is no mean."""
    refused, extracted = measures.get("extract.refused", 0), measures.get("extract.extracted", 0)
    if not refused or not extracted:
        return None
    mean = measures["extract.seconds"] / extracted
    return {"refused": int(refused), "extracted": int(extracted), "seconds_a_page": mean, "saved_seconds": refused * mean}


def _labelled(measures: dict[str, float]) -> list[dict[str, Any]]:
    """[{rule, documents}], rules in their order, then the default: by what documents got their domain label, before later stages."""
    found = {key.removeprefix(LABELLING): int(count) for key, count in measures.items() if key.startswith(LABELLING) and count}
    numbered = sorted((rule for rule in found if rule[0].isdigit()), key=lambda rule: int(rule.partition(" ")[0]))
    return [{"rule": rule, "documents": found[rule]} for rule in [*numbered, *sorted(found.keys() - set(numbered))]]


def _listed(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"count": len(entries), "rows": entries[:FILES_SHOWN]}
