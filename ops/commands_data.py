"""`headrace data ...`: run a pipeline, look at versions, ask why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ops.console import JsonOption, StoreOption, emit, group, table
from store import artefacts, files
from store.errors import CheckFailed, ConfigError

app = group("Make, check and question dataset versions.")
SHARDS_IN_PROCESS = 4  # fewer than that are done before a Ray has started
VersionArgument = Annotated[str, typer.Argument(metavar="VERSION", help="NAME@LABEL (its newest digest) or NAME@LABEL-DIGEST.")]


@app.command(epilog="example: headrace data run examples/web.yaml --store ./store --cpus 2")
def run(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE.yaml", help="The pipeline file.")],
    store: StoreOption = None,
    address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster (auto: the one running here). Default: RAY_ADDRESS, else a private Ray.")
    ] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="CPUs to use. Default: all.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and show the plan; write nothing.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget unfinished work and earlier results of this plan; run everything.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a pipeline file: from its inputs to a committed version with decisions and report.

    Kill it at any moment and run the same command again: it goes on, and the result is the same bytes.
    """
    import os

    from dataproc.run import run as run_pipeline
    from dataproc.run import summary

    result = run_pipeline(pipeline, store, address or os.environ.get("RAY_ADDRESS") or None, cpus, dry_run, fresh)
    emit(result, as_json, summary(result))


@app.command("list", epilog="example: headrace data list --store ./store")
def list_versions(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the versions of a store, oldest first within each name."""
    found = artefacts.list_artefacts(artefacts.store_url(store))
    rows = [
        {
            "version": a.reference,
            "kind": a.manifest.get("kind"),
            "documents": sum(s["rows"] for s in a.manifest["shards"]),
            "shards": len(a.manifest["shards"]),
            "bytes": sum(s["bytes"] for s in a.manifest["shards"]),
            "created_at": a.manifest["created_at"],
            "owner": a.manifest.get("owner"),
            "url": a.url,
        }
        for a in found
    ]
    columns = ["version", "kind", "documents", "shards", "bytes", "created_at", "owner"]
    text = table(columns, [[row[c] for c in columns] for row in rows]) if rows else f"no versions in {artefacts.store_url(store)}"
    emit({"versions": rows}, as_json, text)


@app.command(epilog="example: headrace data verify web@v1")
def verify(version: VersionArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Re-read every byte of a version: flipped bits, missing or foreign files, wrong counts. Exit code 3 when anything is wrong."""
    from dataproc.versions import open_version
    from dataproc.versions import verify as verify_version

    opened = open_version(artefacts.store_url(store), version)
    problems = verify_version(opened)
    emit({"version": opened.reference, "ok": not problems, "problems": problems}, as_json and not problems)
    if problems:
        if as_json:
            print(json.dumps({"version": opened.reference, "ok": False, "problems": problems}))
        raise CheckFailed(
            f"{opened.reference} is damaged: {'; '.join(problems[:5])}{f' and {len(problems) - 5} more' if len(problems) > 5 else ''}"
        )
    if not as_json:
        print(f"{opened.reference}: every byte is as its manifest says")


@app.command(epilog="example: headrace data why web@v1 https://example.org/page")
def why(
    version: VersionArgument,
    document: Annotated[str, typer.Argument(metavar="DOC_ID|URL", help="Document id, URL or locator (path#row) of an input record.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the whole story of an input record: kept where, or dropped by which rule, value and threshold, or quarantined."""
    from dataproc.decisions import why as ask
    from dataproc.versions import DOCUMENTS, open_version

    opened = open_version(artefacts.store_url(store), version, DOCUMENTS)
    answers = ask(opened, document)
    if not answers:
        raise ConfigError(f"{opened.reference} has no record with the id, URL or locator {document!r}")
    lines = []
    for answer in answers:
        lines.append(f"{answer['id']}  {answer['explanation']}")
        if kept := answer.get("document"):
            lines += [
                f"  {name}: {kept[name]}"
                for name in ("url", "language", "language_score", "content_hash", "meta")
                if kept.get(name) is not None
            ]
            lines += [f"  {name}: {value:.6g}" for name, value in (kept.get("signals") or {}).items() if value is not None]
    emit({"version": opened.reference, "answers": answers}, as_json, "\n".join(lines))


@app.command(epilog="example: headrace data diff web@v1 web@v2")
def diff(before: VersionArgument, after: VersionArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Say what entered, what left and why, which texts changed, and which settings differ between two versions."""
    from dataproc.versions import diff as compare
    from dataproc.versions import open_version

    where = artefacts.store_url(store)
    result = compare(open_version(where, before), open_version(where, after))
    sizes = result["documents"]
    lines = [
        f"{result['before']} -> {result['after']}",
        f"  documents {sizes['before']:,} -> {sizes['after']:,}, {sizes['unchanged']:,} unchanged",
    ]
    for name in ("entered", "left", "changed"):
        lines.append(f"  {name} {result[name]['count']:,}")
        lines += [f"    {count:,} {reason}" for reason, count in result[name].get("reasons", {}).items()]
    lines += [f"  {change['key']}: {change['before']!r} -> {change['after']!r}" for change in result["config"]]
    emit(result, as_json, "\n".join(lines))


@app.command(epilog="example: headrace data report web@v1 --out report.html")
def report(
    version: VersionArgument,
    out: Annotated[str | None, typer.Option(help="Copy the page to this file (.json: its figures).")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say where a version's report lies, or copy it out."""
    from dataproc.versions import DOCUMENTS, open_version

    opened = open_version(artefacts.store_url(store), version, DOCUMENTS)
    name = "report.json" if out and out.endswith(".json") else "report.html"
    place = files.join(opened.url, name)
    if out:
        files.write_bytes(out, files.read_bytes(place))
        place = str(Path(out).absolute()) if files.is_local(out) else out
    emit({"version": opened.reference, "report": place, "counts": opened.manifest["counts"]}, as_json, place)


@app.command(epilog="example: headrace data refilter web@v1 rules.yaml --label v1-strict")
def refilter(
    version: VersionArgument,
    rules: Annotated[
        str, typer.Argument(metavar="RULES.yaml", help="The keys of the rules stage: use, set, by_language, by_domain, signals.")
    ],
    label: Annotated[str, typer.Option(help="Label of the new version.")],
    store: StoreOption = None,
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster. Default: RAY_ADDRESS, else this machine.")] = None,
    cpus: Annotated[
        int | None, typer.Option(min=1, help="CPUs to use. Default: all; versions of a few shards are done in this process.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a new version by stricter rules from the signals that a version holds. Sources are not read again.

    The kept documents are those that the pipeline keeps with these rules. Rules that would let documents back in are refused: their
    texts are not in the version.
    """
    import os

    from dataproc.execution import PlainLoop, RayPool
    from dataproc.refilter import refilter as run_refilter
    from dataproc.versions import DOCUMENTS, open_version

    address = address or os.environ.get("RAY_ADDRESS") or None
    shards = len(open_version(artefacts.store_url(store), version, DOCUMENTS).manifest["shards"])
    small = shards <= SHARDS_IN_PROCESS and not address
    result = run_refilter(version, rules, label, store, PlainLoop if small else lambda: RayPool(address, cpus))
    counts = result["counts"]
    lines = [f"{result['version']} from {result['parent']}"]
    lines += [f"  {-count:>12,}  {rule}" for rule, count in result["newly_dropped"].items()]
    lines += [
        f"  {counts['kept']:>12,}  kept in {result['shards']} shards",
        f"  version  {result['url']}",
        f"  report   {result['report']}",
    ]
    emit(result, as_json, "\n".join(lines))


@app.command(epilog="example: headrace data rules gopher_repetition@dolma")
def rules(
    preset: Annotated[str | None, typer.Argument(metavar="[PRESET]", help="Show this preset alone.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the presets of rules: every rule with its signal, thresholds and source. docs/signals.md defines the signals."""
    from dataproc.rules.presets import presets, select

    if preset is not None:
        try:
            select((preset,), {})
        except ValueError as error:
            raise ConfigError(str(error)) from error
    chosen = {name: found for name, found in presets().items() if preset in (None, name)}
    listed = {
        name: [
            {"rule": r.name, "signal": r.signal, "min": r.least, "max": r.most, "not_for": sorted(r.not_for), "source": r.source}
            for r in found
        ]
        for name, found in chosen.items()
    }
    parts = []
    for name, found in listed.items():
        rows = [
            [r["rule"].rpartition(".")[2], r["signal"], *("" if r[k] is None else r[k] for k in ("min", "max")), " ".join(r["not_for"])]
            for r in found
        ]
        sources = list(dict.fromkeys(r["source"] for r in found))
        parts.append(
            f"{name}\n" + "\n".join(f"  {source}" for source in sources) + "\n" + table(["rule", "signal", "min", "max", "not for"], rows)
        )
    emit({"presets": listed}, as_json, "\n\n".join(parts))
