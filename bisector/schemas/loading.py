"""YAML, TOML and JSON files as pydantic models. What is wrong in a file is named with file, line and key."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from bisector.errors import RequestError
from bisector.schemas.documents.document import (
    MAX_JSON_BYTES,
    MAX_SETTINGS_BYTES,
    Key,
    expand_user,
    nearest_line,
    read_document,
    shown,
    shown_path,
)
from bisector.schemas.documents.json_reader import json_lines, parse_json
from bisector.schemas.documents.toml_reader import parse_toml, toml_lines
from bisector.schemas.refusal import WrongKeyError, refusal, wrong_key


class Spec(BaseModel):
    """Base of every model at the border: frozen, unknown keys and numbers that are not finite are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    described_in: ClassVar[str] = "README.md"
    """Where users find what the keys mean."""


S = TypeVar("S", bound=Spec)


def matching(pattern: str, meaning: str) -> AfterValidator:
    """Return a check that a text matches a regular expression. meaning: what messages say it must be."""
    expression = re.compile(pattern)

    def check(value: str) -> str:
        if expression.fullmatch(value) is None:
            raise ValueError(f"must be {meaning}")
        return value

    return AfterValidator(check)


def _in_a_home(value: str) -> str:
    try:
        expand_user(value)
    except RequestError as error:
        raise ValueError("there is no such user's home; write the path from / on") from error
    return value


def _no_repeats(values: tuple[object, ...]) -> tuple[object, ...]:
    for number, value in enumerate(values):
        if value in values[:number]:
            raise ValueError(f"{shown(value)} is there twice")
    return values


E = TypeVar("E")

Distinct = Annotated[tuple[E, ...], AfterValidator(_no_repeats)]
"""A list in which nothing may be there twice."""

Argument = Annotated[str, matching(r"[^\n\r\0]{0,10000}", "text of one line, at most 10,000 characters")]
"""A word of a command, or the value of a setting: scripts hand them on, one a line."""

HostPath = Annotated[Argument, AfterValidator(_in_a_home)]
"""A path on this machine in an inventory; it may begin with '~'."""


def regular_expression(text: str) -> re.Pattern[str]:
    """Return a compiled regular expression. Raises ValueError in our words, whatever is wrong with it."""
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        place = "" if error.pos is None else f" from character {error.pos + 1} on"
        raise ValueError(f"{shown(text)} is not a regular expression{place}") from error
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"{shown(text)} is too large for a regular expression") from error


def load_yaml(path: Path, model: type[S], check: Callable[[S], None] = lambda found: None) -> S:
    """Read a YAML file. Raises RequestError naming the file, line and key of what is wrong.

    check: what else must hold of the model; it raises WrongKeyError.
    """
    from bisector.schemas.documents.yaml_reader import parse_yaml, yaml_lines  # settings are TOML

    return _load(path, model, parse_yaml, yaml_lines, check)


def load_toml(path: Path, model: type[S], check: Callable[[S], None] = lambda found: None) -> S:
    """Read a TOML file; see `load_yaml`."""
    return _load(path, model, parse_toml, toml_lines, check)


def load_json(path: Path, model: type[S], name: str = "") -> S:
    """Read a JSON file; see `load_yaml`. name: of the file in errors, its path by default."""
    return _load(path, model, parse_json, json_lines, lambda found: None, MAX_JSON_BYTES, name)


def _load(
    path: Path,
    model: type[S],
    parse: Callable[[str, str], Any],
    find_lines: Callable[[str], Iterator[tuple[Key, int]]],
    check: Callable[[S], None],
    max_bytes: int = MAX_SETTINGS_BYTES,
    name: str = "",
) -> S:
    name = name or shown_path(path)
    text = read_document(path, max_bytes, name)
    data = parse(text, name)
    if not isinstance(data, dict | None):
        raise RequestError(
            f"{name}: expected keys and values at the top level", cure=f"see {model.described_in}"
        )

    def place(key: Key) -> str:
        lines = dict(find_lines(text))
        known = any(key[:length] in lines for length in range(1, len(key) + 1))
        return f"{name}:{nearest_line(lines, key)}" if known else name

    try:
        found = model.model_validate(data or {})
        check(found)
    except ValidationError as error:
        raise refusal(error, model, functools.cache(place), described_in=model.described_in) from error
    except WrongKeyError as error:
        raise wrong_key(error, model, place) from error
    return found
