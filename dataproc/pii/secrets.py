"""Keys and tokens that their makers mark with a prefix, JSON web tokens, private keys in PEM blocks; and passwords by their names."""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from typing import NamedTuple

from dataproc.pii.reading import Find

# What a secret must hold to be one and not a place for it (xxxx, 0000, <your key>): Shannon entropy of its characters in bits. 16 random
# characters have 3.6 on average, never below 3 in practice.
LEAST_ENTROPY = 3.0
_LONGEST_PEM = 20_000
_AFTER = rb"(?![A-Za-z0-9_])"


class Shape(NamedTuple):
    """A secret begins with `prefix`, whose byte number `anchor` is the rarest in text, and is what `pattern` matches; group 1 is what was
    drawn at random."""

    prefix: str
    anchor: int
    pattern: re.Pattern[bytes]


def _shape(prefix: str, anchor: int, rest: bytes) -> Shape:
    return Shape(prefix, anchor, re.compile(re.escape(prefix.encode()) + rest + _AFTER))


_MIXED = rb"((?=[A-Za-z_-]*[0-9])(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{32,300})"
SHAPES = (
    _shape("AKIA", 1, rb"([A-Z0-9]{16})"),  # AWS
    _shape("ASIA", 1, rb"([A-Z0-9]{16})"),
    *(_shape(f"gh{letter}_", 3, rb"([A-Za-z0-9]{36,251})") for letter in "pousr"),  # GitHub
    _shape("github_pat_", 6, rb"([A-Za-z0-9_]{40,251})"),
    _shape("glpat-", 5, rb"([A-Za-z0-9_-]{20,64})"),  # GitLab
    _shape("xox", 2, rb"[abeoprs]-([A-Za-z0-9-]{10,250})"),  # Slack
    _shape("hooks.slack.com/", 15, rb"services/(T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{16,48})"),
    _shape("AIza", 2, rb"([A-Za-z0-9_-]{35})"),  # Google
    *(_shape(f"{kind}_{mode}_", 2, rb"([A-Za-z0-9]{16,250})") for kind in ("sk", "rk") for mode in ("live", "test")),  # Stripe
    _shape("whsec_", 5, rb"([A-Za-z0-9]{24,80})"),
    _shape("sk-", 2, _MIXED),  # OpenAI, Anthropic and others
    _shape("npm_", 3, rb"([A-Za-z0-9]{36})"),
    _shape("pypi-", 4, rb"(AgE[A-Za-z0-9_-]{50,300})"),
    _shape("hf_", 2, rb"([A-Za-z0-9]{30,40})"),  # Hugging Face
    _shape("SG.", 1, rb"([A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})"),  # SendGrid
    Shape("eyJ", 2, re.compile(rb"(eyJ[A-Za-z0-9_-]{8,4000})\.eyJ[A-Za-z0-9_-]{4,16000}\.[A-Za-z0-9_-]{16,2000}" + _AFTER)),
    Shape("-----BEGIN", 5, re.compile(rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")),
)
_END = re.compile(rb"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BASE64 = rb"[A-Za-z0-9+/=]"
_BASE64_LINES = re.compile(rb"(?:(?:\s|\\n|[\"',])*" + _BASE64 + rb"{16,})*")  # as they stand in a file, or in a string of code
_KEY_LINE = re.compile(_BASE64 + rb"{32,}")


def secret_at(raw: bytes, start: int, number: int) -> Find | None:
    """The secret of SHAPES[number] that begins at a byte."""
    shape = SHAPES[number]
    found = shape.pattern.match(raw, start)
    if not found:
        return None
    if shape.prefix == "-----BEGIN":
        return _pem(raw, start, found.end())
    if shape.prefix == "eyJ":
        return Find("secret", start, found.end()) if _is_header(found[1]) else None
    return Find("secret", start, found.end()) if entropy(found[1]) >= LEAST_ENTROPY else None


# `db_password = "..."`, `"apiKey": "..."`, `export TOKEN=...`: group 1 is the value.
_ASSIGNED = re.compile(
    rb"(?:password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key|token)[\"'\]]{0,2}[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,4}[\"'`]?"
    rb"([^\s\"'`<>{}()\[\],;$]{8,200})",
    re.IGNORECASE,
)


def passwords(raw: bytes) -> list[Find]:
    """Values of at least eight bytes, with a letter and a digit and the entropy of a secret, that are assigned to a name which ends with
    "password", "token" or the like."""
    found = []
    for match in _ASSIGNED.finditer(raw):
        value = match[1].rstrip(b".:")
        if len(value) >= 8 and re.search(rb"[0-9]", value) and re.search(rb"[A-Za-z]", value) and entropy(value) >= LEAST_ENTROPY:
            found.append(Find("password", match.start(1), match.start(1) + len(value)))
    return found


def entropy(token: bytes) -> float:
    """Shannon entropy of a token's bytes, in bits per byte."""
    return -sum(n / len(token) * math.log2(n / len(token)) for n in Counter(token).values())


def _is_header(part: bytes) -> bool:
    """Whether a part of a JSON web token is its header: a JSON object with `alg` (RFC 7515)."""
    try:
        value = base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))
    except ValueError:
        return False
    return value.startswith(b"{") and re.search(rb'"alg"\s*:', value) is not None


def _pem(raw: bytes, start: int, body: int) -> Find | None:
    """A block from its first line to its last or, where that is missing, to the end of what looks like base64. One without a key in it
    (an example) is none."""
    last = _END.search(raw, body, min(len(raw), body + _LONGEST_PEM))
    end = last.start() if last else _BASE64_LINES.match(raw, body, min(len(raw), body + _LONGEST_PEM)).end()
    key = _KEY_LINE.search(raw, body, end)
    if not key or entropy(key[0]) < LEAST_ENTROPY:
        return None
    return Find("secret", start, last.end() if last else end)
