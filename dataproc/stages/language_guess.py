"""A guess at a page's language before its main text is known: from the text between its tags, with a margin.

The guess is there to save the extraction of pages whose language is not kept, and must not cost one that is. Menus and lists of links
are left out, because they may be in another language than the page; the rest is looked at in windows, because a page may be in two. It
is refused only if neither the whole nor any window may be in a kept language. What a page declares about its language is often a
template's: it only makes us ask for more text before we refuse.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np

from dataproc.kernels.markup import PageText, page_text
from dataproc.stages.language import Language
from dataproc.stages.page_meta import declared_language

# Chosen on 6,242 pages in 39 languages, each with its own and with other languages as the only kept one (docs/benchmarks.md).
WINDOWS, WINDOW_BYTES = 6, 300
LEAST_BYTES = 100  # with less text there is no guess
LEAST_BYTES_AGAINST_DECLARED = 1000  # the same where the page declares a kept language
MOST_LINKED = 0.5  # of a block's bytes; more, and it is a menu
LEAST_SCORE = 0.3  # of the language that a page is refused for


@dataclass(frozen=True)
class Guess:
    """language, score: the likeliest one of all windows together; kept: the largest probability that the kept languages have together
    in any window or in all of them, from 0 to 1."""

    language: str
    score: float
    kept: float


def guess(page: str, language: Language) -> Guess | None:
    """What language a page is in, as the opened language stage sees it; None where the page has too little text to tell."""
    found = page_text(page.encode("utf-8", "replace"))
    windows = _windows(found, _least(page, language))
    if not windows:
        return None
    whole = language.probabilities(" ".join(windows))
    if not whole:
        return None
    best = next(iter(whole))
    kept = max(sum(p for name, p in each.items() if language.keeps(name)) for each in (whole, *map(language.probabilities, windows)))
    return Guess(best, min(1.0, whole[best]), min(1.0, float(kept)))


def is_other(found: Guess, language: Language, margin: float) -> bool:
    """Whether a page is plainly in a language that is not kept: what speaks for a kept one is below the margin."""
    return not language.keeps(found.language) and found.score >= LEAST_SCORE and found.kept < margin


def _least(page: str, language: Language) -> int:
    return LEAST_BYTES_AGAINST_DECLARED if language.keeps(declared_language(page)) else LEAST_BYTES


def _windows(page: PageText, least: int) -> list[str]:
    """Up to WINDOWS pieces of WINDOW_BYTES, spread evenly over the blocks that are not mostly links; none with fewer bytes than least."""
    sizes = page.blocks[:, 1] - page.blocks[:, 0]
    blocks = page.blocks[page.blocks[:, 2] < MOST_LINKED * sizes]
    ends = np.cumsum(blocks[:, 1] - blocks[:, 0])
    total = int(ends[-1]) if len(ends) else 0
    if total < least:
        return []
    count = max(1, min(WINDOWS, total // WINDOW_BYTES))
    size = min(total, WINDOW_BYTES)
    starts = [(total - size) * k // max(1, count - 1) for k in range(count)]
    return [html.unescape(_piece(page, blocks, ends, start, size)) for start in starts]


def _piece(page: PageText, blocks: np.ndarray, ends: np.ndarray, start: int, size: int) -> str:
    """`size` bytes of the blocks put together, from the start-th on, as text; a space between blocks."""
    parts, k = [], int(np.searchsorted(ends, start, "right"))
    at = int(blocks[k, 1]) - (int(ends[k]) - start)
    while size > 0 and k < len(blocks):
        part = page.text[at : min(int(blocks[k, 1]), at + size)]
        parts.append(part.tobytes())
        size -= len(part)
        k += 1
        at = int(blocks[k, 0]) if k < len(blocks) else 0
    return b" ".join(parts).decode("utf-8", "ignore")
