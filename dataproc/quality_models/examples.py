"""Labelled documents: read, with their site and language, and each text once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from dataproc.batches import make_batch
from dataproc.dedup.lsh import best_bands
from dataproc.documents import document_id
from dataproc.kernels.compiling import ready
from dataproc.kernels.minhash import MinHasher
from dataproc.kernels.near import band_keys, bucket_pairs, count_pairs, equal_values, spanning_forest
from dataproc.quality_models.config import LabelledData, TrainingFile, raw_label
from dataproc.sources.base import Damaged, InputSpec, ReadReport, Record
from dataproc.sources.registry import make_source, plan_input
from dataproc.stages.base import StageContext
from dataproc.stages.language import Language, LanguageConfig
from dataproc.text_hash import content_hashes
from dataproc.urls import parse, registered_domain
from store.errors import CheckFailed, ConfigError

_PERMUTATIONS = 128
_ALL_PAIRS, _STAR = 16, 1000  # as near_dedup compares the members of a bucket
_UNIT_BYTES = 1 << 26
_EXAMPLES = 5


@dataclass(frozen=True)
class Examples:
    """Labelled documents as columns. labels: (rows,) int64 into the names of the file's labels; ids, sites, languages, sources: lists."""

    texts: pa.Array
    labels: np.ndarray
    ids: list[str]
    sites: list[str]
    languages: list[str]
    sources: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: np.ndarray) -> Examples:
        """Some of them, in the order given."""
        chosen = rows.tolist()
        columns = [[column[row] for row in chosen] for column in (self.ids, self.sites, self.languages, self.sources)]
        return Examples(self.texts.take(pa.array(rows, pa.int64())), self.labels[rows], *columns)


def site_of(url: str) -> str:
    """The site that a URL belongs to: the registered domain of its host by the public suffix list, the host itself where it has none."""
    host = parse(url).host
    return registered_domain(host) or host


def read_examples(config: TrainingFile) -> tuple[Examples, dict[str, Any]]:
    """All labelled documents, by id, and what the reading found. Raises ConfigError for a label without documents or a field that no record
    has, CheckFailed when too many records are damaged."""
    meaning = {raw: number for number, raws in enumerate(config.labels.values()) for raw in raws}
    rows: list[tuple[str, str, int, str, str | None, str]] = []
    facts: dict[str, Any] = {"records": 0, "damaged": Counter(), "damaged_examples": [], "other_labels": Counter(), "files": []}
    for number, data in enumerate(config.data):
        found = len(rows)
        for record in _records(data, f"data{number}", facts):
            label = raw_label(record.meta.get(data.label_field))
            if label not in meaning:
                facts["other_labels"][str(label)[:80]] += 1
                continue
            name = document_id("quality", f"{number}\0{record.key}")
            rows.append((name, record.text, meaning[label], _site(record, data, name), record.language, str(number)))
        if len(rows) == found:
            raise ConfigError(
                f'data {data.path}: no record has a label of `labels` in the field "{data.label_field}"; found there: '
                f"{', '.join(label for label, _ in facts['other_labels'].most_common(5)) or 'no readable record'}"
            )
    damaged = sum(facts["damaged"].values())
    if damaged > config.max_damaged_fraction * facts["records"]:
        raise CheckFailed(
            f"{damaged:,} of {facts['records']:,} labelled records cannot be read, more than max_damaged_fraction "
            f"{config.max_damaged_fraction:g} allows; the first: {facts['damaged_examples'][0]}"
        )
    rows.sort(key=lambda row: (row[0], row[1], row[2]))
    ids, texts, labels, sites, languages, sources = map(list, zip(*rows, strict=True))
    column = pa.array(texts, pa.large_string())
    made = Examples(column, np.array(labels, np.int64), ids, sites, _languages(column, languages), sources)
    _refuse_empty(made, config, "read")
    counted = {key: dict(sorted(facts[key].items())) for key in ("damaged", "other_labels")}
    return made, {**facts, **counted}


def _records(data: LabelledData, name: str, facts: dict[str, Any]) -> list[Record]:
    """The whole records of one input; the damaged ones are counted in facts."""
    spec = InputSpec(
        name=name, format=data.format, path=data.path, text_field=data.text_field, id_field=data.id_field, url_field=data.url_field,
        language_field=data.language_field,
    )  # fmt: skip
    source, found = make_source(spec), []
    for unit in plan_input(spec, _UNIT_BYTES):
        for part in unit:
            if part.first_row is None:  # rows of a later slice of a large file: its byte is as good an id
                part = type(part)(**{**vars(part), "first_row": part.start})
            report = ReadReport()
            for record in source.read(part, report):
                facts["records"] += 1
                record = _usable(record, spec)
                if isinstance(record, Damaged):
                    facts["damaged"][record.reason] += 1
                    facts["damaged_examples"] += [record.error] if len(facts["damaged_examples"]) < _EXAMPLES else []
                else:
                    found.append(record)
            facts["files"].append({"path": part.relative_path, "start": part.start, "bytes": part.bytes, "xxh3_128": report.input_digest})
    return found


def _usable(record: Record | Damaged, spec: InputSpec) -> Record | Damaged:
    """A record whose text can stand in a column (one with half a surrogate pair cannot)."""
    if isinstance(record, Damaged):
        return record
    try:
        make_batch([(0, record)], spec)
    except (UnicodeError, pa.ArrowInvalid) as error:
        return Damaged(record.key, record.locator, "bad_encoding", f"{record.locator}: {error}")
    return record


def _site(record: Record, data: LabelledData, name: str) -> str:
    """A document's site; its own where it has none."""
    if data.domain_field is not None:
        value = record.meta.get(data.domain_field)
        return f"site {value}" if isinstance(value, (str, int)) and value != "" else f"document {name}"
    site = site_of(record.url) if record.url else ""
    return f"site {site}" if site else f"document {name}"


def _languages(texts: pa.Array, declared: list[str | None]) -> list[str]:
    """The language of each text: as declared, else guessed; `und` where that is not possible."""
    guess = Language(LanguageConfig())
    if any(language is None for language in declared):
        guess.open(StageContext())
    return [language or guess.predict(text.as_py())[0] or "und" for text, language in zip(texts, declared, strict=True)]


def _refuse_empty(examples: Examples, config: TrainingFile, step: str) -> None:
    counts = np.bincount(examples.labels, minlength=len(config.labels))
    for name, count in zip(config.labels, counts.tolist(), strict=True):
        if count == 0:
            raise ConfigError(f'label "{name}": no document has it ({step}): add data, or mend `labels`')


def each_text_once(examples: Examples, config: TrainingFile) -> tuple[Examples, dict[str, int]]:
    """One document of each cluster of equal or nearly equal texts, so that none is on both sides of the split; a cluster whose members have
    different labels is left out, for its label is not known."""
    groups, near = _clusters(examples, config)
    facts = {"equal": len(examples) - len(np.unique(groups)), "near": 0, "contradicting": 0}
    if near is not None:
        facts["near"] = len(np.unique(groups)) - len(np.unique(near))
        groups = near
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.r_[True, groups[order][1:] != groups[order][:-1]])
    least, most = (reduce.reduceat(examples.labels[order], starts) for reduce in (np.minimum, np.maximum))
    facts["contradicting"] = int((least != most).sum())
    kept = examples.take(np.sort(order[starts][least == most]))
    _refuse_empty(kept, config, "after equal and nearly equal texts were joined")
    return kept, facts


def _clusters(examples: Examples, config: TrainingFile) -> tuple[np.ndarray, np.ndarray | None]:
    """(rows,) each: the first row with an equal text, and the first row of its cluster of nearly equal ones (None where not asked for)."""
    hashes = np.array(content_hashes(examples.texts).to_pylist())
    _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
    equal = first[number]
    if config.near_similarity is None:
        return equal, None
    rows = np.unique(equal)
    bands, per_band = best_bands(config.near_similarity, _PERMUTATIONS)
    signatures = MinHasher(_PERMUTATIONS, config.near_ngram).signatures(examples.texts.take(pa.array(rows, pa.int64())))
    wordless = (signatures == np.iinfo(signatures.dtype).max).all(axis=1)
    keys = np.empty((len(rows), bands + 1), np.uint64)
    parents = np.arange(len(rows))
    with ready(band_keys):
        band_keys(signatures, bands, per_band, keys)
        for band in range(bands + 1):
            a, b = _alike(keys[:, band], signatures, wordless, config.near_similarity)
            spanning_forest(a, b, parents, np.zeros(len(a), np.bool_))
    return equal, rows[parents][np.searchsorted(rows, equal)]


def _alike(keys: np.ndarray, signatures: np.ndarray, wordless: np.ndarray, similarity: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (a, b) of rows that share a band and whose signatures are alike enough."""
    order = np.argsort(keys, kind="stable")
    order = order[~wordless[order]]
    ordered = keys[order]
    pairs = np.empty((count_pairs(ordered, _ALL_PAIRS, _STAR), 2), np.uint64)
    bucket_pairs(ordered, order.astype(np.uint64), _ALL_PAIRS, _STAR, pairs, np.zeros(64, np.int64))
    a, b = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    equal = np.empty(len(a), np.int64)
    equal_values(signatures, a, signatures, b, equal)
    near = equal >= similarity * signatures.shape[1]
    return a[near], b[near]


@dataclass(frozen=True)
class Split:
    """What a model learns from and what it is judged on; no site is in both."""

    train: Examples
    heldout: Examples


def split(examples: Examples, config: TrainingFile) -> tuple[Split, dict[str, Any]]:
    """By a hash of the site; then the training side is balanced as asked. Raises ConfigError when a side lacks a label."""
    limit = config.holdout * 2**64
    out = np.array([xxhash.xxh3_64_intdigest(f"holdout\0{config.seed}\0{site}".encode()) < limit for site in examples.sites])
    train, heldout = examples.take(np.flatnonzero(~out)), examples.take(np.flatnonzero(out))
    _refuse_empty(train, config, "on the training side of the split; a site is on one side only")
    _refuse_empty(heldout, config, f"on the held-out side of the split; a larger holdout than {config.holdout:g} may help")
    before = len(train)
    if config.balance == "undersample":
        train = train.take(_undersampled(train, config.seed))
    facts = {
        "sites": len(set(examples.sites)),
        "heldout_sites": len(set(heldout.sites)),
        "train": _by_label(train, config),
        "heldout": _by_label(heldout, config),
        "left_out_for_balance": before - len(train),
    }
    return Split(train, heldout), facts


def _undersampled(examples: Examples, seed: int) -> np.ndarray:
    """Rows: as many of each label as the rarest has, chosen by a hash of the id."""
    least = np.bincount(examples.labels).min()
    places = np.array([xxhash.xxh3_64_intdigest(f"balance\0{seed}\0{name}".encode()) for name in examples.ids], np.uint64)
    order = np.argsort(places, kind="stable")
    chosen = [order[examples.labels[order] == label][:least] for label in np.unique(examples.labels)]
    return np.sort(np.concatenate(chosen))


def _by_label(examples: Examples, config: TrainingFile) -> dict[str, int]:
    return dict(zip(config.labels, np.bincount(examples.labels, minlength=len(config.labels)).tolist(), strict=True))
