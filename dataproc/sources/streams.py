"""Bytes of a slice in order, hashed as they pass, and decompressed with damage told by its place."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Iterator

import xxhash
import zstandard
from fastwarc.stream_io import Lz4Reader

from dataproc.sources.base import ReadReport, Slice
from store import files
from store.errors import StoreError
from store.steady import SteadyReader

CHUNK_BYTES = 1 << 16
# zlib copies what follows a member in the bytes it was fed, so members, most of them small, are fed in steps that grow.
FIRST_CHUNK_BYTES = 1 << 12
# A zstd block of a few bytes may stand for 128 KiB, so little is fed at a time: it bounds the output of one step, and with it what a
# step that meets damage keeps back.
ZSTD_CHUNK_BYTES = 1 << 13
OUTPUT_BYTES = 1 << 20
MOST_DICTIONARY_BYTES = 16 << 20
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"
MOST_RECORD_BYTES = 256 << 20  # a record beyond this is quarantined unread: no page or document is that large


class DamagedStream(Exception):
    """Stored bytes that cannot be decompressed further. `reason`: truncated, too_large, or bad_ with the compression's name."""

    def __init__(self, reason: str, offset: int, error: str):
        super().__init__(f"{error} near byte {offset} of the file")
        self.reason = reason
        self.error = error


class SliceStream:
    """Sequential reader of a file from a slice's start to the file's end (a slice's last record may end beyond it).

    Bytes inside the slice are hashed as they pass; `finish` hashes what was not read, so the report always covers the slice.
    """

    def __init__(self, part: Slice):
        """Raises StoreError when the file is not the one that was planned, or cannot be opened."""
        self.part = part
        self._raw_position = self._hashed_to = part.start
        self._window, self._at = b"", 0  # what was read last, and how much of it was given out
        self._digest = xxhash.xxh3_128()
        check_unchanged(part)
        self._stream = SteadyReader(part.url)
        self._stream.seek(part.start)

    @property
    def position(self) -> int:
        """Offset in the file of the next byte that `read` gives."""
        return self._raw_position - len(self._window) + self._at

    def read(self, count: int = CHUNK_BYTES) -> bytes:
        """Up to `count` bytes; empty at the end."""
        if self._at == len(self._window):
            self._window, self._at = self._read_raw(min(CHUNK_BYTES, self.part.file_bytes - self._raw_position)), 0
        data = self._window[self._at : self._at + count]
        self._at += len(data)
        return data

    def push_back(self, data: bytes) -> None:
        """Gives back the last bytes that were read: the next read begins with them."""
        if len(data) > self._at:
            self._window, self._at = data + self._window[self._at :], 0
        else:
            self._at -= len(data)

    def peek(self, count: int) -> bytes:
        """The next `count` bytes, fewer only at the end of the file; they are read again."""
        data = self.read(count)
        while len(data) < count and (more := self.read(count - len(data))):
            data += more
        self.push_back(data)
        return data

    def _read_raw(self, count: int) -> bytes:
        if count <= 0:
            return b""
        data = self._stream.read(count)
        new = data[self._hashed_to - self._raw_position : max(0, self.part.stop - self._raw_position)]
        self._digest.update(new)
        self._hashed_to += len(new)
        self._raw_position += len(data)
        return data

    def rewind(self, position: int) -> None:
        """Goes back to an earlier offset: what was read from there on is read again."""
        self._window, self._at = b"", 0
        self._raw_position = position
        self._stream.seek(position)

    def finish(self, report: ReadReport) -> None:
        """Hashes what is left of the slice and fills in the report."""
        self.rewind(self._hashed_to)
        while self._read_raw(min(OUTPUT_BYTES, self.part.stop - self._raw_position)):
            continue
        report.input_bytes = self.part.stop - self.part.start
        report.input_digest = self._digest.hexdigest()
        self.close()

    def close(self) -> None:
        self._stream.close()


def check_unchanged(part: Slice) -> None:
    """Raises StoreError when the slice's file has another size than when the plan was made, or is gone."""
    try:
        size = files.info(part.url).size
    except FileNotFoundError as error:
        raise StoreError(f"{part.url} has vanished since the plan was made: run the command again") from error
    if size != part.file_bytes:
        sizes = f"{part.file_bytes} bytes then, {size} now"
        raise StoreError(f"{part.url} has changed since the plan was made ({sizes}): run the command again")


# Each of the readers below yields an empty chunk where a unit of the compression (member, frame, stream) has ended soundly: all
# bytes before that mark are known to be right, because the unit's length and check sum were.


def plain_chunks(stream: SliceStream) -> Iterator[bytes]:
    """The stored bytes as they are."""
    while data := stream.read():
        yield data


def gzip_member(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of the one gzip member that starts at the stream's position; the stream ends up right after it.

    Raises DamagedStream(bad_gzip) where it cannot be inflated or its check sum is wrong, DamagedStream(truncated) at the file's end.
    """
    inflate, before, start = zlib.decompressobj(31), None, stream.position
    waiting, count = b"", FIRST_CHUNK_BYTES
    while not inflate.eof:
        data = waiting or stream.read(count)
        if not data:
            raise DamagedStream("truncated", start, "the file ends inside a gzip member")
        try:
            out = inflate.decompress(data, OUTPUT_BYTES)
        except zlib.error as error:
            yield _inflate_to_damage(before or zlib.decompressobj(31), data)
            raise DamagedStream("bad_gzip", start, f"gzip member cannot be inflated ({error})") from error
        waiting = inflate.unconsumed_tail
        if out:
            yield out
        if not inflate.eof:
            before, count = inflate.copy(), min(2 * count, CHUNK_BYTES)
    stream.push_back(inflate.unused_data)
    yield b""


def _inflate_to_damage(inflate: zlib._Decompress, data: bytes) -> bytes:
    """What comes before the damage in `data`: zlib keeps it back when it fails, unless it is fed byte by byte."""
    out = bytearray()
    try:
        for at in range(len(data)):
            out += inflate.decompress(data[at : at + 1], OUTPUT_BYTES)
    except zlib.error:
        return bytes(out)
    return bytes(out)


def gzip_chunks(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of all gzip members. Zero bytes after a member (tape padding) are passed over."""
    while skip_zeros(stream):
        yield from gzip_member(stream)


def skip_zeros(stream: SliceStream) -> bool:
    """Moves past zero bytes; False at the end of the file."""
    while data := stream.read():
        rest = data.lstrip(b"\0")
        if rest:
            stream.push_back(rest)
            return True
    return False


def bz2_chunks(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of all bzip2 streams of a file."""
    while stream.peek(1):
        start, decompressor = stream.position, bz2.BZ2Decompressor()
        while not decompressor.eof:
            data = stream.read() if decompressor.needs_input else b""
            if decompressor.needs_input and not data:
                raise DamagedStream("truncated", start, "the file ends inside a bzip2 stream")
            try:
                out = decompressor.decompress(data, CHUNK_BYTES)
            except (OSError, ValueError) as error:
                raise DamagedStream("bad_bz2", start, f"bzip2 stream cannot be decompressed ({error})") from error
            if out:
                yield out
        stream.push_back(decompressor.unused_data)
        yield b""


def zstd_chunks(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of all zstd frames of a file."""
    dictionary = _zstd_dictionary(stream)
    while stream.peek(1):
        start = stream.position
        decompressor = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=1 << 31).decompressobj()
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
        yield b""


def _zstd_dictionary(stream: SliceStream) -> zstandard.ZstdCompressionDict | None:
    """The dictionary that a file brings along in its first frame (IIPC, "Zstandard Compression for WARC Files 1.0")."""
    head = stream.peek(8)
    size = int.from_bytes(head[4:], "little")
    if not head.startswith(_ZSTD_DICTIONARY_MAGIC) or size > MOST_DICTIONARY_BYTES:
        return None
    data = stream.peek(8 + size)[8:]
    stream.rewind(stream.position + 8 + len(data))
    if len(data) < size:
        raise DamagedStream("truncated", 0, "the file ends inside its zstd dictionary")
    try:
        if data.startswith(_ZSTD_MAGIC):
            data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
        return zstandard.ZstdCompressionDict(data)
    except zstandard.ZstdError as error:
        raise DamagedStream("bad_zstd", 0, f"the zstd dictionary of the file cannot be read ({error})") from error


class _Readable:
    """A slice stream as the file object that FastWARC's LZ4 reader wants."""

    def __init__(self, stream: SliceStream):
        self.stream = stream
        self.ended = False

    def read(self, count: int = CHUNK_BYTES) -> bytes:
        data = self.stream.read(count if count >= 0 else CHUNK_BYTES)
        self.ended = not data
        return data

    def tell(self) -> int:
        return self.stream.position


def lz4_chunks(stream: SliceStream) -> Iterator[bytes]:
    """Decompressed chunks of all LZ4 frames of a file. Frames mostly carry no check sum, so what comes out is taken as it is."""
    start, total, raw = stream.position, 0, _Readable(stream)
    reader = Lz4Reader(raw)
    while True:
        try:
            out = reader.read(CHUNK_BYTES)
        except OSError as error:
            reason = "truncated" if raw.ended else "bad_lz4"
            yield _lz4_rest(stream, start, total)
            yield b""
            raise DamagedStream(reason, start, f"LZ4 frame cannot be decompressed ({error})") from error
        if not out:
            return
        total += len(out)
        yield out
        yield b""


def _lz4_rest(stream: SliceStream, start: int, done: int) -> bytes:
    """The bytes that come between offset `done` of the decompressed file and its damage: the reader keeps them back when it fails."""
    stream.rewind(start)
    reader, rest = Lz4Reader(_Readable(stream)), bytearray()
    while done:
        done -= len(reader.read(min(done, CHUNK_BYTES)))
    try:
        while byte := reader.read(1):
            rest += byte
    except OSError:
        return bytes(rest)
    return bytes(rest)


CODECS = {".gz": gzip_chunks, ".zst": zstd_chunks, ".bz2": bz2_chunks, ".lz4": lz4_chunks}
# No text begins with these.
_MAGICS = {b"\x1f\x8b\x08": ".gz", _ZSTD_MAGIC: ".zst", _ZSTD_DICTIONARY_MAGIC: ".zst", b"\x04\x22\x4d\x18": ".lz4"}
_LONGEST_MAGIC = 4


def codec_of(path: str) -> str | None:
    """The compression that a file name states: .gz, .zst, .bz2, .lz4 or None."""
    return next((suffix for suffix in CODECS if path.lower().endswith(suffix)), None)


def codec_of_bytes(beginning: bytes) -> str | None:
    """The compression that the first bytes of a file show."""
    return next((suffix for magic, suffix in _MAGICS.items() if beginning.startswith(magic)), None)


def file_codec(url: str) -> str | None:
    """The compression of a file: by its name, else by its first bytes."""
    if codec := codec_of(url):
        return codec
    with SteadyReader(url) as raw:
        return codec_of_bytes(raw.read(_LONGEST_MAGIC))


def stream_codec(stream: SliceStream) -> str | None:
    """The compression of a stream: by the file's name, else by the first bytes of a whole file."""
    codec = codec_of(stream.part.relative_path)
    if codec is None and stream.part.whole_file and stream.position == 0:
        codec = codec_of_bytes(stream.peek(_LONGEST_MAGIC))
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
