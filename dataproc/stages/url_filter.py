"""Cheap refusals by URL: lists of domains, allowed domains, words in the URL."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from typing import Annotated
from urllib.parse import unquote

from pydantic import AfterValidator, ValidationInfo

from dataproc.stages.base import Stage, StageContext, StageResult, Verdict
from store import files
from store.errors import ConfigError
from store.strict_yaml import DataFile, StrictModel, locate

_LIST_ENDINGS = (".txt", ".gz", ".list", ".csv")
_HOSTS_FILE_ADDRESSES = {"0.0.0.0", "127.0.0.1", "::1", "::"}
# Scheme, user and password, host, port; then the path. As browsers read it: any number of slashes after http(s), either kind.
_URL = re.compile(
    r"\s*(?:https?:[/\\]*|(?:[a-z][a-z0-9+.-]*:)?//)?(?:[^/?#@\\]*@)*(\[[^\]/]*\]|[^/?#\\:]*)(?::[^/?#\\]*)?([^?#]*)", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")
_WORD_ENDS = bytes(code if chr(code).isalnum() else 32 for code in range(256))  # for ASCII
# A normalised host -> the paths that are listed on it; no path means the whole domain.
Listed = dict[str, tuple[str, ...]]


def _domain_or_file(value: str, info: ValidationInfo) -> str:
    """A file that lists domains (it must exist), or one domain."""
    names_list = value.lower().endswith(_LIST_ENDINGS)
    page = value.lower().startswith(("http://", "https://")) and not names_list  # `https://example.org/`: that domain
    if value.strip() and not page:
        found = locate(value, (info.context or {}).get("base"))
        if files.exists(found) and not (files.is_local(found) and os.path.isdir(found)):
            return DataFile(found)
        if names_list or not files.is_local(value):
            raise ValueError(f"file not found: {value}")
    domain, path = split_url(value)
    if path.strip("/") and "." not in domain:
        raise ValueError(f"file not found: {value}")
    if not domain or "." not in domain:
        raise ValueError(f"{value!r} is neither a file nor a domain")
    return domain + path.rstrip("/")


def _word(value: str) -> str:
    if not value.strip():
        raise ValueError("a word is empty: it would match every URL")
    return value.strip().lower()


DomainList = Annotated[str, AfterValidator(_domain_or_file)]
UrlWord = Annotated[str, AfterValidator(_word)]


class UrlFilterConfig(StrictModel):
    """Domains are given one by one or as files: a domain a line, `#` comments, hosts-file lines, .gz. A domain means its subdomains
    too; an entry with a path (`example.org/adult`) means what lies under that path."""

    block_domains: tuple[DomainList, ...] = ()
    allow_domains: tuple[DomainList, ...] = ()  # when given, only these pass
    block_url_words: tuple[UrlWord, ...] = ()


class UrlFilter(Stage):
    """Drops records by their URL, before anything is paid for their content. Records without a URL pass; one whose URL has no host
    passes too, unless `allow_domains` is given.

    Rules: blocked_domain, not_allowed_domain, blocked_word. A word is found in the percent-decoded URL in any case, where no letter or
    digit touches it: `porn` finds /PORN/ and free-porn.example, but not /pornography or /popcorn.
    """

    name = "url_filter"
    Config = UrlFilterConfig
    inputs = ("url",)

    def open(self, context: StageContext) -> None:
        self._blocked = load_domains(self.config.block_domains)
        self._allowed = load_domains(self.config.allow_domains)
        self._words = UrlWords(self.config.block_url_words)

    def process(self, batch):
        verdicts = []
        for row, url in enumerate(batch.column("url").to_pylist()):
            if url and (found := self._judge(url)):
                verdicts.append(Verdict(row, found[0], detail={"matched": found[1]} if found[1] else {}))
        return StageResult(batch, verdicts)

    def _judge(self, url: str) -> tuple[str, str] | None:
        """(rule, what matched) where the URL is refused."""
        host, path = split_url(url)
        if self._blocked and (match := match_domain(host, path, self._blocked)):
            return "blocked_domain", match
        if self.config.allow_domains and not match_domain(host, path, self._allowed):
            return "not_allowed_domain", host
        word = self._words.find((unquote(url) if "%" in url else url).lower())
        return ("blocked_word", word) if word else None


def split_url(url: str) -> tuple[str, str]:
    """(normalised host, path) of a URL, also of one without a scheme. The host is empty where there is none."""
    found = _URL.match(url)
    return normal_host(found[1]), found[2]


def normal_host(host: str) -> str:
    """Lower case, Unicode names as punycode, without a trailing dot or a leading `www.`."""
    if "%" in host:
        host = unquote(host)
    host = host.strip().lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:  # no valid name (a label too long, a forbidden character): compared as it is written
            return host
    return host.rstrip(".").removeprefix("www.")


def match_domain(host: str, path: str, listed: Listed) -> str | None:
    """The listed entry that a host is, or is below, and that its path lies under."""
    while host:
        paths = listed.get(host)
        if paths is not None:
            if not paths:
                return host
            under = next((p for p in paths if path == p or path.startswith(p + "/")), None)
            if under:
                return host + under
        _, _, host = host.partition(".")
    return None


def load_domains(entries: tuple[str, ...]) -> Listed:
    """All domains that the entries (domains, or DataFiles that list them) name. Raises ConfigError for a file that is not a list."""
    listed: Listed = {}
    for entry in entries:
        for item in _read_list(entry) if isinstance(entry, DataFile) else (entry,):
            host, path = split_url(item)
            path = path.rstrip("/")
            if not path:
                listed[host] = ()
            elif listed.get(host) != ():
                listed[host] = (*listed.get(host, ()), path)
    listed.pop("", None)
    return listed


def _read_list(url: str) -> Iterator[str]:
    data = files.read_bytes(url)
    try:
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise ConfigError(f"url_filter: {url} is not a list of domains (text or gzip): {error}") from error
    for line in text.splitlines():
        words = re.split(r"[\s,;]+", line.split("#", 1)[0].strip())
        if words[0] in _HOSTS_FILE_ADDRESSES:
            yield from words[1:]
        elif words[0]:
            yield words[0].strip("|^*").lstrip(".")  # also *.example.org and ||example.org^


class UrlWords:
    """Finds words in a URL where no letter or digit touches an end of them that is itself a letter or digit."""

    def __init__(self, words: tuple[str, ...]):
        self._plain = frozenset(word for word in words if word.isalnum())
        parts = []
        for word in sorted(set(words) - self._plain, key=lambda word: (-len(word), word)):
            before = r"(?<![^\W_])" if word[0].isalnum() else ""
            after = r"(?![^\W_])" if word[-1].isalnum() else ""
            parts.append(before + re.escape(word) + after)
        self._others = re.compile("|".join(parts)) if parts else None

    def find(self, url: str) -> str | None:
        """The first word found in a lower-case URL."""
        if self._plain:
            # A set of the URL's own words is several times as fast as one regular expression with all listed words.
            words = url.encode().translate(_WORD_ENDS).decode().split() if url.isascii() else _WORD.findall(url)
            if not self._plain.isdisjoint(words):
                return next(word for word in words if word in self._plain)
        found = self._others.search(url) if self._others else None
        return found[0] if found else None
