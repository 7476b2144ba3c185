"""What quality models are worth and cost: `python -m benchmarks.quality FOLDER [TEXT.jsonl.gz]`.

FOLDER: labelled documents as JSON lines with text and label (high, low), a file each. For each file and engine: ROC-AUC on held-out
documents over three splits. TEXT: documents to score; our scorer and the fasttext library, in turns, processor time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from dataproc.fasttext_model import label_scores, load_model
from dataproc.quality_models import training
from dataproc.quality_models.config import TrainingFile
from dataproc.quality_models.examples import each_text_once, read_examples, split
from dataproc.quality_models.metrics import roc_auc
from dataproc.quality_models.scoring import open_scorer

SEEDS = (1, 2, 3)
ROUNDS = 5


def config_of(path: Path, engine: str) -> TrainingFile:
    data = [{"path": str(path)}]
    labels = {"high": ["high"], "low": ["low"]}
    return TrainingFile(name="benchmark", version="v1", owner="benchmark", data=data, labels=labels, engine=engine)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path, nargs="?")
    arguments = parser.parse_args()
    model = b""
    for path in sorted(arguments.folder.glob("*.jsonl.gz")):
        for engine in ("fasttext", "signals"):
            config = config_of(path, engine)
            unique, _ = each_text_once(read_examples(config)[0], config)
            found, seconds, size = [], 0.0, 0
            for seed in SEEDS:
                config = config.model_copy(update={"seed": seed})
                parts, _ = split(unique, config)
                begun = time.process_time()
                content, _ = training._trained(config, parts.train)
                seconds += time.process_time() - begun
                size += sum(len(text.as_py().encode()) for text in parts.train.texts)
                with tempfile.NamedTemporaryFile(suffix=".bin") as stream:
                    stream.write(content)
                    stream.flush()
                    found.append(roc_auc(*training._scores(config, open_scorer(stream.name, None, "benchmark"), parts.heldout)))
            model = content if engine == "fasttext" else model
            print(
                f"{path.name:32} {engine:9} {len(unique):6} documents  AUC {np.round(found, 4)}  {size / 1e6 / seconds:.2f} MB/s to train"
            )
    if arguments.text:
        compare(model, arguments.text)


def compare(model: bytes, path: Path) -> None:
    with gzip.open(path, "rt") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    column, size = pa.array(texts, pa.large_string()), sum(len(text.encode()) for text in texts) / 1e6
    with tempfile.NamedTemporaryFile(suffix=".bin") as stream:
        stream.write(model)
        stream.flush()
        ours, library = open_scorer(stream.name, None, "benchmark"), load_model(stream.name, None, "benchmark")
        rates = {"ours": [], "library": []}
        for _ in range(ROUNDS):
            for name, run in (("ours", lambda: ours.scores(column)), ("library", lambda: [label_scores(library, text) for text in texts])):
                begun = time.process_time()
                run()
                rates[name].append(size / (time.process_time() - begun))
    medians = {name: float(np.median(rate)) for name, rate in rates.items()}
    print(f"{size:.1f} MB: ours {medians['ours']:.1f}, library {medians['library']:.1f} MB/s, {medians['ours'] / medians['library']:.1f}x")


if __name__ == "__main__":
    main()
