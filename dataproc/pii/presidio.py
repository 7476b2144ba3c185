"""Microsoft Presidio as the engine for some kinds: names of persons and places, which no pattern finds, and others on demand."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from dataproc.pii.allowed import Allowed
from dataproc.pii.reading import Find
from store import files

ENTITIES = {
    "PERSON": "person", "LOCATION": "location", "EMAIL_ADDRESS": "email", "PHONE_NUMBER": "phone", "CREDIT_CARD": "card",
    "IBAN_CODE": "iban", "IP_ADDRESS": "ip",
}  # fmt: skip
_SEGMENT = 100_000  # characters that are handed over at a time: spaCy refuses more than 1,000,000


def versions() -> dict[str, str]:
    """Library -> installed version. Raises ValueError, one sentence, where Presidio is not installed."""
    try:
        return {name: importlib.metadata.version(name) for name in ("presidio-analyzer", "spacy")}
    except importlib.metadata.PackageNotFoundError as error:
        raise ValueError(f"engine presidio needs the package {error.name}: install headrace[presidio]") from error


def model_files(model: str) -> list[str]:
    """The files of a spaCy model, an installed package or a folder. Raises ValueError where it is neither: Presidio would try to download
    it in every worker."""
    if files.is_local(model) and Path(model).is_dir():
        folder = Path(model).resolve()
    else:
        spec = importlib.util.find_spec(model) if model.isidentifier() else None
        if spec is None or not spec.submodule_search_locations:
            raise ValueError(f"the spaCy model {model} is neither an installed package nor a folder: install it on every node")
        folder = Path(spec.submodule_search_locations[0])
    return [str(path) for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


class PresidioDetector:
    """Asks one analyzer for the entities of kinds that are looked for. models: language -> spaCy model; documents of other languages are
    not looked at. What it finds in a text depends on the text, its language and the models."""

    def __init__(self, models: Mapping[str, str], entities: Mapping[str, str], kinds: Iterable[str], min_score: float, allowed: Allowed):
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NlpEngineProvider

        self._kind_of = {entity: kind for entity, kind in entities.items() if kind in set(kinds)}
        self._languages, self._min_score, self._allowed = frozenset(models), min_score, allowed
        listed = [{"lang_code": language, "model_name": model} for language, model in models.items()]
        provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": listed})
        self._engine = AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=list(models))

    def finds(self, column: pa.Array, languages: list[str | None], heartbeat: Callable[[], None]) -> dict[int, list[Find]]:
        """Row -> finds, which may overlap, for the rows that have any; a find's places are bytes of the row's UTF-8."""
        found: dict[int, list[Find]] = {}
        for row, (text, language) in enumerate(zip(column.to_pylist(), languages, strict=True)):
            if not text or language not in self._languages:
                continue
            start, made, raw = 0, [], text.encode()
            for segment in _segments(text):
                made += self._of_segment(segment, language, start)
                start += len(segment.encode())
                heartbeat()
            if made := [find for find in made if not self._allowed.holds(raw, find)]:
                found[row] = made
        return found

    def _of_segment(self, segment: str, language: str, start: int) -> list[Find]:
        """Finds of a part of a text that begins at a byte."""
        if not self._kind_of:
            return []
        results = self._engine.analyze(text=segment, language=language, entities=list(self._kind_of), score_threshold=self._min_score)
        made = []
        for result in results:
            begin = start + len(segment[: result.start].encode())
            made.append(Find(self._kind_of[result.entity_type], begin, begin + len(segment[result.start : result.end].encode())))
        return made


def _segments(text: str) -> Iterator[str]:
    """A text in parts that end where a line ends, or else a word."""
    while len(text) > _SEGMENT:
        cut = max(text.rfind("\n", 0, _SEGMENT), text.rfind(" ", _SEGMENT // 2, _SEGMENT)) + 1 or _SEGMENT
        yield text[:cut]
        text = text[cut:]
    yield text
