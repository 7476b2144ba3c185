"""Cleaning: broken Unicode mended, control characters out, white space in order, unwanted lines cut."""

from __future__ import annotations

import re
from typing import Literal

import ftfy
import pyarrow as pa

from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from dataproc.stages.lines import edit_lines
from store.strict_yaml import StrictModel

# Mends mojibake, HTML entities, broken surrogates and terminal escapes. Quotation marks stay as they were written, and so do
# full-width forms, which are the ordinary punctuation of Chinese and Japanese.
_FTFY = ftfy.TextFixerConfig(uncurl_quotes=False, fix_character_width=False, explain=False)
# ASCII text without entities, escapes or control characters is what ftfy would return, so it is not asked.
_FTFY_MAY_CHANGE = re.compile(r"[&\x00-\x08\x0b-\x1f\x7f]")
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


def clean_text(text: str, fix_unicode: bool = True) -> str:
    """Unicode mended (when asked), line ends as \\n, control characters out, Unicode spaces as spaces, no trailing white space, at
    most one blank line in a row. The ideographic space stays: it is part of Chinese and Japanese typesetting."""
    if fix_unicode and (not text.isascii() or _FTFY_MAY_CHANGE.search(text)):
        text = ftfy.fix_text(text, _FTFY)
    text = _LINE_ENDS.sub("\n", text)
    text = _CONTROLS.sub("", text)
    text = _SPACES.sub(" ", text)
    text = _TRAILING.sub("", text)
    return _BLANK_LINES.sub("\n\n", text).strip()
