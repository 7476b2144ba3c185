"""The one form in which URLs are compared: host, path and query as a browser would ask for them, whatever their dress.

Follows the URL Standard (https://url.spec.whatwg.org, host parsing and IPv4 parser) where it decides which machine is asked; what only
tells one spelling of a page from another (case, default pages) is compared more loosely, so that a listed page cannot be respelt.
"""

from __future__ import annotations

import functools
import ipaddress
import posixpath
import re
from typing import NamedTuple
from urllib.parse import unquote

import idna
from publicsuffixlist import PublicSuffixList

# Scheme, user and password, host, port; path; query. As browsers read it: any number of slashes after http(s), either kind.
_URL = re.compile(
    r"(?:https?:[/\\]*|(?:[a-z][a-z0-9+.-]*:)?[/\\]{2})?(?:[^/?#@\\]*@)*(\[[^\]/]*\]|[^/?#\\:]*)(?::[^/?#\\]*)?([^?#]*)(?:\?([^#]*))?",
    re.IGNORECASE,
)
_AROUND = "".join(map(chr, range(33)))  # browsers strip control characters and spaces around a URL,
_INSIDE = str.maketrans("", "", "\t\n\r")  # and these anywhere in it
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_DOTS = str.maketrans("。．｡", "...")
_IPV4_PARTS, _BYTE = 4, 256


class Address(NamedTuple):
    """A URL's parts in normal form. The host is empty where there is none."""

    host: str
    path: str  # percent-decoded, lower case, without `.`, `..`, empty segments and a last slash; "" or beginning with "/"
    query: str  # percent-decoded, lower case

    @property
    def page(self) -> str:
        """What names one page: host, path and query."""
        return f"{self.host}{self.path}?{self.query}" if self.query else self.host + self.path


def parse(url: str) -> Address:
    """The parts of a URL, also of one without a scheme. Never raises."""
    found = _URL.match(url.strip(_AROUND).translate(_INSIDE))
    return Address(normal_host(found[1]), normal_path(found[2]), unquote(found[3] or "").lower())


def split_url(url: str) -> tuple[str, str]:
    """(normal host, normal path) of a URL."""
    return parse(url)[:2]


def normal_host(host: str) -> str:
    """Lower case, Unicode names as punycode (UTS 46), addresses in their usual form, without a trailing dot or a leading `www.`."""
    if "%" in host:
        host = unquote(host).translate(_INSIDE)
    host = host.strip().lower()
    if host.startswith("["):
        return _ipv6(host)
    if not host.isascii():
        host = _punycode(host)
    host = host.rstrip(".")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return _ipv4(host) or host
    return host.removeprefix("www.")


def _punycode(host: str) -> str:
    """A name as it is asked for. One that UTS 46 forbids is compared as it is written, only its dots made plain."""
    try:
        host = idna.uts46_remap(host, std3_rules=False, transitional=False)
    except idna.IDNAError:
        return host.translate(_DOTS)
    return ".".join(part if part.isascii() else "xn--" + part.encode("punycode").decode("ascii") for part in host.split("."))


def _ipv4(host: str) -> str | None:
    """`a.b.c.d` of an address in one to four parts, each decimal, octal (0) or hexadecimal (0x); None where it is none."""
    parts = host.split(".")
    if len(parts) > _IPV4_PARTS or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:  # 8 or 9 in an octal number, or more digits than Python reads
        return None
    *first, last = numbers
    if any(number >= _BYTE for number in first) or last >= _BYTE ** (_IPV4_PARTS + 1 - len(parts)):
        return None
    value = last + sum(number * _BYTE ** (_IPV4_PARTS - 1 - place) for place, number in enumerate(first))
    return str(ipaddress.IPv4Address(value))


def _number(part: str) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") else 10)


def _ipv6(host: str) -> str:
    """The shortest form in brackets; of an IPv4 address in IPv6 form that address."""
    try:
        address = ipaddress.IPv6Address(host.strip("[]").partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped) if address.ipv4_mapped else f"[{address.compressed}]"


def normal_path(path: str) -> str:
    """A path as `Address` holds it."""
    if "%" in path:
        path = unquote(path)
    path = path.replace("\\", "/").lower()
    if "//" in path or "/." in path:
        path = posixpath.normpath(path).replace("//", "/")  # POSIX keeps two slashes at the start
    return path.rstrip("/")


@functools.cache
def _suffixes(icann: bool) -> PublicSuffixList:
    return PublicSuffixList(only_icann=icann)


def registered_domain(host: str) -> str | None:
    """The part of a normal host that somebody registered, by the public suffix list with its private part: `b.co.uk` of `a.b.co.uk`,
    `x.github.io` of `x.github.io`. None for an address and for a public suffix itself."""
    if host.startswith("[") or _NUMBER.fullmatch(host.rpartition(".")[2]):
        return None
    return _suffixes(icann=False).privatesuffix(host)


@functools.lru_cache(1 << 16)
def is_registry(host: str) -> bool:
    """Whether names below a normal host are sold to anybody by a registry (`com`, `co.uk`), by the list's ICANN part."""
    return _suffixes(icann=True).publicsuffix(host, accept_unknown=False) == host
