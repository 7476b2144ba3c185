"""Bytes of a slice in order, hashed as they pass, and decompressed with damage told by its place."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Iterator

import xxhash
import zstandard

from dataproc.sources.base import ReadReport, Slice
from store import files
from store.errors import StoreError

CHUNK_BYTES = 1 << 16
# A zstd block of a few bytes may stand for 128 KiB, so little is fed at a time to keep the output of one step in bounds.
ZSTD_CHUNK_BYTES = 1 << 13
OUTPUT_BYTES = 1 << 20
MOST_RECORD_BYTES = 256 << 20  # a record beyond this is quarantined unread: no page or document is that large


class DamagedStream(Exception):
    """Stored bytes that cannot be decompressed further. `reason`: truncated or bad_gzip, bad_zstd, bad_bz2."""

    def __init__(self, reason: str, offset: int, error: str):
        super().__init__(f"{error} near byte {offset} of the file")
        self.reason = reason
        self.offset = offset


class SliceStream:
    """Sequential reader of a file from a slice's start to the file's end (a slice's last record may end beyond it).

    Bytes inside the slice are hashed as they pass; `finish` hashes what was not read, so the report always covers the slice.
    A read from a remote file that fails in passing is tried again from the same place.
    """

    def __init__(self, part: Slice, stop_at_slice: bool = False):
        self.part = part
        self.end = part.stop if stop_at_slice else part.file_bytes
        self._raw_position = self._hashed_to = part.start
        self._pushed = b""
        self._digest = xxhash.xxh3_128()
        try:
            if files.info(part.url).size != part.file_bytes:
                raise StoreError(f"{part.url} has changed since the plan was made: run the command again")
            self._stream = files.open_read(part.url)
        except FileNotFoundError as error:
            raise StoreError(f"{part.url} has vanished since the plan was made: run the command again") from error
        self._stream.seek(part.start)

    @property
    def position(self) -> int:
        """Offset in the file of the next byte that `read` gives."""
        return self._raw_position - len(self._pushed)

    def read(self, count: int = CHUNK_BYTES) -> bytes:
        """Up to `count` bytes; empty at the end."""
        if self._pushed:
            data, self._pushed = self._pushed[:count], self._pushed[count:]
            return data
        return self._read_raw(min(count, self.end - self._raw_position))

    def push_back(self, data: bytes) -> None:
        """Gives bytes back: the next read begins with them."""
        self._pushed = data + self._pushed

    def _read_raw(self, count: int) -> bytes:
        if count <= 0:
            return b""
        data = files.retrying(lambda: self._read_again(count), self.part.url)
        new = data[self._hashed_to - self._raw_position : max(0, self.part.stop - self._raw_position)]
        self._digest.update(new)
        self._hashed_to += len(new)
        self._raw_position += len(data)
        return data

    def rewind(self, position: int) -> None:
        """Goes back to an earlier offset: what was read from there on is read again."""
        self._pushed = b""
        self._raw_position = position
        self._stream.seek(position)

    def _read_again(self, count: int) -> bytes:
        if self._stream.closed or self._stream.tell() != self._raw_position:
            self._stream = files.open_read(self.part.url)
            self._stream.seek(self._raw_position)
        try:
            return self._stream.read(count)
        except Exception:
            self._stream.close()
            raise

    def finish(self, report: ReadReport) -> None:
        """Hashes what is left of the slice and fills in the report."""
        self.rewind(self._hashed_to)
        while self._read_raw(min(CHUNK_BYTES * 16, self.part.stop - self._raw_position)):
            continue
        report.input_bytes = self.part.stop - self.part.start
        report.input_digest = self._digest.hexdigest()
        self._stream.close()


def plain_chunks(stream: SliceStream) -> Iterator[bytes]:
    """The stored bytes as they are."""
    while data := stream.read():
        yield data


def gzip_member(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of the one gzip member that starts at the stream's position; the stream ends up right after it.

    Raises DamagedStream(bad_gzip) where it cannot be inflated or its check sum is wrong, DamagedStream(truncated) at the file's end.
    """
    inflate, start = zlib.decompressobj(31), stream.position
    waiting = b""
    while not inflate.eof:
        data = waiting or stream.read()
        if not data:
            raise DamagedStream("truncated", start, "the file ends inside a gzip member")
        try:
            out = inflate.decompress(data, OUTPUT_BYTES)
        except zlib.error as error:
            raise DamagedStream("bad_gzip", start, f"gzip member cannot be inflated ({error})") from error
        waiting = inflate.unconsumed_tail
        if out:
            yield out
    stream.push_back(inflate.unused_data)


def gzip_chunks(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of all gzip members. Zero bytes after a member (tape padding) are passed over."""
    while data := _skip_zeros(stream):
        stream.push_back(data)
        yield from gzip_member(stream)


def _skip_zeros(stream: SliceStream) -> bytes:
    while data := stream.read():
        rest = data.lstrip(b"\0")
        if rest:
            return rest
    return b""


def bz2_chunks(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of all bzip2 streams of a file."""
    while data := stream.read():
        stream.push_back(data)
        start, decompressor = stream.position, bz2.BZ2Decompressor()
        while not decompressor.eof:
            data = stream.read() if decompressor.needs_input else b""
            if decompressor.needs_input and not data:
                raise DamagedStream("truncated", start, "the file ends inside a bzip2 stream")
            try:
                out = decompressor.decompress(data, OUTPUT_BYTES)
            except (OSError, ValueError) as error:
                raise DamagedStream("bad_bz2", start, f"bzip2 stream cannot be decompressed ({error})") from error
            if out:
                yield out
        stream.push_back(decompressor.unused_data)


def zstd_chunks(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of all zstd frames of a file."""
    while data := stream.read(ZSTD_CHUNK_BYTES):
        stream.push_back(data)
        start = stream.position
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        while not decompressor.eof:
            data = stream.read(ZSTD_CHUNK_BYTES)
            if not data:
                raise DamagedStream("truncated", start, "the file ends inside a zstd frame")
            try:
                out = decompressor.decompress(data)
            except zstandard.ZstdError as error:
                raise DamagedStream("bad_zstd", start, f"zstd frame cannot be decompressed ({error})") from error
            if out:
                yield out
        stream.push_back(decompressor.unused_data)


_MAGICS = {b"\x1f\x8b\x08": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}  # no text begins with these
CODECS = {".gz": gzip_chunks, ".zst": zstd_chunks, ".bz2": bz2_chunks}


def codec_of(path: str) -> str | None:
    """The compression that a file name states: .gz, .zst, .bz2 or None."""
    return next((suffix for suffix in CODECS if path.lower().endswith(suffix)), None)


def stream_codec(stream: SliceStream) -> str | None:
    """The compression of a stream at its start: by the file's name, else by the first bytes of a whole file."""
    codec = codec_of(stream.part.relative_path)
    if codec is None and stream.part.whole_file and stream.position == 0:
        beginning = stream.read(4)
        stream.push_back(beginning)
        codec = next((suffix for magic, suffix in _MAGICS.items() if beginning.startswith(magic)), None)
    return codec


def chunks_of(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of a stream."""
    codec = stream_codec(stream)
    return CODECS[codec](stream) if codec else plain_chunks(stream)


def read_file(stream: SliceStream) -> bytes:
    """A whole decompressed file. Raises DamagedStream, also with reason too_large beyond MOST_RECORD_BYTES."""
    parts, size = [], 0
    for chunk in chunks_of(stream):
        size += len(chunk)
        if size > MOST_RECORD_BYTES:
            raise DamagedStream("too_large", stream.position, f"the file has more than {MOST_RECORD_BYTES} bytes")
        parts.append(chunk)
    return b"".join(parts)
