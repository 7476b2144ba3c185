"""`headrace mix ...`: check and show mixtures."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.console import JsonOption, StoreOption, emit, group, table
from store import artefacts

app = group("Mixtures: token versions by exact weight.")
MixtureArgument = Annotated[str, typer.Argument(metavar="MIX.yaml", help="The mixture file.")]
COLUMNS = ("source", "version", "weight", "samples", "tokens", "available_tokens", "epochs", "max_epochs")


@app.command(epilog="example: headrace mix check mixtures/main.yaml --tokens 1e9")
def check(
    mixture: MixtureArgument,
    tokens: Annotated[
        float | None, typer.Option(min=1, help="Planned length of training in tokens, for example 1e9. Default: as long as it lasts.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that a mixture resolves, its weights sum to 1 and its sources last for a planned length. Exit code 2 when not."""
    from mixtures.mixture import load_mixture

    found = load_mixture(mixture, artefacts.store_url(store))
    samples = max(1, round(tokens / found.sequence_length)) if tokens else found.longest()
    found.require(samples)
    _show(found, samples, as_json)


@app.command(epilog="example: headrace mix show mixtures/main.yaml")
def show(mixture: MixtureArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show a mixture's versions and exact block, and what one epoch of its scarcest source makes of the others."""
    from mixtures.mixture import load_mixture

    found = load_mixture(mixture, artefacts.store_url(store))
    _show(found, found.longest(epochs=1), as_json)


def _show(found, samples: int, as_json: bool) -> None:
    rows = found.composition(samples)
    block = found.plan().block
    cells = [[f"{row[c]:.4g}" if isinstance(row[c], float) else row[c] for c in COLUMNS] for row in rows]
    text = f"{found.file.mixture}@{found.file.version}, digest {found.digest[:12]}: {samples:,} samples of {found.sequence_length} tokens"
    text += f"; weights are exact in every block of {block:,} samples\n" + table(list(COLUMNS), cells)
    result = {"mixture": found.file.mixture, "version": found.file.version, "digest": found.digest, "samples": samples, "block": block}
    emit({**result, "sources": rows}, as_json, text)
