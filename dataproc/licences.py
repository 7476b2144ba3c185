"""Licences in texts: SPDX tags, links, licence texts and headers, names. What is known of each is in licences.yaml."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

Kind = Literal["permissive", "copyleft", "noncommercial", "unknown"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# A text that has none of these names no licence that is known here. For RE2, in any case.
GATE = r"licen[cs]e|spdx|creative|commons|\bcc[ -]?(?:by|0)|permission|redistribution|warranty|public|non-?commercial"
_HEAD, _TAIL = 40_000, 10_000  # characters of a text that are looked at
_TAG = re.compile(r"SPDX-License-Identifier:[ \t]*([A-Za-z0-9.+() -]{2,200})", re.IGNORECASE)
_TERM = re.compile(r"\(|\)|[A-Za-z0-9][A-Za-z0-9.+-]*")
_WORD = re.compile(r"[a-z0-9]+(?:\.[0-9]+)*\+?")
_MOST_BRACKETS = 50  # of an expression: they are read by recursion
_LOWER = {code: code + 32 for code in range(65, 91)}  # of ASCII alone, so that places stay what they are
_LINK = re.compile(
    r"creativecommons\.org/(?:licen[cs]es/(?P<cc>(?:by|nc|sa|nd)(?:-(?:by|nc|sa|nd))*)/(?P<cc_version>\d\.\d)|publicdomain/(?P<free>zero|mark)/1\.0)"
    r"|opensource\.org/licen[cs]es?/(?P<osi>[a-z0-9.-]*[a-z0-9])|(?P<apache>apache\.org/licen[cs]es/license-2\.0)"
    r"|gnu\.org/licen[cs]es/(?:old-licen[cs]es/)?(?P<gnu>[al]?gpl)-(?P<gnu_version>\d\.\d)|(?P<mozilla>mozilla\.org/mpl/2\.0)",
    re.IGNORECASE,
)
_CC_SHORT = re.compile(r"\bCC[ -](BY(?:[ -](?:NC|SA|ND))*)(?:[ -](?:v\.? ?)?(\d\.\d))?(?![\w.]*\w)|\b(CC0)\b", re.ASCII)
_CC_LONG = re.compile(
    r"creative commons (attribution(?: (?:non ?commercial|share ?alike|no ?deriv(?:ative)?s?(?: works)?))*)(?: (\d\.\d))?"
)
_ANCHOR = re.compile(r"under |governed by ")
_CC_WORDS = {"by": "attribution", "nc": "noncommercial", "sa": "sharealike", "nd": "noderiv"}
_UNDER = r"(?:under|governed by) (?:an? |the )?(?:(?:terms|conditions)(?: and conditions)? of )?(?:an? |the )?(?:version [\d.]+ of the )?"
_GNU_NOTICE = re.compile(r"gnu (?:(lesser|library|affero) )?general public licen[cs]e(?=(?: version \d(?:\.\d)?)? as published by)")
_GNU_VERSION = re.compile(
    r"(?: as published by the free software foundation)?(?: either)?(?: licen[cs]e)? ?(?:version |v ?)?(\d(?:\.\d)?)(\+)?"
)
_LATER = re.compile(
    r"(?: of the licen[cs]e)?(?: as published by the free software foundation)?(?: either)? (?:or at your option )?(?:or )?any later"
)


@dataclass(frozen=True)
class Finding:
    """licence: SPDX identifier or expression, or our own name (LicenseRef-..., a Creative Commons licence without its version); found: tag,
    link, text or name; line: of the text, from 1."""

    licence: str
    found: str
    line: int = 0

    @property
    def kind(self) -> Kind:
        return kind_of(self.licence)


@dataclass(frozen=True)
class Known:
    """licences.yaml. identifiers: in lower case -> as SPDX writes it, kind; texts: (identifier, words that stand in every match,
    expression), the more particular first; names: an expression whose named group tells, by its number, the identifier in name_licences."""

    identifiers: dict[str, tuple[str, Kind]]
    texts: list[tuple[str, str, re.Pattern[str]]]
    names: re.Pattern[str]
    name_licences: list[str]


def _literal(expression: str) -> str:
    """The longest text that stands in every match of an expression of plain words, groups, sets and `?`."""
    chunks, depth = [""], 0
    for c in expression:
        if c in "?" and not depth:
            chunks[-1] = chunks[-1][:-1]
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        if depth or c in "?.)]":
            chunks += [""] if chunks[-1] else []
        else:
            chunks[-1] += c
    return max(chunks, key=len)


@functools.cache
def _known() -> Known:
    data: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "licences.yaml").read_text())
    identifiers: dict[str, tuple[str, Kind]] = {name.lower(): (name, kind) for kind in KINDS[:-1] for name in data[kind]}
    texts = [(name, _literal(one), re.compile(rf"(?<![a-z0-9]){one}")) for name, found in data["texts"].items() for one in found]
    names = "|".join(f"(?P<n{n}>{'|'.join(found)})" for n, found in enumerate(data["names"].values()))
    return Known(
        identifiers,
        texts,
        re.compile(rf"{_UNDER}(?:{names})(?!(?!v\d)[a-z])"),
        list(data["names"]),
    )


def kind_of(expression: str) -> Kind:
    """The kind of an SPDX expression: with OR the freest choice counts, with AND the least free; an exception (WITH) only makes freer.
    What is not known, or no expression, is unknown."""
    terms = _TERM.findall(expression)
    if terms.count("(") > _MOST_BRACKETS:
        return "unknown"
    try:
        kind = _any_of(terms)
    except IndexError:
        return "unknown"
    return "unknown" if terms else kind


def _any_of(terms: list[str]) -> Kind:
    kinds = [_all_of(terms)]
    while terms and terms[0].upper() == "OR":
        terms.pop(0)
        kinds.append(_all_of(terms))
    return min(kinds, key=KINDS.index)


def _all_of(terms: list[str]) -> Kind:
    kinds = [_one(terms)]
    while terms and terms[0].upper() == "AND":
        terms.pop(0)
        kinds.append(_one(terms))
    return max(kinds, key=KINDS.index)


def _one(terms: list[str]) -> Kind:
    term = terms.pop(0)
    if term == "(":
        kind = _any_of(terms)
        if terms.pop(0) != ")":
            raise IndexError
    else:
        kind = _kind_of_one(term)
    if terms and terms[0].upper() == "WITH":
        del terms[0]
        terms.pop(0)
    return kind


def _kind_of_one(identifier: str) -> Kind:
    name = re.sub(r"(?:-only|-or-later|\+)$", "", identifier.lower())
    if name.startswith("cc-by"):
        parts = name.split("-")
        return "noncommercial" if {"nc", "nd"} & set(parts) else "copyleft" if "sa" in parts else "permissive"
    return _known().identifiers.get(name, (name, KINDS[-1]))[1]


def find_licence(text: str) -> Finding | None:
    """The licence that a text states. A tag counts before a licence's text, that before a link, a name comes last; of several of one sort
    all count (`A AND B`), in their order. The first 40,000 and last 10,000 characters are looked at."""
    skipped = max(0, len(text) - _HEAD - _TAIL)
    looked = text if not skipped else f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    for search in (_tags, _texts, _links, _names):
        found = list(search(looked))
        if found:
            licences = list(dict.fromkeys(licence for licence, _, _ in sorted(found, key=lambda one: one[2])))
            place = min(position for _, _, position in found)
            line = looked.count("\n", 0, place) + 1
            if skipped and place > _HEAD:
                line += text.count("\n", _HEAD, _HEAD + skipped) - 1
            whole = licences[0] if len(licences) == 1 else " AND ".join(f"({one})" if " OR " in one else one for one in licences)
            return Finding(whole, found[0][1], line)
    return None


# Each gives (licence, what it was found by, position in the text).
Findings = Iterator[tuple[str, str, int]]


def _tags(text: str) -> Findings:
    for found in _TAG.finditer(text):
        terms = _TERM.findall(found[1])
        # An expression goes on as long as operators and identifiers alternate; what follows it on its line is something else.
        used, wants, depth = [], True, 0
        for term in terms:
            operator = term.upper() in ("AND", "OR", "WITH")
            if operator == wants and term not in "()":
                break
            depth += (term == "(") - (term == ")")
            if depth < 0:
                break
            used.append(term.upper() if operator else term)
            wants = operator or term == "("
        while used and used[-1] in ("AND", "OR", "WITH"):
            used.pop()
        if used:
            yield " ".join(used).replace("( ", "(").replace(" )", ")"), "tag", found.start()


def link_licence(url: str) -> str | None:
    """The licence that an address stands for."""
    found = _LINK.search(url)
    return _of_link(found) if found else None


def _of_link(found: re.Match[str]) -> str | None:
    if found["cc"]:
        return _creative_commons(found["cc"].lower().split("-"), found["cc_version"])
    if found["free"]:
        return "CC0-1.0" if found["free"].lower() == "zero" else "CC-PDM-1.0"
    if found["gnu"]:
        return f"{found['gnu'].upper()}-{found['gnu_version']}-only"
    if found["osi"]:
        return _listed(found["osi"])
    return "Apache-2.0" if found["apache"] else "MPL-2.0"


def _listed(identifier: str) -> str | None:
    """An identifier of opensource.org as SPDX writes it, where it is known."""
    lower = identifier.lower().removesuffix(".php").removesuffix("-license")
    known = _known().identifiers.get({"bsd": "bsd-3-clause", "apache2.0": "apache-2.0"}.get(lower, lower))
    return known[0] if known else None


def _creative_commons(parts: list[str], version: str | None) -> str:
    return "-".join(["CC", *(part.upper() for part in ("by", "nc", "sa", "nd") if part in parts), *([version] if version else [])])


def _links(text: str) -> Findings:
    for found in _LINK.finditer(text):
        if licence := _of_link(found):
            yield licence, "link", found.start()


class _Words:
    """The words of a text in lower case, joined by one space, and where each stands in it."""

    def __init__(self, text: str):
        self._lower = text.lower() if text.isascii() else text.translate(_LOWER)
        self.joined = " ".join(_WORD.findall(self._lower))

    @functools.cached_property
    def _starts(self) -> list[int]:
        return [word.start() for word in _WORD.finditer(self._lower)]

    def position(self, place: int) -> int:
        """Of the word at a place of `joined`, in the text."""
        return self._starts[self.joined.count(" ", 0, place)]


@functools.lru_cache(maxsize=1)
def _words(text: str) -> _Words:
    return _Words(text)


def _texts(text: str) -> Findings:
    words = _words(text)
    taken: list[tuple[int, int]] = []  # a phrase within another one is a part of it
    for licence, literal, expression in _known().texts:
        for found in expression.finditer(words.joined) if literal in words.joined else ():
            if not any(start <= found.start() < end for start, end in taken):
                taken.append(found.span())
                yield licence, "text", words.position(found.start())
    # The notice that the GNU licences ask for is as good as their text.
    yield from ((licence, "text", place) for licence, _, place in _gnu_notices(words))


def _gnu_notices(words: _Words) -> Findings:
    for found in re.finditer(
        r"gnu (?:(lesser|library|affero) )?general public licen[cs]e(?=(?: version \d(?:\.\d)?)? as published by)", words.joined
    ):
        family = {"lesser": "LGPL", "library": "LGPL", "affero": "AGPL"}.get(found[1], "GPL")
        if licence := _gnu(family, words.joined[found.end() : found.end() + 250]):
            yield licence, "text", words.position(found.start())


def _gnu(family: str, after: str) -> str:
    """The identifier of a GNU licence by the words after its name; without a version, `GPL` alone."""
    version = _GNU_VERSION.match(after)
    if not version:
        return f"LicenseRef-{family}"
    number = version[1] if "." in version[1] else f"{version[1]}.0"
    later = version[2] or _LATER.match(after, version.end())
    return f"{family}-{number}-{'or-later' if later else 'only'}"


def _names(text: str) -> Findings:
    for found in _CC_SHORT.finditer(text):
        parts = (found[1] or "").lower().replace(" ", "-").split("-")
        yield "CC0-1.0" if found[3] else _creative_commons(parts, found[2]), "name", found.start()
    words = _words(text)
    for found in _CC_LONG.finditer(words.joined):
        long = found[1].replace(" ", "")
        parts = [
            short
            for short, name in (("by", "attribution"), ("nc", "noncommercial"), ("sa", "sharealike"), ("nd", "noderiv"))
            if name in long
        ]
        yield _creative_commons(parts, found[2]), "name", words.position(found.start())
    known = _known()
    for start in _ANCHOR.finditer(words.joined):
        found = known.names.match(words.joined, start.start())
        if not found:
            continue
        licence = known.name_licences[int(found.lastgroup[1:])]
        if licence in ("GPL", "LGPL", "AGPL"):
            licence = _gnu(licence, words.joined[found.end() : found.end() + 250])
        yield licence, "name", words.position(found.start())
