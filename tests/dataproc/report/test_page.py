"""The page: shows the report's figures and no others, loads nothing, escapes everything, fits a phone, in every size of run."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from dataproc.report.markup import VOID
from dataproc.report.numbers import THIN
from dataproc.report.page import render_page
from dataproc.report.style import DARK, LIGHT
from tests.dataproc.report.made_up import MadeUp

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"'><svg onload=alert(3)> "
    "\u202e txet \u2066 \x07 \x1b[31m ]]> --> &lt;b&gt;"
)
SIZES = {
    "none": MadeUp(0),
    "one": MadeUp(1),
    "usual": MadeUp(3000),
    "wide": MadeUp(6000, languages=[f"l{i:02d}" for i in range(60)], rules=40, signals=50),
    "bare": MadeUp(200, rules=0, signals=0),
}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Tree(HTMLParser):
    """Elements with their attributes and the text in them; fails on a tag that is closed out of order."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.open: list[dict] = []
        self.elements: list[dict] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "attributes": dict(attrs), "text": "", "inside": [e["attributes"].get("id") for e in self.open]}
        assert len(dict(attrs)) == len(attrs)
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag: str, inside: str | None = None) -> list[dict]:
        return [e for e in self.elements if e["tag"] == tag and (inside is None or inside in e["inside"])]


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[dict, str]]:
    reports = {name: made.report() for name, made in SIZES.items()}
    return {name: (report, render_page(report)) for name, report in reports.items()}


def rows_of(tree: Tree, inside: str) -> list[list[str]]:
    """Texts of the cells of all table rows inside an element."""
    rows, current = [], None
    for element in tree.elements:
        if inside not in element["inside"]:
            continue
        if element["tag"] == "tr":
            current = []
            rows.append(current)
        elif element["tag"] in ("td", "th") and current is not None:
            current.append(element["text"].replace(THIN, ""))
    return rows


@pytest.mark.parametrize("name", SIZES)
def test_the_page_is_well_formed_and_comes_from_the_json_alone(pages, name):
    report, page = pages[name]
    tree = Tree(page)
    ids = [e["attributes"]["id"] for e in tree.elements if "id" in e["attributes"]]
    assert len(ids) == len(set(ids))
    assert {a["attributes"]["href"][1:] for a in tree.all("a")} <= set(ids)
    assert render_page(json.loads(json.dumps(report, sort_keys=True, allow_nan=False))) == page
    assert len(page.encode()) < 2_000_000


@pytest.mark.parametrize("name", SIZES)
def test_the_funnel_shows_the_figures_of_the_report(pages, name):
    report, page = pages[name]
    shown = [row for row in rows_of(Tree(page), "funnel-table")[1:] if len(row) == 7]
    expected = [["input", str(report["counts"]["input"]), "", "", "", str(report["counts"]["input"]), ""]]
    for stage in report["stats"]["stages"]:
        expected.append([stage["name"], *(str(stage[key]) for key in ("entered", "dropped", "quarantined")), None, str(stage["left"]), ""])
        for rule in stage["rules"]:
            amounts = [str(rule["records"]) if rule["verdict"] == verdict else "" for verdict in ("dropped", "quarantined")]
            expected.append([rule["rule"], "", *amounts, None, "", ""])
    assert [
        [a if b is not None else None for a, b in zip(row, want, strict=True)] for row, want in zip(shown, expected, strict=True)
    ] == expected


@pytest.mark.parametrize("name", ["usual", "wide"])
def test_tables_and_samples_show_the_figures_of_the_report(pages, name):
    report, page = pages[name]
    tree = Tree(page)
    composition = [row[:2] + row[3:4] for row in rows_of(tree, "composition")]
    for key in ("source", "domain", "language", "host"):
        for row in report["stats"]["groups"][key]["rows"]:
            shown = row["name"] if row["name"] is not None else {"host": "no web address"}[key]
            assert [shown, str(row["documents"]), str(row["words"])] in composition
    quarantine = [row[:3] for row in rows_of(tree, "quarantine")]
    assert all([r["reason"], r["stage"], str(r["records"])] in quarantine for r in report["quarantine"])
    clusters = [row[1:3] for row in rows_of(tree, "duplicates")]
    assert all([str(r["clusters"]), str(r["documents"])] in clusters for r in report["stats"]["duplicate_clusters"])
    samples = tree.all("blockquote", "samples")
    assert [e["text"] for e in samples] == [d["excerpt"] for rule in report["samples"] for d in rule["documents"]]
    assert all(e["attributes"]["dir"] == "auto" for e in samples)
    figures = tree.all("figcaption")
    assert [f["text"] for f in figures] == [entry["signal"] for entry in report["histograms"]]
    assert report["config_yaml"] in [code["text"] for code in tree.all("code")]
    assert any(report["version"]["reference"] in code["text"] and "data why" in code["text"] for code in tree.all("code"))


@pytest.mark.parametrize("name", SIZES)
def test_nothing_is_loaded_from_anywhere(pages, name):
    _, page = pages[name]
    tree = Tree(page)
    for element in tree.elements:
        assert element["tag"] not in ("link", "img", "iframe", "object", "embed", "base", "image", "use")
        for attribute, value in element["attributes"].items():
            assert attribute not in ("src", "srcset", "action", "background", "poster", "ping", "data")
            assert not attribute.startswith("on")
            if attribute == "href":
                assert value.startswith("#")
            if attribute == "style":
                assert "url(" not in value and "@import" not in value
    (style,) = tree.all("style")
    assert "url(" not in style["text"] and "@import" not in style["text"]
    policy = next(e["attributes"]["content"] for e in tree.all("meta") if e["attributes"].get("http-equiv"))
    assert policy.startswith("default-src 'none'") and "script-src 'sha256-" in policy


def hostile_page() -> str:
    made = MadeUp(600, excerpt=HOSTILE, host="a'\"><script>alert(4)</script>", label=HOSTILE, owner=HOSTILE, languages=[HOSTILE])
    manifest, statistics, samples, stages, timings = made.arguments()
    stages[1]["rules"] = [HOSTILE]
    manifest["inputs"][0]["path"] = HOSTILE
    manifest["parents"] = [HOSTILE]
    from dataproc.report.build import build_report

    return render_page(build_report(manifest, statistics, samples, stages, {**timings, HOSTILE: 1.0}))


def test_hostile_texts_stay_texts():
    page = hostile_page()
    page.encode()
    tree = Tree(page)
    assert [len(tree.all("script")), len(tree.all("img"))] == [1, 0]
    assert not any(attribute.startswith("on") for e in tree.elements for attribute in e["attributes"])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", page)
    assert any("<script>alert(1)</script>" in e["text"] for e in tree.all("blockquote"))


def test_a_page_of_the_heaviest_excerpts_is_bounded():
    report = MadeUp(6000, rules=60, signals=50, excerpt="&" * 1000).report()
    assert len(render_page(report).encode()) < 2_500_000
    report = MadeUp(6000, rules=34, signals=50, excerpt="水" * 1000).report()
    assert len(report["samples"]) >= 15
    assert len(render_page(report).encode()) < 2_000_000


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2, definition)."""
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_text_colour_can_be_read_on_every_ground(theme):
    colours = dict(re.findall(r"--([\w-]+):(#\w+);", theme))
    for text in ("ink", "muted", "kept", "dropped", "quarantined", "accent"):
        for ground in ("ground", "card", "stripe", "code"):
            light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def browse(tmp_path, page: str, *options: str) -> tuple[str, str]:
    """(document after its scripts ran, console) of a page in headless Chromium."""
    (tmp_path / "page.html").write_text(page)
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    command += ["--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
    done = subprocess.run([*command, *options, f"file://{tmp_path / 'page.html'}"], capture_output=True, text=True, timeout=90)
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return done.stdout, console


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")


@needs_browser
@pytest.mark.parametrize("name", ["usual", "hostile"])
def test_a_browser_shows_it_without_complaint(pages, tmp_path, name):
    page = hostile_page() if name == "hostile" else pages[name][1]
    document, console = browse(tmp_path, page, "--dump-dom")
    assert console == ""
    assert 'type="button">Light / dark' in document  # the script ran: it showed the button
    browse(tmp_path, page, f"--screenshot={tmp_path / 'page.png'}", "--window-size=1280,1600")
    assert (tmp_path / "page.png").stat().st_size > 20_000


FRAME = """<body><iframe width={width} height=900 srcdoc="{page}"></iframe><script>
addEventListener("load", () => {{
  const root = document.querySelector("iframe").contentDocument.documentElement;
  const wide = [...root.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1
    && !e.closest(".box, .river-box, pre, nav"));
  document.body.dataset.result = root.scrollWidth + " of " + root.clientWidth + ": " + wide.map((e) => e.tagName + "." + e.className);
}});</script>"""


@needs_browser
@pytest.mark.parametrize("name", ["none", "one", "wide", "hostile"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(pages, tmp_path, name, width):
    page = hostile_page() if name == "hostile" else pages[name][1]
    page = page.replace("<details>", "<details open>")
    document, _ = browse(tmp_path, FRAME.format(width=width, page=html.escape(page)), "--dump-dom", "--window-size=1400,1000")
    scroll, client, wide = re.search(r'data-result="(\d+) of (\d+): ([^"]*)"', document).groups()
    assert int(client) >= width - 20
    assert (int(scroll), wide) == (int(client), "")
