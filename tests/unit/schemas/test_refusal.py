"""pydantic's errors in our words: every kind that a schema of ours can raise; what a refusal says."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

import bisector.schemas
from bisector.errors import RequestError
from bisector.schemas.loading import Spec
from bisector.schemas.ranges import Runs
from bisector.schemas.refusal import WORDS, WrongKeyError, describe_wrong_value, refusal

RAISED: dict[str, set[str]] = {
    "int": {"int_type", "int_parsing", "int_parsing_size", "int_from_float", "finite_number"},
    "float": {"float_type", "float_parsing", "finite_number"},
    "bool": {"bool_type", "bool_parsing"},
    "str": {"string_type", "string_unicode"},
    "model": {"model_type"},
    "model-fields": {"model_attributes_type", "invalid_key", "missing", "extra_forbidden"},
    "tuple": {"tuple_type"},
    "dict": {"dict_type"},
    "literal": {"literal_error"},
    "is-instance": {"path_type"},
    "lax-or-strict": set(),
    "json-or-python": set(),
    "function-after": {"value_error"},
    "function-before": {"value_error"},
    "function-plain": {"value_error"},
    "any": set(),
    "default": set(),
    "nullable": set(),
    "model-field": set(),
    "definitions": set(),
    "definition-ref": set(),
}
"""Kind of a validator -> types of the errors that it raises (pydantic-core's error_types.rs)."""

CONSTRAINTS = {
    "gt": "greater_than",
    "ge": "greater_than_equal",
    "lt": "less_than",
    "le": "less_than_equal",
}
"""Limit of a number -> type of its error."""

LENGTHS = {"str": ("string_too_short", "string_too_long")}
"""Kind of a validator -> types of errors of `min_length` and `max_length`; others: too_short, too_long."""

OTHERWISE = {"missing", "extra_forbidden", "value_error"}
"""Types whose words depend on more than the type."""


def specs() -> list[type[BaseModel]]:
    for module in pkgutil.walk_packages(bisector.schemas.__path__, "bisector.schemas."):
        importlib.import_module(module.name)
    found: list[type[BaseModel]] = []
    waiting: list[type[BaseModel]] = [BaseModel]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            if kind.__module__ == "bisector.schemas.report_document":
                continue  # what we print, and never read
            if kind.__module__.startswith("bisector.schemas.") and kind not in found:
                found.append(kind)
                waiting.append(kind)
            elif kind.__module__.startswith("bisector."):
                waiting.append(kind)
    return sorted(found, key=lambda kind: kind.__name__)


INSIDE: tuple[str, ...] = (
    "schema",
    "items_schema",
    "keys_schema",
    "values_schema",
    "lax_schema",
    "strict_schema",
)
INSIDE += ("json_schema", "python_schema", "steps", "definitions")
"""Keys of a core schema below which other schemas are."""


def validators(schema: Any) -> Iterator[dict[str, Any]]:
    for one in schema if isinstance(schema, list) else [schema]:
        yield one
        for name in INSIDE:
            if name in one:
                yield from validators(one[name])
        fields = one.get("fields")
        if isinstance(fields, dict):
            yield from validators(list(fields.values()))


def error_types(model: type[BaseModel]) -> set[str]:
    found: set[str] = set()
    for one in validators(model.__pydantic_core_schema__):
        kind = one["type"]
        if "custom_error_type" in one:
            found.add(one["custom_error_type"])
            continue
        assert kind in RAISED, f"{model.__name__}: nobody has said which errors '{kind}' raises"
        found |= RAISED[kind]
        found |= {CONSTRAINTS[name] for name in CONSTRAINTS if name in one}
        short, long = LENGTHS.get(kind, ("too_short", "too_long"))
        found |= ({short} if one.get("min_length") else set()) | ({long} if "max_length" in one else set())
    return found


@pytest.mark.parametrize("model", specs(), ids=lambda model: model.__name__)
def test_every_error_that_a_schema_can_raise_has_our_words(model: type[BaseModel]) -> None:
    missing = error_types(model) - WORDS.keys() - OTHERWISE
    assert not missing, f"no own words for {sorted(missing)}"


@pytest.mark.parametrize("model", specs(), ids=lambda model: model.__name__)
def test_every_key_of_a_file_is_described(model: type[BaseModel]) -> None:
    """The description is the cure of its errors."""
    if model.__name__ in (
        "Spec",
        "Accepted",
        "KnownFix",
        "Attempt",
        "NightSpec",
        "CountedFunctionsFile",
        "CpuModel",
        "Penalties",
        "ListedKernel",
        "RemoteSeries",
        "Monitors",
        "Head",
        "RemoteRequest",
    ):  # not written by users, or of models only
        return
    assert [name for name, info in model.model_fields.items() if not info.description] == []


class Inner(Spec):
    size: Runs = Field(default=1, description="of it")
    other: str = ""


class Outer(Spec):
    inner: tuple[Inner, ...] = Field(default=(), description="rows")
    names: dict[str, int] = Field(default_factory=dict)
    roles: dict[int, int] = Field(default_factory=dict, description="who may what")


def refused(data: object) -> RequestError:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(data)
    return refusal(caught.value, Outer, lambda key: f"f:{len(key)}", described_in="the handbook")


@pytest.mark.parametrize(
    ("data", "message", "cure"),
    [
        (
            {"inner": [{"size": 0}]},
            "f:3: key 'inner.0.size': must be from 1 to 10,000 (got 0)",
            "key 'inner.0.size' means: of it",
        ),
        (
            {"inner": [{"size": "x"}]},
            "f:3: key 'inner.0.size': must be a whole number (got 'x')",
            "key 'inner.0.size' means: of it; from 1 to 10,000",
        ),
        (
            {"inner": [{"size": float("inf")}]},
            "f:3: key 'inner.0.size': must be from 1 to 10,000 (got inf)",
            "key 'inner.0.size' means: of it",
        ),
        ({"inner": 3}, "f:1: key 'inner': must be a list (got 3)", "key 'inner' means: rows"),
        (
            {"inner": [{"other": 3}]},
            "f:3: key 'inner.0.other': must be text (got 3)",
            "see the handbook",
        ),
        (
            {"iner": 1},
            "f:1: unknown key 'iner'; did you mean 'inner'? (known: inner, names, roles)",
            "take it out, or write one of the known keys",
        ),
        ({"names": {1: 1}}, "f:3: key 'names.1': a key must be text", "see the handbook"),
        (
            {"roles": {"ann": 1}},
            "f:3: key 'roles.ann': a key must be a whole number",
            "key 'roles.ann' means: who may what",
        ),
        (
            {"x\n\x1b" + "y" * 10_000: 1},
            "f:1: unknown key 'x\\n\\x1b" + "y" * 73 + "...' (known: inner, names, roles)",
            "take it out, or write one of the known keys",
        ),
        (
            {"names": {"a": "z\x1b" + "9" * 10_000}},
            "f:2: key 'names.a': must be a whole number (got 'z\\x1b" + "9" * 74 + "...)",
            "see the handbook",
        ),
    ],
)
def test_a_refusal_names_place_key_value_and_what_would_be_right(
    data: object, message: str, cure: str
) -> None:
    error = refused(data)
    assert (error.message, error.cure) == (message, cure)


def test_many_problems_are_not_all_told() -> None:
    error = refused({f"unknown{number}": 1 for number in range(1000)})
    assert error.details.count("\n") <= 10 and error.details.endswith("and 980 more")


def test_a_validator_of_the_whole_names_its_key() -> None:
    error = WrongKeyError("is wrong", "inner", "0")
    assert error.key == ("inner", "0") and str(error) == "is wrong"


def test_a_single_value_is_described_and_other_errors_are_not() -> None:
    with pytest.raises(ValidationError) as caught:
        Inner.model_validate({"size": "x"})
    assert describe_wrong_value(caught.value) == "must be a whole number (got 'x')"
    assert describe_wrong_value(ValueError("x")) == describe_wrong_value(None) == ""
