"""Line rules: which lines of a text stay, and what is cut out of them."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import yaml

# Raffel et al. 2020, section 2.2: lines end in a terminal punctuation mark and have at least three words; lines with "javascript" or
# a policy phrase go; citation marks of Wikipedia are cut out. Lines with a word of more than 1000 characters go, as in their code.
C4_ENDINGS = (".", "!", "?", '"')
C4_ELLIPSIS = "..."
C4_LEAST_WORDS = 3
C4_LONGEST_WORD = 1000
C4_PHRASES = ("javascript", "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
_CITATIONS = re.compile(r"\[(?:\d{1,4}|edit|citation needed)\]", re.I)
BOILERPLATE_MOST_WORDS = 10


def keep_c4(line: str) -> str | None:
    """The line without citation marks, or None when a rule of C4 drops it. A blank line stays: it separates paragraphs."""
    if not line.strip():
        return line
    line = _CITATIONS.sub("", line).rstrip()
    if not line.endswith(C4_ENDINGS) or line.endswith(C4_ELLIPSIS):
        return None
    words = line.split()
    if len(words) < C4_LEAST_WORDS or any(len(word) > C4_LONGEST_WORD for word in words):
        return None
    lowered = line.lower()
    return None if any(phrase in lowered for phrase in C4_PHRASES) else line


def keep_boilerplate(line: str) -> str | None:
    """The line, or None when it is one of the known lines of a page's frame."""
    stripped = line.strip()
    if len(stripped.split()) > BOILERPLATE_MOST_WORDS or not stripped:
        return line
    return None if _boilerplate().fullmatch(stripped) else line


@functools.cache
def _boilerplate() -> re.Pattern[str]:
    patterns = yaml.safe_load((Path(__file__).parent / "boilerplate.yaml").read_text())
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns).replace("#", r"\d[\d.,]*k?"), re.I)


LINE_RULES = {"c4": keep_c4, "boilerplate": keep_boilerplate}


def edit_lines(text: str, rules: tuple[str, ...]) -> tuple[str, float, float]:
    """(text, share of its non-blank lines that were dropped, share of its characters that were cut) after the named rules."""
    lines = text.split("\n")
    kept: list[str] = []
    for line in lines:
        edited: str | None = line
        for name in rules:
            edited = LINE_RULES[name](edited)
            if edited is None:
                break
        if edited is not None:
            kept.append(edited)
    result = "\n".join(kept)
    before = sum(1 for line in lines if line.strip())
    after = sum(1 for line in kept if line.strip())
    return result, (before - after) / before if before else 0.0, (len(text) - len(result)) / len(text) if text else 0.0
