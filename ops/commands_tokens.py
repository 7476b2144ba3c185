"""`headrace data tokenize`."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.console import JsonOption, StoreOption, emit


def register(app: typer.Typer) -> None:
    """Adds the command to the data group."""
    app.command(epilog="example: headrace data tokenize web@v1 --tokenizer train:32768 --name web_tokens --label v1")(tokenize)


def tokenize(
    versions: Annotated[list[str], typer.Argument(metavar="VERSION...", help="Document versions.")],
    tokenizer: Annotated[str, typer.Option(help="A tokenizer.json, or train:SIZE for a byte-level BPE of SIZE tokens.")],
    name: Annotated[str, typer.Option(help="Name of the token version.")],
    label: Annotated[str, typer.Option(help="Its label.")],
    holdout: Annotated[float, typer.Option(help="Share of documents held out for evaluation, by hash of id.")] = 0.01,
    end_token: Annotated[str | None, typer.Option(help="The tokenizer's end-of-document token, where it has an unusual name.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token version: documents tokenised, globally shuffled by hash of id, a part held out."""
    from dataproc.tokens import tokenize as make

    version = make(store, versions, tokenizer, name, label, holdout, end_token)
    counts, stats = version.manifest["counts"], version.manifest["stats"]
    lines = [
        version.reference,
        f"  {counts['documents']:,} documents, {counts['tokens']:,} tokens, {stats['bytes_per_token']:.2f} bytes a token",
        f"  held out: {counts['heldout_documents']:,} documents, {counts['heldout_tokens']:,} tokens",
        f"  {version.url}",
    ]
    result = {"version": version.reference, "digest": version.manifest["digest"], "url": version.url, "counts": counts, "stats": stats}
    emit(result, as_json, "\n".join(lines))
