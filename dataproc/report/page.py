"""The report as one page: no network, no fonts or scripts from elsewhere, readable without scripts, light and dark, on a phone too."""

from __future__ import annotations

from typing import Any

from dataproc.report import sections
from dataproc.report.markup import Markup, h
from dataproc.report.numbers import size, whole
from dataproc.report.script import POLICY, SCRIPT
from dataproc.report.sections import Report, section
from dataproc.report.style import STYLE
from dataproc.report.tables import Cell, Column, name, table

LINKS = {
    "funnel": "Funnel",
    "composition": "Composition",
    "signals": "Signals",
    "quarantine": "Quarantine",
    "samples": "Samples",
    "duplicates": "Duplicates",
    "keep-rate": "Kept by quality",
    "timings": "Time",
    "lineage": "Lineage",
    "config": "Configuration",
    "ask": "Ask further",
}


def render_page(report: Report) -> str:
    """The page of a report (`build.build_report`, or report.json read back). Nothing is shown that is not in the report."""
    parts = {
        "funnel": sections.funnel(report),
        "composition": sections.sources(report),
        "signals": sections.signals(report),
        "quarantine": sections.quarantine(report),
        "samples": sections.samples(report),
        "duplicates": sections.duplicates(report),
        "keep-rate": sections.keep_rate(report),
        "timings": sections.timings(report),
        "lineage": _lineage(report),
        "config": _config(report),
        "ask": _ask(report),
    }
    shown = {anchor: part for anchor, part in parts.items() if part is not None}
    body = h(
        "body",
        _header(report),
        _navigation(list(shown)),
        h("main", sections.totals(report), list(shown.values())),
        h("footer", f"Format {report['format']} of the report. The same figures are in report.json."),
        h("script", Markup(SCRIPT)),
    )
    return f"<!doctype html>\n{h('html', _head(report), body, lang='en')}\n"


def _head(report: Report) -> Markup:
    return h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=POLICY),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="referrer", content="no-referrer"),
        h("title", f"{report['version']['reference']} – report"),
        h("style", Markup(STYLE)),
    )


def _header(report: Report) -> Markup:
    version = report["version"]
    title, _, digest = version["reference"].rpartition("-")
    facts = [("owner", version.get("owner")), ("created", version.get("created_at")), ("code", version.get("code_version"))]
    return h(
        "header",
        h(
            "div",
            h("div", "Headrace dataset report", class_="eyebrow"),
            h("h1", h("bdi", title), h("small", f"-{digest}")),
            h("p", [h("span", f"{key} ", h("b", value)) for key, value in facts if value], class_="meta"),
        ),
    )


def _navigation(anchors: list[str]) -> Markup:
    links = [h("a", LINKS[anchor], href=f"#{anchor}") for anchor in anchors]
    return h("nav", h("div", links, h("button", "Light / dark", id="theme", type="button", hidden=True)), aria_label="Sections")


def _lineage(report: Report) -> Markup:
    """Where the version comes from: parents, input files, shards."""
    parents = [[_parent(parent)] for parent in report["parents"]]
    inputs, shards = report["inputs"], report["shards"]
    columns = [Column("File"), Column("Source"), Column("Size", True), Column("Hash")]
    files = [
        [h("bdi", e["path"]), name(e.get("source"), ""), Cell(size(e["bytes"]), e["bytes"]), _hash(e.get("hash", ""))]
        for e in inputs["rows"]
    ]
    parts = [[e["path"], e["rows"], Cell(size(e["bytes"]), e["bytes"]), _hash(e["xxh3_128"])] for e in shards["rows"]]
    heads = [Column("Shard"), Column("Documents", True), Column("Size", True), Column("xxh3-128")]
    return section(
        "lineage",
        "Lineage",
        table("Parents", [Column("Version")], parents) if parents else h("p", "No parent version: made from raw input.", class_="note"),
        _folded("Input files", inputs["count"], table(_some(inputs), columns, files)),
        _folded("Shards", shards["count"], table(_some(shards), heads, parts)),
    )


def _parent(parent: Any) -> str:
    """A parent's reference; manifests name a parent by a reference or by an object that holds one."""
    return parent if isinstance(parent, str) else str(parent.get("reference", parent))


def _hash(text: str) -> Markup:
    return h("span", text if len(text) <= 60 else f"{text[:59]}…", class_="mono")


def _some(listed: dict[str, Any]) -> str:
    rows = len(listed["rows"])
    return f"all {whole(rows)}" if rows == listed["count"] else f"the first {whole(rows)} of {whole(listed['count'])}; the manifest has all"


def _folded(title: str, count: int, content: Markup) -> Markup:
    return h("details", h("summary", title, h("span", whole(count), class_="note")), content)


def _config(report: Report) -> Markup:
    columns = [Column("Column"), Column("Type")]
    schema = table("Columns of a shard", columns, [[field["name"], h("span", field["type"], class_="mono")] for field in report["schema"]])
    version = report["version"]
    libraries = ", ".join(f"{key} {value}" for key, value in sorted(version.get("libraries", {}).items()))
    digests = [
        (label, version.get(key))
        for label, key in (("Digest", "digest"), ("Configuration digest", "config_digest"), ("Plan", "plan_digest"))
    ]
    return section(
        "config",
        "Configuration",
        h("pre", h("code", report["config_yaml"]), tabindex=0, aria_label="Configuration as YAML"),
        [h("p", f"{label} ", h("span", value, class_="mono"), class_="note") for label, value in digests if value],
        h("p", f"Libraries: {libraries}", class_="note") if libraries else None,
        _folded("Schema", len(report["schema"]), schema),
    )


def _ask(report: Report) -> Markup:
    reference = report["version"]["reference"]
    questions = [
        (
            "Why was this document kept, dropped or quarantined? Give its id, its web address or its place in the input.",
            f"data why {reference} ID",
        ),
        ("Are all bytes of the version as they were written?", f"data verify {reference}"),
        ("What differs from another version?", f"data diff {reference} OTHER"),
        ("This page again, as a file.", f"data report {reference} --out report.html"),
    ]
    asked = [(h("p", words), h("pre", h("code", f"headrace {command}"), tabindex=0)) for words, command in questions]
    return section("ask", "Ask further", asked)
