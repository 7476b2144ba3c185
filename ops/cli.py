"""The `headrace` command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ops import commands_data, commands_eval, commands_mix, commands_quality, commands_tokens, commands_train
from ops.console import group, run

app = group("Headrace: from a raw crawl to a training run. Each command's --help has an example.")
commands_tokens.register(commands_data.app)
commands_quality.register(commands_data.app)
for name, commands in (("data", commands_data), ("mix", commands_mix), ("train", commands_train), ("eval", commands_eval)):
    app.add_typer(commands.app, name=name)


def _version(asked: bool) -> None:
    if asked:
        from dataproc.provenance import code_version

        print(f"headrace {code_version()}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")] = False,
) -> None:
    """Options of the command itself."""


def main() -> None:
    """The entry point of the installed command."""
    sys.exit(run(app))


if __name__ == "__main__":
    main()
