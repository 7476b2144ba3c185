"""HTML to main text. Every page runs in a child process that is killed when the page hangs, crashes it or eats its memory.

What a page can be refused for without being parsed is looked at first, in order of cost: its type, its size, what it asks of robots, and
its language as far as it shows between the tags.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import orjson
import pyarrow as pa
from pydantic import Field, model_validator

from dataproc.charset import decode
from dataproc.documents import meta_json
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from dataproc.stages.empty_pages import why_empty
from dataproc.stages.extract_engines import Options
from dataproc.stages.killable import ChildFailure, KillableWorker
from dataproc.stages.language import Language
from dataproc.stages.language_guess import guess, is_other
from dataproc.stages.markdown import Structure
from dataproc.stages.page_kinds import binary_kind, page_kind
from dataproc.stages.robots import Directive, refused_by
from store.strict_yaml import StrictModel

_WALL_SHARE = 0.8  # of what the pipeline gives a record
_COLUMNS = ["payload", "content_type", "charset", "robots", "language", "text", "meta"]
_ALL_STRUCTURE: tuple[Structure, ...] = ("headings", "lists", "tables", "code")


class ExtractConfig(StrictModel):
    """`engine`: trafilatura (better text) or resiliparse (about ten times as fast). `timeout_s` (processor seconds) and `memory_mb`
    bound one page. `max_page_bytes`: of a page as it came. `respect_robots_meta`: directives that a page is dropped for. With
    `prefilter_language` a page whose text plainly is in no language that the language stage keeps is not extracted: one is kept where
    the kept languages have the probability `prefilter_margin`. `fast`, `structure` and `markdown` (all structure) are trafilatura's."""

    engine: Literal["trafilatura", "resiliparse"] = "trafilatura"
    timeout_s: float = Field(20, gt=0)
    memory_mb: int = Field(2048, ge=128)
    max_page_bytes: int = Field(20_000_000, gt=0)
    respect_robots_meta: tuple[Directive, ...] = ()
    prefilter_language: bool = False
    prefilter_margin: float = Field(0.1, gt=0, le=0.5)
    fast: bool = False
    comments: bool = False
    math: bool = False
    structure: tuple[Structure, ...] = ()
    markdown: bool = False

    @model_validator(mode="after")
    def _of_the_engine(self) -> Self:
        given = next((name for name in ("fast", "structure", "markdown") if getattr(self, name)), None)
        if given and self.engine != "trafilatura":
            raise ValueError(f"{given} is a setting of trafilatura: leave it out, or set engine: trafilatura")
        return self

    def options(self) -> Options:
        structure = _ALL_STRUCTURE if self.markdown else self.structure
        return Options(self.engine, self.fast, self.comments, self.math, structure)


class Extract(Stage):
    """Turns `payload` into `text`, and what a page states about itself into `meta`. Records that have a text already pass untouched.

    Rules: not_html (another type, or bytes that are no text), too_large_page, robots, prefilter_language, empty (no main text found). A
    page that fails is quarantined: timeout, crashed, out_of_memory, failed.
    """

    name = "extract"
    Config = ExtractConfig
    inputs = ("payload", "content_type", "charset")
    outputs = ("text", "meta")
    target: ClassVar[str] = "dataproc.stages.extract_engines:extract_page"  # what the child process runs

    def __init__(self, config: ExtractConfig):
        super().__init__(config)
        self._language: Language | None = None
        self._measures = {"refused": 0.0, "extracted": 0.0, "seconds": 0.0}

    def meet(self, stages: Sequence[Stage]) -> None:
        """Finds the language stage, whose model and languages the prefilter asks."""
        if not self.config.prefilter_language:
            return
        after = stages[stages.index(self) + 1 :]
        self._language = next((stage for stage in after if isinstance(stage, Language) and stage.config.keep), None)
        if self._language is None:
            raise ValueError(
                "prefilter_language drops pages in languages that are not kept, and no later stage says which are: "
                "add `- language: {keep: [...]}`, or set prefilter_language: false"
            )

    def open(self, context: StageContext) -> None:
        memory = self.config.memory_mb * 1_000_000
        # The page's own limits must strike before the pipeline's limit for a record, which ends the whole worker.
        wall = _WALL_SHARE * context.record_timeout_s
        self._child = KillableWorker(self.target, min(self.config.timeout_s, wall), memory, wall)
        self._heartbeat = context.heartbeat

    def close(self) -> None:
        self._child.close()

    def measures(self) -> dict[str, float]:
        """Pages refused before extraction, pages extracted, and the seconds that these took."""
        return dict(self._measures)

    def process(self, batch):
        texts, metas, verdicts = [], [], []
        for row, page in enumerate(batch.select(_COLUMNS).to_pylist()):
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

    def _page(self, row: int, page: dict[str, Any]) -> tuple[str | None, str, Verdict | None]:
        """(text, meta, verdict) of one page."""
        payload, kind = page["payload"], page["content_type"]
        if page["text"] is not None or payload is None:
            return page["text"], page["meta"], None
        if not payload.strip():
            return None, page["meta"], _empty(row, page)
        found = page_kind(payload, kind)
        if found == "text":
            text = decode(payload, page["charset"], html=False).text
            return text, page["meta"], None if text.strip() else _empty(row, page)
        if found is None or (binary := binary_kind(payload)):
            seen = {} if found is None else {"found": binary}
            return None, page["meta"], Verdict(row, "not_html", detail={"content_type": kind, **seen})
        if refusal := self._refusal(row, page):
            self._measures["refused"] += 1
            return None, page["meta"], refusal
        return self._extracted(row, page)

    def _refusal(self, row: int, page: dict[str, Any]) -> Verdict | None:
        """What a page is refused for before it is extracted, the cheapest look first."""
        payload, limit = page["payload"], self.config.max_page_bytes
        if len(payload) > limit:
            return Verdict(row, "too_large_page", float(len(payload)), float(limit))
        wanted = self.config.respect_robots_meta
        if wanted and (stated := refused_by(wanted, payload, page["robots"])):
            return Verdict(row, "robots", detail=stated)
        return self._other_language(row, page) if self._language else None

    def _other_language(self, row: int, page: dict[str, Any]) -> Verdict | None:
        rule, margin = "prefilter_language", self.config.prefilter_margin
        if declared := page["language"]:  # by the source: what the language stage goes by
            return None if self._language.keeps(declared) else Verdict(row, rule, 0.0, margin, {"language": declared, "declared": True})
        found = guess(decode(page["payload"], page["charset"]).text, self._language)
        if found is None or not is_other(found, self._language, margin):
            return None
        return Verdict(row, rule, found.kept, margin, {"language": found.language, "score": round(found.score, 4)})

    def _extracted(self, row: int, page: dict[str, Any]) -> tuple[str | None, str, Verdict | None]:
        header = orjson.dumps({**vars(self.config.options()), "charset": page["charset"]})
        start = time.perf_counter()
        try:
            answer = orjson.loads(self._child.call(header + b"\n" + page["payload"]))
        except ChildFailure as failure:
            return None, page["meta"], Verdict(row, failure.reason, detail={"error": f"extraction {failure}"}, verdict="quarantined")
        finally:
            self._measures["extracted"] += 1
            self._measures["seconds"] += time.perf_counter() - start
        meta = meta_json({**orjson.loads(page["meta"] or b"{}"), **answer["meta"]})
        return answer["text"], meta, None if answer["text"].strip() else _empty(row, page)


def _empty(row: int, page: dict[str, Any]) -> Verdict:
    return Verdict(row, "empty", detail=why_empty(page["payload"], page["charset"]))
