"""Reports of made-up runs, as realistic as a test needs: records fall through stages, and every count comes from those that fell."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dataproc.documents import BASE_SIGNALS, DECISION_SCHEMA, shard_schema
from dataproc.report.build import build_report
from dataproc.statistics import DropSamples, Statistics

PROSE = (
    "The miller walks along the channel before dawn and lifts the gate by two notches. Water comes down over the stones, slowly at first, "
    "then with the weight of the whole pond behind it, and the wheel begins to turn. "
)
SPAM = "BUY NOW!!! cheap watches ### best price ### click here ### " * 4
ARABIC = "يرتفع الماء في القناة قبل الفجر ويدور الدولاب ببطء حتى يطحن القمح كله. "
LANGUAGES = ["en", "de", "fr", "es", "ru", "zh", "ar", "ja", "pl", "it"]


@dataclass
class MadeUp:
    """Arguments of `build_report` for a run of `records` records."""

    records: int
    seed: int = 7
    languages: list[str] = field(default_factory=lambda: LANGUAGES)
    rules: int = 12
    signals: int = 14
    excerpt: str | None = None
    host: str | None = None
    label: str = "v1"
    owner: str = "data@example.org"

    def report(self) -> dict[str, Any]:
        return build_report(*self.arguments())

    def arguments(self) -> tuple[dict[str, Any], Statistics, DropSamples, list[dict[str, Any]], dict[str, float]]:
        generator = np.random.default_rng(self.seed)
        names = [f"signal_{i:02d}" for i in range(self.signals)]
        values = {name: self._values(i, generator) for i, name in enumerate(names)}
        fate = self._fates(names, values, generator)
        statistics, samples = Statistics(), DropSamples()
        statistics.observe_signals({name: pa.array(values[name]) for name in names})
        self._observe(statistics, samples, fate, names, values, generator)
        for size, count in ((1, self.records // 2), (2, self.records // 40), (3, self.records // 90), (17, self.records // 3000)):
            statistics.observe_duplicates(size, count)
        return self._manifest(fate, names), statistics, samples, self._stages(names), self._timings()

    def _values(self, kind: int, generator: np.random.Generator) -> np.ndarray:
        """Shapes that real signals have: heavy tails, counts, ratios, ratios with a spike at zero, names that never vary."""
        n = self.records
        shapes = (
            lambda: np.round(generator.lognormal(5.2, 1.3, n)),
            lambda: generator.normal(4.8, 0.6, n),
            lambda: generator.beta(1.2, 9, n),
            lambda: np.where(generator.random(n) < 0.7, 0.0, generator.beta(2, 6, n)),
            lambda: generator.poisson(3, n).astype(float),
            lambda: np.where(generator.random(n) < 0.4, 0.0, np.round(generator.lognormal(2, 1.8, n))),
            lambda: np.full(n, 1.0),
        )
        return shapes[kind % len(shapes)]()

    def _limit(self, kind: int) -> dict[str, float | None]:
        limits = ((50, 100_000), (3, 10), (None, 0.3), (None, 0.2), (1, None), (None, 100), (None, 2))
        low, high = limits[kind % len(limits)]
        return {"min": low, "max": high}

    def _rule_names(self) -> list[str]:
        families = ("gopher_quality", "gopher_repetition", "c4", "fineweb")
        return [f"{families[i % 4]}.rule_{i:02d}" for i in range(self.rules)]

    def _fates(
        self, names: list[str], values: dict[str, np.ndarray], generator: np.random.Generator
    ) -> list[tuple[str, str | None, str | None]]:
        fates = []
        rules = self._rule_names()
        for row in range(self.records):
            luck = generator.random()
            if luck < 0.004:
                fates.append(("quarantined", "read", ("bad_json", "truncated")[row % 2]))
            elif luck < 0.006:
                fates.append(("quarantined", "run", "timeout"))
            elif luck < 0.05:
                fates.append(("dropped", "read", "http_status"))
            elif luck < 0.08:
                fates.append(("dropped", "url_filter", "blocked_domain"))
            elif luck < 0.3:
                fates.append(("dropped", "language", "other_language"))
            else:
                fates.append(self._judged(rules, names, values, row, generator))
        return fates

    def _judged(self, rules, names, values, row, generator) -> tuple[str, str | None, str | None]:
        for i, rule in enumerate(rules[: len(names)]):
            limit, value = self._limit(i), values[names[i]][row]
            if (limit["min"] is not None and value < limit["min"]) or (limit["max"] is not None and value > limit["max"]):
                return "dropped", "rules", rule
        if len(rules) > len(names) and generator.random() < 0.3:
            return "dropped", "rules", rules[len(names) + row % (len(rules) - len(names))]
        return ("dropped", "exact_dedup", "duplicate") if generator.random() < 0.1 else ("kept", None, None)

    def _observe(self, statistics, samples, fate, names, values, generator) -> None:
        chooser = random.Random(self.seed)
        shares = [1 / (i + 1) for i in range(len(self.languages))]
        kept, decisions = [], []
        for row, (verdict, stage, rule) in enumerate(fate):
            source = ("crawl", "notes")[row % 5 == 0]
            language = chooser.choices(self.languages, shares)[0]
            host = self.host or f"www{int(generator.pareto(0.9))}.example.org"
            url = f"https://{host}/page/{row}" if source == "crawl" else None
            decisions.append({"id": "", "source": source, "verdict": verdict, "stage": stage, "rule": rule})
            if verdict == "kept":
                signals = {name: float(values[name][row]) for name in names}
                words = float(chooser.randint(50, 3000))
                signals |= {"bytes": words * 6.3 // 1, "characters": words * 6 // 1, "words": words}
                domain = "web" if source == "crawl" else "books"
                kept.append({"source": source, "domain": domain, "language": language, "url": url, "signals": signals})
            else:
                text = self.excerpt or (ARABIC * 6 if language == "ar" else SPAM if row % 3 else PROSE * 2)
                name = f"{chooser.getrandbits(128):032x}"
                value = float(values[names[0]][row]) if stage == "rules" and names else None
                samples.offer(stage, rule, name, source, url, language, value, None if value is None else 50.0, text)
        statistics.observe_decisions(pa.Table.from_pylist(decisions, schema=DECISION_SCHEMA))
        statistics.observe_kept(pa.Table.from_pylist(kept, schema=shard_schema([*BASE_SIGNALS, *names])))

    def _stages(self, names: list[str]) -> list[dict[str, Any]]:
        thresholds: dict[str, list[dict[str, Any]]] = {}
        for i, rule in enumerate(self._rule_names()[: len(names)]):
            thresholds[names[i]] = [{"rule": rule, **self._limit(i)}]
        return [
            {"name": "read", "config": {}, "thresholds": {}},
            {
                "name": "url_filter",
                "config": {"block_domains": ["lists/bad.txt"]},
                "thresholds": {},
                "rules": ["blocked_domain", "blocked_word"],
            },
            {"name": "extract", "config": {"engine": "trafilatura"}, "thresholds": {}},
            {"name": "language", "config": {"keep": ["en"], "min_score": 0.65}, "thresholds": {}},
            {"name": "rules", "config": {}, "thresholds": thresholds},
            {"name": "exact_dedup", "config": {}, "thresholds": {}},
        ]

    def _timings(self) -> dict[str, float]:
        return {
            "read": self.records / 9000,
            "url_filter": 0.0,
            "extract": self.records / 35,
            "language": self.records / 4000,
            "rules": self.records / 1500,
        }

    def _manifest(self, fate: list[tuple[str, str | None, str | None]], names: list[str]) -> dict[str, Any]:
        verdicts = Counter(verdict for verdict, _, _ in fate)
        dropped = Counter(f"{stage}.{rule}" for verdict, stage, rule in fate if verdict == "dropped")
        inputs = [
            {"source": "crawl", "path": f"crawl/part-{i:03d}.warc.gz", "bytes": 131_072_000 + i, "hash": f"xxh3_128:{i:032x}"}
            for i in range(12)
        ]
        shard = {"path": "shards/part-00000.parquet", "rows": verdicts["kept"], "bytes": 2_345_678, "xxh3_128": f"{self.seed:032x}"}
        return {
            "name": "web",
            "label": self.label,
            "digest": f"{self.seed:064x}"[::-1],
            "kind": "documents",
            "owner": self.owner,
            "created_at": "2026-01-02T03:04:05.678Z",
            "parents": [],
            "inputs": inputs,
            "config": {
                "dataset": "web",
                "version": self.label,
                "owner": self.owner,
                "stages": [{"language": {"keep": ["en"]}}, {"exact_dedup": {}}],
            },
            "config_digest": "c" * 64,
            "plan_digest": "d" * 16,
            "code_version": "0.1.0",
            "libraries": {"pyarrow": "26.0.0", "trafilatura": "2.0.0"},
            "schema": [{"name": f.name, "type": str(f.type)} for f in shard_schema([*BASE_SIGNALS, *names])],
            "shards": [shard],
            "counts": {"input": self.records, "kept": verdicts["kept"], "quarantined": verdicts["quarantined"], "dropped": dict(dropped)},
            "not_documents": {"warcinfo": 12, "request": self.records} if self.records else {},
        }
