"""Which character set bytes are in, and their text. Never raises: what cannot be decoded becomes U+FFFD and is counted.

In order: a byte order mark; the set that HTTP declared; the set that the page declares; UTF-8 where the bytes are valid in it;
UTF-16 and UTF-32 by their pattern of zero bytes; detection by resiliparse (uchardet). A declared set that does not fit the bytes
gives way to the next. Labels are read as the WHATWG Encoding Standard reads them: latin-1 means windows-1252, gb2312 means gb18030.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from resiliparse.parse.encoding import detect_encoding

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Labels whose standard meaning is a superset: what is sent under the label uses the superset's extra characters.
_SUPERSETS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "latin_1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "hz": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
# Python's name, or a web label that Python does not know -> Python's name.
_LABELS = {"x-sjis": "cp932", "ks_c_5601-1987": "cp949", "x-gbk": "gb18030", "x-mac-cyrillic": "mac-cyrillic", "unicode": "utf-16-le"}
_SNIFFED_BYTES = 4096
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.I)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_:.-]{2,40})["']""", re.I)
# A declared set may leave this share of the text undecoded (one broken byte in a page) before detection is asked.
_MOST_UNDECODED = 0.002
_DETECTION_BYTES = 200_000


@dataclass(frozen=True)
class Decoded:
    """A text, the Python name of the encoding it was decoded with, and how many characters had to be replaced by U+FFFD."""

    text: str
    encoding: str
    replaced: int


def decode(data: bytes, declared: str | None = None, html: bool = True) -> Decoded:
    """Decodes bytes. `declared`: the set that HTTP or the user named; `html`: look for the page's own declaration too."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding)
    wide = _wide_encoding(data)
    if wide:
        return _decoded(data, wide)
    best: Decoded | None = None
    for label in (declared, _declared_inside(data) if html else None):
        encoding = python_encoding(label)
        if encoding is None or encoding.startswith("utf-16") or encoding.startswith("utf-32"):
            continue  # bytes without zero bytes are not in a wide set, whatever is declared
        attempt = _decoded(data, encoding)
        if attempt.replaced <= _MOST_UNDECODED * len(attempt.text) and not _is_misread_utf8(data, encoding):
            return attempt
        best = best or attempt
    return _detected(data, best)


def _detected(data: bytes, fallback: Decoded | None) -> Decoded:
    """UTF-8 where the bytes say so, else what detection finds, else the declared set that did not fit."""
    attempt = _decoded(data, "utf-8")
    escapes = b"\x1b$" in data or b"\x1b(" in data  # ISO-2022 sets are made of ASCII bytes
    if not attempt.replaced and not escapes:
        return attempt
    guess = python_encoding(detect_encoding(data[:_DETECTION_BYTES], html5_compatible=False)) or "cp1252"
    found = _decoded(data, guess)
    if escapes and guess.startswith("iso2022") and not found.replaced:
        return found
    if attempt.replaced <= _MOST_UNDECODED * len(attempt.text) and _has_sequences(attempt):
        return attempt
    candidates = [c for c in (found, fallback, attempt) if c is not None]
    return min(candidates, key=lambda c: (c.replaced > _MOST_UNDECODED * len(c.text), c is not found, c.replaced))


def _has_sequences(decoded: Decoded) -> bool:
    """Whether a text decoded as UTF-8 has characters that only UTF-8 explains, beside the bytes that did not fit."""
    beyond_ascii = len(decoded.text.encode()) - len(decoded.text) - 2 * decoded.replaced
    return decoded.replaced == 0 or beyond_ascii > 0


def python_encoding(label: str | None) -> str | None:
    """Python's name for a declared label, as the web means it; None for a label that is unknown or no text encoding."""
    if not label:
        return None
    name = label.strip().lower()
    try:
        info = codecs.lookup(_LABELS.get(name, name))
    except LookupError:
        return None
    if not getattr(info, "_is_text_encoding", True):
        return None
    return _SUPERSETS.get(info.name, info.name)


def _declared_inside(data: bytes) -> str | None:
    head = data[:_SNIFFED_BYTES]
    found = _XML.search(head) or _META.search(head)
    return found[1].decode("ascii") if found else None


def _wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, told by where its zero bytes stand in text of mostly Latin letters and mark-up."""
    head = data[: _SNIFFED_BYTES - _SNIFFED_BYTES % 4]
    head = head[: len(head) - len(head) % 4]
    if len(head) < 8 or not head.count(0):
        return None
    zeros = [head[i::4].count(0) / (len(head) // 4) for i in range(4)]
    printable = len(head) - head.count(0)
    if printable < len(head) / 8:
        return None
    if zeros[1] > 0.9 and zeros[2] > 0.9 and zeros[3] > 0.9:
        return "utf-32-le"
    if zeros[0] > 0.9 and zeros[1] > 0.9 and zeros[2] > 0.9:
        return "utf-32-be"
    if min(zeros[1], zeros[3]) > 0.4 and max(zeros[0], zeros[2]) < 0.1:
        return "utf-16-le"
    if min(zeros[0], zeros[2]) > 0.4 and max(zeros[1], zeros[3]) < 0.1:
        return "utf-16-be"
    return None


def _is_misread_utf8(data: bytes, encoding: str) -> bool:
    """Whether bytes that a single-byte set would take without complaint are plainly UTF-8 (a wrong declaration)."""
    if encoding in ("utf-8", "gb18030", "big5hkscs", "cp932", "cp949", "euc_jp", "iso2022_jp", "iso2022_kr"):
        return False
    try:
        return len(data.decode("utf-8")) < len(data)
    except UnicodeDecodeError:
        return False


def _decoded(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, "replace")
    return Decoded(text, encoding, text.count("\ufffd") - (data.count(b"\xef\xbf\xbd") if encoding == "utf-8" else 0))
