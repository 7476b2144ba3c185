"""Cleaning: broken Unicode mended, control characters out, white space in order, unwanted lines cut."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Literal

import ftfy
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ftfy.chardata import CONTROL_CHARS, HTML_ENTITY_RE, LIGATURES

from dataproc.documents import SIGNAL_PREFIX
from dataproc.rules.presets import EDIT_SIGNALS
from dataproc.rules.signals import compute
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from store.strict_yaml import StrictModel

# Mends mojibake, HTML entities, broken surrogates and terminal escapes. Quotation marks stay as they were written, and so do
# full-width forms, which are the ordinary punctuation of Chinese and Japanese.
_FTFY = ftfy.TextFixerConfig(uncurl_quotes=False, fix_character_width=False, explain=False)
_FTFY_HTML = _FTFY._replace(unescape_html=False)
# ftfy takes a line for mojibake only where two of these characters meet, or one of ALONE stands (its rules are pairs and longer).
PAIRED = "\x80-\u058f\u2000-\u2bff\uf8ff\ufb00-\ufb06\ufffd"
ALONE = "\x7f-\x9f\u0152\u0153\xc2\xc3"
# Escapes, control characters, surrogates and ligatures it changes wherever they are.
ALWAYS = "\x00-\x08\x0b-\x1f\u2028\u2029\ud800-\udfff" + re.escape("".join(map(chr, {*LIGATURES, *CONTROL_CHARS})))
_SUSPICIOUS = re.compile(f"[{ALWAYS}{ALONE}]|[{PAIRED}]{{2}}|{HTML_ENTITY_RE.pattern}")
_SEGMENT = 1_000_000  # ftfy cuts longer lines


class CleanConfig(StrictModel):
    """`drop_lines`: c4 (the line rules of C4), boilerplate (cookie banners, share buttons and the like), refinedweb (counters, one-word,
    number and upper-case lines); the lines of the last two are in kernels/frame_lines.yaml. `keep_math`: formulas (kernels/formulas.py)
    are not mended and keep what looks like citation marks, and lines with one are not dropped; white space is put in order in them, too."""

    fix_unicode: bool = True
    keep_math: bool = False
    drop_lines: tuple[Literal["c4", "boilerplate", "refinedweb"], ...] = ()


class Clean(Stage):
    """Sets `text` to its cleaned form. Signals, with drop_lines: the shares of lines, characters and words that were cut. Rule: empty
    (nothing is left)."""

    name = "clean"
    Config = CleanConfig
    outputs = ("text",)

    def signals(self) -> tuple[str, ...]:
        return tuple(EDIT_SIGNALS) if self.config.drop_lines else ()

    def open(self, context: StageContext) -> None:
        self._heartbeat = context.heartbeat
        clean(
            pa.array(["a"]), self.config.fix_unicode, keep_math=self.config.keep_math
        )  # compiles the kernels before the clock of a batch runs

    def process(self, batch):
        texts = clean(batch.column("text"), self.config.fix_unicode, self._heartbeat, self.config.keep_math)
        if self.config.drop_lines:
            from dataproc.kernels.edit import edited
            from dataproc.kernels.tidy import tidied

            result = edited(texts, self.config.drop_lines, self.config.keep_math)
            before, texts = texts, tidied(result.texts)
            batch = set_column(batch, SIGNAL_PREFIX + "cut_line_fraction", _share(result.cut, result.lines))
            for name, unit in (("cut_character_fraction", "characters"), ("cut_word_fraction", "words")):
                had, has = (compute(column, (unit,))[unit].to_numpy() for column in (before, texts))
                batch = set_column(batch, SIGNAL_PREFIX + name, _share(had - has, had))
        batch = set_column(batch, "text", texts)
        empty = np.flatnonzero(pc.equal(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False))
        return StageResult(batch, [Verdict(int(row), "empty") for row in empty])


def _share(part: np.ndarray, whole: np.ndarray) -> pa.Array:
    part, whole = part.astype(np.float64), whole.astype(np.float64)
    return pa.array(np.divide(part, whole, out=np.zeros_like(part), where=whole > 0), pa.float64())


def clean(column: pa.Array, fix_unicode: bool, heartbeat: Callable[[], None] = lambda: None, keep_math: bool = False) -> pa.Array:
    """A column's texts with Unicode mended (when asked), line ends as \\n, control characters out, Unicode spaces as spaces, no trailing
    white space, at most one blank line in a row; `large_string`, a null text is an empty one. The ideographic space stays: it is part
    of Chinese and Japanese typesetting. keep_math: formulas are not mended."""
    from dataproc.kernels.tidy import suspicious, tidied

    column = pc.fill_null(column, "").cast(pa.large_string())
    if fix_unicode:
        rows = np.flatnonzero(suspicious(column, ALWAYS + ALONE, PAIRED))
        if len(rows):
            mended = []
            for text in column.take(pa.array(rows)).to_pylist():
                mended.append(mend_around_formulas(text) if keep_math else mend(text))
                heartbeat()
            flags = np.zeros(len(column), bool)
            flags[rows] = True
            column = pc.replace_with_mask(column, pa.array(flags), pa.array(mended, pa.large_string()))
    return tidied(column)


def clean_text(text: str, fix_unicode: bool = True, keep_math: bool = False) -> str:
    """`clean` of one text."""
    return clean(pa.array([text]), fix_unicode, keep_math=keep_math)[0].as_py()


def mend_around_formulas(text: str) -> str:
    """`mend` of what stands between the formulas of a text; the "less than" of a formula does not make the text HTML."""
    from dataproc.kernels.formulas import formula_spans

    data = text.encode()
    parts, position, html = [], 0, False
    for start, end in [*formula_spans(data), (len(data), len(data))]:
        between = data[position:start].decode()
        parts += [mend(between, html), data[start:end].decode()]
        html |= "<" in between
        position = end
    return "".join(parts)


def mend(text: str, html: bool = False) -> str:
    """What ftfy makes of a text, with ftfy asked only about the lines that it might change: it works line by line and is slow. html: the
    text is known to be HTML, in which entities stand for themselves."""
    lines = text.split("\n")
    if max(map(len, lines)) >= _SEGMENT:
        return ftfy.fix_text(text, _FTFY_HTML if html else _FTFY)
    # From the first line with a "<" on the text is taken for HTML.
    html_from = 0 if html else next((number for number, line in enumerate(lines) if "<" in line), len(lines))
    last = len(lines) - 1
    for number, line in enumerate(lines):
        if _may_change(line):
            feed = "" if number == last else "\n"
            fixed = ftfy.fix_text(line + feed, _FTFY if number < html_from else _FTFY_HTML)
            lines[number] = fixed.removesuffix(feed)
    return "\n".join(lines)


def _may_change(text: str) -> bool:
    return _SUSPICIOUS.search(text) is not None or not unicodedata.is_normalized("NFC", text)
