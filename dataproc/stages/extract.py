"""HTML to main text. Every page runs in a child process that is killed when the page hangs, crashes it or eats its memory."""

from __future__ import annotations

from typing import ClassVar, Literal

import orjson
import pyarrow as pa
from pydantic import Field

from dataproc.charset import decode
from dataproc.documents import meta_json
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from dataproc.stages.killable import ChildFailure, KillableWorker
from store.strict_yaml import StrictModel

_HTML_TYPES = {"text/html", "application/xhtml+xml", "application/xml", "text/xml", "application/xhtml"}
_HTML_MARKS = (b"<!doctype html", b"<html", b"<head", b"<body")

_WALL_SHARE = 0.8  # of what the pipeline gives a record


class ExtractConfig(StrictModel):
    """`engine`: trafilatura (better text) or resiliparse (about ten times as fast). `timeout_s` (processor seconds) and `memory_mb`
    bound one page."""

    engine: Literal["trafilatura", "resiliparse"] = "trafilatura"
    timeout_s: float = Field(20, gt=0)
    memory_mb: int = Field(2048, ge=128)


class Extract(Stage):
    """Turns `payload` into `text`, and a page's title, author and date into `meta`. Records that have a text already pass untouched.

    Rules: not_html (another content type), empty (no main text found). A page that fails is quarantined: timeout, crashed,
    out_of_memory, failed.
    """

    name = "extract"
    Config = ExtractConfig
    inputs = ("payload", "content_type", "charset")
    outputs = ("text", "meta")
    target: ClassVar[str] = "dataproc.stages.extract_engines:extract_page"  # what the child process runs

    def open(self, context: StageContext) -> None:
        memory = self.config.memory_mb * 1_000_000
        # The page's own limits must strike before the pipeline's limit for a record, which ends the whole worker.
        wall = _WALL_SHARE * context.record_timeout_s
        self._child = KillableWorker(self.target, min(self.config.timeout_s, wall), memory, wall)
        self._heartbeat = context.heartbeat

    def close(self) -> None:
        self._child.close()

    def process(self, batch):
        columns = batch.select(["payload", "content_type", "charset", "text", "meta"]).to_pylist()
        texts, metas, verdicts = [], [], []
        for row, page in enumerate(columns):
            text, meta, verdict = self._page(row, page)
            texts.append(text)
            metas.append(meta)
            if verdict:
                verdicts.append(verdict)
            self._heartbeat()
        batch = set_column(batch, "text", pa.array(texts, pa.large_string()))
        batch = set_column(batch, "meta", pa.array(metas, pa.string()))
        batch = set_column(batch, "payload", pa.nulls(batch.num_rows, pa.large_binary()))
        return StageResult(batch, verdicts)

    def _page(self, row: int, page: dict) -> tuple[str | None, str, Verdict | None]:
        """(text, meta, verdict) of one page."""
        payload, kind = page["payload"], page["content_type"]
        if page["text"] is not None or payload is None:
            return page["text"], page["meta"], None
        if not payload.strip():
            return None, page["meta"], Verdict(row, "empty", detail={"page_bytes": len(payload)})
        if kind == "text/plain" and not _looks_like_html(payload):
            text = decode(payload, page["charset"], html=False).text
            return text, page["meta"], None if text.strip() else Verdict(row, "empty", detail={"page_bytes": len(payload)})
        if kind not in _HTML_TYPES and not (kind in (None, "text/plain", "application/octet-stream") and _looks_like_html(payload)):
            return None, page["meta"], Verdict(row, "not_html", detail={"content_type": kind})
        try:
            header = orjson.dumps({"engine": self.config.engine, "charset": page["charset"]})
            answer = orjson.loads(self._child.call(header + b"\n" + payload))
        except ChildFailure as failure:
            return None, page["meta"], Verdict(row, failure.reason, detail={"error": f"extraction {failure}"}, verdict="quarantined")
        meta = meta_json({**orjson.loads(page["meta"] or b"{}"), **answer["meta"]})
        return answer["text"], meta, None if answer["text"].strip() else Verdict(row, "empty", detail={"page_bytes": len(payload)})


def _looks_like_html(payload: bytes) -> bool:
    """Whether the start of a page without a usable type is HTML, in UTF-16 too."""
    head = payload[:1024].replace(b"\0", b"").lower()
    return any(mark in head for mark in _HTML_MARKS)
