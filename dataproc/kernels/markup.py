"""The text between the tags of a page, found by one walk over its bytes and without a parser: enough to guess its language.

What browsers do not show as text (scripts, styles) and what seldom is what a page is about (navigation, forms) is passed over. The rest
is cut into blocks at every element that breaks a line, and of each block it is known how much of it is link text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dataproc.kernels.compiling import kernel, ready

LEAST_BLOCK_BYTES = 40  # shorter blocks are menu entries and captions
# Elements whose content is passed over, where they are closed at all.
_SKIPPED = "script style title noscript template textarea svg select button nav footer aside iframe math".split()
_INLINE = (
    "a abbr acronym b bdi bdo big cite code data del em font i img ins kbd label mark q s samp small span strike strong sub sup time tt u"
    " var wbr"
).split()
_LT, _GT, _SLASH, _BANG, _QUERY, _DASH, _QUOTE, _APOSTROPHE, _SPACE = (ord(c) for c in "<>/!?-\"' ")
_NAME_BYTES = 8  # of a name are looked at


def _packed(names: list[str]) -> np.ndarray:
    return np.array([int.from_bytes(name.encode()[:_NAME_BYTES], "big") for name in names], np.uint64)


SKIPPED, INLINE, LINK = _packed(_SKIPPED), _packed(_INLINE), np.uint64(ord("a"))


@kernel
def _name_at(data, i, end):
    """The first eight letters and digits from i on, in lower case, as one number; 0 where there are none."""
    name = np.uint64(0)
    stop = min(end, i + _NAME_BYTES)
    while i < stop:
        c = data[i]
        if 65 <= c <= 90:
            c += 32
        if not (97 <= c <= 122 or 48 <= c <= 57):
            break
        name = (name << np.uint64(8)) | np.uint64(c)
        i += 1
    return name


@kernel
def _is_in(name, names):
    found = False
    for other in names:
        found |= name == other
    return found


@kernel
def _after_comment(data, i, end):
    """Where a comment ends that began before i; `end` where it does not."""
    while i + 2 < end:
        if data[i] == _DASH and data[i + 1] == _DASH and data[i + 2] == _GT:
            return i + 3
        i += 1
    return end


@kernel
def _after_tag(data, i, end, unclosed):
    """Where a tag ends whose name began at i. A quote that is never closed quotes nothing: unclosed[0:2] remembers from where on no
    double and no single one is left, so that each is looked for in vain only once."""
    while i < end:
        c = data[i]
        if c == _GT:
            return i + 1
        if c in (_QUOTE, _APOSTROPHE):
            which = 0 if c == _QUOTE else 1
            if i < unclosed[which]:
                j = i + 1
                while j < end and data[j] != c:
                    j += 1
                if j < end:
                    i = j
                else:
                    unclosed[which] = i
        i += 1
    return end


@kernel
def _closing(data, i, end, name):
    """Where `</name` stands from i on; -1 where it does not."""
    while i + 2 < end:
        if data[i] == _LT and data[i + 1] == _SLASH and _name_at(data, i + 2, end) == name:
            return i
        i += 1
    return -1


@kernel
def blocks_of(data, end, out, blocks, state):
    """The blocks of a page. data: (n,) uint8, in a set in which ASCII is ASCII; out: (>= end + 1,) uint8, gets their text, white space
    joined; blocks: (end // LEAST_BLOCK_BYTES + 1, 3) int64, gets [start, stop in out, bytes of link text]; state: (2 + len(SKIPPED),)
    int64 scratch, of which the first gets the bytes of all text, short blocks too, without white space. Returns how many blocks of
    LEAST_BLOCK_BYTES or more there are. Time is linear in the page, whatever it holds."""
    for k in range(len(state)):
        state[k] = end  # up to where an end of this kind may still be found
    found, used, start, linked, in_link, visible, i = 0, 0, 0, 0, False, 0, 0
    while i <= end:
        breaks = i == end
        if i < end and data[i] == _LT and i + 1 < end:
            c = data[i + 1]
            closes = c == _SLASH
            first = i + 2 if closes else i + 1
            name = _name_at(data, first, end)
            if name == 0 and not (closes or c in (_BANG, _QUERY)):
                out[used] = _LT  # a "less than"
                used += 1
                i += 1
                continue
            if c == _BANG and i + 3 < end and data[i + 2] == _DASH and data[i + 3] == _DASH:
                i = _after_comment(data, i + 2, end)
                continue
            i = _after_tag(data, first, end, state)
            if name == LINK:
                in_link = not closes
            breaks = not _is_in(name, INLINE)
            if breaks and not closes:
                for k in range(len(SKIPPED)):
                    if name == SKIPPED[k] and i < state[2 + k]:
                        at = _closing(data, i, end, name)
                        if at < 0:
                            state[2 + k] = i
                        else:
                            i = at
        elif i < end:
            c = data[i]
            if c > _SPACE:
                out[used] = c
                used += 1
                visible += 1
                linked += in_link
            elif used > start and out[used - 1] != _SPACE:
                out[used] = _SPACE
                used += 1
            i += 1
        if breaks:
            if used - start >= LEAST_BLOCK_BYTES:
                blocks[found, 0], blocks[found, 1], blocks[found, 2] = start, used, linked
                found += 1
                start = used
            else:
                used = start
            linked = 0
            if i == end:
                break
    state[0] = visible
    return found


@dataclass(frozen=True)
class PageText:
    """text: (n,) uint8, in the page's own encoding; blocks: (k, 3) int64 of [start, stop in text, bytes of link text]; visible: bytes of
    all text on the page, without white space."""

    text: np.ndarray
    blocks: np.ndarray
    visible: int


def page_text(page: bytes) -> PageText:
    """The text of a page in a set in which ASCII is ASCII, in blocks."""
    data = np.frombuffer(page, np.uint8)
    out = np.empty(len(data) + 1, np.uint8)
    blocks = np.empty((len(data) // LEAST_BLOCK_BYTES + 1, 3), np.int64)
    state = np.empty(2 + len(SKIPPED), np.int64)
    with ready(blocks_of):
        found = blocks_of(data, len(data), out, blocks, state)
    return PageText(out, blocks[:found], int(state[0]))
