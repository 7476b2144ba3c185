"""What a character set label means, and which label a page states about itself.

Both follow the web's standards, because pages are written against browsers: the labels of the WHATWG Encoding Standard (latin-1
means windows-1252, gb2312 means gb18030) and the prescan of the HTML Standard (section 13.2.3.2), which sees comments, quotes and
misplaced attributes as a browser does.
"""

from __future__ import annotations

import codecs
import re

from resiliparse.parse.encoding import map_encoding_to_html5

# The window that is searched for a declaration. Browsers search at least 1,024 bytes; pages with long comments at the top need more.
PRESCAN_BYTES = 16_384
# A Python codec -> the one whose extra characters are used under its name as well.
_SUPERSETS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
    "utf-8-sig": "utf-8",
}
# Sets that the web's standard leaves out, but that old pages and feeds are in.
_LEGACY = frozenset(
    "utf-32 utf-32-le utf-32-be iso2022_kr hz johab cp437 cp737 cp775 cp850 cp852 cp855 cp857 cp858 cp860 cp861 cp862 cp863 cp864"
    " cp865 cp869 iso8859-1 ascii gb2312 gb18030 cp932 cp949 cp950 big5hkscs euc_jis_2004 kz1048 ptcp154 koi8-t mac-cyrillic mac-greek"
    " mac-turkish mac-latin2 mac-croatian mac-romanian mac-iceland cp874 tis-620".split()
)
_OTHER_NAMES = {"x-mac-cyrillic": "mac-cyrillic", "x-mac-ukrainian": "mac-cyrillic", "cswindows31j": "cp932", "windows-31j": "cp932",
                "x-gbk": "gb18030", "hz-gb-2312": "hz", "maccyrillic": "mac-cyrillic", "x-johab": "johab"}  # fmt: skip

_SPACE = rb"\t\n\f\r "
_MARKUP = re.compile(rb"<!--|<meta(?=[\t\n\f\r />])|</?[a-z]|<[!/?]", re.I)
_ATTRIBUTE = re.compile(
    rb"""[%(s)s/]*(=?[^%(s)s/>=]*)(?:[%(s)s]*=[%(s)s]*("[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|(?!["'])[^%(s)s>]*))?""" % {b"s": _SPACE}
)
_TAG_NAME_END = re.compile(rb"[%(s)s>]" % {b"s": _SPACE})
_IN_CONTENT = re.compile(rb"""charset[%(s)s]*=[%(s)s]*(?:"([^"]*)"|'([^']*)'|([^%(s)s;"'][^%(s)s;]*))""" % {b"s": _SPACE}, re.I)
_XML = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_:.-]{2,40})["']""", re.I)


def python_encoding(label: str | None) -> str | None:
    """Python's name for a declared label, as the web means it; None for a label that is unknown or not a set for text."""
    name = (label or "").strip(" \t\r\n\f").lower()
    if not name or not name.isascii() or not name.isprintable() or len(name) > 40:
        return None
    found = _OTHER_NAMES.get(name) or map_encoding_to_html5(name, False) or name
    try:
        codec = codecs.lookup(found).name
    except LookupError:
        return None
    if found == name and codec not in _LEGACY and codec not in _SUPERSETS and map_encoding_to_html5(codec, False) is None:
        return None  # a codec for other ends (idna, unicode_escape), or one that no page is in
    return _SUPERSETS.get(codec, codec)


def declared_inside(data: bytes) -> str | None:
    """The encoding (Python's name) that the first bytes of a page declare, by a meta element or else an XML declaration."""
    head = data[:PRESCAN_BYTES]
    position = 0
    while found := _MARKUP.search(head, position):
        mark, position = found[0].lower(), found.end()
        if mark == b"<!--":
            end = head.find(b"-->", found.start() + 2)
            if end < 0:
                break
            position = end + 3
        elif mark == b"<meta":
            encoding, position = _meta(head, position)
            if encoding:
                return encoding
        elif mark in (b"<!", b"</", b"<?"):
            end = head.find(b">", position)
            if end < 0:
                break
            position = end + 1
        else:
            end = _TAG_NAME_END.search(head, position)
            _, position = _attributes(head, end.start() if end else len(head))
    xml = _XML.match(head)
    return _not_wide(python_encoding(xml[1].decode("ascii"))) if xml else None


def _meta(head: bytes, position: int) -> tuple[str | None, int]:
    """(encoding, end) of a meta element whose attributes begin at `position`."""
    attributes, end = _attributes(head, position)
    label = attributes.get(b"charset")
    if label is None and attributes.get(b"http-equiv", b"").lower() == b"content-type":
        content = _IN_CONTENT.search(attributes.get(b"content", b""))
        label = next((part for part in content.groups() if part is not None), None) if content else None
    return _not_wide(python_encoding(label.decode("latin-1"))) if label is not None else None, end


def _not_wide(encoding: str | None) -> str | None:
    """A declaration that can be read as ASCII is not in UTF-16: the standard takes such a page for UTF-8."""
    return "utf-8" if encoding and encoding.startswith(("utf-16", "utf-32")) else encoding


def _attributes(head: bytes, position: int) -> tuple[dict[bytes, bytes], int]:
    """(attributes, end of the tag): the first of a name counts; a tag that the window cuts off has none."""
    attributes: dict[bytes, bytes] = {}
    while True:
        found = _ATTRIBUTE.match(head, position)
        position = found.end()
        if position >= len(head):
            return {}, position
        if not found[1]:
            return attributes, position + 1
        value = found[2] or b""
        attributes.setdefault(found[1].lower(), value[1:-1] if value[:1] in (b'"', b"'") else value)
