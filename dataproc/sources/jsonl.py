"""JSON lines: one object a line, plain or compressed as .gz, .zst or .bz2."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson

from dataproc.sources.base import Damaged, ReadReport, Record, Slice, Source
from dataproc.sources.streams import MOST_RECORD_BYTES, DamagedStream, SliceStream, chunks_of, file_codec, stream_codec
from store.files import FileInfo

_BOM = b"\xef\xbb\xbf"
# orjson makes a float of a whole number beyond 64 bits; those have at least this many digits.
_LONG_DIGITS = 19
_DIGITS_MARKED = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))


class JsonlSource(Source):
    """Reads JSON lines. Plain files are cut by bytes (a line belongs to the slice in which it starts), compressed ones are read whole.

    A record's row is its line number, blank lines counted, from 0. Fields that the input does not name go into `meta`; of fields with
    one name the last counts; a whole number beyond 64 bits is kept as its digits, in text.
    """

    format = "jsonl"

    def plan(self, file: FileInfo, relative_path: str, unit_bytes: int) -> list[Slice]:
        if file.size <= unit_bytes or file_codec(file.url):
            return [Slice(file.url, relative_path, file.size, 0, file.size)]
        starts = range(0, file.size, unit_bytes)
        return [Slice(file.url, relative_path, file.size, at, min(at + unit_bytes, file.size), None if at else 0) for at in starts]

    def count_rows(self, part: Slice) -> int:
        stream = SliceStream(part)
        rows = sum(1 for _ in _SliceLines(stream, part))
        stream.close()
        return rows

    def read(self, part: Slice, report: ReadReport) -> Iterator[Record | Damaged]:
        stream = SliceStream(part)
        lines, row = _SliceLines(stream, part), part.first_row
        try:
            for offset, line in lines:
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
            unread = f"unread from line {row} on, byte {lines.offset} of the decompressed text"
            yield Damaged(locator, locator, damage.reason, f"{part.relative_path}: {damage}; {unread}")
        stream.finish(report)

    def parse(self, line: bytes, locator: str, offset: int) -> Record | Damaged:
        """One line as a record, or why it is none. `offset`: where the line starts in the (decompressed) file."""
        spec, where = self.spec, f"{locator} (byte {offset})"
        try:
            value = parse_json(line)
        except ValueError as error:
            reason = "bad_encoding" if _not_unicode(line) else "bad_json"
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


def parse_json(line: bytes) -> Any:
    """The value of a JSON text by RFC 8259, in UTF-8; whole numbers beyond 64 bits become text. Raises ValueError, also for text that
    holds half a surrogate pair and for values nested deeper than the parser goes."""
    value = orjson.loads(line)
    if b"0" * _LONG_DIGITS in line.translate(_DIGITS_MARKED):
        try:
            return json.loads(line, parse_int=_whole_number)
        except RecursionError as error:
            raise ValueError("nested too deep") from error
    return value


def _whole_number(digits: str) -> int | str:
    value = int(digits) if len(digits) <= _LONG_DIGITS + 1 else None
    return value if value is not None and -(1 << 63) <= value < 1 << 64 else digits


def _not_unicode(line: bytes) -> bool:
    """Whether a line that is no JSON fails for its characters: bytes that are no UTF-8, or an escaped half of a surrogate pair."""
    try:
        json.dumps(json.loads(line.decode("utf-8")), ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


class _SliceLines:
    """Iterates over (offset, line) of the lines that start in a slice; None instead of a line over MOST_RECORD_BYTES. `offset`, in the
    decompressed file, is that of the next line: where reading stood when the stream turned out damaged.

    A slice that begins inside a line leaves it to the slice before: it reads on from the next line end.
    """

    def __init__(self, stream: SliceStream, part: Slice):
        self.offset = part.start
        self._part = part
        self._compressed = stream_codec(stream) is not None
        if part.start:
            stream.rewind(part.start - 1)  # the byte before tells whether a line starts exactly here
        self._lines = _lines(chunks_of(stream))

    def __iter__(self) -> Iterator[tuple[int, bytes | None]]:
        if self._part.start:
            length, _ = next(self._lines, (1, b""))
            self.offset += length - 1
        for length, line in self._lines:
            start = self.offset
            if not self._compressed and start >= self._part.stop:
                return
            self.offset += length
            yield start, line.removeprefix(_BOM) if start == 0 and line is not None else line


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
