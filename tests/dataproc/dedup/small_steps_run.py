"""A pipeline run whose global steps are cut small and go to the workers, as a process that a test may kill: PIPELINE STORE ray|plain."""

from __future__ import annotations

import json
import sys

from dataproc import pipeline
from dataproc.dedup import shuffle
from dataproc.execution import PlainLoop, RayPool


def main(path: str, store: str, where: str) -> None:
    pipeline.KEYS_COMPARED_HERE = pipeline.SIGNATURES_COMPARED_HERE = 0
    pipeline.MEGABYTE = 100
    shuffle.READS_AT_MOST = 40
    make = PlainLoop if where == "plain" else lambda: RayPool(cpus=2)
    print(json.dumps(pipeline.run_pipeline(path, store, make, quiet=True)))


if __name__ == "__main__":
    main(*sys.argv[1:])
