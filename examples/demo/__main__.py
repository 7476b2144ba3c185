"""The demo, step by step. Every step is a command that a user could type; its output is shown. Ends with what was made and where."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

from examples.demo import inputs
from examples.demo.files import write_all

FOLDER = Path("headrace-demo").absolute()
STORE = FOLDER / "store"
KILL_AFTER = 60  # steps


def main() -> int:
    """Runs all steps; returns 0 only if each held."""
    start = time.monotonic()
    (FOLDER / "input").mkdir(parents=True, exist_ok=True)
    os.environ["HEADRACE_STORE"] = str(STORE)
    say("1. Input that this Python has: its manual pages as a crawl, its packages' texts as JSON lines")
    pages = inputs.write_crawl(FOLDER / "input" / "library.warc.gz")
    lines = inputs.write_prose(FOLDER / "input" / "packages.jsonl")
    write_all(FOLDER)
    print(f"{pages} pages, {lines} lines in {FOLDER / 'input'}")

    say("2. From raw input to versioned shards")
    versions = [headrace("data", "run", str(FOLDER / f"{name}.yaml")) for name in ("manuals", "prose")]
    for version in versions:
        headrace("data", "verify", version["version"], as_json=False)

    say("3. Every decision can be asked")
    for version in versions:
        for document in examples_of(version):
            headrace("data", "why", version["version"], document, as_json=False)

    say("4. Tokens: one tokenizer for both, documents shuffled by a hash of their id, some held out")
    manuals = headrace(
        "data", "tokenize", "manuals@v1", "--tokenizer", "train:4096", "--name", "manual_tokens", "--label", "v1", "--holdout", "0.05"
    )
    tokenizer = str(Path(manuals["url"]) / "tokenizer.json")
    prose = headrace(
        "data", "tokenize", "prose@v1", "--tokenizer", tokenizer, "--name", "prose_tokens", "--label", "v1", "--holdout", "0.05"
    )
    headrace("mix", "show", str(FOLDER / "mixture.yaml"), as_json=False)

    say(f"5. Train a small model; a second run of the same recipe is killed after step {KILL_AFTER} and started again")
    trained = headrace("train", "run", str(FOLDER / "undisturbed.recipe.yaml"))
    kill_in_the_middle("killed")
    headrace("train", "run", str(FOLDER / "killed.recipe.yaml"), "--resume")
    same = losses("undisturbed") == losses("killed")
    print(f"losses of the killed run equal those of the undisturbed one, bit for bit: {same}")
    headrace("train", "docs", "killed", "--step", "0", as_json=False, most_lines=6)

    say("6. Evaluate: bits per byte on held-out documents")
    scored = headrace("eval", "run", "killed")

    say("What was made")
    rows = [("dataset version", v["version"], f"{v['counts']['kept']:,} of {v['counts']['input']:,} records", v["url"]) for v in versions]
    rows += [("report", v["version"], "open it in a browser", v["report"]) for v in versions]
    rows += [("token version", t["version"], f"{t['counts']['tokens']:,} tokens", t["url"]) for t in (manuals, prose)]
    rows.append(
        (
            "training run",
            "killed",
            f"{trained['steps']} steps, loss {trained['first_loss']:.2f} to {trained['last_loss']:.2f}",
            str(STORE / ".runs" / "killed"),
        )
    )
    rows.append(("evaluation", "killed", f"{scored['scores']['total']['bits_per_byte']:.3f} bits per byte", str(STORE / ".evals")))
    for kind, name, what, where in rows:
        print(f"{kind:16} {name:32} {what:34} {where}")
    print(f"\n{time.monotonic() - start:.0f} s in all. Files to read and change: {FOLDER}/*.yaml")
    if not same:
        print("the killed run did not give the same losses", file=sys.stderr)
    return 0 if same else 1


def say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def headrace(*arguments: str, as_json: bool = True, most_lines: int = 40) -> dict:
    """Runs a command, shows its output, and returns its JSON result. Ends the demo when the command fails."""
    print(f"$ headrace {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "ops.cli", *arguments, *(["--json"] if as_json else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    shown = lines[:-1] if as_json and lines else lines
    print("\n".join([*shown[:most_lines], *(["..."] if len(shown) > most_lines else [])]), flush=True)
    if done.returncode:
        sys.exit(f"the demo ends here: `headrace {' '.join(arguments)}` failed with exit code {done.returncode}")
    return json.loads(lines[-1]) if as_json else {}


def examples_of(version: dict) -> list[str]:
    """Ids of a kept document, one dropped by a rule, an exact duplicate and a quarantined record, where the version has them."""
    wanted = {"kept": None, "rules": None, "exact_dedup": None, "quarantined": None}
    for path in sorted(Path(version["url"]).glob("decisions/*.parquet")):
        for row in pq.read_table(path).to_pylist():
            kind = row["stage"] if row["verdict"] == "dropped" else row["verdict"]
            if kind in wanted and wanted[kind] is None:
                wanted[kind] = row["id"]
    return [name for name in wanted.values() if name]


def kill_in_the_middle(run: str) -> None:
    """Starts a training run and kills it with SIGKILL, workers and all, some steps in."""
    command = [sys.executable, "-m", "ops.cli", "train", "run", str(FOLDER / f"{run}.recipe.yaml")]
    metrics = STORE / ".runs" / run / "metrics.jsonl"
    if metrics.exists() and len(losses(run)) > KILL_AFTER:
        return  # an earlier demo in this folder
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and (not metrics.exists() or metrics.read_bytes().count(b"\n") < KILL_AFTER):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    print(f"killed with SIGKILL after {len(losses(run)) if metrics.exists() else 0} steps", flush=True)


def losses(run: str) -> list[float]:
    lines = (STORE / ".runs" / run / "metrics.jsonl").read_bytes().split(b"\n")[:-1]
    return [json.loads(line)["loss"] for line in lines]


if __name__ == "__main__":
    sys.exit(main())
