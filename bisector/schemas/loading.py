"""YAML and TOML files as pydantic models. What is wrong in a file is named with file, line and key."""

from __future__ import annotations

import re
import tomllib
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from bisector.errors import RequestError, nearest

Key = tuple[str, ...]
"""The path of a value in a file: the names of keys, and positions in lists from 0."""

_LONGEST_VALUE = 80
"""Characters of a wrong value that a message repeats; a longer one would hide what is wrong with it."""

_TOML_HEADER = re.compile(r"(?P<open>\[\[?)\s*(?P<name>[\w.\"'-]+)\s*\]\]?\s*(#.*)?")
_TOML_KEY = re.compile(r"(?P<name>[\w\"'-]+)\s*=")

_PLAIN_ENGLISH = {
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "string_type": "must be text",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "too_short": "must not be empty",
}
"""pydantic's type of an error -> our words, where its own speak of Python."""


class Spec(BaseModel):
    """Base of every model at the border: frozen, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


S = TypeVar("S", bound=Spec)


def matching(pattern: str, meaning: str) -> AfterValidator:
    """Return a check that a text matches a regular expression. meaning: what messages say it must be."""
    expression = re.compile(pattern)

    def check(value: str) -> str:
        if expression.fullmatch(value) is None:
            raise ValueError(f"must be {meaning}")
        return value

    return AfterValidator(check)


def load_yaml(path: Path, model: type[S]) -> S:
    """Read a YAML file. Raises RequestError naming the file, line and key of what is wrong."""
    text = _read(path)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        parts = (getattr(error, "context", None), getattr(error, "problem", None))
        details = ": ".join(part for part in parts if part)
        raise RequestError(f"{place}: not valid YAML", details=details or str(error)) from error
    return _validate(data, model, path, dict(_yaml_lines(node, ())) if node is not None else {})


def load_toml(path: Path, model: type[S]) -> S:
    """Read a TOML file. Raises RequestError naming the file, line and key of what is wrong."""
    text = _read(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        place = f"{path}:{line[1]}" if line else str(path)
        raise RequestError(f"{place}: not valid TOML", details=str(error)) from error
    return _validate(data, model, path, _toml_lines(text))


def refusal(
    error: ValidationError,
    model: type[BaseModel],
    place: Callable[[Key], str] = lambda key: "",
    label: Callable[[Key], str] = lambda key: f"key '{'.'.join(key)}'",
) -> RequestError:
    """Return what pydantic found wrong as an error for users: the first problem, the others as details.

    place: from a value's path to where it stands ('file:8') or ''. label: to the name that users write.
    """
    errors = error.errors()
    keys = [tuple(map(str, one["loc"])) for one in errors]
    problems = []
    # A misspelt key explains the missing one beside it, so it comes first.
    for number in sorted(range(len(errors)), key=lambda i: errors[i]["type"] != "extra_forbidden"):
        key, kind = keys[number], errors[number]["type"]
        # A list counts as too short once its only element is wrong: the element's error says enough.
        if kind == "too_short" and any(other[: len(key)] == key != other for other in keys):
            continue
        problems.append(": ".join(filter(None, (place(key), _problem(errors[number], key, model, label)))))
    return RequestError(problems[0], details="\n".join(problems[1:]))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise RequestError(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path}: not text in UTF-8", details=str(error)) from error
    except OSError as error:
        raise RequestError(f"{path}: cannot be read: {error.strerror}") from error


def _validate(data: object, model: type[S], path: Path, lines: Mapping[Key, int]) -> S:
    if not isinstance(data, dict):
        raise RequestError(f"{path}: expected keys and values at the top level")
    try:
        return model.model_validate(data)
    except ValidationError as error:

        def place(key: Key) -> str:
            found = (lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in lines)
            line = next(found, None)
            return f"{path}:{line}" if line else str(path)

        raise refusal(error, model, place) from error


def _yaml_lines(node: yaml.Node, prefix: Key) -> typing.Iterator[tuple[Key, int]]:
    """Yield the line of each key and list element below a node."""
    pairs: list[tuple[str, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        pairs = [(str(key.value), key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        pairs = [(str(number), value, value) for number, value in enumerate(node.value)]
    for name, start, value in pairs:
        yield (*prefix, name), start.start_mark.line + 1
        yield from _yaml_lines(value, (*prefix, name))


def _toml_lines(text: str) -> dict[Key, int]:
    """Return the line of each table and of the keys in it; keys of inline tables are not looked for."""
    lines: dict[Key, int] = {}
    table: Key = ()
    rows: dict[Key, int] = {}
    within = ""  # the quotes of a text of several lines
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        header, key = _TOML_HEADER.fullmatch(line), _TOML_KEY.match(line)
        if within:
            within = "" if within in line else within
            continue
        if header is not None:
            table = tuple(part.strip("\"'") for part in header["name"].split("."))
            if header["open"] == "[[":
                rows[table] = rows.get(table, -1) + 1
                table = (*table, str(rows[table]))
            lines[table] = number
        elif key is not None:
            lines.setdefault((*table, key["name"].strip("\"'")), number)
        within = next((quotes for quotes in ('"""', "'''") if line.count(quotes) == 1), "")
    return lines


def _problem(
    error: Any,  # noqa: ANN401 - pydantic's ErrorDetails
    key: Key,
    model: type[BaseModel],
    label: Callable[[Key], str],
) -> str:
    if error["type"] == "extra_forbidden":
        owner = _model_at(model, key[:-1])
        known = [info.alias or name for name, info in owner.model_fields.items()] if owner else []
        return f"unknown {label(key)}{nearest(key[-1], known)} (known: {', '.join(known)})"
    if error["type"] == "missing":
        return f"the {label(key)} is missing"
    return f"{label(key)}: {_wrong_value(error)}" if key else _plain_message(error)


def describe_wrong_value(error: BaseException | None) -> str:
    """Return what pydantic found wrong in a single value, such as an option's; '' for any other error."""
    return _wrong_value(error.errors()[0]) if isinstance(error, ValidationError) else ""


def _wrong_value(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    """Return in plain English what pydantic found wrong in a value, with the value if it is short."""
    message, given = _plain_message(error), error.get("input")
    text = "" if isinstance(given, dict | list | tuple) else repr(given)
    named = error["type"] == "value_error" and str(given) in message
    return f"{message} (got {text})" if text and len(text) <= _LONGEST_VALUE and not named else message


def _plain_message(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    message = _PLAIN_ENGLISH.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")
    return re.sub(r"^(Input|String|Tuple|List|Dictionary) should", "must", message)


def _model_at(model: type[BaseModel], key: Key) -> type[BaseModel] | None:
    """Follow a key path through nested models, lists and mappings."""
    current: Any = model
    for part in key:
        for candidate in _models_in(current):
            for name, info in candidate.model_fields.items():
                if part in (name, info.alias):
                    current = info.annotation
        # a list index or a mapping key: stay on the annotation that holds the element type
    return next(iter(_models_in(current)), None)


def _models_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any type annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if typing.get_origin(annotation) in (None, typing.Literal) and not isinstance(
        annotation, types.UnionType
    ):
        return []
    return [m for inner in typing.get_args(annotation) for m in _models_in(inner)]
