"""JSON lines: one object a line, plain or compressed as .gz, .zst or .bz2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from dataproc.sources.base import Damaged, ReadReport, Record, Slice, Source
from dataproc.sources.streams import MOST_RECORD_BYTES, DamagedStream, SliceStream, chunks_of, codec_of
from store.files import FileInfo

_BOM = b"\xef\xbb\xbf"


class JsonlSource(Source):
    """Reads JSON lines. Plain files are cut by bytes (a line belongs to the slice in which it starts), compressed ones are read whole.

    A record's row is its line number, blank lines counted, from 0. Fields that the input does not name go into `meta`.
    """

    format = "jsonl"

    def plan(self, file: FileInfo, relative_path: str, unit_bytes: int) -> list[Slice]:
        if codec_of(relative_path) or file.size <= unit_bytes:
            return [Slice(file.url, relative_path, file.size, 0, file.size)]
        starts = range(0, file.size, unit_bytes)
        return [Slice(file.url, relative_path, file.size, at, min(at + unit_bytes, file.size), None if at else 0) for at in starts]

    def count_rows(self, part: Slice) -> int:
        return sum(1 for _ in _lines_of_slice(SliceStream(part), part))

    def read(self, part: Slice, report: ReadReport) -> Iterator[Record | Damaged]:
        stream = SliceStream(part)
        row = part.first_row
        try:
            for offset, line in _lines_of_slice(stream, part):
                locator = f"{part.relative_path}#{row}"
                row += 1
                if line is None:
                    yield Damaged(locator, locator, "too_large", f"{locator}: a line of more than {MOST_RECORD_BYTES} bytes")
                elif not line.strip():
                    report.not_documents["blank_line"] = report.not_documents.get("blank_line", 0) + 1
                else:
                    yield self.parse(line, locator, offset)
        except DamagedStream as damage:
            locator = f"{part.relative_path}#{row}"
            yield Damaged(locator, locator, damage.reason, f"{part.relative_path}: {damage}; the rest of the file, from line {row}, is unread")
        stream.finish(report)

    def parse(self, line: bytes, locator: str, offset: int) -> Record | Damaged:
        """One line as a record, or why it is none. `offset`: where the line starts in the (decompressed) file."""
        spec, where = self.spec, f"{locator} (byte {offset})"
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            reason = "bad_encoding" if _not_utf8(line) else "bad_json"
            return Damaged(locator, locator, reason, f"{where}: {error}")
        if not isinstance(value, dict):
            return Damaged(locator, locator, "not_object", f"{where}: a JSON {type(value).__name__}, not an object")
        text = value.pop(spec.text_field, None)
        key = locator
        if spec.id_field:
            name = value.pop(spec.id_field, None)
            if not isinstance(name, (str, int)) or isinstance(name, bool) or name == "":
                return Damaged(locator, locator, "missing_id", f'{where}: field "{spec.id_field}" is no text or whole number')
            key = str(name)
        if not isinstance(text, str):
            found = "missing" if text is None else f"a {type(text).__name__}"
            return Damaged(key, locator, "missing_text", f'{where}: field "{spec.text_field}" is {found}')
        return Record(
            key=key,
            locator=locator,
            text=text,
            url=_text(value, spec.url_field),
            language=_text(value, spec.language_field),
            timestamp=_text(value, spec.timestamp_field),
            meta=value,
        )


def _text(value: dict[str, Any], field: str | None) -> str | None:
    """Takes a field out of a record when it is text; anything else stays in the record's other fields."""
    if field is None or not isinstance(value.get(field), str):
        return None
    return value.pop(field)


def _not_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _lines_of_slice(stream: SliceStream, part: Slice) -> Iterator[tuple[int, bytes | None]]:
    """(offset, line) of the lines that start in the slice; None instead of a line over MOST_RECORD_BYTES.

    A slice that begins inside a line leaves it to the slice before: it reads on from the next line end.
    """
    compressed = codec_of(part.relative_path) is not None
    if part.start:
        stream.rewind(part.start - 1)  # the byte before tells whether a line starts exactly here
    offset = stream.position
    lines = _lines(chunks_of(stream))
    if part.start:
        length, _ = next(lines, (0, b""))
        offset += length
    for first, (length, line) in enumerate(lines):
        if not compressed and offset >= part.stop:
            return
        if offset == 0 and first == 0 and line is not None:
            line = line.removeprefix(_BOM)
        yield offset, line
        offset += length


def _lines(chunks: Iterator[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """(length with line end, line) for each line of a stream. Lines end in \\n; a \\r before it is left to the parser as white space."""
    rest: list[bytes] = []
    size = 0
    for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            piece = chunk[start : end + 1]
            size += len(piece)
            yield size, None if size > MOST_RECORD_BYTES else b"".join([*rest, piece]) if rest else piece
            rest, size, start = [], 0, end + 1
        piece = chunk[start:]
        size += len(piece)
        if size > MOST_RECORD_BYTES:
            rest = []  # too long to be a record: only its length is kept
        elif piece:
            rest.append(piece)
    if size:
        yield size, None if size > MOST_RECORD_BYTES else b"".join(rest)
