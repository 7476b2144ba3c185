"""Strict YAML: every file a user writes becomes a typed model, and every mistake one sentence with file, line and the nearest valid key."""

from __future__ import annotations

import difflib
import os
import types
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo

from store import files
from store.errors import ConfigError


class StrictModel(BaseModel):
    """Base of all configuration models: frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


M = TypeVar("M", bound=StrictModel)


class DataFile(str):
    """The URL of a file that a configuration names (a list, a model). It exists when the configuration has been read."""

    __slots__ = ()


def locate(path: str, base: str | None) -> str:
    """A URL as it is; a relative path against the folder of the file that names it, else against the current folder."""
    if not files.is_local(path) or os.path.isabs(os.path.expanduser(path)) or base is None:
        return path if not files.is_local(path) else files.local_path(path)
    beside = os.path.join(base, path)
    return os.path.abspath(beside) if files.list_files(beside) else os.path.abspath(path)


def _existing_file(value: str, info: ValidationInfo) -> DataFile:
    found = locate(value, (info.context or {}).get("base"))
    if not files.exists(found):
        raise ValueError(f"file not found: {value}")
    return DataFile(found)


# Annotate a field with this where the configuration names a file that must exist: `model: ExistingFile`.
ExistingFile = Annotated[str, AfterValidator(_existing_file)]


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key written twice: plain YAML would silently keep the last one."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict:
    loader.flatten_mapping(node)
    seen: dict[Any, int] = {}
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f'key "{key}" stands twice (lines {seen[key]} and {line})', key_node.start_mark
            )
        seen[key] = line
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: str) -> tuple[Any, yaml.Node | None]:
    """The value of a YAML file and its node tree (for line numbers). Raises ConfigError."""
    try:
        text = files.read_bytes(path).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise ConfigError(f"{path} is a folder: name the YAML file in it") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from error
    try:
        return yaml.load(text, _Loader), yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{path}, line {line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {str(error).splitlines()[0]}") from error


def load_strict(path: str, model: type[M]) -> M:
    """Reads a YAML file into a model; files it names are looked up from its own folder first. Raises ConfigError."""
    value, node = read_yaml(path)
    return validate(value, model, path, node)


def validate(value: Any, model: type[M], path: str, node: yaml.Node | None = None, inside: str = "") -> M:
    """Checks a parsed value against a model. `path` names the file in messages and is the base of relative paths in it;
    `inside` names the part of the file that the value is ("stage language"), `node` is that part's YAML node."""
    if not isinstance(value, dict):
        place = f"{path}, line {node.start_mark.line + 1}" if node else path
        found = "nothing" if value is None else type(value).__name__
        raise ConfigError(f"{place}: expected a mapping of keys{_inside([inside] if inside else [])}, found {found}")
    base = os.path.dirname(files.local_path(path)) if files.is_local(path) else None
    try:
        return model.model_validate(value, context={"base": base, "path": path})
    except ValidationError as error:
        raise ConfigError(_sentence(error, model, path, node, inside)) from error


def _sentence(error: ValidationError, model: type[BaseModel], path: str, node: yaml.Node | None, inside: str) -> str:
    problem = _telling(error.errors(include_url=False))
    where = list(problem["loc"])
    holder = [inside, *where[:-1]] if inside else where[:-1]
    line = _line(node, where)
    place = f"{path}, line {line}" if line else path
    dotted = ": ".join(filter(None, [inside, ".".join(str(part) for part in where)]))
    if problem["type"] == "extra_forbidden":
        return f"{place}: {unknown_key(str(where[-1]), _keys_at(model, where[:-1]), '.'.join(map(str, holder)))}"
    if problem["type"] == "missing":
        return f'{place}: key "{where[-1]}" is missing{_inside(holder)}'
    message = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {dotted}: {message}" if dotted else f"{place}: {message}"


def _telling(problems: list[dict[str, Any]]) -> dict[str, Any]:
    """The problem to tell: the first, but where a key is missing an unknown one beside it, which is likely to be its misspelling."""
    first = problems[0]
    if first["type"] != "missing":
        return first
    beside = [p for p in problems if p["type"] == "extra_forbidden" and p["loc"][:-1] == first["loc"][:-1]]
    return beside[0] if beside else first


def unknown_key(key: str, valid: list[str], inside: str = "") -> str:
    """The sentence for an unknown key, with the nearest valid one, or all of them when none is near."""
    near = difflib.get_close_matches(key, valid, n=1, cutoff=0.6)
    hint = f'did you mean "{near[0]}"?' if near else f"valid keys: {', '.join(sorted(valid))}"
    return f'unknown key "{key}"{_inside([inside] if inside else [])}: {hint}'


def _inside(where: list) -> str:
    return f" in {'.'.join(str(part) for part in where)}" if where else ""


def _keys_at(model: type[BaseModel], where: list) -> list[str]:
    """The keys of the model found by walking a location from the root model."""
    current: Any = model
    of_a_dict = False  # the next part is a key that the user chose
    for part in where:
        if isinstance(part, int) or of_a_dict:
            of_a_dict = False
            continue
        field = getattr(current, "model_fields", {}).get(part)
        current = _model_in(field.annotation) if field else None
        of_a_dict = field is not None and get_origin(field.annotation) is dict
    return sorted(getattr(current, "model_fields", {}))


def _model_in(annotation: Any) -> Any:
    """The first model class inside an annotation such as `list[Model]`, `Model | None` or `Annotated[...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, tuple, dict, Union, Annotated, types.UnionType):
        return next((m for m in map(_model_in, get_args(annotation)) if m), None)
    return None


def _line(node: yaml.Node | None, where: list) -> int | None:
    """The line of the deepest part of a location that the file has."""
    line = None
    for part in where:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if pair is None:
                return line or node.start_mark.line + 1
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            return line
    return line


def data_files(value: Any) -> list[DataFile]:
    """All DataFile values inside a model, in the order of its fields."""
    if isinstance(value, DataFile):
        return [value]
    if isinstance(value, BaseModel):
        return [f for name in type(value).model_fields for f in data_files(getattr(value, name))]
    if isinstance(value, dict):
        return [f for item in value.values() for f in data_files(item)]
    if isinstance(value, (list, tuple)):
        return [f for item in value for f in data_files(item)]
    return []
