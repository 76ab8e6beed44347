"""Loading a YAML or TOML file into a pydantic model, with errors that name file, line, key and the cure."""

from __future__ import annotations

import difflib
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from bisector.errors import RequestError


class Spec(BaseModel):
    """Base of every model read from a file: frozen, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


S = TypeVar("S", bound=Spec)


def load_yaml(path: Path, model: type[S]) -> S:
    """Read a YAML file. Raises RequestError naming the file, line and key of what is wrong."""
    text = _read(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise RequestError(f"{where}: not valid YAML", details=str(error)) from error
    lines: dict[tuple[str, ...], int] = {}
    if node is not None:
        _lines(node, (), lines)
    return validate(data if data is not None else {}, model, path, lines)


def load_toml(path: Path, model: type[S]) -> S:
    """Read a TOML file. Raises RequestError naming the file, line and key of what is wrong."""
    text = _read(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f"{path}: not valid TOML", details=str(error)) from error
    lines: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        key = line.split("=", 1)[0].strip().strip('"')
        if "=" in line and key and not key.startswith("#"):
            lines.setdefault((key,), number)
    return validate(data, model, path, lines, flat_lines=True)


def validate(
    data: Any,  # noqa: ANN401 - whatever the file holds; pydantic decides
    model: type[S],
    path: Path,
    lines: Mapping[tuple[str, ...], int] | None = None,
    *,
    flat_lines: bool = False,
) -> S:
    """Validate already parsed data; `lines` maps key paths to line numbers (flat: last key only)."""
    if not isinstance(data, dict):
        raise RequestError(f"{path}: expected keys and values at the top level")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        # A misspelt key explains the missing one beside it, so it is told first.
        errors = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        problems = [_problem(e, model, path, lines or {}, flat_lines) for e in errors]
        raise RequestError(problems[0], details="\n".join(problems[1:])) from error


def nearest(word: str, known: typing.Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the closest known word, or an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise RequestError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: cannot be read", details=str(error)) from error


def _lines(node: yaml.Node, prefix: tuple[str, ...], out: dict[tuple[str, ...], int]) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            where = (*prefix, str(key.value))
            out[where] = key.start_mark.line + 1
            _lines(value, where, out)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            where = (*prefix, str(number))
            out[where] = value.start_mark.line + 1
            _lines(value, where, out)


def _problem(
    error: Any,  # noqa: ANN401 - pydantic's ErrorDetails
    model: type[BaseModel],
    path: Path,
    lines: Mapping[tuple[str, ...], int],
    flat: bool,
) -> str:
    where = tuple(str(part) for part in error["loc"])
    line = lines.get(where[-1:]) if flat else None
    for length in range(len(where), 0, -1):
        line = line or lines.get(where[:length])
    place = f"{path}:{line}" if line else str(path)
    key = ".".join(where)
    if error["type"] == "extra_forbidden":
        owner = _model_at(model, where[:-1])
        known = list(owner.model_fields) if owner else []
        names = [f.alias or n for n, f in owner.model_fields.items()] if owner else known
        return f"{place}: unknown key '{key}'{nearest(where[-1], names)} (known: {', '.join(names)})"
    if error["type"] == "missing":
        return f"{place}: the key '{key}' is missing"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{place}: '{key}': {message} (got {error.get('input')!r})"


def _model_at(model: type[BaseModel], where: tuple[str, ...]) -> type[BaseModel] | None:
    """Follow a key path through nested models, lists and mappings."""
    current: Any = model
    for part in where:
        models = _models_in(current)
        found = None
        for candidate in models:
            for name, info in candidate.model_fields.items():
                if part in (name, info.alias):
                    found = info.annotation
        if found is not None:
            current = found
        # a list index or a mapping key: stay on the annotation that holds the element type
    models = _models_in(current)
    return models[0] if models else None


def _models_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any type annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if typing.get_origin(annotation) in (None, typing.Literal) and not isinstance(
        annotation, types.UnionType
    ):
        return []
    return [m for inner in typing.get_args(annotation) for m in _models_in(inner)]
