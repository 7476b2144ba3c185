"""WARC records cut out of a byte stream, so that garbage between records, a cut or a damaged member costs that place alone.

FastWARC parses what is cut out here; cut by itself it would pass over garbage without a word or stop at it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from dataproc.sources.streams import CHUNK_BYTES, MOST_RECORD_BYTES, DamagedStream, SliceStream, gzip_member, skip_zeros

_BLANK = b"\r\n \t\0"
_MARK = b"WARC/"
_NOT_BLANK = re.compile(rb"[^\r\n \t\0]")
_START = re.compile(rb"WARC/\d\.\d")
_AFTER_BREAK = re.compile(rb"\n(?=WARC/\d\.\d\r?\n)")
_HEADER_END = re.compile(rb"\r*\n\r*\n")
_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*(\d+)[ \t]*\r*$")
MOST_HEADER_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b\x08"
_PROBE_BYTES = 4096


@dataclass(frozen=True)
class Frame:
    """A record's bytes and where it starts (offset in its stream); or, with `reason`, bytes that are no whole record.

    `stream_ends`: the stream itself is damaged here and gives nothing more.
    """

    offset: int
    data: bytes = b""
    reason: str | None = None
    error: str = ""
    stream_ends: bool = False


class _Buffer:
    """Bytes of a stream that were read and not used up yet."""

    def __init__(self, chunks: Iterator[bytes]):
        self._chunks = chunks
        self.data = bytearray()
        self.offset = 0  # of data[0] in the stream
        self.sound_to = 0  # offset in the stream up to which the compression's own check has passed

    def more(self) -> bool:
        """Reads another chunk; False at the end. Raises DamagedStream."""
        for chunk in self._chunks:
            if chunk:
                self.data += chunk
                return True
            self.sound_to = self.offset + len(self.data)
        return False

    def drop(self, count: int) -> None:
        del self.data[:count]
        self.offset += count

    def skip_blank(self) -> bool:
        """Drops line ends between records; False when nothing follows."""
        while True:
            found = _NOT_BLANK.search(self.data)
            self.drop(found.start() if found else len(self.data))
            if found:
                return True
            if not self.more():
                return False

    def at_record(self) -> bool:
        """Whether a record's first line begins here."""
        while len(self.data) < len(b"WARC/1.0") and self.more():
            continue
        return _START.match(self.data) is not None


def frames(chunks: Iterator[bytes]) -> Iterator[Frame]:
    """Cuts a decompressed WARC stream into records. Damage of the stream ends it with one last frame that says so.

    A record is only given out when the compression has vouched for it or another record follows, so that a gzip member whose check
    sum is wrong gives no record.
    """
    buffer, held = _Buffer(chunks), None
    try:
        while buffer.skip_blank():
            if held and buffer.at_record():
                yield held
                held = None
            frame = _next_frame(buffer)
            if held:  # garbage followed it: that could be a sign of a member that is damaged, and is not
                yield held
            held = frame
    except DamagedStream as damage:
        if held and held.offset + len(held.data) <= buffer.sound_to:
            yield held
            held = None
        yield Frame(held.offset if held else buffer.offset, reason=damage.reason, error=damage.error, stream_ends=True)
        return
    if held:
        yield held


def _next_frame(buffer: _Buffer) -> Frame:
    offset = buffer.offset
    if not buffer.at_record():
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
    with memoryview(buffer.data) as view:
        data = bytes(view[:total])
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
    return Frame(offset, reason="bad_record" if offset else "not_warc", error=f"{error}: {skipped} bytes passed over")


def gzip_frames(stream: SliceStream, stop: int) -> Iterator[tuple[str, Frame]]:
    """Records of the gzip members that start before `stop`, each with its place: the member's offset in the file, and for later
    records of one member `+` their offset in it. A damaged member is one frame; reading goes on at the next sound member.

    At the file's beginning and after a sound member another must follow: what stands there instead is damage, and belongs to the slice
    that met it, wherever it lies. A search for a member, from the start of a slice or after damage, passes over bytes that were
    reported so already. (A WARC file kept uncompressed inside a record could mislead the search; nothing in the format forbids that.)
    """
    searching = stream.position > 0
    while _find_member(stream, stop) if searching else skip_zeros(stream):
        if not searching and stream.position >= stop and _begins_record(stream.peek(_PROBE_BYTES)):
            return
        start = stream.position
        searching = False
        for frame in frames(_record_chunks(stream)):
            searching = frame.stream_ends
            yield f"{start}+{frame.offset}" if frame.offset else str(start), frame
        if searching:
            stream.rewind(start + 1)


def _record_chunks(stream: SliceStream) -> Iterator[bytes]:
    """The chunks of the member at the stream's position, and of the members after it that go on with its last record: some writers
    cut records into members anywhere."""
    yield from gzip_member(stream)
    while (beginning := _member_beginning(stream.peek(_PROBE_BYTES))) is not None and not beginning.startswith(_MARK):
        yield from gzip_member(stream)


def _find_member(stream: SliceStream, stop: int) -> bool:
    """Moves the stream to the next place before `stop` where a gzip member with a WARC record starts; False when there is none."""
    base, window = stream.position, b""  # base: where the window begins in the file
    while base < stop:
        data = stream.read(CHUNK_BYTES)
        window += data
        position = window.find(GZIP_MAGIC)
        while 0 <= position < stop - base:
            if len(window) - position < _PROBE_BYTES and data:
                break
            if _begins_record(window[position : position + _PROBE_BYTES]):
                stream.push_back(window[position:])
                return True
            position = window.find(GZIP_MAGIC, position + 1)
        if not data:
            return False
        kept = window[position:] if position >= 0 else window[-(len(GZIP_MAGIC) - 1) :]
        base, window = base + len(window) - len(kept), kept
    return False


def _begins_record(data: bytes) -> bool:
    return (_member_beginning(data) or b"").startswith(_MARK)


def _member_beginning(data: bytes) -> bytes | None:
    """The first bytes that a gzip member inflates to, line ends before them left out; None where no member begins, or where too
    little of one is there to tell."""
    if not data.startswith(GZIP_MAGIC):
        return None
    inflate = zlib.decompressobj(31)
    try:
        beginning = inflate.decompress(data, 64).lstrip(_BLANK)
    except zlib.error:
        return None
    return beginning if inflate.eof or len(beginning) >= len(_MARK) else None
