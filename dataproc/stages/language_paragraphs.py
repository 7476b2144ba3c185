"""How much of a document is in its language: its paragraphs are labelled one by one, and their letters counted by language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dataproc.kernels.letters import UPPER_CASE, count_letters
from dataproc.kernels.paragraphs import Paragraphs, paragraphs_of
from dataproc.stages.language_facts import macrolanguage
from dataproc.stages.language_labels import Labeller

PARAGRAPH_CHARACTERS = 333  # that are shown of a paragraph, from its start
# A shorter paragraph (a heading, a list mark) and one of which the model is less than half sure count for no language.
PARAGRAPH_LETTERS, PARAGRAPH_SCORE = 20, 0.5
MOST_PARAGRAPHS = 400  # of a document that are looked at; of one that has more, as many at even distances
LEAST_SHARE = 0.05  # of the letters that a language must have to be one of a document's languages

SHARES = ("language_share", "language_second_share", "language_count")


@dataclass(frozen=True)
class Shares:
    """Of a document, by the letters in its paragraphs whose language is told: the share of its own language, the largest share of any
    other (`second`), and how many languages have at least LEAST_SHARE."""

    language_share: float
    language_second_share: float
    language_count: int
    second: str | None


def shares_of(texts: pa.Array, languages: list[str | None], labeller: Labeller, heartbeat: Callable[[], None]) -> list[Shares | None]:
    """texts: no nulls; languages: of the documents. None for a document without a language, or without a paragraph that counts."""
    found = paragraphs_of(texts, by_line=False)
    firsts = np.searchsorted(found.rows, np.arange(len(languages) + 1))
    shares: list[Shares | None] = []
    for row, language in enumerate(languages):
        places = np.arange(firsts[row], firsts[row + 1])
        if len(places) > MOST_PARAGRAPHS:
            places = places[np.arange(MOST_PARAGRAPHS) * len(places) // MOST_PARAGRAPHS]
        shares.append(_shares(language, _by_language(found, places, labeller, heartbeat)) if language else None)
    return shares


def _by_language(found: Paragraphs, places: np.ndarray, labeller: Labeller, heartbeat: Callable[[], None]) -> Counter[str]:
    """Macrolanguage -> letters in the paragraphs that are in it."""
    starts, ends = found.starts[places], found.ends[places]
    letters = count_letters(found.data, starts, ends)
    totals = letters[:, :UPPER_CASE].sum(axis=1)
    long = np.flatnonzero(totals >= PARAGRAPH_LETTERS)
    samples = [_beginning(found.data, int(starts[i]), int(ends[i])) for i in long]
    counted: Counter[str] = Counter()
    for i, label in zip(long.tolist(), labeller.label(samples, letters[long], heartbeat), strict=True):
        if label.language and label.score >= PARAGRAPH_SCORE:
            counted[macrolanguage(label.language)] += int(totals[i])
    return counted


def _beginning(data: np.ndarray, start: int, end: int) -> str:
    """The first characters of a paragraph. A character takes at most four bytes, and one that is cut in two is left out."""
    return data[start : min(end, start + 4 * PARAGRAPH_CHARACTERS)].tobytes().decode(errors="ignore")[:PARAGRAPH_CHARACTERS]


def _shares(language: str, counted: Counter[str]) -> Shares | None:
    total = sum(counted.values())
    if not total:
        return None
    own = macrolanguage(language)
    # Equal shares by name, so that the order of the paragraphs is of no matter.
    others = sorted(((-letters, other) for other, letters in counted.items() if other != own))
    second = others[0] if others else (0, None)
    many = sum(letters >= LEAST_SHARE * total for letters in counted.values())
    return Shares(counted[own] / total, -second[0] / total, many, second[1])
