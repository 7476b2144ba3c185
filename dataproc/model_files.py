"""Models that a configuration names: as a file, or as a version in the store (`name@label`)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ValidationInfo

from store import artefacts, files
from store.errors import ConfigError
from store.strict_yaml import DataFile, StrictModel, locate

MODEL = "model"  # the kind of their manifests


class ModelReference(str):
    """`name@label` of a model, before the store is known."""

    __slots__ = ()


class StoredModel(DataFile):
    """The file of a model in the store. `reference`: what it is, wherever the store lies."""

    __slots__ = ("reference",)

    def __new__(cls, url: str, reference: str) -> StoredModel:
        made = super().__new__(cls, url)
        made.reference = reference
        return made

    def __getnewargs__(self) -> tuple[str, str]:
        return str(self), self.reference


def _model_file(value: str, info: ValidationInfo) -> DataFile | ModelReference:
    found = locate(value, (info.context or {}).get("base"))
    if files.exists(found):
        return DataFile(found)
    try:
        artefacts.Reference.parse(value)
    except ConfigError:
        raise ValueError(f"file not found: {value} (a model of the store is written NAME@LABEL)") from None
    return ModelReference(value)


# Annotate a field with this where the configuration names a model: `model: ModelFile`.
ModelFile = Annotated[str, AfterValidator(_model_file)]


def stored_model(store: str, reference: str) -> StoredModel:
    """The file of the model that a reference names. Raises ConfigError when there is none, or it is no model."""
    found = artefacts.resolve(store, reference)
    if found.manifest.get("kind") != MODEL:
        raise ConfigError(f"{reference} is a {found.manifest.get('kind')} version; this needs a model")
    return StoredModel(files.join(found.url, found.manifest["model"]["path"]), found.reference)


def with_models(config: StrictModel, store: str) -> StrictModel:
    """The configuration with every reference to a model replaced by its file. Raises ConfigError for one that the store has not."""
    return _replaced(config, store)


def _replaced(value: Any, store: str) -> Any:
    if isinstance(value, ModelReference):
        return stored_model(store, value)
    if isinstance(value, BaseModel):
        old = {name: getattr(value, name) for name in type(value).model_fields}
        changed = {name: new for name, item in old.items() if (new := _replaced(item, store)) is not item}
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, dict):
        made = {key: _replaced(item, store) for key, item in value.items()}
        return made if any(made[key] is not value[key] for key in value) else value
    if isinstance(value, (list, tuple)):
        items = type(value)(_replaced(item, store) for item in value)
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value
