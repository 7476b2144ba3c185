"""The configuration files of the demo, written beside its data so that they can be read, changed and run again."""

from __future__ import annotations

from pathlib import Path

MANUALS = """\
# The crawl: pydoc's pages of the standard library.
dataset: manuals
version: v1
owner: demo@example.org
inputs:
  - {name: library, format: warc, path: "input/library.warc.gz", domain: code}
stages:
  - url_filter: {block_url_words: [antigravity]}
  - extract: {engine: trafilatura}
  - language: {keep: []}          # manual pages are half code: label the language, drop none for it
  - clean: {drop_lines: [boilerplate]}
  - rules: {use: [gopher_quality], set: {gopher_quality.min_words: 80, gopher_quality.max_mean_word_length: 12, gopher_quality.min_alphabetic_words: 0.55}}
  - exact_dedup: {}
limits: {unit_mb: 0.5}
"""
PROSE = """\
# Package descriptions and licence texts: many packages carry the same licence.
dataset: prose
version: v1
owner: demo@example.org
inputs:
  - {name: packages, format: jsonl, path: "input/packages.jsonl", id_field: id, domain: books}
stages:
  - language: {keep: [en], min_score: 0.5}
  - clean: {}
  - rules: {use: [gopher_quality], set: {gopher_quality.min_words: 60}}
  - exact_dedup: {}
limits: {unit_mb: 0.5, max_quarantined_fraction: 0.02}
"""
MIXTURE = """\
mixture: demo
version: v1
owner: demo@example.org
sequence_length: 128
seed: 17
sources:
  - {name: manuals, from: "manual_tokens@v1", weight: 0.6, max_epochs: 20}
  - {name: prose, from: "prose_tokens@v1", weight: 0.4, max_epochs: 20}
"""
RECIPE = """\
run: RUN
owner: demo@example.org
mixture: mixture.yaml
model: {layers: 2, width: 128, heads: 4, kv_heads: 2}
steps: 150
batch_size: 8
microbatch: 4
workers: 2
seed: 1
optimizer: {lr: 0.003}
schedule: {warmup_steps: 15, decay: cosine}
checkpoint: {every: 25, keep: 3}
eval: {every: 75, documents: 10}
"""


def write_all(folder: Path) -> None:
    """Writes the two pipelines, the mixture, and the recipes of a run that is left alone and of one that is killed."""
    texts = {"manuals.yaml": MANUALS, "prose.yaml": PROSE, "mixture.yaml": MIXTURE}
    texts |= {f"{name}.recipe.yaml": RECIPE.replace("RUN", name) for name in ("undisturbed", "killed")}
    for name, text in texts.items():
        (folder / name).write_text(text)
