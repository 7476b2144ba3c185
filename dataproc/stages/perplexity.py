"""Perplexity: how much a text surprises an n-gram language model of its language, by KenLM.

CCNet's measure (Wenzek et al. 2020, arXiv 1911.00359): each line is normalised, cut into pieces by SentencePiece where the model was made
from them, and scored with its end; the perplexity is 10 to the mean negative log10 probability of a token. Its models work here as they are.
"""

from __future__ import annotations

import importlib.util
import tempfile
import unicodedata
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from dataproc.documents import SIGNAL_PREFIX
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from dataproc.stages.language import Code
from store import files
from store.errors import ConfigError
from store.strict_yaml import ExistingFile, StrictModel

PERPLEXITY, UNKNOWN = "perplexity", "perplexity_unknown"
MISSING = "the n-gram library is not installed: pip install 'headrace[perplexity]'"
# One printable stand-in for each typographic sign, as models of web text were trained with.
_PLAIN_SIGNS = str.maketrans(
    {"，": ",", "。": ".", "、": ",", "„": '"', "”": '"', "“": '"', "«": '"', "»": '"', "」": '"', "「": '"', "《": '"', "》": '"'}
    | {"´": "'", "∶": ":", "：": ":", "？": "?", "！": "!", "（": "(", "）": ")", "；": ";", "–": "-", "—": " - ", "．": ". ", "～": "~"}
    | {"’": "'", "…": "...", "━": "-", "〈": "<", "〉": ">", "【": "[", "】": "]", "％": "%", "►": "-"}
)


class NgramModel(StrictModel):
    """`model`: a KenLM file, binary or ARPA. `tokenizer`: the SentencePiece model whose pieces it is of; none: it is of words."""

    model: ExistingFile
    tokenizer: ExistingFile | None = None


class PerplexityConfig(StrictModel):
    """`models`: by language code; a document of another language has no perplexity. `normalise: ccnet`: lower case, no accents, every
    digit 0, plain punctuation."""

    models: dict[Code, NgramModel] = Field(min_length=1)
    normalise: Literal["ccnet", "none"] = "ccnet"
    min_perplexity: float | None = Field(None, gt=0, allow_inf_nan=False)
    max_perplexity: float | None = Field(None, gt=0, allow_inf_nan=False)
    min_by_language: dict[Code, float] = {}
    max_by_language: dict[Code, float] = {}

    @model_validator(mode="after")
    def _sound(self) -> PerplexityConfig:
        for field in ("min_by_language", "max_by_language"):
            if stray := next((code for code in getattr(self, field) if code not in self.models), None):
                raise ValueError(f'{field} names "{stray}", for which there is no model')
        for code in self.models:
            low, high = self.limits(code)
            if low is not None and high is not None and low > high:
                raise ValueError(f"nothing can be kept in {code}: the least perplexity, {low:g}, is above the largest, {high:g}")
        return self

    def limits(self, code: str) -> tuple[float | None, float | None]:
        """(least, largest) perplexity that is kept in a language."""
        return self.min_by_language.get(code, self.min_perplexity), self.max_by_language.get(code, self.max_perplexity)


class Perplexity(Stage):
    """Signals: `perplexity`, and `perplexity_unknown`, the share of tokens that the model does not know. Rules: low_perplexity (text made
    of what every page says), high_perplexity (text that is hardly language)."""

    name = PERPLEXITY
    Config = PerplexityConfig
    inputs = ("text", "language")

    def signals(self) -> tuple[str, ...]:
        return (PERPLEXITY, UNKNOWN)

    def thresholds(self) -> dict[str, list[dict[str, Any]]]:
        c = self.config
        shown = [
            {"rule": "low_perplexity", "min": c.min_perplexity, "max": None},
            {"rule": "high_perplexity", "min": None, "max": c.max_perplexity},
        ]
        shown += [{"rule": f"low_perplexity ({code})", "min": least, "max": None} for code, least in c.min_by_language.items()]
        shown += [{"rule": f"high_perplexity ({code})", "min": None, "max": most} for code, most in c.max_by_language.items()]
        found = [entry for entry in shown if (entry["min"], entry["max"]) != (None, None)]
        return {PERPLEXITY: found} if found else {}

    def open(self, context: StageContext) -> None:
        if importlib.util.find_spec("kenlm") is None or importlib.util.find_spec("sentencepiece") is None:
            raise ConfigError(f"stage {self.name}: {MISSING}")
        self._heartbeat = context.heartbeat
        self._models = {code: _Model(spec, context.scratch, self.config.normalise == "ccnet") for code, spec in self.config.models.items()}

    def process(self, batch):
        values = np.full((2, batch.num_rows), np.nan)
        verdicts = []
        texts = pc.fill_null(batch.column("text"), "").to_pylist()
        for row, (text, language) in enumerate(zip(texts, batch.column("language").to_pylist(), strict=True)):
            code = self._code(language)
            if code is not None:
                values[:, row] = self._models[code].measure(text)
                verdicts += self._judge(row, code, float(values[0, row]))
            self._heartbeat()
        for name, column in zip(self.signals(), values, strict=True):
            batch = set_column(batch, SIGNAL_PREFIX + name, pa.array(column, pa.float64(), from_pandas=True))
        return StageResult(batch, verdicts)

    def _code(self, language: str | None) -> str | None:
        """The model for a language: its own, or that of the language without its region."""
        code = (language or "").lower().replace("-", "_")
        return next((name for name in (code, code.partition("_")[0]) if name in self._models), None)

    def _judge(self, row: int, code: str, value: float) -> list[Verdict]:
        low, high = self.config.limits(code)
        if low is not None and value < low:
            return [Verdict(row, "low_perplexity", value, low, {"model": code})]
        if high is not None and value > high:
            return [Verdict(row, "high_perplexity", value, high, {"model": code})]
        return []


class _Model:
    """An n-gram model with its tokenizer, loaded."""

    def __init__(self, spec: NgramModel, scratch: str | None, normalise: bool):
        import sentencepiece

        self._normalise = normalise
        self._model = _load(spec.model, scratch)
        self._tokenizer = None
        if spec.tokenizer:
            self._tokenizer = sentencepiece.SentencePieceProcessor()
            try:
                self._tokenizer.LoadFromSerializedProto(files.read_bytes(spec.tokenizer))
            except RuntimeError as error:
                raise ConfigError(f"stage {PERPLEXITY}: {spec.tokenizer} is not a SentencePiece model: {error}") from error

    def measure(self, text: str) -> tuple[float, float]:
        """(perplexity, share of unknown tokens) of a text; NaN for one without a token. Ends of lines count as tokens of the first."""
        log10, tokens, lines, unknown = 0.0, 0, 0, 0
        for line in text.split("\n"):
            words = self._tokens(normalised(line) if self._normalise else line)
            if words:
                log10 += self._model.score(" ".join(words))
                tokens += len(words)
                lines += 1
                unknown += sum(word not in self._model for word in words)
        if not tokens:
            return np.nan, np.nan
        return 10 ** min(300.0, -log10 / (tokens + lines)), unknown / tokens

    def _tokens(self, line: str) -> list[str]:
        pieces = self._tokenizer.encode_as_pieces(line) if self._tokenizer else [line]
        return [word for piece in pieces for word in piece.split()]  # KenLM splits at white space, too


def normalised(line: str) -> str:
    """A line as CCNet's models want it: lower case, without accents and control characters, every digit 0, plain punctuation."""
    lowered = unicodedata.normalize("NFD", line.strip().lower())
    kept = "".join("0" if c.isdecimal() else c for c in lowered if unicodedata.category(c) not in ("Mn", "Cc"))
    return kept.translate(_PLAIN_SIGNS)


def _load(path: str, scratch: str | None) -> Any:
    """A KenLM model. A binary one is mapped, so the workers of a node share it; an ARPA file is built in each."""
    import kenlm

    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    config.load_method = kenlm.LoadMethod.LAZY
    try:
        if files.is_local(path):
            return kenlm.Model(files.local_path(path), config)
        with tempfile.NamedTemporaryFile(dir=scratch) as copy:  # KenLM opens local files only; its mapping outlives the name
            copy.write(files.read_bytes(path))
            copy.flush()
            return kenlm.Model(copy.name, config)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"stage {PERPLEXITY}: {path} is not a KenLM model: {error}") from error
