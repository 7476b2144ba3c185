"""`headrace data train-quality`."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.console import JsonOption, StoreOption, emit, note

EXAMPLE = "example: headrace data train-quality examples/quality.yaml --out models/quality.bin"


def register(app: typer.Typer) -> None:
    """Adds the command to the data group."""
    app.command("train-quality", epilog=EXAMPLE)(train_quality)


def train_quality(
    config: Annotated[str, typer.Argument(metavar="CONFIG.yaml", help="The training file: data, labels, engine; see docs/quality.md.")],
    out: Annotated[str | None, typer.Option(help="Also write the model file there.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a quality model on labelled documents, judge it on sites it has not seen, and keep it as a version.

    Equal and nearly equal texts are joined, the split is by site, and the same data gives the same model, byte for byte. The version is
    named in a pipeline as `quality: {model: NAME@LABEL}`.
    """
    from dataproc.quality_models.training import read_report, summary
    from dataproc.quality_models.training import train_quality as train

    version = train(config, store, out, note)
    report = read_report(version)
    result = {
        "version": version.reference,
        "digest": version.manifest["digest"],
        "url": version.url,
        "model": version.manifest["model"],
        "report": report,
    }
    emit(result, as_json, summary(version, report))
