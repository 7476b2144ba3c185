"""Real input that is in every Python environment: the library's own manual pages as a crawl, package texts as JSON lines.

pydoc's pages are templated HTML; package descriptions and licences are real prose with exact and near copies. Nothing is downloaded.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.metadata
import json
import pydoc
import sys
import uuid
import warnings
from pathlib import Path

# Modules that open windows or print when they are imported.
_NOT_IMPORTED = {"antigravity", "this", "idlelib", "turtle", "turtledemo", "lib2to3", "test", "tkinter", "__main__"}
_FETCHED = "2026-01-01T00:00:00Z"
LICENCE_NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE")


def write_crawl(path: Path, most: int = 300) -> int:
    """Writes the manual pages of the standard library's modules as a WARC, a gzip member a record. Returns the number of pages."""
    names = sorted(name for name in sys.stdlib_module_names if not name.startswith("_") and name not in _NOT_IMPORTED)
    pages = 0
    with open(path, "wb") as stream:
        stream.write(gzip.compress(_record("warcinfo", None, b"software: headrace demo\r\n", "application/warc-fields"), mtime=0))
        for name in names[:most]:
            page = _manual_page(name)
            if page is None:
                continue
            http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page.encode("utf-8", "replace")
            url = f"https://docs.example.org/library/{name}.html"
            stream.write(gzip.compress(_record("response", url, http, "application/http; msgtype=response"), mtime=0))
            pages += 1
        missing = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<html><body>No such page.</body></html>"
        url = "https://docs.example.org/library/nothing.html"
        stream.write(gzip.compress(_record("response", url, missing, "application/http; msgtype=response"), mtime=0))
    return pages


def _manual_page(name: str) -> str | None:
    """pydoc's HTML page of a module; None for one that cannot be imported here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(name)
            return pydoc.html.page(pydoc.describe(module), pydoc.html.document(module, name))
    except ImportError:
        return None


def _record(kind: str, url: str | None, block: bytes, content_type: str) -> bytes:
    name = uuid.uuid5(uuid.NAMESPACE_URL, f"{kind} {url}")
    head = [f"WARC/1.0\r\nWARC-Type: {kind}", f"WARC-Record-ID: <urn:uuid:{name}>", f"WARC-Date: {_FETCHED}"]
    head += [f"WARC-Target-URI: {url}"] if url else []
    head += [f"Content-Type: {content_type}", f"Content-Length: {len(block)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def write_prose(path: Path) -> int:
    """Writes the descriptions and licence texts of all installed packages as JSON lines, and one damaged line. Returns the lines."""
    rows: dict[str, dict[str, str]] = {}
    for package in sorted(importlib.metadata.distributions(), key=lambda d: (d.metadata["Name"] or "").lower()):
        name = package.metadata["Name"]
        description = package.metadata.get_payload()
        if isinstance(description, str) and description.strip():
            rows[f"{name}/description"] = {"text": description, "package": name}
        for file in package.files or []:
            if file.name.upper().startswith(LICENCE_NAMES) and file.suffix in ("", ".txt", ".md", ".rst"):
                text = _text_of(package, file)
                if text:
                    rows[f"{name}/{file}"] = {"text": text, "package": name}
    with open(path, "w", encoding="utf-8") as stream:
        for key, row in rows.items():
            stream.write(json.dumps({"id": key, **row}) + "\n")
        stream.write('{"id": "cut in the middle", "text": "this line was never fin\n')
    return len(rows) + 1


def _text_of(package: importlib.metadata.Distribution, file: importlib.metadata.PackagePath) -> str | None:
    try:
        return Path(str(package.locate_file(file))).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
