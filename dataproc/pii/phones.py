"""Telephone numbers, judged by the numbering plans of the library phonenumbers (a port of libphonenumber).

A number with + or 00 and a country code must be valid there. Without it, only in the configured countries, and only where it is written
as a number to dial: with the trunk prefix 0 and in groups, 3-3-4 in North America, or after a word such as "tel".
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import phonenumbers
from phonenumbers import NumberParseException, PhoneMetadata

from dataproc.pii.reading import Find, ascii_digits, joined_after, joined_before, named_before, text_before

_NAMED = named_before(
    r"tel|tél|tele|telephone|téléphone|telefon|telefono|teléfono|telefone|phone|phones|ph|mobile|mob|mobil|móvil|celular|cellulare|cell|"
    r"fax|call|dial|whatsapp|hotline|handy|rufnummer|appelez|llame|ligue|chiama|тел|телефон|моб|факс|звоните|τηλ|τηλέφωνο|טלפון|טל|هاتف|"
    r"تلفن|جوال|फ़ोन|फोन|मोबाइल|โทร|โทรศัพท์|电话|電話|手机|手機|携帯|전화|전화번호|휴대폰|điện thoại|đt"
)
_DATE = re.compile(r"(?:\d{4}\D\d{1,2}\D\d{1,2}|\d{1,2}\D\d{1,2}\D(?:19|20)\d\d)(?:\D|$)")
_GROUP = re.compile(rb"(?:[0-9]|\xd9[\xa0-\xa9]|\xdb[\xb0-\xb9]|\xe0[\xa5\xa7][\xa6-\xaf]|\xef\xbc[\x90-\x99])+")
_MOST_GROUPS = 7
_LONGEST = 15  # digits of a number with its country code (ITU-T E.164)
_BYTE_BEFORE, _BYTE_AFTER = re.compile(rb"\b[0-9a-fA-F]{2}[ \n]+$"), re.compile(rb"[ \n]+[0-9a-fA-F]{2}\b")
_TRUNK = re.compile(rb"\(0\)")
_NORTH_AMERICA = "1"


class Group(NamedTuple):
    start: int
    end: int
    digits: str


def groups_of(raw: bytes, start: int, end: int) -> list[Group]:
    """The groups of digits of a span, in ASCII."""
    return [Group(m.start(), m.end(), ascii_digits(m[0])) for m in _GROUP.finditer(raw, start, end)]


def international_at(raw: bytes, start: int, end: int) -> Find | None:
    """The number that begins at a byte with +, (+ or 00, as long a one as the plan of its country allows."""
    if raw[end : end + 1].isalnum() or raw[end : end + 1] == b"_":
        end = groups_of(raw, start, end)[-1].start  # the last group belongs to a word
    groups = groups_of(raw, start, end)
    if not groups:  # all of it was a word's
        return None
    plus = groups[0].start > start
    for count in range(min(len(groups), _MOST_GROUPS + 1), 0, -1):
        last = groups[count - 1].end
        # +49 (0)30: the trunk prefix is not dialled from abroad.
        digits = "".join(group.digits for group in groups_of(_TRUNK.sub(b"   ", raw[start:last]), 0, last - start))
        digits = digits if plus else digits.removeprefix("00")
        if 7 <= len(digits) <= _LONGEST and _valid("+" + digits, None):
            closed = last + (raw[last : last + 1] == b")" and raw[start:last].count(b"(") > raw[start:last].count(b")"))
            return Find("phone", start, closed)
    return None


def _valid(text: str, region: str | None) -> bool:
    try:
        number = phonenumbers.parse(text, region)
    except NumberParseException:
        return False
    return phonenumbers.is_valid_number(number) if region is None else phonenumbers.is_valid_number_for_region(number, region)


@cache
def _plan(region: str) -> tuple[str, frozenset[int], str | None, re.Pattern[str]]:
    """(country code, possible numbers of digits, trunk prefix, what its numbers look like) of a country."""
    metadata = PhoneMetadata.metadata_for_region(region)
    general = metadata.general_desc
    return (
        str(metadata.country_code),
        frozenset(general.possible_length),
        metadata.national_prefix,
        re.compile(general.national_number_pattern),
    )


def known_country(code: str) -> bool:
    """Whether the library has a numbering plan for a country (ISO 3166, two letters)."""
    return code in phonenumbers.SUPPORTED_REGIONS


class National:
    """Numbers without a country code, of the countries that are configured."""

    def __init__(self, countries: tuple[str, ...]):
        self._countries = countries

    def finds(self, raw: bytes, start: int, end: int) -> list[Find]:
        """All numbers in a run of groups of digits."""
        groups = groups_of(raw, start, end)
        if _DATE.match(raw[start:end].decode()):
            groups = groups[3:]
        found, g = [], 0
        while g < len(groups):
            h = self._last(raw, groups, g)
            if h < 0:
                g += 1
                continue
            opened = groups[g].start - (raw[groups[g].start - 1 : groups[g].start] == b"(")
            found.append(Find("phone", opened, groups[h].end))
            g = h + 1
        return found

    def _last(self, raw: bytes, groups: list[Group], g: int) -> int:
        """The last group of the longest number that begins with group g; -1: none."""
        start = groups[g].start - (raw[groups[g].start - 1 : groups[g].start] == b"(")
        if joined_before(raw, start):
            return -1
        named: bool | None = None
        for h in range(min(len(groups), g + _MOST_GROUPS) - 1, g - 1, -1):
            digits = "".join(group.digits for group in groups[g : h + 1])
            if not 7 <= len(digits) <= _LONGEST or joined_after(raw, groups[h].end):
                continue
            for region in self._countries:
                written = _written(digits, groups[g : h + 1], region)
                if written is None:
                    continue
                if named is None:
                    named = _NAMED.search(text_before(raw, start)) is not None
                if (named or (written and not _in_dump(raw, start, groups[h].end))) and _valid(digits, region):
                    return h
        return -1


def _in_dump(raw: bytes, start: int, end: int) -> bool:
    """Whether bytes in hexadecimal stand around a number: then it is a few of them."""
    return _BYTE_BEFORE.search(raw, max(0, start - 4), start) is not None or _BYTE_AFTER.match(raw, end, end + 4) is not None


def _written(digits: str, groups: list[Group], region: str) -> bool | None:
    """Whether digits are grouped as a number to dial in a country is written; None when they are no number of it."""
    code, lengths, trunk, pattern = _plan(region)
    significant = digits.removeprefix(trunk) if trunk and digits.startswith(trunk) else digits
    if len(significant) not in lengths or not pattern.fullmatch(significant):
        return None
    shape = tuple(len(group.digits) for group in groups)
    if code == _NORTH_AMERICA:
        return shape in ((3, 3, 4), (1, 3, 3, 4))
    return trunk == "0" and digits.startswith("0") and len(digits) >= 9 and len(shape) >= 2 and shape[0] >= 2 and shape[-1] >= 2
