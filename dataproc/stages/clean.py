"""Cleaning: broken Unicode mended, control characters out, white space in order, unwanted lines cut."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

import ftfy
import pyarrow as pa
from ftfy.chardata import CONTROL_CHARS, LIGATURES

from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from dataproc.stages.lines import edit_lines
from store.strict_yaml import StrictModel

# Mends mojibake, HTML entities, broken surrogates and terminal escapes. Quotation marks stay as they were written, and so do
# full-width forms, which are the ordinary punctuation of Chinese and Japanese.
_FTFY = ftfy.TextFixerConfig(uncurl_quotes=False, fix_character_width=False, explain=False)
_FTFY_HTML = _FTFY._replace(unescape_html=False)
# ftfy takes a line for mojibake only where two of these characters meet, or one of `_ALONE` stands (its rules are pairs and longer).
_PAIRED = "\x80-\u058f\u2000-\u2bff\uf8ff\ufb00-\ufb06\ufffd"
_ALONE = "\x7f-\x9f\u0152\u0153\xc2\xc3"
# Entities, escapes, control characters, surrogates and ligatures it changes wherever they are.
_ALWAYS = "&\x00-\x08\x0b-\x1f\u2028\u2029\ud800-\udfff" + re.escape("".join(map(chr, {*LIGATURES, *CONTROL_CHARS})))
_FTFY_MAY_CHANGE = re.compile(f"[{_ALWAYS}{_ALONE}]|[{_PAIRED}]{{2}}")
_FTFY_SEGMENT = 1_000_000  # it cuts longer lines
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# C0 and C1 control characters but tab and line feed, byte order marks, interlinear marks, non-characters of the basic plane.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff]")
_SPACES = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f]")
_TRAILING = re.compile(r"[ \t]+(?=\n|$)")
_BLANK_LINES = re.compile(r"\n{3,}")


class CleanConfig(StrictModel):
    """`drop_lines`: c4 (the line rules of C4) and boilerplate (cookie banners, share buttons and the like, stages/boilerplate.yaml)."""

    fix_unicode: bool = True
    drop_lines: tuple[Literal["c4", "boilerplate"], ...] = ()


class Clean(Stage):
    """Sets `text` to its cleaned form. Signals: how much was cut. Rule: empty (nothing is left)."""

    name = "clean"
    Config = CleanConfig
    outputs = ("text",)

    def signals(self) -> tuple[str, ...]:
        return ("cut_line_fraction", "cut_character_fraction") if self.config.drop_lines else ()

    def open(self, context: StageContext) -> None:
        self._heartbeat = context.heartbeat

    def process(self, batch):
        texts, cut_lines, cut_characters, verdicts = [], [], [], []
        for row, text in enumerate(batch.column("text").to_pylist()):
            text = clean_text(text or "", self.config.fix_unicode)
            text, lines, characters = edit_lines(text, self.config.drop_lines) if self.config.drop_lines else (text, 0.0, 0.0)
            text = _BLANK_LINES.sub("\n\n", text).strip()
            texts.append(text)
            cut_lines.append(lines)
            cut_characters.append(characters)
            if not text:
                verdicts.append(Verdict(row, "empty"))
            self._heartbeat()
        batch = set_column(batch, "text", pa.array(texts, pa.large_string()))
        if self.config.drop_lines:
            batch = set_column(batch, "signals.cut_line_fraction", pa.array(cut_lines, pa.float64()))
            batch = set_column(batch, "signals.cut_character_fraction", pa.array(cut_characters, pa.float64()))
        return StageResult(batch, verdicts)


def mend(text: str) -> str:
    """What ftfy makes of a text, with ftfy asked only about the lines that it might change: it works line by line and is slow."""
    if not _may_change(text):
        return text
    lines = text.split("\n")
    if max(map(len, lines)) >= _FTFY_SEGMENT:
        return ftfy.fix_text(text, _FTFY)
    # From the first line with a "<" on the text is taken for HTML, in which entities stand for themselves.
    html = next((number for number, line in enumerate(lines) if "<" in line), len(lines))
    last = len(lines) - 1
    for number, line in enumerate(lines):
        if _may_change(line):
            feed = "" if number == last else "\n"
            fixed = ftfy.fix_text(line + feed, _FTFY if number < html else _FTFY_HTML)
            lines[number] = fixed.removesuffix(feed)
    return "\n".join(lines)


def _may_change(text: str) -> bool:
    return _FTFY_MAY_CHANGE.search(text) is not None or not unicodedata.is_normalized("NFC", text)


def clean_text(text: str, fix_unicode: bool = True) -> str:
    """Unicode mended (when asked), line ends as \\n, control characters out, Unicode spaces as spaces, no trailing white space, at
    most one blank line in a row. The ideographic space stays: it is part of Chinese and Japanese typesetting."""
    if fix_unicode:
        text = mend(text)
    text = _LINE_ENDS.sub("\n", text)
    text = _CONTROLS.sub("", text)
    text = _SPACES.sub(" ", text)
    text = _TRAILING.sub("", text)
    return _BLANK_LINES.sub("\n\n", text).strip()
