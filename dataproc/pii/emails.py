"""E-mail addresses around an @: a local part of dots and words, a domain with a top level of letters (RFC 5321 lengths)."""

from __future__ import annotations

import re

from dataproc.pii.reading import Find

_LATIN = rb"\xc3[\x80-\x96\x98-\xb6\xb8-\xbf]|[\xc4-\xc9][\x80-\xbf]"  # letters beyond ASCII: a name may have an accent
_LOCAL = re.compile(rb"(?:[A-Za-z0-9._%+'&-]|" + _LATIN + rb")+\Z")
_LABEL = rb"(?:[A-Za-z0-9]|" + _LATIN + rb")(?:(?:[A-Za-z0-9-]|" + _LATIN + rb"){0,61}(?:[A-Za-z0-9]|" + _LATIN + rb"))?"
_DOMAIN = re.compile(rb"(?:" + _LABEL + rb"\.){1,8}(?:xn--[A-Za-z0-9-]{2,59}|[A-Za-z]{2,24})(?![A-Za-z0-9_@]|-[A-Za-z0-9])")
_LONGEST_LOCAL, _LONGEST_DOMAIN = 64, 253
# Endings of files that are no top-level domains: logo@2x.png is a picture.
_FILES = frozenset(
    b"png jpg jpeg gif svg webp bmp ico css js json html htm xml yml yaml txt pdf php exe dll jar tar gz tgz csv tsv".split()
)


def email_at(raw: bytes, at: int) -> Find | None:
    """The address around the @ at byte `at`."""
    local = _LOCAL.search(raw[max(0, at - 2 * _LONGEST_LOCAL - 2) : at])
    domain = _DOMAIN.match(raw, at + 1, at + 1 + _LONGEST_DOMAIN + 1)
    if not local or not domain:
        return None
    name = local[0].lstrip(b".%+'&-")
    if not name or len(name) > _LONGEST_LOCAL or name.endswith(b".") or b".." in name:
        return None
    if domain[0].rpartition(b".")[2].lower() in _FILES:
        return None
    if name == b"git" and raw[domain.end() : domain.end() + 1] == b":":  # git@host:path is a repository
        return None
    return Find("email", at - len(name), domain.end())
