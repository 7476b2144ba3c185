"""The sections of the page. Each takes the report and gives markup, or None where there is nothing to show."""

from __future__ import annotations

from typing import Any

from dataproc.report.markup import Child, Markup, h
from dataproc.report.numbers import compact, number, seconds, share, size, whole
from dataproc.report.plots import river, signal_plot
from dataproc.report.tables import Cell, Column, bar, box, breakable, name, table

Report = dict[str, Any]
MISSING = {"source": "no source", "domain": "no label", "language": "unknown", "host": "no web address"}
GROUP_TITLES = {"source": "By source", "domain": "By domain label", "language": "By language", "host": "By web host"}
SPREAD = {"5%": "0.05", "median": "0.5", "95%": "0.95"}  # quantiles shown under a histogram


def section(anchor: str, title: str, *children: Child) -> Markup:
    return h("section", h("h2", title, id=f"{anchor}-title"), *children, id=anchor, aria_labelledby=f"{anchor}-title")


def _plural(number_of: int, noun: str) -> str:
    return f"{whole(number_of)} {noun}{'' if number_of == 1 else 's'}"


def totals(report: Report) -> Markup:
    """The figures one looks for first, and the equation that must hold."""
    counts, sums = report["counts"], report["totals"]
    tiles = [("", whole(counts["input"]), "records in", size(sums["input_bytes"]))]
    for verdict in ("kept", "dropped", "quarantined"):
        tiles.append((verdict, whole(counts[verdict]), verdict, share(counts[verdict], counts["input"])))
    tiles.append(("", whole(sums["words"]), "words kept", f"{whole(sums['characters'])} characters"))
    tiles.append(("", size(sums["bytes"]), "text kept", f"{_plural(sums['shards'], 'shard')}, {size(sums['shard_bytes'])} stored"))
    shown = [
        h("div", h("b", figure), h("span", label, h("br"), more), class_=f"tile {kind}".strip()) for kind, figure, label, more in tiles
    ]
    coloured = [h("b", whole(counts[v]), class_=f"c-{v}") for v in ("kept", "dropped", "quarantined")]
    terms = (h("b", whole(counts["input"])), " in = ", coloured[0], " kept + ", coloured[1], " dropped + ", coloured[2], " quarantined")
    return h("div", h("p", *terms, class_="equation"), h("div", *shown, class_="tiles"))


def funnel(report: Report) -> Markup:
    """What every stage and every rule took, from input to kept."""
    records, stages = report["counts"]["input"], report["stats"]["stages"]
    lines = river(stages, records)
    titles = (
        ("Stage and rule", ""),
        ("Entered", "num"),
        ("Dropped", "num"),
        ("Quarantined", "num"),
        ("Of entered", "num"),
        ("Left", "num"),
    )
    heads = [h("th", title, scope="col", class_=kind or None) for title, kind in titles]
    heads.append(h("th", "Of all input: left, dropped, quarantined", scope="col"))
    first = _funnel_row("stage", "input", [whole(records), "", "", "", whole(records)], bar([("kept", records)], records))
    bodies = [h("tbody", first), *(_stage_rows(stage, records) for stage in stages)]
    shown = h("table", h("thead", h("tr", heads)), bodies, id="funnel-table")
    keys = [
        (h("span", class_=f"key {kind}"), words)
        for kind, words in (("kept", "left"), ("dropped", "dropped"), ("quarantined", "quarantined"))
    ]
    return section(
        "funnel",
        "Funnel",
        h("p", "Each record meets the stages in this order and is counted where it was first refused.", class_="note"),
        h("div", lines, class_="river-box", tabindex=0, role="region", aria_label="Funnel drawn as a river") if records else None,
        box(shown, False, "funnel"),
        h("p", keys, class_="note"),
    )


def _funnel_row(kind: str, title: Child, figures: list[Child], drawn: Markup) -> Markup:
    return h("tr", h("th", title, scope="row"), [h("td", x, class_="num") for x in figures], h("td", drawn), class_=kind)


def _stage_rows(stage: dict[str, Any], records: int) -> Markup:
    lost = stage["dropped"] + stage["quarantined"]
    figures = [whole(stage[key]) for key in ("entered", "dropped", "quarantined")] + [share(lost, stage["entered"]), whole(stage["left"])]
    parts = [("kept", stage["left"]), ("dropped", stage["dropped"]), ("quarantined", stage["quarantined"])]
    rows = [_funnel_row("stage", breakable(stage["name"]), figures, bar(parts, records))]
    for rule in stage["rules"]:
        amounts = [whole(rule["records"]) if rule["verdict"] == verdict else "" for verdict in ("dropped", "quarantined")]
        figures = ["", *amounts, share(rule["records"], stage["entered"]), ""]
        rows.append(_funnel_row("rule", breakable(rule["rule"]), figures, bar([(rule["verdict"], rule["records"])], records)))
    if stage["idle"]:
        words = f"took nothing: {', '.join(stage['idle'])}"
        rows.append(h("tr", h("td", h("div", words), colspan=7), class_="idle"))
    return h("tbody", rows)


def sources(report: Report) -> Markup | None:
    """What became of the records of each input, and the kept documents by every grouping."""
    columns = [Column("Source"), *(Column(v, True) for v in ("Records in", "Kept", "Dropped", "Quarantined", "Kept of in"))]
    columns.append(Column("Kept, dropped, quarantined"))
    rows = []
    for row in report["sources"]:
        parts = [(v, row[v]) for v in ("kept", "dropped", "quarantined")]
        kept = Cell(share(row["kept"], row["input"]), row["kept"] / row["input"])
        rows.append([name(row["source"], ""), row["input"], *(n for _, n in parts), kept, Cell(bar(parts, row["input"]))])
    outcome = table("What became of each source", columns, rows) if rows else None
    groups = [_group(report, key) for key in ("source", "domain", "language", "host")]
    kept = (h("h3", "Kept documents"), h("div", groups, class_="pair")) if report["counts"]["kept"] else h("p", "No document was kept.")
    return section("composition", "Composition", outcome, kept, _labelled(report.get("labelled", [])))


def _labelled(found: list[dict[str, Any]]) -> Markup | None:
    """By which rules documents got their domain label."""
    if not found:
        return None
    total = sum(row["documents"] for row in found)
    rows = [[row["rule"], row["documents"], _share(row["documents"], total)] for row in found]
    return table("What gave the domain label", [Column("Rule"), Column("Documents", True), Column("Share", True)], rows)


def _group(report: Report, key: str) -> Markup:
    group, total = report["stats"]["groups"][key], report["stats"]["documents"]
    columns = [Column(key.capitalize()), Column("Documents", True), Column("Share", True), Column("Words", True), Column("Text", True)]
    rows = [
        [name(r["name"], MISSING[key]), r["documents"], _share(r["documents"], total), r["words"], Cell(size(r["bytes"]), r["bytes"])]
        for r in group["rows"]
    ]
    more = []
    if len(rows) < group["names"]:
        more.append(f"the {whole(len(rows))} largest of {whole(group['names'])}{'+' if group['truncated'] else ''}")
    if group["truncated"]:
        more.append("small ones were let go in each shard, so counts are lower bounds")
    note = h("span", f" {'; '.join(more)}", class_="note") if more else None
    return table((GROUP_TITLES[key], note), columns, rows)


def _share(part: int, total: int) -> Cell:
    return Cell(share(part, total), part)


def signals(report: Report) -> Markup | None:
    """Histograms of all signals with the thresholds in force."""
    if not report["histograms"]:
        return None
    keys = h(
        "p",
        h("span", class_="key all"),
        "all documents that reached the stage",
        h("span", class_="key kept"),
        "kept documents",
        h("span", class_="key dropped"),
        "threshold; the tinted side is refused. The outermost bars hold what lies beyond the axis.",
        class_="note",
    )
    return section("signals", "Signals", keys, h("div", [_signal(report, entry) for entry in report["histograms"]], class_="grid"))


def _signal(report: Report, entry: dict[str, Any]) -> Markup:
    summaries = report["stats"]["signals"][entry["signal"]]
    drawn = signal_plot(entry["signal"], entry["bars"], entry["thresholds"]) if entry["bars"] else h("p", "no values", class_="note")
    heads = h("tr", h("td"), [h("th", title, scope="col", class_="num") for title in ("min", *SPREAD, "max")])
    lines = [_spread(key, summaries[key]) for key in ("all", "kept") if key in summaries]
    figures = h("table", h("thead", heads), h("tbody", lines), class_="mini")
    counted = " · ".join(f"{key} {_seen(summaries[key])}" for key in ("all", "kept") if key in summaries)
    return h("figure", h("figcaption", breakable(entry["signal"])), drawn, figures, h("p", counted, class_="note"))


def _spread(key: str, found: dict[str, Any]) -> Markup:
    values = [found["min"], *(found["quantiles"][q] for q in SPREAD.values()), found["max"]]
    return h("tr", h("th", key, scope="row"), [h("td", "–" if value is None else compact(value), class_="num") for value in values])


def _seen(found: dict[str, Any]) -> str:
    """How many numbers a signal has, and how many documents have none."""
    parts = [whole(found["count"])]
    parts += [f"{whole(found[key])} {words}" for key, words in (("nulls", "without"), ("not_finite", "not finite")) if found[key]]
    return ", ".join(parts)


def quarantine(report: Report) -> Markup:
    """Records that could not be judged, by reason."""
    total = report["counts"]["input"]
    columns = [Column("Reason"), Column("Stage"), Column("Records", True), Column("Of input", True)]
    rows = [[name(r["reason"], ""), r["stage"], r["records"], _share(r["records"], total)] for r in report["quarantine"]]
    content = table("Quarantined records by reason", columns, rows) if rows else h("p", "No record was quarantined.")
    skipped = [[name(kind, ""), n] for kind, n in report["not_documents"].items()]
    ignored = table("Parts of the input that hold no document", [Column("Kind"), Column("Count", True)], skipped) if skipped else None
    return section("quarantine", "Quarantine", h("div", content, ignored, class_="pair"))


def samples(report: Report) -> Markup | None:
    """Lost documents for each rule, so that a rule can be judged by eye."""
    if not report["samples"]:
        return None
    note = "For each rule the lost documents with the smallest ids: ids are hashes, so this is a fair sample, and the same in every run."
    search = h("input", type="search", id="search", placeholder="Search the samples", aria_label="Search the samples", hidden=True)
    return section(
        "samples", "Lost documents, sampled", h("p", note, class_="note"), search, [_rule_samples(rule) for rule in report["samples"]]
    )


def _rule_samples(rule: dict[str, Any]) -> Markup:
    words = f"{whole(rule['records'])} {rule['verdict']}, {len(rule['documents'])} shown"
    title = h("summary", h("span", f"{rule['stage']}.{rule['rule']}", class_=f"mono c-{rule['verdict']}"), h("span", words, class_="note"))
    return h("details", title, [_document(document) for document in rule["documents"]])


def _document(document: dict[str, Any]) -> Markup:
    facts = [h("span", document["id"], class_="mono"), h("bdi", document["source"])]
    if document["language"]:
        facts.append(h("bdi", document["language"]))
    if document["value"] is not None:
        limit = "" if document["threshold"] is None else f", threshold {number(document['threshold'])}"
        facts.append(f"value {number(document['value'])}{limit}")
    if document["url"]:
        facts.append(h("bdi", document["url"]))
    joined = [part for fact in facts for part in (" · ", fact)][1:]
    text = h("blockquote", document["excerpt"], dir="auto") if document["excerpt"] else h("p", "no text", class_="note")
    return h("div", h("div", joined, class_="note"), text, class_="doc")


def keep_rate(report: Report) -> Markup | None:
    """How many of each group were kept by their quality, and down to which score."""
    found = report["stats"].get("keep_rate", [])
    if not found:
        return None
    columns = [Column("Group"), Column("Documents", True), Column("Kept", True), Column("Lowest score kept", True)]
    lowest = ["none" if row["threshold"] is None else Cell(number(row["threshold"]), row["threshold"]) for row in found]
    rows = [[row["group"], row["documents"], row["kept"], cell] for row, cell in zip(found, lowest, strict=True)]
    return section("keep-rate", "Kept by quality", table("The share that was kept, by group", columns, rows))


def duplicates(report: Report) -> Markup | None:
    """What each kind of deduplication took, clusters by size, buckets, who lost to whom, and the largest clusters."""
    found, stages = report["stats"]["duplicate_clusters"], report["stats"].get("dedup", {})
    near, cut = stages.get("near_dedup", {}), stages.get("paragraph_dedup", {})
    parts = [
        _removed(stages),
        _cluster_table("Clusters of documents with the same text", found, "Documents in them"),
        _cluster_table("Clusters of documents with nearly the same text", near.get("clusters", []), "Documents in them"),
        _cluster_table("Paragraphs that several documents hold, by copies", cut.get("clusters", []), "Copies in all"),
        _buckets(near),
        *(_overlaps(stage, kind, facts["overlaps"][kind]) for stage, facts in stages.items() for kind in ("sources", "languages")),
        _largest(near.get("largest", [])),
    ]
    shown = [part for part in parts if part is not None]
    return section("duplicates", "Duplicates", shown) if found or any(facts["removed_bytes"] for facts in stages.values()) else None


def _removed(stages: dict[str, Any]) -> Markup | None:
    if not stages:
        return None
    columns = [Column("Stage"), Column("Text taken", True)]
    rows = [[stage, Cell(size(facts["removed_bytes"]), facts["removed_bytes"])] for stage, facts in stages.items()]
    return table("Text that deduplication took", columns, rows)


def _buckets(near: dict[str, Any]) -> Markup | None:
    """How uneven the buckets were, and how many were too large for all pairs."""
    if not near.get("buckets"):
        return None
    rows = [[f"{whole(r['from'])} to {whole(r['to'])}", r["buckets"]] for r in near["buckets"]]
    shown = table("Buckets: documents that share a band of their signatures", [Column("Documents"), Column("Buckets", True)], rows)
    note = (
        f"{_plural(near['candidate_pairs'], 'pair')} compared; the largest bucket holds {_plural(near['largest_bucket'], 'document')}; "
        f"{_plural(near['giant_buckets'], 'giant bucket')}, in which each document was compared to the first alone."
    )
    return h("div", shown, h("p", note, class_="note"))


def _overlaps(stage: str, kind: str, rows: list[list[Any]]) -> Markup | None:
    if not rows or (kind == "languages" and len(rows) == 1):
        return None
    noun = "Paragraphs cut" if stage == "paragraph_dedup" else "Documents dropped"
    columns = [Column(f"{kind.capitalize()[:-1]} that lost"), Column("that kept it"), Column(noun, True)]
    missing = MISSING["language" if kind == "languages" else "source"]
    shown = [[name(loser, missing), name(winner, missing), count] for loser, winner, count in rows]
    return table(f"{stage}: who lost to whom, by {kind[:-1]}", columns, shown)


def _largest(clusters: list[dict[str, Any]]) -> Markup | None:
    if not clusters:
        return None
    shown = []
    for cluster in clusters:
        documents = []
        for place, member in enumerate(cluster["members"]):
            fact = "kept" if place == 0 else f"similarity {member['similarity']:.3g} to the next on its way to the winner"
            facts = h("div", h("span", member["id"], class_="mono"), " · ", fact, class_="note")
            documents.append(h("div", facts, h("blockquote", member["excerpt"], dir="auto"), class_="doc"))
        words = f"{_plural(cluster['size'], 'document')}, {len(documents)} shown"
        shown.append(
            h("details", h("summary", h("span", cluster["members"][0]["id"], class_="mono"), h("span", words, class_="note")), documents)
        )
    return h("div", h("h3", "Largest clusters of near duplicates"), shown)


def _cluster_table(title: str, found: list[dict[str, int]], members: str) -> Markup | None:
    """Clusters by size."""
    if not found:
        return None
    most = max(row["documents"] for row in found)
    columns = [
        Column("Size of cluster"),
        Column("Clusters", True),
        Column(members, True),
        Column("Surplus", True),
        Column("Kept and surplus"),
    ]
    rows = []
    for r in found:
        sizes = f"{whole(r['from'])}" if r["from"] == r["to"] else f"{whole(r['from'])} to {whole(r['to'])}"
        surplus = r["documents"] - r["clusters"]
        drawn = bar([("kept", r["clusters"]), ("dropped", surplus)], most)
        rows.append([sizes, r["clusters"], r["documents"], surplus, Cell(drawn)])
    return table(title, columns, rows)


def timings(report: Report) -> Markup | None:
    """Processor time by stage."""
    if not report["timings"]:
        return None
    slowest = max(row["seconds"] for row in report["timings"])
    columns = [Column("Stage"), Column("Time", True), Column("Share", True), Column("Records/s", True), Column("Beside the slowest")]
    rows = []
    for r in report["timings"]:
        rate = r["records_per_second"]
        shown = Cell("–", 0) if rate is None else Cell(number(float(f"{rate:.3g}")), rate)
        drawn = bar([("kept", r["seconds"])], slowest)
        rows.append([r["stage"], Cell(seconds(r["seconds"]), r["seconds"]), Cell(share(r["share"], 1), r["share"]), shown, Cell(drawn)])
    note = "Time of one worker, added up over all workers; records per second are those that entered the stage."
    shown = table("Time by stage", columns, rows)
    return section("timings", "Time", h("p", note, class_="note"), shown, _savings(report.get("savings")))


def _savings(found: dict[str, float] | None) -> Markup | None:
    if not found:
        return None
    words = (
        f"{_plural(found['refused'], 'page')} refused before extraction; at {seconds(found['seconds_a_page'])} a page, the mean of the "
        f"{whole(found['extracted'])} that were extracted, this saved {seconds(found['saved_seconds'])}."
    )
    return h("p", words, class_="note")
