"""How fast personal data is found: `python -m benchmarks.pii TEXT.jsonl.gz`. The stage with its default kinds, with national numbers and
numbers of three countries too, and plain regular expressions for e-mail addresses and IPv4 alone, on the same documents, processor time."""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from pathlib import Path

import numpy as np

from dataproc.pii.national import STANDARD
from dataproc.stages.base import StageContext
from dataproc.stages.pii import Pii, PiiConfig
from tests.dataproc.stages.helpers import texts

ROUNDS = 5
EMAIL = re.compile(r"\b[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b")
IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    with gzip.open(parser.parse_args().text, "rt") as lines:
        documents = [json.loads(line)["text"] for line in lines]
    size = sum(len(text.encode()) for text in documents) / 1e6
    batches = [texts(*documents[k : k + 64]) for k in range(0, len(documents), 64)]
    stages = {
        "stage, default kinds": {},
        "stage, with national numbers and phones of US, DE, GB": {"national_ids": tuple(STANDARD), "phone_countries": ("US", "DE", "GB")},
    }
    runs = {name: _stage(settings, batches) for name, settings in stages.items()}
    runs["re, e-mail and IPv4 alone"] = lambda: [IPV4.sub("0.0.0.0", EMAIL.sub("<EMAIL>", text)) for text in documents]
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begun = time.process_time()
            run()
            rates[name].append(size / (time.process_time() - begun))
    for name, rate in rates.items():
        print(f"{name}: {np.median(rate):.1f} MB/s ({min(rate):.1f} to {max(rate):.1f})")


def _stage(settings: dict, batches: list):
    stage = Pii(PiiConfig(**settings))
    stage.open(StageContext())
    return lambda: [stage.process(batch) for batch in batches]


if __name__ == "__main__":
    main()
