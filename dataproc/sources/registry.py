"""The formats that an input may have, and the way from an input to its work units."""

from __future__ import annotations

from dataclasses import replace

from dataproc.sources.base import InputSpec, Slice, Source, group_slices, relative_path
from dataproc.sources.documents_in_files import HtmlSource, TextSource
from dataproc.sources.jsonl import JsonlSource
from dataproc.sources.parquet import ParquetSource
from dataproc.sources.warc import WarcSource
from dataproc.sources.wet import WetSource
from store import files
from store.errors import ConfigError

SOURCES: dict[str, type[Source]] = {
    source.format: source for source in (WarcSource, WetSource, JsonlSource, ParquetSource, HtmlSource, TextSource)
}


def make_source(spec: InputSpec) -> Source:
    return SOURCES[spec.format](spec)


def plan_input(spec: InputSpec, unit_bytes: int) -> list[list[Slice]]:
    """The slices of an input's files, sorted by path and grouped into units. Raises ConfigError when its path matches no file."""
    listed = files.list_files(spec.path)
    if not listed:
        raise ConfigError(f'input {spec.name}: path "{spec.path}" matches no file')
    source = make_source(spec)
    slices: list[Slice] = []
    for file in sorted(listed, key=lambda f: relative_path(f.url, spec.path)):
        parts = source.plan(file, relative_path(file.url, spec.path), unit_bytes)
        slices += [replace(part, file_version=file.version) for part in parts]
    return group_slices(slices, unit_bytes)
