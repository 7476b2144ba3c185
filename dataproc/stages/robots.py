"""What a page asks of robots: `<meta name="robots" content="noindex, noai">`, and the same in X-Robots-Tag headers.

Said to all robots, or to a search or AI crawler by its name: who speaks to one of these means uses like ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from dataproc.stages.page_meta import HEAD_CHARACTERS, meta_elements

Directive = Literal["noindex", "nofollow", "noarchive", "nocache", "nosnippet", "noimageindex", "noai", "noimageai", "noml"]
_ALL = "robots"
_NAMES = frozenset(
    f"{_ALL} googlebot google-extended bingbot duckduckbot applebot applebot-extended yandex baiduspider ccbot gptbot oai-searchbot"
    " chatgpt-user claudebot anthropic-ai perplexitybot bytespider amazonbot meta-externalagent".split()
)
_WITH_VALUE = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
_NONE = ("noindex", "nofollow")  # what `none` stands for


def refused_by(wanted: Collection[str], payload: bytes, header: str | None) -> dict[str, str] | None:
    """{directive, where} of the first wanted directive that a page states, header first; None where it states none. payload: the page
    in any encoding; header: its X-Robots-Tag headers, a line each."""
    for where, stated in (("header", _in_header(header or "")), ("meta", _in_page(payload))):
        for directive in stated:
            if directive in wanted:
                return {"directive": directive, "where": where}
    return None


def _in_page(payload: bytes) -> Iterator[str]:
    head = payload[:HEAD_CHARACTERS].replace(b"\0", b"").decode("latin-1")  # NUL: every other byte of UTF-16
    for name, content in meta_elements(head.lower()):
        if name in _NAMES:
            yield from _directives(content)


def _in_header(header: str) -> Iterator[str]:
    """Of `otherbot: noindex, nofollow` both are said to otherbot; a line begins with what is said to all."""
    for line in header.lower().split("\n"):
        name = _ALL
        for part in line.split(","):
            before, colon, after = part.partition(":")
            if colon and before.strip() not in _WITH_VALUE:
                name, part = before.strip(), after
            if name in _NAMES:
                yield from _directives(part)


def _directives(content: str) -> Iterator[str]:
    for word in content.replace(",", " ").split():
        yield from _NONE if word == "none" else (word,)
