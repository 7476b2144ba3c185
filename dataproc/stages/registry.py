"""The stages that a pipeline file can name: built-in ones by a short name, a user's own as `package.module:Class`."""

from __future__ import annotations

import importlib

from dataproc.stages.base import Stage
from store.errors import ConfigError
from store.strict_yaml import unknown_key

BUILT_IN = {
    "url_filter": "dataproc.stages.url_filter:UrlFilter",
    "label_domain": "dataproc.stages.label_domain:LabelDomain",
    "extract": "dataproc.stages.extract:Extract",
    "language": "dataproc.stages.language:Language",
    "clean": "dataproc.stages.clean:Clean",
    "rules": "dataproc.stages.rules:Rules",
    "safety": "dataproc.stages.safety:Safety",
    "pii": "dataproc.stages.pii:Pii",
    "quality": "dataproc.stages.quality:Quality",
    "perplexity": "dataproc.stages.perplexity:Perplexity",
    "licence": "dataproc.stages.licence:Licence",
    "exact_dedup": "dataproc.stages.exact_dedup:ExactDedup",
    "near_dedup": "dataproc.stages.near_dedup:NearDedup",
    "keep_rate": "dataproc.stages.keep_rate:KeepRate",
    "paragraph_dedup": "dataproc.stages.paragraph_dedup:ParagraphDedup",
}
GLOBAL_STAGES = ("exact_dedup", "near_dedup", "keep_rate", "paragraph_dedup")  # steps between the passes, in their order


def stage_class(name: str) -> type[Stage]:
    """The class behind a stage's name. Raises ConfigError that names the nearest stage, or what an import lacked."""
    target = name if ":" in name else BUILT_IN.get(name)
    if target is None:
        raise ConfigError(unknown_key(name, list(BUILT_IN)).replace("unknown key", "unknown stage").replace("valid keys", "stages"))
    module_name, _, class_name = target.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f'stage "{name}" cannot be loaded: {error}') from error
    if not (isinstance(found, type) and issubclass(found, Stage)):
        raise ConfigError(f'stage "{name}" is not a subclass of dataproc.stages.base.Stage')
    return found
