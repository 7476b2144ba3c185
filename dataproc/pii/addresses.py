"""IP addresses: four numbers to 255 that are not a version number, and IPv6."""

from __future__ import annotations

import ipaddress

from dataproc.pii.reading import Find, named_before, text_before

_UNICAST = ipaddress.ip_network("2000::/3")  # what is given out to hosts (RFC 4291)
_VERSIONS = named_before(
    r"v|ver|vers|version\w*|versión|versão|versione|версия|версии|版本|バージョン|버전|release|rel|build|firmware|driver|kernel|revision|rev|"
    r"update|patch|section|sections|sec|chapter|clause|figure|fig|table|appendix|paragraph|abschnitt|kapitel|article|§+"
)


def ipv4_at(raw: bytes, start: int, end: int, public_only: bool) -> Find | None:
    """Four numbers parted by dots. Those that are all of one digit, or follow a word such as "version" or "section", or a name and a
    slash (Server/2.4.41.17), are no address."""
    if not raw[start:end].isascii():
        return None
    parts = raw[start:end].decode().split(".")
    if any(len(part) > 3 or len(part) > 1 and part[0] == "0" or int(part) > 255 for part in parts):
        return None
    if all(len(part) == 1 for part in parts):
        return None
    before, after = raw[max(0, start - 2) : start], raw[end : end + 2]
    if before[-1:].isalnum() or before[-1:] in (b"_", b".", b"-", b"+") or before[-1:] == b"/" and before != b"//":
        return None
    if after[:1].isalnum() or after[:1] == b"_" or after[:1] in (b".", b"-") and after[1:].isdigit():
        return None
    if _VERSIONS.search(text_before(raw, start)):
        return None
    address = ipaddress.IPv4Address(".".join(parts))
    if public_only and (not address.is_global or address.is_multicast):
        return None
    return Find("ip", start, end)


def ipv6_at(raw: bytes, start: int, end: int, public_only: bool) -> Find | None:
    """A run of hexadecimal digits, colons and dots, without a colon or dot that ends a sentence."""
    text = raw[start:end]
    stripped = text.rstrip(b".")
    if stripped.endswith(b":") and not stripped.endswith(b"::"):
        stripped = stripped[:-1]
    if stripped.startswith(b":") and not stripped.startswith(b"::"):
        start, stripped = start + 1, stripped[1:]
    try:
        address = ipaddress.IPv6Address(stripped.decode())
    except ValueError:
        return None
    if address not in _UNICAST if public_only else not any(c in b"0123456789" for c in stripped):
        return None
    if public_only and not address.is_global:
        return None
    return Find("ip", start, start + len(stripped))
