"""WET: Common Crawl's extracted texts, one `conversion` record a page."""

from __future__ import annotations

from fastwarc.warc import WarcRecord, WarcRecordType

from dataproc.sources.base import Damaged, ReadReport, Record
from dataproc.sources.warc import WarcSource, common_fields, count


class WetSource(WarcSource):
    """Reads WET files, cut and read as WARC files are. The text must be UTF-8.

    The (first) language that the crawler guessed goes into `meta`: it labels no document until a language stage has looked.
    """

    format = "wet"
    gives_payload = False

    def convert(self, record: WarcRecord, data: bytes, locator: str, report: ReadReport) -> Record | Damaged | None:
        if record.record_type != WarcRecordType.conversion:
            count(report, record.record_type)
            return None
        fields = common_fields(record, locator)
        try:
            text = record.reader.read().decode("utf-8")
        except UnicodeDecodeError as error:
            return Damaged(fields["key"], locator, "bad_encoding", f"{locator}: not UTF-8 at byte {error.start} of the text")
        guessed = record.headers.get("WARC-Identified-Content-Language")
        return Record(**fields, text=text, meta={"identified_language": guessed.split(",")[0].strip()} if guessed else {})
