"""Functions that fail for real when their bytes say so: what hostile pages do to a child process."""

from __future__ import annotations

from tests.dataproc.faulty_stage import fault


def echo(data: bytes) -> bytes:
    """The bytes themselves, unless they name a fault."""
    fault(data.decode("utf-8", "replace"))
    return data


def catastrophic_regex(data: bytes) -> bytes:
    """A backtracking regular expression: native code that holds the interpreter lock for ever."""
    import re

    re.match(r"(a+)+$", "a" * 60 + "b")
    return data
