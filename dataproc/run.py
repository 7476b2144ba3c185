"""The Ray entry script of a data run.

`ray submit cluster.yaml dataproc/run.py PIPELINE.yaml`, or `ray job submit -- python dataproc/run.py PIPELINE.yaml`.

It is the same run as `headrace data run`. On a cluster it joins the Ray that is there; with --cpus, or where none runs, it starts its own.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    # Run as a file from a checkout that is not installed: the packages lie beside this folder. `ray submit` copies this one file
    # to the head node, where the packages are installed and this path holds nothing.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from store.errors import HeadraceError


def run(
    path: str, store: str | None, address: str | None, cpus: int | None, dry_run: bool = False, fresh: bool = False, quiet: bool = False
) -> dict[str, Any]:
    """Runs a pipeline file on Ray: at `address`, else on a private Ray of `cpus` CPUs (all of this machine's when None)."""
    from dataproc.execution import RayPool
    from dataproc.pipeline import run_pipeline

    return run_pipeline(path, store, lambda: RayPool(address, cpus), dry_run, fresh, quiet)


def summary(result: dict[str, Any]) -> str:
    """A run's result for a person: the plan of a dry run, or the funnel and where things are."""
    if result.get("dry_run"):
        lines = [
            f"plan {result['plan']} of {result['dataset']}@{result['label']}: nothing was written",
            f"  {result['input_files']:,} input files, {result['input_bytes'] / 1e6:,.1f} MB, {result['units']:,} work units",
            f"  stages: {', '.join(result['stages']) or 'none'}",
        ]
        return "\n".join(lines + ["  this plan has been run already: its version stands"] * result["already"])
    counts = result["counts"]
    total = max(1, counts["input"])
    lines = [f"{result['version']}{' (it stood already)' if result['already'] else ''}"]
    lines.append(f"  {counts['input']:>12,}  records in")
    for rule, count in sorted(counts["dropped"].items(), key=lambda item: -item[1]):
        lines.append(f"  {-count:>12,}  {rule} ({count / total:.1%})")
    lines.append(f"  {-counts['quarantined']:>12,}  quarantined ({counts['quarantined'] / total:.1%})")
    lines.append(f"  {counts['kept']:>12,}  kept ({counts['kept'] / total:.1%}) in {result['shards']} shards")
    lines.append(f"  version  {result['url']}")
    lines.append(f"  report   {result['report']}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 ok, 2 bad config or arguments, 3 a check said no, 1 anything else."""
    parser = argparse.ArgumentParser(
        prog="dataproc/run.py", description="Run a pipeline file on Ray: plan, pass 1, global steps, pass 2, commit.",
        epilog="example: ray job submit --working-dir . -- python dataproc/run.py examples/web.yaml --store s3://bucket/store",
    )  # fmt: skip
    parser.add_argument("pipeline", metavar="PIPELINE.yaml")
    parser.add_argument("--store", help="where versions live; default HEADRACE_STORE, then ./headrace-store")
    parser.add_argument("--address", help="address of a Ray cluster; default RAY_ADDRESS, then the Ray running here, then a private one")
    parser.add_argument("--cpus", type=int, help="use this many CPUs; without a cluster: of a private Ray")
    parser.add_argument("--dry-run", action="store_true", help="show the plan, write nothing")
    parser.add_argument("--fresh", action="store_true", help="forget unfinished work and run everything anew")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line of standard output")
    options = parser.parse_args(arguments)
    try:
        address = options.address or os.environ.get("RAY_ADDRESS") or (None if options.cpus or options.dry_run else running_ray())
        result = run(options.pipeline, options.store, address, options.cpus, options.dry_run, options.fresh)
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return error.exit_code
    print(summary(result))
    if options.json:
        print(json.dumps(result))
    return 0


def running_ray() -> str | None:
    """ "auto" when this machine is a node of a running Ray, else None."""
    from ray._private.services import canonicalize_bootstrap_address  # the lookup that address="auto" itself makes

    try:
        return "auto" if canonicalize_bootstrap_address("auto") else None
    except ConnectionError:
        return None


if __name__ == "__main__":
    sys.exit(main())
