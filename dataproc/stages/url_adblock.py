"""Adblock-style lists, by the matcher of the Brave browser (the extra `adblock`)."""

from __future__ import annotations

import importlib.util
from typing import Any

from dataproc.stages.url_lists import list_name, read_text
from dataproc.urls import Address
from store.strict_yaml import DataFile

_PAGE_REQUEST = "document"  # a page as a whole, asked for by itself: rules for images, scripts or third parties say nothing of it


def installed() -> bool:
    return importlib.util.find_spec("adblock") is not None


class AdblockLists:
    """The rules of lists that refuse whole pages: `||host^` with what it may be followed by, `$document`, and the exceptions `@@`."""

    def __init__(self, lists: tuple[DataFile, ...]):
        """Raises ConfigError for a file that is no text."""
        import adblock

        self._engines: list[tuple[str, Any]] = []
        for path in lists:
            rules = adblock.FilterSet(debug=True)  # keeps the text of a rule, which is shown in the verdict
            rules.add_filter_list(read_text(path).decode())
            self._engines.append((list_name(path), adblock.Engine(rules, True)))

    def match(self, address: Address) -> tuple[str, str] | None:
        """(rule, list) of the first list that refuses a page."""
        url = f"http://{address.page}"
        for name, engine in self._engines:
            found = engine.check_network_urls(url, url, _PAGE_REQUEST)
            if found.matched:
                return str(found.filter), name
        return None
