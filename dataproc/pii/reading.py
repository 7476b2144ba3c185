"""What all kinds need: their names, a find, the digits of a span, and the words before it."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Kind = Literal["secret", "password", "email", "iban", "card", "national_id", "ip", "phone", "person", "location"]
# Of finds that overlap the one of the earlier kind stays: the surer a kind's own check, the earlier it comes.
KINDS: tuple[Kind, ...] = ("secret", "password", "email", "iban", "card", "national_id", "ip", "phone", "person", "location")

BEFORE_BYTES = 48  # that are looked at for a word such as "tel."
_QUALIFIED = r"(?:[\s:.,#()№=-]*(?:is|no|nr|num|number|nummer|numéro|número|numero|номер|n[°º])?){0,2}[\s:.,#()=：-]*$"


class Find(NamedTuple):
    """Bytes start to end of a text are of a kind."""

    kind: str
    start: int
    end: int


def ascii_digits(span: bytes) -> str:
    """The digits of a span, whatever their script, as 0 to 9."""
    return "".join(str(int(c)) for c in span.decode() if c.isdecimal())


def named_before(words: str) -> re.Pattern[str]:
    """A pattern for the text before a number that ends with one of the words (alternatives of a regular expression), with at most
    "no.", a colon or the like after it. Words of letters that have case must begin where a word begins."""
    return re.compile(rf"(?<![^\W\d_])(?:{words}){_QUALIFIED}", re.IGNORECASE)


def text_before(raw: bytes, start: int) -> str:
    """The end of what stands on the line before a byte, at most BEFORE_BYTES of it."""
    return raw[max(0, start - BEFORE_BYTES) : start].decode("utf-8", "ignore").rpartition("\n")[2]


def joined_before(raw: bytes, start: int) -> bool:
    """Whether the letter, digit or mark of ASCII before a number makes it part of something longer, or an amount of money."""
    before = raw[max(0, start - 1) : start]
    if before in (b".", b","):  # 3.14 and 1,000; but "Tel.030"
        return raw[max(0, start - 2) : start - 1].isdigit()
    if raw[max(0, start - 3) : start].endswith((b"\xe2\x82\xac", b"\xc2\xa3", b"\xc2\xa5")):  # euro, pound, yen
        return True
    return before.isalnum() or (before != b"" and before in b"_-/\\#$%&+=?@")


def joined_after(raw: bytes, end: int) -> bool:
    """The same of what comes after it."""
    after, next_after = raw[end : end + 1], raw[end + 1 : end + 2]
    if after in (b".", b",", b"-", b"/"):
        return next_after.isdigit()
    return after.isalnum() or (after != b"" and after in b"_%@\\")
