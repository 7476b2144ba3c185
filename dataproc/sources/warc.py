"""WARC: responses and resources become records with their bytes; everything else in the file is counted, not read as documents."""

from __future__ import annotations

import io
from collections.abc import Iterator

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from dataproc.sources.base import Damaged, ReadReport, Record, Slice, Source
from dataproc.sources.http import read_response
from dataproc.sources.streams import MOST_RECORD_BYTES, SliceStream, chunks_of, stream_codec
from dataproc.sources.warc_frames import Frame, frames, gzip_frames
from store.files import FileInfo


class WarcSource(Source):
    """Reads .warc, .warc.gz (a gzip member a record), .warc.zst and .warc.lz4.

    Only gzip files are cut into slices: a member says where a record starts. In plain text a page may hold what looks like the start
    of a record, and zstd and LZ4 frames need not begin with one, so those files are read from their beginning.

    A page that the crawler itself cut short (WARC-Truncated) or whose HTTP length is off is whole as a record and is kept. Damaged is a
    record that its file does not hold to the end.
    """

    format = "warc"
    gives_payload = True

    def plan(self, file: FileInfo, relative_path: str, unit_bytes: int) -> list[Slice]:
        if not relative_path.lower().endswith(".gz"):
            return [Slice(file.url, relative_path, file.size, 0, file.size)]
        starts = range(0, file.size, unit_bytes) if file.size else [0]
        return [Slice(file.url, relative_path, file.size, at, min(at + unit_bytes, file.size)) for at in starts]

    def read(self, part: Slice, report: ReadReport) -> Iterator[Record | Damaged]:
        stream = SliceStream(part)
        for place, frame in self._frames(stream, part):
            locator = f"{part.relative_path}#{place}"
            if frame.reason:
                yield Damaged(locator, locator, frame.reason, f"{part.relative_path}, byte {place}: {frame.error}")
                continue
            item = self._item(frame, locator, report)
            if item is not None:
                yield item
        stream.finish(report)

    def _frames(self, stream: SliceStream, part: Slice) -> Iterator[tuple[str, Frame]]:
        if stream_codec(stream) == ".gz":
            yield from gzip_frames(stream, part.stop)
        else:
            yield from ((str(frame.offset), frame) for frame in frames(chunks_of(stream)))

    def _item(self, frame: Frame, locator: str, report: ReadReport) -> Record | Damaged | None:
        try:
            record = parse_record(frame.data)
            if record is None:
                return Damaged(locator, locator, "bad_record", f"{locator}: FastWARC finds no record in it")
            return self.convert(record, frame.data, locator, report)
        except (OSError, ValueError, UnicodeError) as error:
            return Damaged(locator, locator, "bad_record", f"{locator}: {error}")

    def convert(self, record: WarcRecord, data: bytes, locator: str, report: ReadReport) -> Record | Damaged | None:
        """A parsed WARC record (and its bytes) as a record of ours; None for what is no document."""
        kind = record.record_type
        fields = common_fields(record, locator)
        if kind == WarcRecordType.resource:
            content_type, charset = split_content_type(record.headers.get("Content-Type"))
            return Record(**fields, payload=record.reader.read(), content_type=content_type, charset=charset)
        response = read_response(data) if kind == WarcRecordType.response else None
        if response is None:
            count(report, kind)
            return None
        if len(response.body) > MOST_RECORD_BYTES:
            error = f"{locator}: the body has more than {MOST_RECORD_BYTES} bytes when it is decoded"
            return Damaged(fields["key"], locator, "too_large", error)
        content_type, charset = split_content_type(response.content_type)
        http = {"content_type": content_type, "charset": charset, "robots": response.robots, "http_status": response.status}
        return Record(**fields, payload=response.body, **http)


def parse_record(data: bytes) -> WarcRecord | None:
    """The first WARC record in `data`, its HTTP part left alone."""
    # Quirks mode takes headers that end in a bare line feed, as some tools write them.
    return next(ArchiveIterator(io.BytesIO(data), stream_detect=False, quirks_mode=True, parse_http=False), None)


def common_fields(record: WarcRecord, locator: str) -> dict:
    """Key, locator, URL and time of a WARC record."""
    name = (record.headers.get("WARC-Record-ID") or "").strip().strip("<>")
    url = (record.headers.get("WARC-Target-URI") or "").strip().strip("<>")
    return {"key": name or locator, "locator": locator, "url": url or None, "timestamp": record.headers.get("WARC-Date")}


def count(report: ReadReport, kind: WarcRecordType) -> None:
    name = str(kind)
    report.not_documents[name] = report.not_documents.get(name, 0) + 1


def split_content_type(value: str | None) -> tuple[str | None, str | None]:
    """`text/html; charset="UTF-8"` -> ("text/html", "utf-8"); (None, None) where nothing is stated."""
    if not value:
        return None, None
    kind, *parameters = (part.strip() for part in value.split(";"))
    for parameter in parameters:
        name, _, setting = parameter.partition("=")
        if name.strip().lower() == "charset" and setting.strip(" \"'"):
            return kind.lower() or None, setting.strip(" \"'").lower()
    return kind.lower() or None, None
