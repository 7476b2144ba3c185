"""Licences: what a document, its page or its record says about the terms it may be used under, as SPDX identifier and as kind."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from dataproc.documents import meta_json
from dataproc.licences import GATE, KINDS, Finding, Kind, find_licence, link_licence
from dataproc.stages.base import Stage, StageResult, Verdict, set_column
from store.strict_yaml import StrictModel

PAGE_FIELD = "licence_url"  # of `meta`, by the extract stage


class LicenceConfig(StrictModel):
    """`keep`: kinds that stay; empty keeps every one and only labels. `meta_field`: a field of the record that states its licence (an SPDX
    expression, an address, or a list of identifiers, all of which count); it is believed before anything else."""

    keep: tuple[Kind, ...] = ()
    meta_field: str | None = None


class Licence(Stage):
    """Sets `licence` and `licence_kind` in `meta`; a document that states no licence gets the kind unknown alone. Rule: licence_not_kept,
    with the licence, its kind, what it was found by and in which line of the text."""

    name = "licence"
    Config = LicenceConfig
    inputs = ("text", "meta")
    outputs = ("meta",)

    def process(self, batch):
        texts = batch.column("text")
        suspects = pc.fill_null(pc.match_substring_regex(texts, GATE, ignore_case=True), False).to_numpy(zero_copy_only=False)
        metas, verdicts = [], []
        for row, meta in enumerate(batch.column("meta").to_pylist()):
            values = orjson.loads(meta or b"{}")
            found = self._stated(values) or (find_licence(texts[row].as_py()) if suspects[row] else None)
            kind = found.kind if found else KINDS[-1]
            stated = {"licence": found.licence} if found else {}
            metas.append(meta_json({**values, **stated, "licence_kind": kind}))
            if self.config.keep and kind not in self.config.keep:
                where = {"found": found.found} | ({"line": found.line} if found.line else {}) if found else {}
                verdicts.append(Verdict(row, "licence_not_kept", detail={**stated, "licence_kind": kind, **where}))
        return StageResult(set_column(batch, "meta", pa.array(metas, pa.string())), verdicts)

    def _stated(self, meta: dict[str, Any]) -> Finding | None:
        """What the record or the page says."""
        value = meta.get(self.config.meta_field) if self.config.meta_field else None
        names = [name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str) and name.strip()]
        if names:
            licences = [link_licence(name) or name.strip() for name in names]
            joined = licences[0] if len(licences) == 1 else " AND ".join(f"({one})" if " " in one else one for one in licences)
            return Finding(joined, f"meta.{self.config.meta_field}")
        address = meta.get(PAGE_FIELD)
        licence = link_licence(address) if isinstance(address, str) else None
        return Finding(licence, "page") if licence else None
