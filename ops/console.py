"""What all commands share: one JSON object on the last line when asked, errors in one sentence, exit codes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from store.errors import HeadraceError

# typer carries its own click, or takes the installed one, by release: its classes are reached through what typer exports.
_UsageError = typer.BadParameter.__bases__[0]
_ClickException = _UsageError.__bases__[0]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on the last line of standard output.")]
StoreOption = Annotated[
    str | None, typer.Option(help="Where versions live: a folder or a URL. Default: HEADRACE_STORE, then ./headrace-store.")
]


def group(help: str) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(help=help, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def emit(result: dict[str, Any], as_json: bool, text: str | None = None) -> None:
    """Prints a command's result: `text` for a person, then, when asked, the JSON object."""
    if text:
        print(text)
    if as_json:
        print(json.dumps(result, default=str))


def note(step: str) -> None:
    """Tells a person what a long command is at, on standard error."""
    print(step, file=sys.stderr, flush=True)


def table(columns: list[str], rows: list[list[Any]]) -> str:
    """Rows as an aligned table; numbers to the right."""
    made = Table(box=None, pad_edge=False, header_style="bold" if sys.stdout.isatty() else "")
    for position, name in enumerate(columns):
        numeric = all(isinstance(row[position], (int, float)) for row in rows) and rows
        made.add_column(name, justify="right" if numeric else "left", no_wrap=position == 0)
    for row in rows:
        made.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    console = Console(width=max(160, Console().width), no_color=not sys.stdout.isatty())
    with console.capture() as capture:
        console.print(made)
    return capture.get().rstrip()


def run(app: Callable[..., Any], arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code; whatever goes wrong is one sentence on standard error."""
    try:
        return app(args=arguments, standalone_mode=False) or 0
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return error.exit_code
    except _ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return 2
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context else ""
        print(f"headrace: {error.format_message().rstrip('.')}{hint}", file=sys.stderr)
        return 2
    except (typer.Abort, KeyboardInterrupt):
        print("headrace: stopped; the same command goes on where this one ended", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        handle, path = tempfile.mkstemp(prefix="headrace-", suffix=".log")
        with os.fdopen(handle, "w") as stream:
            stream.write("".join(traceback.format_exception(error)))
        print(
            f"headrace: unexpected {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} (details in {path})",
            file=sys.stderr,
        )
        return 1
