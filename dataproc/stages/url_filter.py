"""Cheap refusals by URL: lists of domains, allowed domains, words in the URL."""

from __future__ import annotations

import gzip
import re
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, ValidationInfo

from dataproc.stages.base import Stage, StageContext, StageResult, Verdict
from store import files
from store.strict_yaml import DataFile, StrictModel, locate

_LIST_ENDINGS = (".txt", ".gz", ".list", ".csv")
_HOST = re.compile(r"[^\s#,;]+")
_HOSTS_FILE_ADDRESSES = {"0.0.0.0", "127.0.0.1", "::1", "::"}


def _domain_or_file(value: str, info: ValidationInfo) -> str:
    """A file that lists domains (it must exist), or one domain."""
    base = (info.context or {}).get("base")
    found = locate(value, base)
    if "/" in value or value.lower().endswith(_LIST_ENDINGS):
        if not files.exists(found):
            raise ValueError(f"file not found: {value}")
        return DataFile(found)
    domain = normal_host(value)
    if not domain:
        raise ValueError(f"{value!r} is neither a file nor a domain")
    return domain


DomainList = Annotated[str, AfterValidator(_domain_or_file)]


class UrlFilterConfig(StrictModel):
    """Domains are given one by one or as files: a domain a line, `#` comments, hosts-file lines, .gz. A domain means its subdomains too."""

    block_domains: tuple[DomainList, ...] = ()
    allow_domains: tuple[DomainList, ...] = ()  # when given, only these pass
    block_url_words: tuple[str, ...] = ()


class UrlFilter(Stage):
    """Drops records by their URL, before anything is paid for their content. Records without a URL pass.

    Rules: blocked_domain, not_allowed_domain, blocked_word. A word is found in the decoded URL in any case, where no letter or digit
    touches it: `porn` finds /PORN/ and free-porn.example, but not /pornography or /popcorn.
    """

    name = "url_filter"
    Config = UrlFilterConfig
    inputs = ("url",)

    def open(self, context: StageContext) -> None:
        self._blocked = _load(self.config.block_domains)
        self._allowed = _load(self.config.allow_domains)
        words = "|".join(sorted(re.escape(word.lower()) for word in self.config.block_url_words))
        self._words = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])") if words else None

    def process(self, batch):
        verdicts = []
        for row, url in enumerate(batch.column("url").to_pylist()):
            if url and (found := self._judge(url)):
                verdicts.append(Verdict(row, found[0], detail={"matched": found[1]} if found[1] else {}))
        return StageResult(batch, verdicts)

    def _judge(self, url: str) -> tuple[str, str | None] | None:
        host = host_of(url)
        if self._blocked and (match := _listed(host, self._blocked)):
            return "blocked_domain", match
        if self.config.allow_domains and not _listed(host, self._allowed):
            return "not_allowed_domain", host or None
        if self._words and (word := self._words.search(unquote(url).lower())):
            return "blocked_word", word[0]
        return None


def host_of(url: str) -> str:
    """The normalised host of a URL; empty where there is none. Also reads URLs without a scheme."""
    text = url.strip()
    try:
        host = urlsplit(text if "://" in text or text.startswith("//") else f"//{text}").hostname
    except ValueError:
        return ""
    return normal_host(host or "")


def normal_host(host: str) -> str:
    """Lower case, Unicode names as punycode, without a port, a trailing dot or a leading `www.`."""
    host = host.strip().lower().rstrip(".").split(":")[0] if not host.startswith("[") else host.lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            return host
    return host.removeprefix("www.")


def _listed(host: str, domains: frozenset[str]) -> str | None:
    """The listed domain that a host is, or is below."""
    while host:
        if host in domains:
            return host
        _, _, host = host.partition(".")
    return None


def _load(entries: tuple[str, ...]) -> frozenset[str]:
    domains: set[str] = set()
    for entry in entries:
        if isinstance(entry, DataFile):
            domains.update(_read_list(entry))
        else:
            domains.add(entry)
    return frozenset(domains)


def _read_list(url: str) -> Any:
    data = files.read_bytes(url)
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")
    for line in text.splitlines():
        words = _HOST.findall(line.split("#", 1)[0])
        if words and words[0] in _HOSTS_FILE_ADDRESSES:
            words = words[1:]
        if words and (host := normal_host(words[0])):
            yield host
