"""`headrace eval ...`: score checkpoints."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ops.console import JsonOption, StoreOption, emit, group, table

app = group("Score checkpoints and keep the scores with what they came from.")


@app.callback()
def _group() -> None:
    """Keeps `eval run` a subcommand while it is the only one."""


@app.command(epilog="example: headrace eval run small --step 100")
def run(
    name: Annotated[str, typer.Argument(metavar="RUN|CHECKPOINT", help="A run (its newest sound checkpoint), or a checkpoint's folder.")],
    step: Annotated[int | None, typer.Option(help="The checkpoint after this many steps.")] = None,
    documents: Annotated[int, typer.Option(min=1, help="Held-out documents to score of each source.")] = 1000,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bits per byte on held-out documents, by source and language; archived with checkpoint, data and recipe digests."""
    from eval.run import evaluate

    row = evaluate(name, store, step, documents)
    scores = row["scores"]
    named: list[tuple[str, dict[str, Any]]] = [("total", scores["total"])]
    named += [(f"source {key}", value) for key, value in scores["by_source"].items()]
    named += [(f"language {key}", value) for key, value in scores["by_language"].items()]
    rows = [
        [name, "-" if v["bits_per_byte"] is None else f"{v['bits_per_byte']:.4f}", v["documents"], v["tokens"], v["bytes"]]
        for name, v in named
    ]
    head = f"run {row['run']}, step {row['step']}, checkpoint {row['checkpoint_digest'][:12]}"
    emit(row, as_json, f"{head}\n{table(['held out', 'bits per byte', 'documents', 'tokens', 'bytes'], rows)}")
