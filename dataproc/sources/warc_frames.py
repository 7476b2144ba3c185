"""WARC records cut out of a byte stream, so that garbage between records, a cut or a damaged member costs that place alone.

FastWARC parses what is cut out here; cut by itself it would pass over garbage without a word or stop at it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from dataproc.sources.streams import CHUNK_BYTES, MOST_RECORD_BYTES, DamagedStream, SliceStream, gzip_member

_BLANK = b"\r\n \t\0"
_START = re.compile(rb"WARC/\d\.\d")
_AFTER_BREAK = re.compile(rb"\n(?=WARC/\d\.\d\r?\n)")
_HEADER_END = re.compile(rb"\r*\n\r*\n")
_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*(\d+)[ \t]*\r*$")
MOST_HEADER_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b\x08"
_PROBE_BYTES = 4096


@dataclass(frozen=True)
class Frame:
    """A record's bytes and where it starts (offset in its stream); or, with `reason`, bytes that are no whole record."""

    offset: int
    data: bytes = b""
    reason: str | None = None
    error: str = ""


class _Buffer:
    """Bytes of a stream that were read and not used up yet."""

    def __init__(self, chunks: Iterator[bytes]):
        self._chunks = chunks
        self.data = bytearray()
        self.offset = 0  # of data[0] in the stream

    def more(self) -> bool:
        """Reads another chunk; False at the end. Raises DamagedStream."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self.data += chunk
        return True

    def drop(self, count: int) -> None:
        del self.data[:count]
        self.offset += count

    def skip_blank(self) -> bool:
        """Drops line ends between records; False when nothing follows."""
        while True:
            rest = len(self.data.lstrip(_BLANK))
            self.drop(len(self.data) - rest)
            if rest:
                return True
            if not self.more():
                return False


def frames(chunks: Iterator[bytes]) -> Iterator[Frame]:
    """Cuts a decompressed WARC stream into records. Damage of the stream ends it with one last frame that says so.

    A record is only given out when what follows it could be read, so that a gzip member whose check sum is wrong gives no record.
    """
    buffer, held = _Buffer(chunks), None
    try:
        while buffer.skip_blank():
            if held:
                yield held
                held = None
            held = _next_frame(buffer)
    except DamagedStream as damage:
        yield Frame(held.offset if held else buffer.offset, reason=damage.reason, error=str(damage))
        return
    if held:
        yield held


def _next_frame(buffer: _Buffer) -> Frame:
    offset = buffer.offset
    while len(buffer.data) < 8 and buffer.more():
        continue
    if not _START.match(buffer.data):
        return _garbage(buffer, "bytes that are no WARC record")
    header = _header(buffer)
    if header is None:
        return _garbage(buffer, "a WARC header without an end")
    length = _LENGTH.search(buffer.data, 0, header)
    if length is None:
        return _garbage(buffer, "a WARC header without a usable Content-Length")
    return _content(buffer, offset, header, int(length[1]))


def _header(buffer: _Buffer) -> int | None:
    """Length of the header block with its blank line; None when there is none in bounds."""
    searched = 0
    while True:
        found = _HEADER_END.search(buffer.data, searched)
        if found:
            return found.end()
        searched = max(0, len(buffer.data) - 4)
        if len(buffer.data) > MOST_HEADER_BYTES or not buffer.more():
            return None


def _content(buffer: _Buffer, offset: int, header: int, length: int) -> Frame:
    """The frame of a record whose block has `length` bytes."""
    total = header + length
    if length > MOST_RECORD_BYTES:
        left = total
        while left > len(buffer.data):
            left -= len(buffer.data)
            buffer.drop(len(buffer.data))
            if not buffer.more():
                return Frame(offset, reason="truncated", error=f"the stream ends inside a record of {length} bytes")
        buffer.drop(left)
        return Frame(offset, reason="too_large", error=f"a record of {length} bytes; the limit is {MOST_RECORD_BYTES}")
    while len(buffer.data) < total:
        if not buffer.more():
            found = len(buffer.data) - header
            buffer.drop(len(buffer.data))
            return Frame(offset, reason="truncated", error=f"the record states {length} bytes, {found} are there")
    data = bytes(buffer.data[:total])
    buffer.drop(total)
    return Frame(offset, data)


def _garbage(buffer: _Buffer, error: str) -> Frame:
    """Drops bytes up to the next line that begins a record, or to the end of the stream."""
    offset, skipped = buffer.offset, 0
    while True:
        found = _AFTER_BREAK.search(buffer.data, 1)
        if found:
            skipped += found.end()
            buffer.drop(found.end())
            break
        keep = min(len(buffer.data), 16)
        skipped += len(buffer.data) - keep
        buffer.drop(len(buffer.data) - keep)
        if not buffer.more():
            skipped += len(buffer.data)
            buffer.drop(len(buffer.data))
            break
    return Frame(offset, reason="bad_record", error=f"{error}: {skipped} bytes passed over")


def gzip_frames(stream: SliceStream, stop: int) -> Iterator[tuple[str, Frame]]:
    """Records of the gzip members that start before `stop`, each with its place: the member's offset in the file, and for later
    records of one member `+` their offset in it. A damaged member is one frame; reading goes on at the next sound member."""
    while _find_member(stream) and stream.position < stop:
        start = stream.position
        damaged = False
        for frame in frames(_record_chunks(stream)):
            damaged = frame.reason is not None
            yield f"{start}+{frame.offset}" if frame.offset else str(start), frame
        if damaged:
            stream.rewind(start + 1)


def _record_chunks(stream: SliceStream) -> Iterator[bytes]:
    """The chunks of the member at the stream's position, and of the members after it that go on with its last record: some writers
    cut records into members anywhere."""
    yield from gzip_member(stream)
    while (beginning := _member_beginning(_peek(stream))) is not None and not beginning.startswith(b"WARC/"):
        yield from gzip_member(stream)


def _peek(stream: SliceStream) -> bytes:
    data = stream.read(_PROBE_BYTES)
    stream.push_back(data)
    return data


def _find_member(stream: SliceStream) -> bool:
    """Moves the stream to the next place where a gzip member with a WARC record starts; False at the end of the file.

    What the search passes over belongs to a member that was reported as damaged, or to the slice before.
    """
    window = b""
    while True:
        data = stream.read(CHUNK_BYTES)
        window += data
        position = window.find(GZIP_MAGIC)
        while position >= 0:
            if len(window) - position < _PROBE_BYTES and data:
                break
            if _begins_record(window[position : position + _PROBE_BYTES]):
                stream.push_back(window[position:])
                return True
            position = window.find(GZIP_MAGIC, position + 1)
        if not data:
            return False
        window = window[position:] if position >= 0 else window[-(len(GZIP_MAGIC) - 1) :]


def _begins_record(data: bytes) -> bool:
    return (_member_beginning(data) or b"").startswith(b"WARC/")


def _member_beginning(data: bytes) -> bytes | None:
    """The first bytes that a gzip member inflates to, line ends before them left out; None where no member begins."""
    if not data.startswith(GZIP_MAGIC):
        return None
    try:
        return zlib.decompressobj(31).decompress(data, 64).lstrip(_BLANK)
    except zlib.error:
        return None
