"""Quality: documents scored by models, kept by a threshold or by chance that favours good ones."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pydantic import Field, StringConstraints, model_validator

from dataproc.documents import SIGNAL_PREFIX
from dataproc.model_files import ModelFile
from dataproc.quality_models.scoring import Scorer, open_scorer
from dataproc.stages.base import Stage, StageContext, StageResult, Verdict, set_column
from dataproc.stages.language import Code
from store.errors import ConfigError
from store.strict_yaml import StrictModel, unknown_key

QUALITY = "quality"
Share = Annotated[float, Field(ge=0, le=1)]


class NamedModel(StrictModel):
    """One of several models. `weight`: of its score in the mean of all."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+$")]
    model: ModelFile
    label: str
    weight: float = Field(1.0, gt=0, allow_inf_nan=False)


class QualityConfig(StrictModel):
    """`model` and `label`: the score is the model's probability of the label; or `models`: the weighted mean of several.
    `pareto_alpha`: a document stays when a draw from a Pareto distribution is above 1 - its score; `seed` is of the draws."""

    model: ModelFile | None = None
    label: str = "high"
    models: tuple[NamedModel, ...] = ()
    min_score: Share | None = None
    min_score_by_language: dict[Code, Share] = {}
    pareto_alpha: float | None = Field(None, gt=0, allow_inf_nan=False)
    seed: int = 0

    @model_validator(mode="after")
    def _one_way(self) -> QualityConfig:
        if (self.model is None) == (not self.models):
            raise ValueError("name one model (model: FILE or NAME@LABEL), or several under models")
        if self.models and "label" in self.model_fields_set:
            raise ValueError("with models, each of them has its own label")
        names = [entry.name for entry in self.models]
        if repeated := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f'two models are named "{repeated}"')
        return self

    def entries(self) -> tuple[NamedModel, ...]:
        """The models, whichever way they are written."""
        if self.model is None:
            return self.models
        return (NamedModel.model_construct(name=QUALITY, model=self.model, label=self.label, weight=1.0),)


class Quality(Stage):
    """Sets `quality`, and with several models the signals `quality_<name>`. A text without a word scores 0.

    Rules: low_score, pareto. A document of a language without a threshold of its own is under `min_score`.
    """

    name = QUALITY
    Config = QualityConfig
    inputs = ("id", "text", "language")
    outputs = (QUALITY,)

    def signals(self) -> tuple[str, ...]:
        return (QUALITY, *(f"{QUALITY}_{entry.name}" for entry in self.config.models))

    def thresholds(self) -> dict[str, list[dict[str, Any]]]:
        least = {"low_score": self.config.min_score}
        least |= {f"low_score ({code})": score for code, score in self.config.min_score_by_language.items()}
        shown = [{"rule": rule, "min": score, "max": None} for rule, score in least.items() if score is not None]
        return {QUALITY: shown} if shown else {}

    def open(self, context: StageContext) -> None:
        self._models: list[tuple[NamedModel, Scorer, int]] = []
        for entry in self.config.entries():
            scorer = open_scorer(entry.model, context.scratch, f"stage {self.name}")
            if entry.label not in scorer.labels:
                problem = unknown_key(entry.label, scorer.labels).replace("unknown key", "no label").replace("valid keys", "its labels")
                raise ConfigError(f"stage {self.name}: model {entry.model} has {problem}")
            scorer.scores(pa.array(["a"], pa.large_string()), ["en"])  # compiles the kernels before the clock of a batch runs
            self._models.append((entry, scorer, scorer.labels.index(entry.label)))

    def process(self, batch):
        texts = pc.fill_null(batch.column("text"), "")
        languages = batch.column("language").to_pylist()
        visible = pc.utf8_trim_whitespace(pc.replace_substring(texts, "\0", " "))  # NUL ends a word for fastText
        empty = pc.equal(pc.binary_length(visible), 0).to_numpy(zero_copy_only=False)
        total, whole = np.zeros(batch.num_rows), sum(entry.weight for entry, _, _ in self._models)
        for entry, scorer, column in self._models:
            scores = _scores(scorer.scores(texts, languages)[:, column], empty)
            if self.config.models:
                batch = set_column(batch, f"{SIGNAL_PREFIX}{QUALITY}_{entry.name}", pa.array(scores, pa.float64()))
            total += scores * (entry.weight / whole)
        quality = _scores(total, empty)
        batch = set_column(batch, QUALITY, pa.array(quality.astype(np.float32), pa.float32()))
        batch = set_column(batch, SIGNAL_PREFIX + QUALITY, pa.array(quality, pa.float64()))
        decided = map(self._judge, range(batch.num_rows), batch.column("id").to_pylist(), languages, quality.tolist())
        return StageResult(batch, [verdict for verdict in decided if verdict])

    def _judge(self, row: int, document: str, language: str | None, score: float) -> Verdict | None:
        least = self._least(language)
        if least is not None and score < least:
            return Verdict(row, "low_score", score, least, {"language": language} if self.config.min_score_by_language else {})
        if self.config.pareto_alpha is not None:
            above = 1 - pareto_draw(document, self.config.pareto_alpha, self.config.seed)
            if not score > above:
                return Verdict(row, "pareto", score, above)
        return None

    def _least(self, language: str | None) -> float | None:
        """The threshold for a language: its own, that of the language without its region, else the one for all."""
        own = self.config.min_score_by_language
        if not own or not language:
            return self.config.min_score
        code = language.lower().replace("-", "_")
        return own.get(code, own.get(code.partition("_")[0], self.config.min_score))


def _scores(values: np.ndarray, empty: np.ndarray) -> np.ndarray:
    """Scores as they are stored: of single precision, so that column, signal and verdict agree; 0 where the model sees nothing."""
    return np.where(empty | np.isnan(values), 0.0, np.clip(values, 0.0, 1.0)).astype(np.float32).astype(np.float64)


def pareto_draw(document: str, alpha: float, seed: int) -> float:
    """A draw from the Pareto distribution of Lomax, P(x > t) = (1 + t)^-alpha, that belongs to a document's id: so it is the same in every
    run. Keeping what is above 1 - score is how GPT-3's crawl was filtered, with alpha 9 (Brown et al. 2020, arXiv 2005.14165,
    appendix A)."""
    uniform = (xxhash.xxh3_64_intdigest(f"pareto\0{seed}\0{document}".encode()) + 1) / 2**64
    return uniform ** (-1 / alpha) - 1
