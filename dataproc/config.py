"""The pipeline file as strict typed models. Every mistake in it is found before any work starts."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import yaml
from pydantic import Field, field_validator

from dataproc.dedup.earlier import SIGNED_BY, Earlier, resolve
from dataproc.model_files import StoredModel, with_models
from dataproc.sources.base import InputSpec
from dataproc.sources.registry import SOURCES
from dataproc.stages.base import Resources, Stage
from dataproc.stages.exact_dedup import ExactDedup
from dataproc.stages.keep_rate import KeepRate
from dataproc.stages.near_dedup import NearConfig, NearDedup
from dataproc.stages.paragraph_dedup import ParagraphDedup
from dataproc.stages.registry import stage_class
from store import artefacts, files
from store.artefacts import NAME_PATTERN
from store.digests import stream_digest
from store.errors import ConfigError
from store.strict_yaml import StrictModel, data_files, locate, read_yaml, unknown_key, validate

GLOBAL = (ExactDedup, NearDedup, KeepRate, ParagraphDedup)  # stages that are steps between the passes, in their order


class OutputSpec(StrictModel):
    """`output:` of a pipeline file. `shard_mb` is the aimed size of a shard on disk in megabytes (10^6 bytes)."""

    shard_mb: float = Field(256, gt=0)
    compression: Literal["zstd", "snappy", "none"] = "zstd"


class Limits(StrictModel):
    """`limits:` of a pipeline file."""

    max_quarantined_fraction: float = Field(0.01, ge=0, le=1)
    record_timeout_s: float = Field(60, gt=0)  # a record that holds a worker longer is quarantined
    unit_mb: float = Field(8, gt=0)  # stored megabytes of input in one work unit
    worker_memory_mb: int = Field(4096, ge=256)  # what one record may make a worker allocate beyond its start
    dedup_memory_mb: int = Field(1024, ge=1)  # what a worker of a global step may hold; decides how the step is cut, not its result


class PipelineFile(StrictModel):
    """A pipeline file as written; `stages` are checked one by one against the Config of their class."""

    dataset: str
    version: str
    owner: str
    inputs: tuple[InputSpec, ...] = Field(min_length=1)
    stages: tuple[Any, ...] = ()
    output: OutputSpec = OutputSpec()
    limits: Limits = Limits()

    @field_validator("dataset", "version")
    @classmethod
    def _name(cls, value: str) -> str:
        if not NAME_PATTERN.fullmatch(value):
            raise ValueError(f"{value!r} is not a name: use letters, digits, '.', '_' and '-', starting with a letter or digit")
        return value

    @field_validator("version", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


@dataclass(frozen=True)
class StageSpec:
    """A stage of the pipeline: the name in the file, its class and its checked configuration."""

    key: str
    cls: type[Stage]
    config: StrictModel

    def make(self) -> Stage:
        return self.cls(self.config)


@dataclass(frozen=True)
class Pipeline:
    """A checked pipeline: paths are located, stages loaded and configured."""

    path: str
    dataset: str
    version: str
    owner: str
    inputs: tuple[InputSpec, ...]
    record_stages: tuple[StageSpec, ...]  # run on record batches in pass 1
    exact_dedup: StageSpec | None  # global steps between the passes
    near_dedup: StageSpec | None
    keep_rate: StageSpec | None
    paragraph_dedup: StageSpec | None
    output: OutputSpec
    limits: Limits
    # Versions that documents are compared to, by the reference in `against`; filled in when the store is known.
    earlier: dict[str, Earlier] = field(default_factory=dict)

    @property
    def global_stages(self) -> tuple[StageSpec, ...]:
        return tuple(spec for spec in (self.exact_dedup, self.near_dedup, self.keep_rate, self.paragraph_dedup) if spec)

    @property
    def stages(self) -> tuple[StageSpec, ...]:
        return self.record_stages + self.global_stages

    def make_stages(self) -> list[Stage]:
        """The record stages, each of which has met the others. Raises ConfigError when one lacks what it needs of another."""
        made = [spec.make() for spec in self.record_stages]
        for spec, stage in zip(self.record_stages, made, strict=True):
            try:
                stage.meet(made)
            except ValueError as error:
                raise ConfigError(f"{self.path}: stage {spec.key}: {error}") from error
        return made

    def near_config(self, stage: str) -> NearConfig:
        """How near copies are found by `near_dedup`, or by `paragraph_dedup`."""
        return self.near_dedup.config if stage == NearDedup.name else self.paragraph_dedup.config.near

    def resolved(self, store: str) -> Pipeline:
        """The pipeline with the versions behind `against` and the models behind references. Raises ConfigError when there is none, or it
        cannot be compared."""
        needs: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for spec in self.global_stages:
            names = {NearDedup: SIGNED_BY, ParagraphDedup: ("unit", "min_words")}.get(spec.cls, ())
            settings = {name: getattr(spec.config, name) for name in names}
            for reference in getattr(spec.config, "against", ()):
                if artefacts.Reference.parse(reference) == artefacts.Reference(self.dataset, self.version):
                    raise ConfigError(f"{self.path}: stage {spec.key}: against names {reference}, which is what this pipeline makes")
                needs.setdefault(reference, []).append((spec.key, settings))
        located = replace(self, record_stages=tuple(self._with_models(spec, store) for spec in self.record_stages))
        return replace(located, earlier=resolve(store, needs)) if needs else located

    def _with_models(self, spec: StageSpec, store: str) -> StageSpec:
        try:
            return replace(spec, config=with_models(spec.config, store))
        except ConfigError as error:
            raise ConfigError(f"{self.path}: stage {spec.key}: {error}") from error

    def resources(self) -> Resources:
        """What one worker of pass 1 needs: its stages run in one process, so the largest demand of any."""
        demands = [spec.cls.resources for spec in self.record_stages] or [Resources()]
        return Resources(max(d.cpus for d in demands), max(d.gpus for d in demands), max(d.memory for d in demands))

    def described(self) -> dict[str, Any]:
        """The configuration as the manifest shows it."""
        return {
            "dataset": self.dataset,
            "version": self.version,
            "owner": self.owner,
            "inputs": [spec.model_dump(mode="json", exclude_defaults=True) for spec in self.inputs],
            "stages": [{spec.key: _shown(spec.config)} for spec in self.stages],
            "output": self.output.model_dump(mode="json"),
            "limits": self.limits.model_dump(mode="json"),
        }

    def identity(self) -> dict[str, Any]:
        """What of the configuration decides the data: neither where inputs lie nor who owns the result; files by content."""
        return {
            "inputs": [spec.model_dump(mode="json", exclude={"path"}) for spec in self.inputs],
            "stages": [{spec.key: _by_content(spec.config, self.earlier)} | _code_of(spec) for spec in self.stages],
            "output": self.output.model_dump(mode="json"),
            "limits": self.limits.model_dump(mode="json", exclude={"max_quarantined_fraction", "dedup_memory_mb"}),
        }


def load_pipeline(path: str) -> Pipeline:
    """Reads and checks a pipeline file. Raises ConfigError: one sentence with the line, the key and the nearest valid one."""
    value, node = read_yaml(path)
    raw = validate(value, PipelineFile, path, node)
    names = [spec.name for spec in raw.inputs]
    if repeated := next((n for n in names if names.count(n) > 1), None):
        raise ConfigError(f'{path}: two inputs are named "{repeated}": names must differ, document ids are made from them')
    base = os.path.dirname(files.local_path(path)) if files.is_local(path) else None
    inputs = tuple(spec.model_copy(update={"path": locate(spec.path, base)}) for spec in raw.inputs)
    stages = _stages(raw.stages, path, node)
    record_stages = tuple(spec for spec in stages if spec.cls not in GLOBAL)
    pipeline = Pipeline(
        path=path,
        dataset=raw.dataset,
        version=raw.version,
        owner=raw.owner,
        inputs=inputs,
        record_stages=record_stages,
        exact_dedup=next((spec for spec in stages if spec.cls is ExactDedup), None),
        near_dedup=next((spec for spec in stages if spec.cls is NearDedup), None),
        keep_rate=next((spec for spec in stages if spec.cls is KeepRate), None),
        paragraph_dedup=next((spec for spec in stages if spec.cls is ParagraphDedup), None),
        output=raw.output,
        limits=raw.limits,
    )
    _check_order(pipeline, stages, path)
    return pipeline


def _stages(entries: tuple[Any, ...], path: str, node: yaml.Node | None) -> list[StageSpec]:
    found: list[StageSpec] = []
    sequence = _child(node, "stages")
    for position, entry in enumerate(entries):
        here = sequence.value[position] if isinstance(sequence, yaml.SequenceNode) else None
        place = f"{path}, line {here.start_mark.line + 1}" if here else path
        entry = {entry: None} if isinstance(entry, str) else entry
        if not isinstance(entry, dict) or len(entry) != 1:
            raise ConfigError(f"{place}: a stage is one name with its settings, for example `- language: {{keep: [en]}}`")
        key, settings = next(iter(entry.items()))
        try:
            cls = stage_class(str(key))
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error
        if any(spec.cls.name == cls.name for spec in found):
            raise ConfigError(f'{place}: stage "{cls.name}" appears twice; a stage may appear once')
        config = validate({} if settings is None else settings, cls.Config, path, _child(here, str(key)), f"stage {key}")
        try:
            cls(config)
        except ValueError as error:
            raise ConfigError(f"{place}: stage {key}: {error}") from error
        found.append(StageSpec(str(key), cls, config))
    return found


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    return None


def _check_order(pipeline: Pipeline, stages: list[StageSpec], path: str) -> None:
    """Global steps come last, a signal is made before it is looked at, and HTML becomes text before any stage reads text."""
    last = stages[len(pipeline.record_stages) :]
    for spec in pipeline.stages[len(pipeline.record_stages) :]:
        if spec not in last:
            raise ConfigError(f"{path}: {spec.cls.name} must come last: it compares the texts that the other stages leave")
    if wrong := next(((one, other) for one, other in zip(pipeline.global_stages, last, strict=True) if one is not other), None):
        first, second = (spec.cls.name for spec in wrong)
        raise ConfigError(f"{path}: {first} must come before {second}: the finer comparison is made of what the coarser one leaves")
    made: set[str] = set()
    inputs = [spec.name for spec in pipeline.inputs]
    record_stages = list(zip(pipeline.record_stages, pipeline.make_stages(), strict=True))
    for spec, stage in record_stages:
        for name in stage.named_inputs():
            if name not in inputs:
                raise ConfigError(f"{path}: stage {spec.key}: {unknown_key(name, inputs).replace('key', 'input')}")
        for name, advice in stage.needed_signals().items():
            if name not in made:
                raise ConfigError(f'{path}: stage "{spec.key}" needs the signal {name}: {advice}')
        made.update(stage.signals())
    if pipeline.keep_rate and not any("quality" in spec.cls.outputs for spec in pipeline.record_stages):
        raise ConfigError(f"{path}: keep_rate keeps the best by quality, and no stage scores it: put quality before it")
    for spec in pipeline.global_stages:
        for name in getattr(spec.config, "source_priority", ()):
            if name not in inputs:
                raise ConfigError(f"{path}: stage {spec.key}: source_priority: {unknown_key(name, inputs).replace('key', 'input')}")
    _check_domains(pipeline, path)
    html = next((spec for spec in pipeline.inputs if SOURCES[spec.format].gives_payload), None)
    if html is None:
        return
    for spec, stage in record_stages:
        if "text" in stage.outputs and "payload" in stage.inputs:
            return
        if "text" in stage.inputs:
            raise ConfigError(f'{path}: stage "{spec.key}" reads text, but input "{html.name}" gives HTML: put extract before it')
    raise ConfigError(f'{path}: input "{html.name}" gives HTML: add the stage extract')


def _shown(config: StrictModel) -> dict[str, Any]:
    """A stage's configuration for people: models of the store by their reference."""
    references = {str(file): file.reference for file in data_files(config) if isinstance(file, StoredModel)}
    return _replace(config.model_dump(mode="json"), references)


def _check_domains(pipeline: Pipeline, path: str) -> None:
    """A domain with rules of its own is the label of some input, unless a stage gives labels."""
    labels = sorted({spec.domain for spec in pipeline.inputs})
    for position, spec in enumerate(pipeline.record_stages):
        if any("domain" in before.cls.outputs for before in pipeline.record_stages[:position]):
            return
        for name in getattr(spec.config, "by_domain", ()):
            if name not in labels:
                raise ConfigError(f"{path}: stage {spec.key}: by_domain: {unknown_key(name, labels).replace('key', 'domain')}")


def _by_content(config: StrictModel, earlier: dict[str, Earlier]) -> dict[str, Any]:
    """A stage's configuration with every file replaced by the digest of its bytes, and every earlier version by its digest."""
    digests = {str(file): f"xxh3:{_file_digest(file)}" for file in data_files(config)}
    if getattr(config, "against", ()):
        digests |= {reference: version.digest for reference, version in earlier.items()}
    return _replace(config.model_dump(mode="json"), digests)


def _replace(value: Any, digests: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replace(item, digests) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace(item, digests) for item in value]
    return digests[value] if isinstance(value, str) and value in digests else value


def _file_digest(url: str) -> str:
    with files.open_read(url) as stream:
        return stream_digest(stream)[1]


def _code_of(spec: StageSpec) -> dict[str, str]:
    """A user's own stage is part of what decides the data: the digest of its module's source."""
    if ":" not in spec.key:
        return {}
    module = importlib.util.find_spec(spec.cls.__module__)
    return {"code": _file_digest(module.origin)} if module and module.origin else {}


def artefact_digests(pipeline: Pipeline) -> dict[str, str]:
    """Every file that the stages use (lists, models), by path, with the xxh3-128 of its bytes: kept in the manifest."""
    return {str(file): _file_digest(file) for spec in pipeline.stages for file in data_files(spec.config)}
