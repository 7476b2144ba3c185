"""Personal data and secrets: found, counted, and replaced by placeholders, or the document dropped."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import AfterValidator, Field, model_validator

from dataproc.documents import SIGNAL_PREFIX
from dataproc.pii import national, phones, presidio
from dataproc.pii.allowed import EXAMPLE_DOMAINS, Allowed
from dataproc.pii.detector import Detector, Settings, replaced, without_overlaps
from dataproc.pii.reading import KINDS, Find, Kind
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from store.strict_yaml import DataFile, StrictModel

Action = Literal["replace", "drop", "count"]
PRECISE: tuple[Kind, ...] = ("secret", "email", "iban", "card", "national_id", "ip", "phone")
OFFSETS_SHOWN = 20
# A placeholder may not grow together with what stands beside it: then another run could find something new in the text.
_PLACEHOLDER = re.compile(r"[<\[{|][^\d@\n]*[>\]}|]")


def _placeholder(value: str) -> str:
    if not _PLACEHOLDER.fullmatch(value):
        raise ValueError(f"{value!r} cannot be a placeholder: begin it with one of <[{{| and end it with one of >]}}|, without digits or @")
    return value


def _country(value: str) -> str:
    code = value.strip().upper()
    if not phones.known_country(code):
        raise ValueError(f"{value!r} is not a country with a numbering plan: use codes of two letters such as US or DE")
    return code


def _national_id(value: str) -> str:
    national.load(value)
    return value


def _network(value: str) -> str:
    return str(ipaddress.ip_network(value))


def _domain(value: str) -> str:
    name = value.strip().lower().strip(".")
    if not name or "@" in name or "/" in name:
        raise ValueError(f"{value!r} is not a domain: write it as example.com, and a single address under allow")
    return name


Placeholder = Annotated[str, AfterValidator(_placeholder)]
Country = Annotated[str, AfterValidator(_country)]
NationalIdName = Annotated[str, AfterValidator(_national_id)]
Network = Annotated[str, AfterValidator(_network)]
Domain = Annotated[str, AfterValidator(_domain)]


class PresidioConfig(StrictModel):
    """`models`: a spaCy model, installed or a folder, by language; documents of other languages are not looked at. `entities`: the kind
    that each of Presidio's entities is; all other kinds are looked for without it."""

    models: dict[str, str] = {"en": "en_core_web_lg"}
    entities: dict[str, Kind] = presidio.ENTITIES
    min_score: float = Field(0.5, ge=0, le=1)
    # Filled in here, so that a plan knows which releases and which bytes decide.
    versions: dict[str, str] = {}
    model_files: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _installed(self) -> PresidioConfig:
        if not self.models or not self.entities:
            raise ValueError("engine presidio needs a model and an entity to look for")
        object.__setattr__(self, "versions", presidio.versions())
        found = [DataFile(path) for model in self.models.values() for path in presidio.model_files(model)]
        object.__setattr__(self, "model_files", tuple(found))
        return self


class PiiConfig(StrictModel):
    """`find`: the kinds to look for. `action` for all of them, `actions` for some: replace (by a placeholder), drop (the document, where
    it has more than `max_matches`, 0 when none is given; what is found in others is replaced), count (only a signal). `max_matches`: the
    most of a kind that a document may have, whatever the action. What `allow`, `allow_domains` (of e-mail addresses) and `allow_networks`
    name is none."""

    find: tuple[Kind, ...] = ()
    action: Action = "replace"
    actions: dict[Kind, Action] = {}
    max_matches: dict[Kind, Annotated[int, Field(ge=0)]] = {}
    placeholders: dict[Kind, Placeholder] = {}
    phone_countries: tuple[Country, ...] = ()
    national_ids: tuple[NationalIdName, ...] = ()
    public_ips_only: bool = True
    allow: tuple[str, ...] = ()
    allow_domains: tuple[Domain, ...] = EXAMPLE_DOMAINS
    allow_networks: tuple[Network, ...] = ()
    engine: Literal["headrace", "presidio"] = "headrace"
    presidio: PresidioConfig | None = None
    # The files of plug-ins' code, filled in here, so that a plan knows their bytes.
    plugin_files: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _with_engine(cls, value: Any) -> Any:
        """`engine: presidio` alone stands for its default settings."""
        if isinstance(value, Mapping) and value.get("engine") == "presidio" and value.get("presidio") is None:
            return {**value, "presidio": {}}
        return value

    @model_validator(mode="after")
    def _whole(self) -> PiiConfig:
        by_presidio = set(self.presidio.entities.values()) if self.presidio else set()
        if self.presidio and self.engine != "presidio":
            raise ValueError("settings of presidio need `engine: presidio`")
        if not self.find:
            wanted = [*PRECISE, *(kind for kind in ("person", "location") if kind in by_presidio)]
            object.__setattr__(self, "find", tuple(wanted))
        for kind in ("person", "location"):
            if kind in self.find and kind not in by_presidio:
                raise ValueError(f"{kind} is only found by Presidio: set `engine: presidio`")
        for name in ("actions", "max_matches", "placeholders"):
            for kind in getattr(self, name):
                if kind not in self.find:
                    raise ValueError(f"{name} has {kind}, which is not looked for: add it to find")
        if "national_id" in by_presidio and self.national_ids:
            raise ValueError("national_ids are not looked for where Presidio finds national_id: leave one of them out")
        sources = tuple(DataFile(path) for path in map(national.source_of, self.national_ids) if path)
        object.__setattr__(self, "plugin_files", tuple(dict.fromkeys(sources)))
        return self

    def kinds(self) -> tuple[Kind, ...]:
        """What is looked for, in the order of KINDS; national numbers only where some are named."""
        named = self.national_ids or self.presidio and "national_id" in self.presidio.entities.values()
        return tuple(kind for kind in KINDS if kind in self.find and (kind != "national_id" or named))

    def action_of(self, kind: Kind) -> Action:
        return self.actions.get(kind, self.action)

    def most(self, kind: Kind) -> int | None:
        """Documents with more finds of a kind are dropped; None: no limit."""
        return self.max_matches.get(kind, 0 if self.action_of(kind) == "drop" else None)


class Pii(Stage):
    """Sets `text` to the text without personal data. A signal `pii_<kind>` counts what was found; rules: the name of each kind that has a
    limit. Decisions hold counts and places, never what was found; a dropped document's text has placeholders too, since reports quote it.

    The stage looks until nothing is left to replace, so a second run over its output changes nothing.
    """

    name = "pii"
    Config = PiiConfig
    inputs = ("text", "language")
    outputs = ("text",)

    def signals(self) -> tuple[str, ...]:
        return tuple(f"pii_{kind}" for kind in self.config.kinds())

    def thresholds(self) -> dict[str, list[dict[str, Any]]]:
        limits = {kind: self.config.most(kind) for kind in self.config.kinds()}
        return {f"pii_{kind}": [{"rule": kind, "min": None, "max": float(most)}] for kind, most in limits.items() if most is not None}

    def open(self, context: StageContext) -> None:
        c = self.config
        self._heartbeat = context.heartbeat
        allowed = Allowed(c.allow_domains, c.allow_networks, c.allow)
        entities = c.presidio.entities if c.presidio else {}
        own = tuple(kind for kind in c.kinds() if kind not in entities.values())
        self._detector = Detector(Settings(own, c.phone_countries, c.national_ids, c.public_ips_only, allowed))
        self._presidio = None
        if c.presidio:
            self._presidio = presidio.PresidioDetector(c.presidio.models, entities, c.kinds(), c.presidio.min_score, allowed)
        self._placeholders = {kind: c.placeholders.get(kind, f"<{kind.upper()}>") for kind in c.kinds()}
        self._replaced = {kind: text for kind, text in self._placeholders.items() if c.action_of(kind) != "count"}
        # Compiles the kernels, and reads the numbering plans, before the clock of a batch runs.
        self._detector.finds(pa.array(["+1 212 555 0123, 8.8.8.8"], pa.large_string()))

    def process(self, batch):
        column, languages = batch.column("text"), batch.column("language").to_pylist()
        found = self._finds(column, languages)
        counts = {row: Counter(find.kind for find in finds) for row, finds in found.items()}
        verdicts = self._verdicts(found, counts)
        if found:
            dropped = {verdict.row for verdict in verdicts}
            batch = set_column(batch, "text", self._cleared(column, languages, found, counts, dropped))
        for kind in self.config.kinds():
            values = [float(counts[row][kind]) if row in counts else 0.0 for row in range(batch.num_rows)]
            batch = set_column(batch, SIGNAL_PREFIX + f"pii_{kind}", pa.array(values, pa.float64()))
        return StageResult(batch, verdicts)

    def _finds(self, column: pa.Array, languages: list[str | None]) -> dict[int, list[Find]]:
        """Row -> finds of both engines in order, without overlaps."""
        found = self._detector.finds(column, self._heartbeat)
        if self._presidio:
            for row, more in self._presidio.finds(column, languages, self._heartbeat).items():
                found[row] = without_overlaps([*found.get(row, ()), *more])
        return found

    def _verdicts(self, found: dict[int, list[Find]], counts: dict[int, Counter[str]]) -> list[Verdict]:
        verdicts = []
        for row, count in sorted(counts.items()):
            over = [kind for kind in self.config.kinds() if (most := self.config.most(kind)) is not None and count[kind] > most]
            if over:
                places = {kind: [[f.start, f.end] for f in found[row] if f.kind == kind][:OFFSETS_SHOWN] for kind in over}
                detail = {"counts": dict(sorted(count.items())), "offsets": places} | ({"also": over[1:]} if over[1:] else {})
                verdicts.append(Verdict(row, over[0], float(count[over[0]]), float(self.config.most(over[0])), detail))
        return verdicts

    def _cleared(
        self,
        column: pa.Array,
        languages: list[str | None],
        found: dict[int, list[Find]],
        counts: dict[int, Counter[str]],
        dropped: set[int],
    ) -> pa.Array:
        """The column without what is to be replaced; of dropped documents everything is. Replacing may bring two parts of a text together
        in which something is found now, so those that were changed are looked at again; what is found then is counted, too."""
        column = replaced(column, {row: finds for row, finds in found.items() if row not in dropped}, self._replaced)
        column = replaced(column, {row: found[row] for row in dropped}, self._placeholders)
        rows = sorted(row for row, count in counts.items() if any(kind in self._replaced for kind in count) or row in dropped)
        while rows:
            texts = column.take(pa.array(rows, pa.int64()))
            again = self._finds(texts, [languages[row] for row in rows])
            more = {rows[k]: [f for f in finds if f.kind in self._replaced or rows[k] in dropped] for k, finds in again.items()}
            more = {row: finds for row, finds in more.items() if finds}
            for row, finds in more.items():
                counts[row].update(find.kind for find in finds)
            column = replaced(column, more, self._placeholders)
            rows = sorted(more)
        return column
