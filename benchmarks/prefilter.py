"""What a guess at the language before extraction saves and costs: one pipeline with it and without it, over the same pages.

usage: python -m benchmarks.prefilter PAGES... [--keep en] [--share 0.7] [--pages 600] [--rounds 3]
       python -m benchmarks.prefilter PAGES... --losses
PAGES are Parquet files with columns `html` and `language`, or WARC files (whose pages' languages are what they declare). Pages are taken so
that `--share` of them are labelled with another language than `--keep`; each round runs both pipelines one after the other in this process.
--losses extracts all pages and asks for each what the guess does where its language is the only kept one, and where one of the five most
common others is.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from dataproc.charset import decode
from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.sources.base import InputSpec, ReadReport, Record
from dataproc.sources.registry import make_source, plan_input
from dataproc.stages.base import StageContext
from dataproc.stages.extract import ExtractConfig
from dataproc.stages.extract_engines import Options, trafilatura_text
from dataproc.stages.language import Language, LanguageConfig
from dataproc.stages.language_guess import guess, is_other
from dataproc.stages.page_meta import declared_language
from dataproc.versions import open_version

OTHERS = 5  # languages that a page is tried against beside its own
PIPELINE = """\
dataset: pages
version: v1
owner: bench@example.org
inputs: [{{name: pages, format: html, path: pages}}]
stages:
  - extract: {{prefilter_language: {prefilter}}}
  - language: {{keep: [{keep}]}}
  - clean: {{}}
  - rules: {{use: [gopher_repetition], set: {{}}}}
  - exact_dedup: {{}}
limits: {{max_quarantined_fraction: 0.05}}
"""


def read_pages(paths: list[Path]) -> Iterator[tuple[bytes, str | None]]:
    """(page, labelled language) of all files."""
    for path in paths:
        if path.suffix == ".parquet":
            for row in pq.read_table(path, columns=["html", "language"]).to_pylist():
                yield row["html"], row["language"]
            continue
        spec = InputSpec(name="pages", format="warc", path=str(path))
        for unit in plan_input(spec, 1 << 30):
            for part in unit:
                for record in make_source(spec).read(part, ReadReport()):
                    if isinstance(record, Record) and record.payload:
                        yield record.payload, declared_language(decode(record.payload, record.charset).text)


def choose(pages: list[tuple[bytes, str | None]], keep: str, share: float, most: int) -> list[bytes]:
    """Pages of which a share is labelled with another language, spread evenly over the input."""
    kept = [page for page, label in pages if (label or "").lower().split("-")[0] == keep]
    other = [page for page, label in pages if label and label.lower().split("-")[0] != keep]
    count = min(most, int(len(kept) / (1 - share)), int(len(other) / share))
    wanted_other = round(share * count)
    return [group[i * len(group) // n] for group, n in ((kept, count - wanted_other), (other, wanted_other)) for i in range(n)]


def run(folder: Path, prefilter: bool, keep: str, number: int) -> tuple[float, dict[str, int], set[str]]:
    """(seconds, counts, ids of the kept documents) of one run."""
    path = folder / f"run-{prefilter}-{number}.yaml"
    path.write_text(PIPELINE.format(prefilter=str(prefilter).lower(), keep=keep))
    store, start = str(folder / f"store-{prefilter}-{number}"), time.perf_counter()
    result = run_pipeline(str(path), store, PlainLoop, quiet=True)
    seconds = time.perf_counter() - start
    version = open_version(store, result["version"])
    ids = {name for entry in version.manifest["shards"] for name in pq.read_table(f"{version.url}/{entry['path']}")["id"].to_pylist()}
    return seconds, result["counts"], ids


def compare(pages: list[bytes], keep: str, rounds: int) -> None:
    """Prints wall time and what is kept, with the guess and without."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pages").mkdir()
        for number, page in enumerate(pages):
            (folder / "pages" / f"{number:06d}.html").write_bytes(page)
        run(folder, True, keep, 0)  # kernels are compiled, files are in the cache
        ratios = []
        for number in range(1, rounds + 1):
            slow, counts, wanted = run(folder, False, keep, number)
            fast, with_guess, found = run(folder, True, keep, number)
            ratios.append(fast / slow)
            other = counts["dropped"].get("language.language_not_kept", 0)
            refused = with_guess["dropped"].get("extract.prefilter_language", 0)
            print(
                f"{len(pages)} pages, {other} of whose texts are in other languages; without {slow:.1f} s, with {fast:.1f} s: "
                f"{fast / slow:.3f}x; {refused} refused early; kept {len(wanted)}, of them with the guess {len(wanted & found)} "
                f"({len(wanted & found) / max(1, len(wanted)):.4f}), others {len(found - wanted)}",
                flush=True,
            )
        print(f"median {statistics.median(ratios):.3f}x")


@dataclass(frozen=True)
class Page:
    """One page extracted in full: its seconds, its text's language and score."""

    html: str
    language: str | None
    score: float
    seconds: float


def losses(pages: list[tuple[bytes, str | None]]) -> None:
    """Prints what the guess costs where a page's own language is the only kept one, and saves where another one is."""
    margin, least = ExtractConfig().prefilter_margin, LanguageConfig().min_score
    labeller = _opened(Language(LanguageConfig()))
    read = [_extracted(decode(payload).text, labeller) for payload, _ in pages]
    languages = Counter(page.language for page in read if page.language)
    common = [name for name, _ in languages.most_common(OTHERS)]
    stages = {name: Language(LanguageConfig(keep=(name,))) for name in languages}
    kept = lost = other = refused = 0
    saved = spent = 0.0
    for page in read:
        for name in {*common, page.language} - {None}:
            stages[name]._model = labeller._model
            found = guess(page.html, stages[name])
            drops = found is not None and is_other(found, stages[name], margin)
            if page.language == name and page.score >= least:
                kept, lost = kept + 1, lost + drops
            elif page.language != name:
                other, refused = other + 1, refused + drops
                spent, saved = spent + page.seconds, saved + drops * page.seconds
    print(f"{len(read)} pages, {len(languages)} languages: of {kept} kept documents {lost} lost ({1 - lost / max(1, kept):.4f} kept)")
    shares = f"{refused / max(1, other):.3f} refused early, which held {saved / max(1e-9, spent):.3f} of their extraction time"
    print(f"of pages in other languages {shares}")


def _opened(stage: Language) -> Language:
    stage.open(StageContext())
    return stage


def _extracted(html: str, labeller: Language) -> Page:
    start = time.process_time()
    text = trafilatura_text(html, Options())
    return Page(html, *labeller.predict(text), time.process_time() - start)


def main() -> None:
    """Reads the arguments and runs one of the two measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--keep", default="en")
    parser.add_argument("--share", type=float, default=0.7)
    parser.add_argument("--pages", dest="most", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--losses", action="store_true")
    arguments = parser.parse_args()
    pages = list(read_pages(arguments.pages))
    if arguments.losses:
        losses(pages)
    else:
        compare(choose(pages, arguments.keep, arguments.share, arguments.most), arguments.keep, arguments.rounds)


if __name__ == "__main__":
    main()
