r"""Formulas of a page as TeX between dollar signs, put into its HTML before an engine sees it: engines drop MathML and scripts.

Known forms: `<script type="math/tex">` (MathJax), MathML with a TeX annotation (KaTeX, Wikipedia, LaTeXML) or with `alttext`, images of
class `tex` or `mwe-math-fallback-image-*` whose `alt` is TeX, and elements of class `math` with `\(..\)`, `\[..\]` or bare TeX (Sphinx,
Pandoc, jsMath). What MathJax and KaTeX draw beside the source (`MathJax_Preview`, `MathJax`, `katex-html`) is left out, so that a formula
does not come twice. MathML without TeX is left as it is. Inline formulas become `$..$`, displayed ones `$$..$$`.
"""

from __future__ import annotations

import html
import re

_START = re.compile(
    r"<(?:(?P<math>math)\b|(?P<script>script)\b[^<>]{0,300}math/tex|(?P<image>img)\b[^<>]{0,300}\b(?:mwe-math-fallback-image|tex\b)"
    r"|(?P<marked>span|div)\b[^<>]{0,300}?class\s*=\s*[\"']?[^\"'<>]{0,200}?(?<![\w-])(?P<class>math|MathJax_Preview|MathJax|katex-html)(?![\w-]))",
    re.IGNORECASE,
)
_ANNOTATION = re.compile(r"""<annotation\b[^<>]{0,200}application/x-tex[^<>]{0,200}>([^<]*)<""", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\b(alttext|alt|display|class)\s*=\s*(?:"([^"<]*)"|'([^'<]*)'|([^\s"'<>]+))""", re.IGNORECASE)
_DELIMITED = re.compile(r"\s*(?:\\\((?P<inline>.*)\\\)|\\\[(?P<display>.*)\\\]|\$\$(?P<dollars>.*)\$\$|\$(?P<dollar>.*)\$)\s*", re.DOTALL)
_WRAPPER = re.compile(r"\{\\(displaystyle|textstyle)\s?(.*)\}", re.DOTALL)  # of Wikipedia
_LONGEST = 20_000  # characters of one formula with its markup
_MOST_TEX = 4_000
_MOST_UNCLOSED = 100  # a page with more is broken or hostile: the rest of it stays
# What is drawn beside a source, by its class -> what the page holds then.
_DRAWN = {"katex-html": "application/x-tex", "mathjax": "math/tex", "mathjax_preview": "math/tex"}


def math_to_tex(page: str) -> str:
    """The page with its formulas as text. Time is linear in the page: what has no end within 20,000 characters is left as it is."""
    parts, position, unclosed = [], 0, 0
    while unclosed < _MOST_UNCLOSED and (found := _START.search(page, position)):
        text, end = _formula(page, found)
        unclosed += end == 0
        if text is None:
            end = found.end()
            parts.append(page[position:end])
        else:
            parts += [page[position : found.start()], text]
        position = end
    return "".join(parts) + page[position:] if parts else page


def _formula(page: str, found: re.Match[str]) -> tuple[str | None, int]:
    """(what to put in place of the element at a match, end of the element); (None, ..) where it stays, (None, 0) where it has no end."""
    tag_end = page.find(">", found.end(), found.end() + _MOST_TEX) + 1
    if not tag_end:
        return None, 0
    tag = page[found.start() : tag_end]
    attributes = {match[1].lower(): next(filter(None, match.groups()[1:]), "") for match in _ATTRIBUTE.finditer(tag)}
    if found["image"]:
        return _dollars(attributes.get("alt", ""), "display" in attributes.get("class", "")), tag_end
    name = found["math"] or found["script"] or found["marked"]
    inner_end, end = _closing(page, tag_end, name.lower())
    if end < 0:
        return None, 0
    inner = page[tag_end:inner_end]
    if found["script"]:
        return _dollars(html.escape(inner, quote=False), "mode=display" in tag.replace(" ", "").lower()), end
    if found["math"]:
        source = _ANNOTATION.search(inner)
        return _dollars(source[1] if source else attributes.get("alttext", ""), attributes.get("display", "").lower() == "block"), end
    if source_form := _DRAWN.get(found["class"].lower()):
        return ("" if source_form in page else None), end
    return _marked(inner), end


def _closing(page: str, start: int, name: str) -> tuple[int, int]:
    """(start, end) of the end tag that belongs to an element whose content begins at start; (-1, -1) where none is near."""
    depth = 1
    for tag in re.compile(rf"<(/?){name}(?=[\s/>])[^<>]{{0,1000}}>", re.IGNORECASE).finditer(page, start, start + _LONGEST):
        depth += -1 if tag[1] else 1
        if not depth:
            return tag.start(), tag.end()
    return -1, -1


def _marked(inner: str) -> str | None:
    """The content of an element of class `math`; None where it is not TeX (markup, or plain words)."""
    if "<" in inner:
        return None
    delimited = _DELIMITED.fullmatch(inner)
    if delimited:
        kind = delimited.lastgroup
        return _dollars(delimited[kind], kind in ("display", "dollars"))
    return _dollars(inner, False) if re.search(r"[\\^_{]", inner) else None


def _dollars(tex: str, display: bool) -> str | None:
    tex = " ".join(tex.split())
    if wrapped := _WRAPPER.fullmatch(tex):
        tex = wrapped[2].strip()
    if not tex or len(tex) > _MOST_TEX:
        return None
    return f"$${tex}$$" if display else f"${tex}$"
