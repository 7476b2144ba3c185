"""Words looked for in URLs."""

from __future__ import annotations

import re
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from dataproc.kernels.columns import text_buffers
from dataproc.kernels.urls import hashes, word_table

_WORD = re.compile(r"[^\W_]+")


def word_text(url: str) -> str:
    """A URL as words are looked for in it: percent-decoded, lower case."""
    return (unquote(url) if "%" in url else url).lower()


class UrlWords:
    """Finds words in a URL where no letter or digit touches an end of them that is itself a letter or digit."""

    def __init__(self, words: tuple[str, ...]):
        self.plain = frozenset(word for word in words if word.isalnum())
        parts = []
        for word in sorted(set(words) - self.plain, key=lambda word: (-len(word), word)):
            before = r"(?<![^\W_])" if word[0].isalnum() else ""
            after = r"(?![^\W_])" if word[-1].isalnum() else ""
            parts.append(before + re.escape(word) + after)
        self.others = [re.compile(part) for part in parts]
        self._any_other = re.compile("|".join(parts)) if parts else None

    def __bool__(self) -> bool:
        return bool(self.plain or self.others)

    def find(self, text: str) -> str | None:
        """The first plain word in a `word_text`, else the first other one."""
        if not self.plain.isdisjoint(words := _WORD.findall(text)):
            return next(word for word in words if word in self.plain)
        found = self._any_other.search(text) if self._any_other else None
        return found[0] if found else None

    def distinct(self, text: str) -> list[str]:
        """All words in a `word_text`, each once, by name."""
        found = self.plain.intersection(_WORD.findall(text))
        return sorted(found | {match[0] for pattern in self.others if (match := pattern.search(text))})


def first_look(*lists: UrlWords) -> np.ndarray | None:
    """The table by which `may_hold_words` finds URLs with a word of any list; None where a word is not one run of letters and digits, so
    that every URL wants a closer look."""
    if any(words.others for words in lists):
        return None
    plain = sorted(frozenset().union(*(words.plain for words in lists)))
    return word_table(hashes(text_buffers(pa.array(plain, pa.large_string()))))
