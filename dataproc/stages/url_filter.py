"""Cheap refusals by URL: lists of domains, paths and pages, category folders, adblock rules, words in the URL."""

from __future__ import annotations

import os
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from dataproc.kernels.columns import TextBuffers, text_buffers
from dataproc.kernels.urls import may_hold_words
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict
from dataproc.stages.url_adblock import AdblockLists, installed
from dataproc.stages.url_index import open_index
from dataproc.stages.url_lists import UrlList, list_name, read_words
from dataproc.stages.url_words import UrlWords, first_look, word_text
from dataproc.urls import parse
from store import files
from store.strict_yaml import DataFile, ExistingFile, StrictModel, locate, unknown_key

_LIST_ENDINGS = (".txt", ".gz", ".list", ".csv")
_CATEGORY_FILES = ("domains", "domains.gz", "urls", "urls.gz")


def _named_file(value: str, info: ValidationInfo) -> DataFile | None:
    """The file that a value names, if it is there. Raises ValueError for one that can only be a file and is not there."""
    names_list = value.lower().endswith(_LIST_ENDINGS)
    page = value.lower().startswith(("http://", "https://")) and not names_list  # `https://example.org/`: that domain
    if not value.strip() or page:
        return None
    found = locate(value, (info.context or {}).get("base"))
    if files.exists(found) and not (files.is_local(found) and os.path.isdir(found)):
        return DataFile(found)
    if names_list or not files.is_local(value):
        raise ValueError(f"file not found: {value}")
    return None


def _domain_or_file(value: str, info: ValidationInfo) -> str:
    """A file that lists domains (it must exist), or one domain."""
    if found := _named_file(value, info):
        return found
    address = parse(value.removeprefix("*."))
    if address.path and "." not in address.host:
        raise ValueError(f"file not found: {value}")
    if "." not in address.host and not address.host.startswith("["):
        raise ValueError(f"{value!r} is neither a file nor a domain")
    return address.host + address.path


def _page_or_file(value: str, info: ValidationInfo) -> str:
    """A file that lists URLs (it must exist), or one URL."""
    if found := _named_file(value, info):
        return found
    if not value.lower().startswith(("http://", "https://")):
        raise ValueError(f"{value!r} is neither a file nor a URL")
    return value


def _word_or_file(value: str, info: ValidationInfo) -> str:
    """A file of words (it must exist), or one word."""
    if not value.strip():
        raise ValueError("a word is empty: it would match every URL")
    if value.lower().endswith(_LIST_ENDINGS) and (found := _named_file(value, info)):
        return found
    return value.strip().lower()


DomainList = Annotated[str, AfterValidator(_domain_or_file)]
PageList = Annotated[str, AfterValidator(_page_or_file)]
UrlWord = Annotated[str, AfterValidator(_word_or_file)]


class UrlFilterConfig(StrictModel):
    """Domains are given one by one or as files: a domain a line, `#` comments, hosts-file lines, .gz. A domain means its subdomains
    too; an entry with a path (`example.org/adult`) means what lies under that path. In files a registry's suffix (`co.uk`) means that
    host alone. `categories`: `{folder: DIR, use: [adult]}`, each a folder with files `domains` and `urls`."""

    block_domains: tuple[DomainList, ...] = ()
    allow_domains: tuple[DomainList, ...] = ()  # when given, only these pass
    block_urls: tuple[PageList, ...] = ()  # pages: host, path and query
    categories: dict[str, tuple[ExistingFile, ...]] = {}  # by name: its files
    adblock_lists: tuple[ExistingFile, ...] = ()
    block_url_words: tuple[UrlWord, ...] = ()  # one is enough
    soft_url_words: tuple[UrlWord, ...] = ()  # so many distinct ones are needed:
    soft_words_needed: int = Field(2, ge=1)

    @field_validator("categories", mode="before")
    @classmethod
    def _folders(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("folder"), str):
            return value
        if unknown := sorted(set(value) - {"folder", "use"}):
            raise ValueError(unknown_key(str(unknown[0]), ["folder", "use"]))
        if not isinstance(value.get("use"), list) or not value["use"]:
            raise ValueError("name the categories that are used, for example use: [adult]")
        folder = locate(value["folder"], (info.context or {}).get("base"))
        return {str(name): _category_files(folder, str(name)) for name in value["use"]}

    @field_validator("adblock_lists")
    @classmethod
    def _matcher(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value and not installed():
            raise ValueError("adblock-style lists need the extra adblock: pip install headrace[adblock]")
        return value


def _category_files(folder: str, name: str) -> list[str]:
    paths = [files.join(folder, name, file) for file in _CATEGORY_FILES]
    found = [path for path in paths if files.exists(path)]
    if not found:
        raise ValueError(f"category {name}: neither domains nor urls in {files.join(folder, name)}")
    return found


class UrlFilter(Stage):
    """Drops records by their URL, before anything is paid for their content. Records without a URL pass; one whose URL has no host
    passes too, unless `allow_domains` is given.

    Rules, in the order in which they are tried: blocked_domain, blocked_category, blocked_url, not_allowed_domain, adblock, blocked_word,
    soft_words. A word is found in the percent-decoded URL in any case, where no letter or digit touches it: `porn` finds /PORN/ and
    free-porn.example, but not /pornography or /popcorn.
    """

    name = "url_filter"
    Config = UrlFilterConfig
    inputs = ("url",)

    def open(self, context: StageContext) -> None:
        config = self.config
        blocked = (*domain_lists("blocked_domain", config.block_domains), *_category_lists(config), *_page_lists(config))
        self._blocked = open_index(blocked) if blocked else None
        self._allowed = open_index(domain_lists("allowed", config.allow_domains)) if config.allow_domains else None
        self._adblock = AdblockLists(config.adblock_lists) if config.adblock_lists else None
        self._hard, self._soft = UrlWords(load_words(config.block_url_words)), UrlWords(load_words(config.soft_url_words))
        self._table = first_look(self._hard, self._soft)

    def process(self, batch):
        column = batch.column("url")
        rows = np.flatnonzero(self._may_be_refused(text_buffers(column))).tolist()
        verdicts = [verdict for row in rows if (verdict := self._judge(row, column[row].as_py()))]
        return StageResult(batch, verdicts)

    def _may_be_refused(self, urls: TextBuffers) -> np.ndarray:
        """(rows,) bool: False only where `_judge` would find nothing."""
        given = urls.offsets[1:] > urls.offsets[:-1]
        if self._allowed or self._adblock or self._table is None:
            return given
        found = np.zeros(len(urls), bool)
        if self._blocked:
            found |= self._blocked.may_match(urls)
        if self._hard or self._soft:
            found |= may_hold_words(urls, self._table)
        return found & given

    def _judge(self, row: int, url: str) -> Verdict | None:
        """Why a URL is refused."""
        address = parse(url)
        if self._blocked and (match := self._blocked.match(address)):
            return Verdict(row, match.list.rule, detail=_detail(match.entry, match.list.name))
        if self._allowed and not self._allowed.match(address):
            return Verdict(row, "not_allowed_domain", detail=_detail(address.host))
        if self._adblock and (found := self._adblock.match(address)):
            return Verdict(row, "adblock", detail=_detail(*found))
        text = word_text(url) if self._hard or self._soft else ""
        if self._hard and (word := self._hard.find(text)):
            return Verdict(row, "blocked_word", detail=_detail(word))
        if self._soft and len(words := self._soft.distinct(text)) >= self.config.soft_words_needed:
            return Verdict(row, "soft_words", float(len(words)), float(self.config.soft_words_needed), {"matched": words})
        return None


def _detail(matched: str, name: str = "") -> dict[str, Any]:
    return {"matched": matched} | ({"list": name} if name else {}) if matched else {}


def domain_lists(rule: str, items: tuple[str, ...]) -> tuple[UrlList, ...]:
    """The lists of a setting: the entries that stand in it, then its files."""
    written = tuple(item for item in items if not isinstance(item, DataFile))
    lists = (UrlList(rule, list_name(item), item) for item in items if isinstance(item, DataFile))
    return (*([UrlList(rule, "", written)] if written else []), *lists)


def _category_lists(config: UrlFilterConfig) -> tuple[UrlList, ...]:
    return tuple(
        UrlList("blocked_category", f"{name}/{list_name(path)}", path) for name, paths in config.categories.items() for path in paths
    )


def _page_lists(config: UrlFilterConfig) -> tuple[UrlList, ...]:
    return tuple(UrlList(one.rule, one.name, one.source, pages=True) for one in domain_lists("blocked_url", config.block_urls))


def load_words(items: tuple[str, ...]) -> tuple[str, ...]:
    """Words that are written in a setting and those of its files."""
    return tuple(word for item in items for word in (read_words(item) if isinstance(item, DataFile) else [item]))
