"""Finds of all kinds in a column of texts, without overlaps, and the texts with something else in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dataproc.kernels.candidates import At, Finder, Want, prefixes
from dataproc.kernels.columns import from_buffers, text_buffers
from dataproc.pii.addresses import ipv4_at, ipv6_at
from dataproc.pii.allowed import Allowed
from dataproc.pii.emails import email_at
from dataproc.pii.ibans import iban_at
from dataproc.pii.national import NationalIds
from dataproc.pii.phones import National, international_at
from dataproc.pii.reading import KINDS, Find, Kind
from dataproc.pii.secrets import SHAPES, passwords, secret_at


@dataclass(frozen=True)
class Settings:
    """What is looked for: kinds (person and location are not found here), countries whose telephone numbers are known without a country
    code, names of national numbers; and what is left as it is."""

    kinds: tuple[Kind, ...] = KINDS
    countries: tuple[str, ...] = ()
    national_ids: tuple[str, ...] = ()
    public_only: bool = True
    allowed: Allowed = Allowed((), (), ())


class Detector:
    """Finds what the settings name. What it finds in a text depends on that text alone."""

    def __init__(self, settings: Settings):
        kinds = set(settings.kinds)
        self._public_only, self._allowed = settings.public_only, settings.allowed
        self._passwords = "password" in kinds
        self._national = National(settings.countries) if settings.countries and "phone" in kinds else None
        self._ids = NationalIds(settings.national_ids) if settings.national_ids and "national_id" in kinds else None
        wanted = Want(0)
        for kind, want in (
            ("email", Want.EMAIL), ("card", Want.CARD), ("ip", Want.IP), ("iban", Want.IBAN), ("phone", Want.PHONE),
            ("secret", Want.SECRET),
        ):  # fmt: skip
            wanted |= want if kind in kinds else Want(0)
        wanted |= Want.NUMBERS if self._national or self._ids else Want(0)
        self._finder = Finder(wanted, prefixes(tuple((shape.prefix, shape.anchor) for shape in SHAPES)))

    def finds(self, column: pa.Array, heartbeat: Callable[[], None] = lambda: None) -> dict[int, list[Find]]:
        """Row -> finds in order of their places, without overlaps, for the rows that have any. column: `string` or `large_string`; a find's
        places are bytes of the row's UTF-8."""
        seen = self._finder.candidates(column)
        part = text_buffers(column)
        found: dict[int, list[Find]] = {}
        rows, firsts = np.unique(seen.rows, return_index=True)
        for row, first, last in zip(rows.tolist(), firsts.tolist(), np.append(firsts, len(seen.rows))[1:].tolist(), strict=True):
            raw = part.data[part.offsets[row] : part.offsets[row + 1]].tobytes()
            made: list[Find] = []
            for what, start, end in zip(*(values[first:last].tolist() for values in (seen.what, seen.starts, seen.ends)), strict=True):
                made += self._looked_at(raw, what, start, end)
            self._keep(found, row, raw, made)
            heartbeat()
        for row in range(len(part)) if self._passwords else ():
            raw = part.data[part.offsets[row] : part.offsets[row + 1]].tobytes()
            self._keep(found, row, raw, [*found.get(row, ()), *passwords(raw)])
            heartbeat()
        return found

    def _keep(self, found: dict[int, list[Find]], row: int, raw: bytes, made: Sequence[Find]) -> None:
        """Books the finds of a text, without overlaps and what is allowed."""
        if kept := without_overlaps([find for find in made if not self._allowed.holds(raw, find)]):
            found[row] = kept

    def _looked_at(self, raw: bytes, what: int, start: int, end: int) -> list[Find]:
        """What really stands at a candidate."""
        if what == At.CARD:
            return [Find("card", start, end)]
        if what in (At.NUMBER, At.MIXED):
            numbers = self._national.finds(raw, start, end) if self._national and what == At.NUMBER else []
            return numbers + (self._ids.finds(raw, start, end) if self._ids else [])
        if what == At.EMAIL:
            one = email_at(raw, start)
        elif what == At.SECRET:
            one = secret_at(raw, start, end)
        elif what == At.IBAN:
            one = iban_at(raw, start)
        elif what == At.PHONE:
            one = international_at(raw, start, end)
        else:
            one = (ipv4_at if what == At.IPV4 else ipv6_at)(raw, start, end, self._public_only)
        return [one] if one else []


def without_overlaps(found: Sequence[Find]) -> list[Find]:
    """Of finds that overlap the one of the earlier kind in KINDS stays, then the one that begins earlier, then the longer."""
    kept: list[Find] = []
    kinds = {find.kind for find in found}
    for kind in (kind for kind in KINDS if kind in kinds):
        place = last = 0
        fresh = []
        for find in sorted((find for find in found if find.kind == kind), key=lambda find: (find.start, -find.end)):
            while place < len(kept) and kept[place].end <= find.start:
                place += 1
            if find.start >= last and (place == len(kept) or kept[place].start >= find.end):
                fresh.append(find)
                last = find.end
        kept = sorted(kept + fresh, key=lambda find: find.start)
    return kept


def replaced(column: pa.Array, found: Mapping[int, Sequence[Find]], placeholders: Mapping[str, str]) -> pa.Array:
    """The texts with each find of a kind that has a placeholder as this; `large_string`, other bytes as they were, null stays null."""
    part = text_buffers(column)
    spelled = {kind: placeholder.encode() for kind, placeholder in placeholders.items()}
    pieces: list[bytes] = []
    sizes = np.diff(part.offsets)
    done = int(part.offsets[0])
    for row in sorted(found):
        start = int(part.offsets[row])
        for find in found[row]:
            if find.kind in spelled:
                pieces += [part.data[done : start + find.start].tobytes(), spelled[find.kind]]
                done = start + find.end
                sizes[row] += len(spelled[find.kind]) - (find.end - find.start)
    pieces.append(part.data[done : int(part.offsets[-1])].tobytes())
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return from_buffers(np.frombuffer(b"".join(pieces), np.uint8), offsets, part.null)
