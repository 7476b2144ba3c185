"""A quality model from its training file to a version in the store: read -> each text once -> split by site -> train -> judge -> publish.

The same data and settings give the same model, byte for byte: nothing in it depends on the order of the records, on time or on threads.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dataproc.model_files import MODEL
from dataproc.provenance import code_version, library_versions
from dataproc.quality_models import fasttext_file, on_signals, supervised
from dataproc.quality_models.config import TrainingFile, load_training
from dataproc.quality_models.examples import Examples, each_text_once, read_examples, split
from dataproc.quality_models.metrics import judged, roc_auc
from dataproc.quality_models.scoring import Scorer, open_scorer
from dataproc.versions import Version, now, publish, version_digest
from store import artefacts, files
from store.digests import bytes_digest, json_digest

REPORT = "report.json"
LEAST_OF_A_GROUP = 20  # held-out documents of a language that are judged by themselves
FEATURES_SHOWN = 30
LEAST_COUNT_SHOWN = 5  # training texts' words: rarer ones are names and misprints
_NAMES = {"fasttext": "model.bin", "signals": "model.json"}


def train_quality(path: str, store: str | None = None, out: str | None = None, tell: Callable[[str], None] = lambda step: None) -> Version:
    """Trains the model of a training file and publishes it in the store; `out`: a path that gets a copy of the model file; `tell` is
    called at each step. Raises ConfigError for a mistake in the file or data that cannot be split, CheckFailed for damaged data."""
    store = artefacts.store_url(store)
    config = load_training(path)
    tell("reading labelled documents")
    examples, found = read_examples(config)
    tell(f"{len(examples):,} documents: joining equal and nearly equal texts")
    unique, joined = each_text_once(examples, config)
    parts, sides = split(unique, config)
    tell(f"{len(parts.train):,} documents to learn from, {len(parts.heldout):,} to be judged on: training")
    content, losses = _trained(config, parts.train)
    tell("judging")
    with tempfile.TemporaryDirectory(prefix="headrace-quality-") as folder:
        with files.explained("write", folder):
            model = Path(folder) / _NAMES[config.engine]
            model.write_bytes(content)
            scorer = open_scorer(str(model), None, "train-quality")
            report = {
                "name": config.name,
                "version": config.version,
                "engine": config.engine,
                "positive": config.wanted,
                "data": {**found, "joined": joined, **sides, "sites_on_both_sides": len(set(parts.train.sites) & set(parts.heldout.sites))},
                "losses": losses,
                "heldout": _judged(config, scorer, parts.heldout),
                "train_roc_auc": _auc(config, scorer, parts.train),
                "features": _features(config, content, scorer),
            }
            page = Path(folder) / REPORT
            page.write_bytes(json.dumps(report, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n")
            manifest = _manifest(config, model, page, report)
            version = publish(store, manifest, {model.name: str(model), REPORT: str(page)})
    if out is not None:
        files.write_bytes(out, content)
    return version


def read_report(version: Version) -> dict[str, Any]:
    """The report of a model version."""
    return json.loads(files.read_bytes(files.join(version.url, REPORT)))


def _trained(config: TrainingFile, examples: Examples) -> tuple[bytes, list[float]]:
    """(model file, mean loss of each epoch; none for a model on signals)."""
    names = list(config.labels)
    counts = np.bincount(examples.labels, minlength=len(names))
    weights = len(examples) / (len(names) * counts) if config.balance == "weight" else np.ones(len(names))
    if config.engine == "signals":
        positive = examples.labels == names.index(config.wanted)
        other = next(name for name in names if name != config.wanted)
        made = on_signals.train(
            examples.texts, examples.languages, positive, weights[examples.labels], config.signals.use, config.signals.l2,
            [other, config.wanted],
        )  # fmt: skip
        return made, []
    f = config.fasttext
    settings = fasttext_file.Settings(f.word_ngrams, f.bucket, f.min_n, f.max_n)
    how = supervised.Training(f.dim, f.epochs, f.rate, settings, f.min_count, config.seed)
    model, losses = supervised.train(examples.texts, examples.labels, names, weights, how)
    return fasttext_file.to_bytes(model), [round(loss, 6) for loss in losses]


def _scores(config: TrainingFile, scorer: Scorer, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
    """(scores, which are positive); a text in which the model sees nothing scores 0, as in the stage."""
    found = scorer.scores(examples.texts, examples.languages)[:, scorer.labels.index(config.wanted)]
    return np.nan_to_num(found), examples.labels == list(config.labels).index(config.wanted)


def _auc(config: TrainingFile, scorer: Scorer, examples: Examples) -> float | None:
    return roc_auc(*_scores(config, scorer, examples))


def _judged(config: TrainingFile, scorer: Scorer, examples: Examples) -> dict[str, Any]:
    """Figures over all held-out documents, and by language and input."""
    scores, positive = _scores(config, scorer, examples)
    paths = [config.data[int(source)].path for source in examples.sources]
    return {
        **judged(scores, positive, config.keep_rates),
        "by_language": _by_group(examples.languages, scores, positive),
        "by_input": _by_group(paths, scores, positive),
    }


def _by_group(groups: list[str], scores: np.ndarray, positive: np.ndarray) -> dict[str, dict[str, Any]]:
    """Group -> {documents, positive, accuracy at the score 0.5, roc_auc}; small groups together as `others`."""
    names = np.array(groups)
    sizes = {str(name): int(count) for name, count in zip(*np.unique(names, return_counts=True), strict=True)}
    small = [name for name, size in sizes.items() if size < LEAST_OF_A_GROUP]
    if len(small) > 1:
        names = np.where(np.isin(names, small), "others", names)
    made = {}
    for name in sorted(set(names.tolist())):
        chosen = names == name
        right = (scores[chosen] >= 0.5) == positive[chosen]
        made[name] = {
            "documents": int(chosen.sum()),
            "positive": int(positive[chosen].sum()),
            "accuracy": float(right.mean()),
            "roc_auc": roc_auc(scores[chosen], positive[chosen]),
        }
    return made


def _features(config: TrainingFile, content: bytes, scorer: Scorer) -> dict[str, list[dict[str, Any]]]:
    """What speaks most for the positive label and against it: {for, against: [{feature, weight, ...}]}. Weights of words: what one more of
    them adds to the log odds of a text of one word; of signals: for one standard deviation."""
    if config.engine == "signals":
        entries = sorted(json.loads(content)["signals"], key=lambda e: (-e["weight"], e["name"]))
        listed = [{"feature": e["name"], "weight": e["weight"], "mean": e["mean"], "log": e["log"]} for e in entries]
    else:
        with tempfile.NamedTemporaryFile(suffix=".bin") as stream:
            stream.write(content)
            stream.flush()
            model = fasttext_file.read(stream.name)
            weights = _word_weights(model, config.wanted)
            counts = model.counts.tolist()
        words = [(w, word, n) for w, word, n in zip(weights.tolist(), model.words, counts, strict=True) if word != fasttext_file.END]
        words = sorted((entry for entry in words if entry[2] >= LEAST_COUNT_SHOWN), key=lambda entry: (-entry[0], entry[1]))
        listed = [{"feature": word.decode("utf-8", "replace"), "weight": w, "count": n} for w, word, n in words]
    return {
        "for": [entry for entry in listed[:FEATURES_SHOWN] if entry["weight"] > 0],
        "against": [entry for entry in listed[::-1][:FEATURES_SHOWN] if entry["weight"] < 0],
    }


def _word_weights(model: fasttext_file.FastTextFile, wanted: str) -> np.ndarray:
    """(words,) float64: of the label's logit over the mean of the others'."""
    logits = model.inputs[: len(model.words)].astype(np.float64) @ model.outputs.astype(np.float64).T
    k = model.labels.index(wanted)
    return logits[:, k] - np.delete(logits, k, axis=1).mean(axis=1)


def _manifest(config: TrainingFile, model: Path, page: Path, report: dict[str, Any]) -> dict[str, Any]:
    shown = config.model_dump(mode="json")
    content, written = model.read_bytes(), page.read_bytes()
    entry = {"path": model.name, "bytes": len(content), "xxh3_128": bytes_digest(content)}
    identity = {
        "config": {**shown, "owner": None, "data": [{k: v for k, v in data.items() if k != "path"} for data in shown["data"]]},
        "data": [part["xxh3_128"] for part in report["data"]["files"]],
        "model": entry["xxh3_128"],
    }
    held = report["heldout"]
    manifest = {
        "name": config.name,
        "label": config.version,
        "kind": MODEL,
        "owner": config.owner,
        "parents": [],
        "parent_references": [],
        "inputs": report["data"]["files"],
        "config": shown,
        "config_digest": json_digest(identity),
        "code_version": code_version(),
        "libraries": library_versions(),
        "schema": [],
        "shards": [],
        "model": entry,
        "labels": list(config.labels),
        "positive": config.wanted,
        "files": [entry, {"path": REPORT, "bytes": len(written), "xxh3_128": bytes_digest(written)}],
        "counts": {"train": report["data"]["train"], "heldout": report["data"]["heldout"]},
        "stats": {"roc_auc": held["roc_auc"], "accuracy": held["accuracy"], "calibration_error": held["calibration"]["expected_error"]},
    }
    return {**manifest, "digest": version_digest(manifest), "created_at": now()}


def summary(version: Version, report: dict[str, Any]) -> str:
    """A report in lines for a person."""
    held, data = report["heldout"], report["data"]
    joined = data["joined"]
    auc = "none (one label is missing)" if held["roc_auc"] is None else f"{held['roc_auc']:.4f}"
    lines = [
        f'{version.reference}  ({report["engine"]}, score: probability of "{report["positive"]}")',
        f"  read {data['records']:,} records; {joined['equal']:,} equal and {joined['near']:,} nearly equal texts left out, "
        f"{joined['contradicting']:,} with contradicting labels",
        f"  learnt from {_counted(data['train'])}; judged on {_counted(data['heldout'])} of {data['heldout_sites']:,} other sites",
        f"  held out: ROC-AUC {auc}, average precision {held['precision_recall']['average_precision']:.4f}, accuracy "
        f"{held['accuracy']:.4f}, calibration error {held['calibration']['expected_error']:.4f}",
        f"  best F1 {held['best_f1']['f1']:.4f} at {held['best_f1']['threshold']:.4f}",
    ]
    lines += [
        f"  to keep {row['keep_rate']:.0%}: min_score {row['threshold']:.6f} (keeps {row['kept']:.1%}; {row['precision']:.1%} of it "
        f"{report['positive']}, which is {row['recall']:.1%} of all)"
        for row in held["keep_rates"]
    ]
    lines += [
        f"  {name}: {row['documents']:,} documents, accuracy {row['accuracy']:.4f}"
        + ("" if row["roc_auc"] is None else f", ROC-AUC {row['roc_auc']:.4f}")
        for name, row in held["by_language"].items()
    ]
    lines += [
        f"  {side} {report['positive']}: {', '.join(entry['feature'] for entry in report['features'][side][:12])}"
        for side in ("for", "against")
        if report["features"][side]
    ]
    return "\n".join([*lines, f"  {files.join(version.url, version.manifest['model']['path'])}"])


def _counted(labels: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in labels.items())
