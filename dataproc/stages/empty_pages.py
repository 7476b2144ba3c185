"""Why a page gave no text, for the decision ledger: an empty page of frames is another matter than one that a script fills."""

from __future__ import annotations

import re
from typing import Any

from dataproc.charset import decode
from dataproc.kernels.markup import page_text
from dataproc.stages.page_meta import without_comments

_SIGNS = {
    "only frames": re.compile(r"<i?frame(?:set)?\b", re.IGNORECASE),
    "meta refresh": re.compile(r"""<meta\b[^<>]{0,500}http-equiv\s*=\s*["']?refresh""", re.IGNORECASE),
    "only script": re.compile(r"<script\b", re.IGNORECASE),
}
_BODY = re.compile(r"<body\b", re.IGNORECASE)
_REFRESH_BYTES = 500  # a page that sends its reader on may say so in a sentence


def why_empty(payload: bytes, charset: str | None) -> dict[str, Any]:
    """{reason, page_bytes, text_bytes}. Reasons: no bytes, no body, no text, only frames, meta refresh, only script, and, where there is
    text outside of menus, too little text (the engine found none that is main text). text_bytes: in UTF-8, without white space."""
    if not payload.strip():
        return {"reason": "no bytes", "page_bytes": len(payload), "text_bytes": 0}
    page = without_comments(decode(payload, charset).text)
    visible = page_text(page.encode("utf-8", "replace")).visible
    return {"reason": _reason(page, visible), "page_bytes": len(payload), "text_bytes": visible}


def _reason(page: str, visible: int) -> str:
    if visible:
        return "meta refresh" if visible < _REFRESH_BYTES and _SIGNS["meta refresh"].search(page) else "too little text"
    found = next((reason for reason, sign in _SIGNS.items() if sign.search(page)), None)
    return found or ("no text" if _BODY.search(page) else "no body")
