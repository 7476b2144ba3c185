"""A new version from the stored signals of one that stands: rules are changed, sources are not read again.

Two maps over the shards: the first judges the kept documents and writes those that stay, the second rewrites the decisions. Rules may
only cut more than they did: what the version dropped is not in it any more, so a rule that would let it back in is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dataproc.batches import READ
from dataproc.committing import commit_documents, merged_sides, part_entry
from dataproc.dedup.indexing import index_entries
from dataproc.documents import shard_schema
from dataproc.execution import Executor, run_units
from dataproc.plan import work_folder
from dataproc.progress import Progress
from dataproc.provenance import code_version, library_versions
from dataproc.refilter_workers import JUDGE, LEDGER, STAGE, JudgeWorker, LedgerWorker, input_domains
from dataproc.rules.presets import Rule, RuleSet
from dataproc.stages.registry import GLOBAL_STAGES, stage_class
from dataproc.stages.rules import Rules, RulesConfig
from dataproc.versions import DOCUMENTS, Version, describe_schema, now, open_version, version_digest
from store import artefacts, files
from store.digests import json_digest
from store.errors import CheckFailed, ConfigError
from store.strict_yaml import read_yaml, unknown_key, validate


def refilter(
    reference: str,
    rules_file: str,
    label: str,
    store: str | None = None,
    make_executor: Callable[[], Executor] | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Makes `name@label` of a documents version by other rules. Returns version, counts, where the report lies.

    The kept documents are those that a full run with these rules keeps. Raises ConfigError before any work when a rule is looser than
    it was, or needs a signal that neither the version nor its texts can give.
    """
    store = artefacts.store_url(store)
    config = read_rules(rules_file)
    parent = open_version(store, reference, DOCUMENTS)
    artefacts.Reference.parse(f"{parent.manifest['name']}@{label}")
    change = Change(parent, config, rules_file)
    change.check()
    work = work_folder(store, json_digest([parent.manifest["digest"], config.model_dump(mode="json"), label, code_version()])[:24])
    progress, executor = Progress(quiet), make_executor()
    try:
        version = _Refilter(change, store, work, label, executor, progress).execute()
    finally:
        progress.end()
        executor.close()
    files.delete(work)
    manifest = version.manifest
    newly = Counter(manifest["counts"]["dropped"])
    newly.subtract(parent.manifest["counts"]["dropped"])
    return {
        "version": version.reference,
        "parent": parent.reference,
        "digest": manifest["digest"],
        "url": version.url,
        "report": files.join(version.url, "report.html"),
        "counts": manifest["counts"],
        "newly_dropped": {rule: count for rule, count in sorted((+newly).items())},
        "shards": len(manifest["shards"]),
    }


def read_rules(path: str) -> RulesConfig:
    """A file with the keys of the rules stage, or with the stage itself: `rules: {use: [...], set: {...}}`."""
    value, node = read_yaml(path)
    if isinstance(value, dict) and set(value) == {STAGE}:
        value, node = value[STAGE], None
    return validate(value, RulesConfig, path, node, f"stage {STAGE}" if node is None else "")


@dataclass(frozen=True)
class Change:
    """The rules of a version and those that shall take their place."""

    parent: Version
    config: RulesConfig
    where: str

    @property
    def stages(self) -> list[dict[str, Any]]:
        return self.parent.manifest["config"]["stages"]

    def before(self) -> RuleSet:
        """The rules that the version was made with; none when it had no rules stage."""
        for entry in self.stages:
            if STAGE in entry:
                return Rules(RulesConfig.model_validate(entry[STAGE])).rules
        return RuleSet((), {})

    def stored(self) -> list[str]:
        """Signals that the version holds."""
        return [field.name for field in self.parent.schema.field("signals").type]

    def missing(self) -> list[str]:
        """Signals that must be computed from the texts."""
        return [name for name in Rules(self.config).signals() if name not in self.stored()]

    def check(self) -> None:
        """Raises ConfigError when the version cannot be filtered in this way."""
        after = Rules(self.config).rules
        before = self.before()
        labels = sorted(set(input_domains(self.parent).values()))
        if unknown := next((name for name in self.config.by_domain if name not in labels), None):
            raise ConfigError(f"{self.where}: by_domain: {unknown_key(unknown, labels).replace('key', 'domain')}")
        for domain in (None, *sorted({*before.by_domain, *after.by_domain})):
            for language in (None, *sorted(before.languages() | after.languages())):
                self._refuse_looser(before.of(language, domain), after.of(language, domain), language, domain)
        if gone := [name for name in Rules(self.config).needed_signals() if name not in self.stored()]:
            raise ConfigError(
                f"{self.where}: {gone[0]} is what a stage that cuts lines measures, and {self.parent.reference} was made without one: "
                "run the pipeline with it"
            )
        if self.parent.manifest.get("dedup", {}).get("paragraph_dedup", {}).get("removed_bytes"):
            raise ConfigError(
                f"{self.where}: paragraphs were cut from documents of {self.parent.reference}, and what was cut would come back "
                "where the rules drop the documents that kept it: run the pipeline with these rules"
            )
        if self.parent.manifest.get("keep_rate"):
            raise ConfigError(
                f"{self.where}: {self.parent.reference} holds a share of its corpus (keep_rate), and other rules would leave another "
                "corpus: run the pipeline with these rules"
            )
        if self.missing() and (editor := self._edits_text_after_rules()):
            raise ConfigError(
                f"{self.where}: {self.missing()[0]} is not stored in {self.parent.reference}, and its stage {editor} changed the texts "
                "after the rules: run the pipeline with these rules"
            )

    def _refuse_looser(self, before: tuple[Rule, ...], after: tuple[Rule, ...], language: str | None, domain: str | None) -> None:
        kind = "".join(f" for {value}" for value in (language, domain and f"the domain {domain}") if value)
        for old in before:
            if not any(_at_least_as_strict(new, old) for new in after):
                now = next((rule for rule in after if rule.signal == old.signal and (rule.least is None) == (old.least is None)), None)
                limit = old.least if old.least is not None else old.most
                if limit is None:  # switched off
                    continue
                then = (
                    f"the threshold {limit:g} would be {now.least if now.least is not None else now.most:g}"
                    if now
                    else "it would not apply"
                )
                raise ConfigError(
                    f"{self.where}: {old.name}{kind}: {then}, and documents that {self.parent.reference} "
                    "dropped would stay: their texts are not in it; run the pipeline with these rules"
                )

    def _edits_text_after_rules(self) -> str | None:
        names = [next(iter(entry)) for entry in self.stages]
        later = names[names.index(STAGE) + 1 :] if STAGE in names else []
        return next((name for name in later if "text" in stage_class(name).outputs), None)


def _at_least_as_strict(new: Rule, old: Rule) -> bool:
    """Whether whatever the old rule drops the new one drops, too."""
    if new.signal != old.signal:
        return False
    lower = old.least is None or (new.least is not None and new.least >= old.least)
    upper = old.most is None or (new.most is not None and new.most <= old.most)
    return lower and upper


class _Refilter:
    """One execution: judge, ledger, commit."""

    def __init__(self, change: Change, store: str, work: str, label: str, executor: Executor, progress: Progress):
        self.change, self.parent = change, change.parent
        self.store, self.work, self.label = store, work, label
        self.executor, self.progress = executor, progress
        self.shards = len(self.parent.manifest["shards"])
        self.compression = self.parent.manifest["config"]["output"]["compression"]

    def execute(self) -> Version:
        common = {"work": self.work, "version": self.parent.url, "compression": self.compression}
        config = self.change.config.model_dump(mode="json")
        judged = self._run("judging", JudgeWorker, {**common, "config": config})
        by_domain = bool(self.change.before().by_domain or self.change.config.by_domain)
        ledger = self._run("decisions", LedgerWorker, {**common, "shards": self.shards, "by_domain": by_domain})
        return self._commit(judged, ledger)

    def _run(self, step: str, worker: type, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        tasks = [{"index": index} for index in range(self.shards)]
        self.progress.begin(step, len(tasks), 0)
        receipts: list[Any] = [None] * len(tasks)
        for receipt in run_units(self.executor, worker, arguments, tasks):
            self.progress.advance(receipt)
            receipts[receipt["index"]] = receipt
        return receipts

    def _commit(self, judged: list[dict[str, Any]], ledger: list[dict[str, Any]]) -> Version:
        counts = self._counts(judged, ledger)
        statistics, samples = merged_sides(self.work, JUDGE, self.shards)
        statistics.merge(merged_sides(self.work, LEDGER, self.shards)[0])
        copies: Counter[str] = Counter()
        for receipt in ledger:
            copies.update(receipt["copies"])
        for size, count in sorted(Counter(copies.values()).items()):
            statistics.observe_duplicates(size + 1, count)
        manifest = self._manifest(judged, ledger, counts)
        steps = {"shards": JUDGE, "decisions": LEDGER}
        return commit_documents(self.store, self.work, manifest, statistics, samples, self._stages(), {}, steps)

    def _counts(self, judged: list[dict[str, Any]], ledger: list[dict[str, Any]]) -> dict[str, Any]:
        before = self.parent.manifest["counts"]
        verdicts: Counter[str] = Counter()
        dropped: Counter[str] = Counter()
        for receipt in ledger:
            verdicts.update(receipt["verdicts"])
            dropped.update(receipt["dropped"])
        kept = sum(receipt["kept"] for receipt in judged)
        if kept != verdicts["kept"] or sum(verdicts.values()) != before["input"]:
            raise CheckFailed(
                f"{before['input']} records were decided on, now {dict(verdicts)} with {kept} documents: the result is not sound"
            )
        return {"input": before["input"], "kept": kept, "quarantined": verdicts["quarantined"], "dropped": dict(sorted(dropped.items()))}

    def _manifest(self, judged, ledger, counts: dict[str, Any]) -> dict[str, Any]:
        parent = self.parent.manifest
        schema = shard_schema([*self.change.stored(), *self.change.missing()])
        manifest = {
            "name": parent["name"],
            "label": self.label,
            "kind": DOCUMENTS,
            "owner": parent["owner"],
            "parents": [parent["digest"]],
            "parent_references": [self.parent.reference],
            "inputs": parent["inputs"],
            "config": {**parent["config"], "version": self.label, "stages": self._new_stages()},
            "config_digest": json_digest([parent["config_digest"], self.change.config.model_dump(mode="json")]),
            "artefacts": parent["artefacts"],
            "code_version": code_version(),
            "libraries": library_versions(),
            "schema": describe_schema(schema),
            "shards": [part_entry("shards", r["index"], r["kept"], r["files"]["kept"]) for r in judged],
            "index": index_entries(judged),
            "decisions": [part_entry("decisions", r["index"], r["decisions"], r["files"]["decisions"]) for r in ledger],
            "counts": counts,
            "not_documents": parent["not_documents"],
            "quarantine_reasons": parent["quarantine_reasons"],
        }
        return {**manifest, "digest": version_digest(manifest), "created_at": now()}

    def _new_stages(self) -> list[dict[str, Any]]:
        """The parent's stages with the rules in their place; after all record stages where it had none."""
        rules = {STAGE: self.change.config.model_dump(mode="json")}
        stages = [rules if STAGE in entry else entry for entry in self.change.stages]
        if rules not in stages:
            position = next((i for i, entry in enumerate(stages) if not entry.keys().isdisjoint(GLOBAL_STAGES)), len(stages))
            stages.insert(position, rules)
        return stages

    def _stages(self) -> list[dict[str, Any]]:
        thresholds = Rules(self.change.config).thresholds()
        shown = [{"name": READ, "config": {}, "thresholds": {}}]
        for entry in self._new_stages():
            name, config = next(iter(entry.items()))
            shown.append({"name": stage_class(name).name, "config": config, "thresholds": thresholds if name == STAGE else {}})
        return shown
