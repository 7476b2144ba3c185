"""Which character set bytes are in, and their text. Never raises: what cannot be decoded becomes U+FFFD and is counted.

In order: a byte order mark; UTF-16 and UTF-32 by their pattern of bytes; the set that HTTP declared; the set that the page declares;
UTF-8 where the bytes are valid in it; detection. A declared set that plainly does not fit the bytes gives way to the next.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from dataproc.charset_declared import declared_inside, python_encoding
from dataproc.charset_guess import guess_encoding, is_latin, looks_latin, wide_encoding

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What to try where bytes do not fit: vendors put more characters into the set than Python's codec of its name has.
_WIDER = {"euc_jp": "euc_jis_2004", "iso2022_jp": "iso2022_jp_2004", "cp932": "shift_jisx0213"}
# A declared set may leave this share of the text undecoded (one broken byte in a page) before detection is asked.
_MOST_UNDECODED = 0.002
# A word or two in GBK may happen to be valid UTF-8; so many characters do not.
_PLAINLY_UTF8 = 10


@dataclass(frozen=True)
class Decoded:
    """A text, the Python name of the encoding it was decoded with, and how many characters had to be replaced by U+FFFD."""

    text: str
    encoding: str
    replaced: int

    @property
    def fits(self) -> bool:
        return self.replaced <= _MOST_UNDECODED * len(self.text)


def decode(data: bytes, declared: str | None = None, html: bool = True) -> Decoded:
    """Decodes bytes. `declared`: the set that HTTP or the user named; `html`: look for the page's own declaration too."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding)
    wide = wide_encoding(data)
    if wide:
        return _decoded(data, wide)
    utf8 = _decoded(data, "utf-8")
    misfit: Decoded | None = None
    for encoding in (python_encoding((declared or "").strip("\"' ;,")), declared_inside(data) if html else None):
        if encoding is None or encoding.startswith(("utf-16", "utf-32")):
            continue  # bytes without their pattern are not in a wide set, whatever is declared
        attempt = utf8 if encoding == "utf-8" else _decoded(data, encoding)
        if attempt.fits and not _is_wrong(data, encoding, utf8):
            return attempt
        misfit = misfit or attempt
    return _detected(data, utf8, misfit)


def _detected(data: bytes, utf8: Decoded, misfit: Decoded | None) -> Decoded:
    """UTF-8 where the bytes say so, else what detection finds, else the declared set that did not fit."""
    escapes = b"\x1b$" in data or b"\x1b(" in data or b"~{" in data  # ISO-2022 and HZ are made of ASCII bytes
    if not utf8.replaced and not escapes:
        return utf8
    found = _decoded(data, guess_encoding(data))
    if escapes and not utf8.replaced:
        return found if found.encoding.startswith(("iso2022", "hz")) and found.fits else utf8
    if _sequences(data, utf8) > 2 * utf8.replaced:
        return utf8
    candidates = [c for c in (found, misfit, utf8) if c is not None]
    return found if found.encoding == "ascii" else min(candidates, key=lambda c: (not c.fits, c is not found, c.replaced))


def _sequences(data: bytes, utf8: Decoded) -> int:
    """How many characters of a text decoded as UTF-8 took several bytes and were valid; by chance few do in another set."""
    return len(utf8.text) - utf8.replaced - (len(data) - len(data.translate(None, bytes(range(128)))))


def _is_wrong(data: bytes, encoding: str, utf8: Decoded) -> bool:
    """Whether a set into which the bytes can be decoded was declared for what plainly is UTF-8, or another script than Latin."""
    if encoding == "utf-8" or data.isascii():
        return False
    if utf8.replaced == 0 and _sequences(data, utf8) >= (1 if is_latin(encoding) else _PLAINLY_UTF8):
        return True
    return is_latin(encoding) and not looks_latin(data)


def _decoded(data: bytes, encoding: str) -> Decoded:
    try:
        return Decoded(data.decode(encoding), encoding, 0)
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
    stated = data.count(b"\xef\xbf\xbd") if encoding == "utf-8" else 0  # U+FFFD that the page itself holds
    replaced = text.count("\ufffd") - stated
    if encoding in _WIDER:
        wider = data.decode(_WIDER[encoding], "replace")
        if wider.count("\ufffd") < replaced:
            return Decoded(wider, _WIDER[encoding], wider.count("\ufffd"))
    return Decoded(text, encoding, max(0, replaced))
