"""What a run counts while it works: signals, groups of kept documents, decisions, duplicate clusters, and samples of what was lost.

A part (one work unit or one shard) observes; parts are merged in any order into the same result, to the bit.
"""

from __future__ import annotations

import json
import math
from bisect import insort
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataproc.documents import BASE_SIGNALS
from dataproc.sketch import Sketch
from store.errors import HeadraceError

GROUPS = ("source", "domain", "language", "host")
MEASURES = ("documents", *BASE_SIGNALS)
NAMES_PER_PART = 5_000  # of a grouping; the largest by documents, ties by name
NAMES_MERGED = 100_000  # of a merged result, which in memory holds at most twice as many (about 80 MB)
NAME_CHARACTERS = 253  # the longest host name (RFC 1035, section 2.3.4); languages and labels are shorter
HOST = r"^[A-Za-z][A-Za-z0-9+.\-]*://(?:[^/?#\\@]*@)?(?P<host>\[[^\]/?#]*\]|[^/?#\\:@]+)"

SAMPLES_PER_RULE = 20
EXCERPT_CHARACTERS = 400
URL_CHARACTERS = 400
# Control characters would make excerpts unreadable or act on the terminal that shows them; line breaks and tabs stay.
CONTROLS = {code: "\ufffd" for code in [*range(32), *range(127, 160)] if code not in (9, 10)}


class GroupCounts:
    """Documents, bytes, characters and words by name. What one part saw is cut to its largest names before it is merged or written."""

    def __init__(self):
        self._sealed: dict[str | None, list[int]] = {}
        self._open: dict[str | None, list[int]] = {}
        self._truncated = False

    def observe(self, names: pa.Array | pa.ChunkedArray, measures: dict[str, pa.ChunkedArray]) -> None:
        """Adds rows: their names (null for none) and the measures of BASE_SIGNALS."""
        table = pa.table({"name": pc.utf8_slice_codeunits(names.cast(pa.string()), 0, NAME_CHARACTERS), **measures})
        sums = table.group_by("name").aggregate([([], "count_all"), *((name, "sum") for name in BASE_SIGNALS)])
        columns = [sums[name].to_pylist() for name in ("name", "count_all", *(f"{name}_sum" for name in BASE_SIGNALS))]
        for name, *amounts in zip(*columns, strict=True):
            _add(self._open, name, [amount or 0 for amount in amounts])

    def _seal(self) -> None:
        if len(self._open) > NAMES_PER_PART:
            self._open, self._truncated = _largest(self._open, NAMES_PER_PART), True
        for name, amounts in self._open.items():
            _add(self._sealed, name, amounts)
        self._open = {}

    def merge(self, other: GroupCounts) -> None:
        """Adds another part. Exact in any order as long as fewer than NAMES_MERGED names are known; beyond, the smallest are let go."""
        self._seal()
        other._seal()
        for name, amounts in other._sealed.items():
            _add(self._sealed, name, amounts)
        self._truncated |= other._truncated
        if len(self._sealed) > 2 * NAMES_MERGED:
            self._sealed, self._truncated = _largest(self._sealed, NAMES_MERGED), True

    @property
    def truncated(self) -> bool:
        """Whether small names were let go: then those shown have at least the documents shown."""
        self._seal()
        return self._truncated

    def __len__(self) -> int:
        self._seal()
        return len(self._sealed)

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """[{name, documents, bytes, characters, words}], largest first, ties by name; name is None where there was none."""
        self._seal()
        ordered = _largest(self._sealed, len(self._sealed) if most is None else most)
        return [{"name": name, **dict(zip(MEASURES, amounts, strict=True))} for name, amounts in ordered.items()]

    def to_json(self) -> dict[str, Any]:
        self._seal()
        names = sorted(self._sealed, key=_by_name)
        return {"truncated": self._truncated, "rows": [[name, *self._sealed[name]] for name in names]}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> GroupCounts:
        counts = cls()
        counts._truncated = value["truncated"]
        counts._sealed = {name: amounts for name, *amounts in value["rows"]}
        return counts


def _by_name(name: str | None) -> tuple[bool, str]:
    return name is not None, name or ""


def _add(target: dict[str | None, list[int]], name: str | None, amounts: list[int]) -> None:
    held = target.get(name)
    target[name] = list(amounts) if held is None else [a + b for a, b in zip(held, amounts, strict=True)]


def _largest(groups: dict[str | None, list[int]], most: int) -> dict[str | None, list[int]]:
    ordered = sorted(groups.items(), key=lambda item: (-item[1][0], _by_name(item[0])))
    return dict(ordered[:most])


class Statistics:
    """All counts of a part or, merged, of a version. Every number is an integer or exact, so merges commute."""

    def __init__(self):
        self.signals_all: dict[str, Sketch] = {}  # of every document a stage evaluated, before verdicts
        self.signals_kept: dict[str, Sketch] = {}
        self.groups: dict[str, GroupCounts] = {name: GroupCounts() for name in GROUPS}
        self.kept: Counter[str] = Counter()  # MEASURES of all kept documents
        self.decisions: Counter[tuple[str, str, str | None, str | None]] = Counter()  # (source, verdict, stage, rule)
        self.cluster_sizes: Counter[int] = Counter()

    def observe_signals(self, columns: dict[str, pa.Array]) -> None:
        """Adds signal columns of all documents that a stage evaluated, before its verdicts."""
        for name, values in columns.items():
            self.signals_all.setdefault(name, Sketch()).observe(values)

    def observe_kept(self, table: pa.Table) -> None:
        """Adds kept documents (columns of `documents.shard_schema`). Raises HeadraceError without the signals of BASE_SIGNALS."""
        signals = dict(zip([f.name for f in table.schema.field("signals").type], table["signals"].flatten(), strict=True))
        if missing := [name for name in BASE_SIGNALS if name not in signals]:
            raise HeadraceError(f"kept documents lack the signals {', '.join(missing)}, which every document has")
        for name, values in signals.items():
            self.signals_kept.setdefault(name, Sketch()).observe(values)
        measures = {name: pc.fill_null(signals[name], 0).cast(pa.int64()) for name in BASE_SIGNALS}
        self.kept["documents"] += table.num_rows
        for name, values in measures.items():
            self.kept[name] += pc.sum(values).as_py() or 0
        for name in ("source", "domain", "language"):
            self.groups[name].observe(table[name], measures)
        self.groups["host"].observe(hosts(table["url"]), measures)

    def observe_decisions(self, table: pa.Table) -> None:
        """Adds decisions (columns of `documents.DECISION_SCHEMA`)."""
        keys = ["source", "verdict", "stage", "rule"]
        counted = table.select(keys).group_by(keys).aggregate([([], "count_all")])
        for *key, count in zip(*(counted[name].to_pylist() for name in [*keys, "count_all"]), strict=True):
            self.decisions[tuple(key)] += count

    def observe_duplicates(self, cluster_size: int, count: int = 1) -> None:
        """Adds `count` clusters of `cluster_size` equal documents, the winner included."""
        self.cluster_sizes[cluster_size] += count

    def merge(self, other: Statistics) -> None:
        """Adds another part."""
        for mine, theirs in ((self.signals_all, other.signals_all), (self.signals_kept, other.signals_kept)):
            for name, sketch in theirs.items():
                mine.setdefault(name, Sketch()).merge(sketch)
        for name in GROUPS:
            self.groups[name].merge(other.groups[name])
        self.kept.update(other.kept)
        self.decisions.update(other.decisions)
        self.cluster_sizes.update(other.cluster_sizes)

    def losses(self, verdict: str) -> dict[tuple[str, str], int]:
        """(stage, rule) -> records with this verdict, by name."""
        found: Counter[tuple[str, str]] = Counter()
        for (_, each, stage, rule), count in self.decisions.items():
            if each == verdict:
                found[(stage or "", rule or "")] += count
        return dict(sorted(found.items()))

    def losses_by_name(self, verdict: str) -> dict[str, int]:
        """`losses` as receipts and manifests name them: stage.rule."""
        return {f"{stage}.{rule}": count for (stage, rule), count in self.losses(verdict).items()}

    def verdicts_by_source(self) -> dict[str, Counter[str]]:
        """source -> verdict -> records, by name."""
        found: dict[str, Counter[str]] = {}
        for (source, verdict, _, _), count in self.decisions.items():
            found.setdefault(source, Counter())[verdict] += count
        return dict(sorted(found.items()))

    def to_json(self) -> dict[str, Any]:
        """The statistics as JSON without NaN or infinity; equal statistics give equal JSON."""
        decisions = sorted(self.decisions.items(), key=lambda item: [part or "" for part in item[0]])
        return {
            "signals_all": {name: sketch.to_json() for name, sketch in sorted(self.signals_all.items())},
            "signals_kept": {name: sketch.to_json() for name, sketch in sorted(self.signals_kept.items())},
            "groups": {name: counts.to_json() for name, counts in self.groups.items()},
            "kept": {name: self.kept[name] for name in MEASURES},
            "decisions": [[*key, count] for key, count in decisions],
            "cluster_sizes": [[size, count] for size, count in sorted(self.cluster_sizes.items())],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Statistics:
        """The statistics that `to_json` described."""
        statistics = cls()
        for key in ("signals_all", "signals_kept"):
            setattr(statistics, key, {name: Sketch.from_json(sketch) for name, sketch in value[key].items()})
        statistics.groups = {name: GroupCounts.from_json(value["groups"][name]) for name in GROUPS}
        statistics.kept = Counter(value["kept"])
        statistics.decisions = Counter({tuple(key): count for *key, count in value["decisions"]})
        statistics.cluster_sizes = Counter(dict(value["cluster_sizes"]))
        return statistics


def hosts(urls: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The host of each URL in lower case, without user, port and final dot; null where there is none."""
    found = pc.struct_field(pc.extract_regex(urls, HOST), [0])
    return pc.utf8_rtrim(pc.utf8_lower(found), ".")


def excerpt(text: str) -> str:
    """The start of a text for a reader: at most 400 characters, spaces and empty lines run together, control characters visible."""
    lines = (" ".join(line.split()) for line in text[: 4 * EXCERPT_CHARACTERS].split("\n"))
    shown = "\n".join(line for line in lines if line).translate(CONTROLS)
    if len(shown) > EXCERPT_CHARACTERS or len(text) > 4 * EXCERPT_CHARACTERS:
        shown = shown[: EXCERPT_CHARACTERS - 1].rstrip() + "…"
    return _writable(shown)


def _writable(text: str) -> str:
    """The text with lone surrogates, which no file can hold, replaced."""
    return text.encode("utf-8", "replace").decode()


def _finite(number: float | None) -> float | str | None:
    """A number as JSON can hold it: `nan` and `inf` by name."""
    return number if number is None or math.isfinite(number) else str(number)


class DropSamples:
    """For each rule the lost documents with the smallest ids: a fixed, unbiased sample, since ids are hashes."""

    def __init__(self):
        self._samples: dict[tuple[str, str], list[tuple[str, str]]] = {}  # ascending (id, the sample as JSON)

    def offer(
        self,
        stage: str,
        rule: str,
        id: str,
        source: str,
        url: str | None,
        language: str | None,
        value: float | None,
        threshold: float | None,
        text: str,
    ) -> None:
        """Considers a dropped or quarantined document. text: it or what is shown in its place; an excerpt is kept."""
        held = self._samples.setdefault((stage, rule), [])
        if len(held) == SAMPLES_PER_RULE and id > held[-1][0]:
            return
        shown_url = _writable(url[:URL_CHARACTERS]) if url else None
        sample = {"id": id, "source": source, "url": shown_url, "language": language, "excerpt": excerpt(text)}
        sample |= {"value": _finite(value), "threshold": _finite(threshold)}
        _insert(held, (id, json.dumps(sample, sort_keys=True)))

    def merge(self, other: DropSamples) -> None:
        """Adds the samples of another part."""
        for key, samples in other._samples.items():
            held = self._samples.setdefault(key, [])
            for sample in samples:
                _insert(held, sample)

    def rules(self) -> Iterable[tuple[str, str]]:
        """(stage, rule) of all that have samples, by name."""
        return sorted(self._samples)

    def of(self, stage: str, rule: str) -> list[dict[str, Any]]:
        """The samples of a rule by id: {id, source, url, language, value, threshold, excerpt}."""
        return [json.loads(sample) for _, sample in self._samples.get((stage, rule), [])]

    def to_json(self) -> list[dict[str, Any]]:
        return [{"stage": stage, "rule": rule, "documents": self.of(stage, rule)} for stage, rule in self.rules()]

    @classmethod
    def from_json(cls, value: list[dict[str, Any]]) -> DropSamples:
        samples = cls()
        for entry in value:
            held = [(document["id"], json.dumps(document, sort_keys=True)) for document in entry["documents"]]
            samples._samples[(entry["stage"], entry["rule"])] = sorted(held)
        return samples


def _insert(held: list[tuple[str, str]], sample: tuple[str, str]) -> None:
    insort(held, sample)
    del held[SAMPLES_PER_RULE:]
