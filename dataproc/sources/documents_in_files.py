"""Folders of files that are one document each: HTML pages and texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from dataproc.charset import decode
from dataproc.sources.base import Damaged, ReadReport, Record, Slice, Source
from dataproc.sources.streams import DamagedStream, SliceStream, read_file
from store.files import FileInfo

# Beyond this share of characters that no character set explains, or of control characters beside NULs, a file is something else than
# text: bytes taken at random have 11% control characters, prose none.
MOST_REPLACED = MOST_CONTROLS = 0.01
_CONTROLS = {code: None for code in range(32) if chr(code) not in "\t\n\f\r\x1b"}


class _FileSource(Source):
    """One record a file; .gz, .zst and .bz2 are taken off."""

    def plan(self, file: FileInfo, relative_path: str, unit_bytes: int) -> list[Slice]:
        return [Slice(file.url, relative_path, file.size, 0, file.size)]

    def read(self, part: Slice, report: ReadReport) -> Iterator[Record | Damaged]:
        stream = SliceStream(part)
        locator = f"{part.relative_path}#0"
        try:
            yield self._record(read_file(stream), locator)
        except DamagedStream as damage:
            yield Damaged(locator, locator, damage.reason, f"{part.relative_path}: {damage}")
        stream.finish(report)

    @abstractmethod
    def _record(self, data: bytes, locator: str) -> Record | Damaged:
        """The record of a file's bytes."""


class HtmlSource(_FileSource):
    """A folder of HTML pages: the bytes go to the extract stage, which finds out their character set."""

    format = "html"
    gives_payload = True

    def _record(self, data: bytes, locator: str) -> Record:
        return Record(key=locator, locator=locator, payload=data, content_type="text/html", charset=self.spec.encoding)


class TextSource(_FileSource):
    """A folder of text files. Bytes that are no text in any character set (binary data) are quarantined; a few that cannot be decoded
    become U+FFFD."""

    format = "text"

    def _record(self, data: bytes, locator: str) -> Record | Damaged:
        decoded = decode(data, declared=self.spec.encoding, html=False)
        if decoded.replaced > MOST_REPLACED * max(1, len(decoded.text)):
            error = f"{locator}: {decoded.replaced} of {len(decoded.text)} characters cannot be decoded as {decoded.encoding}"
            return Damaged(locator, locator, "bad_encoding", error)
        controls = len(decoded.text) - len(decoded.text.translate(_CONTROLS)) if "\0" in decoded.text else 0
        if controls > MOST_CONTROLS * len(decoded.text):
            error = f"{locator}: {controls} of {len(decoded.text)} characters are control characters: not a text"
            return Damaged(locator, locator, "bad_encoding", error)
        return Record(key=locator, locator=locator, text=decoded.text, meta={"encoding": decoded.encoding})
