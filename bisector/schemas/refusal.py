"""Validation errors of pydantic as errors for users: the place, the value, what would be right."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from bisector.errors import RequestError, nearest
from bisector.schemas.documents.document import Key, key_text, shown
from bisector.schemas.masking import mask_command
from bisector.schemas.ranges import range_text

_MOST_PROBLEMS = 10
"""Problems of one file that a message names: chosen, since a file with more is the wrong one."""

_MOST_PROBLEMS_DESCRIBED = 3
"""Problems that are named of a message between programs: the first few show whether another version wrote it,
or whether it is garbage."""

WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a known key",
    "json_invalid": "is no JSON",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "dataclass_type": "must be a mapping of keys to values",
    "invalid_key": "must have names as keys",
    "string_type": "must be text",
    "string_unicode": "must be text in UTF-8",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "path_type": "must be a path",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "bytes_type": "must be text in base64",
    "bytes_invalid_encoding": "must be text in base64",
    "bytes_too_long": "must have at most {max_length} bytes",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length} entries",
}
"""pydantic's type of an error -> our words, with names of its context. Others: see `_words`."""

_OF_THE_KEY = "[key]"
"""What pydantic puts behind the path of a value whose key is wrong, and not the value."""

_OUT_OF_RANGE = frozenset(
    {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"}
)


class WrongKeyError(ValueError):
    """What a validator of a whole model finds wrong in one of its keys."""

    def __init__(self, message: str, *key: str, cure: str = "") -> None:
        """Keep the path of the key, from the model on. cure: '' for what the key means."""
        super().__init__(message)
        self.key = key
        self.cure = cure


def refusal(
    error: ValidationError,
    model: type[BaseModel],
    place: Callable[[Key], str] = lambda key: "",
    label: Callable[[Key], str] = lambda key: f"key '{key_text(key)}'",
    *,
    described_in: str = "",
) -> RequestError:
    """Return what pydantic found wrong as an error for users: the first problem, the others as details.

    place: from a value's path to where it stands ('file:8') or ''. label: to the name that users write.
    described_in: where the keys are described, for the cure.
    """
    errors = error.errors(include_url=False)
    keys = [(*map(str, one["loc"]), *getattr(_raised(one), "key", ())) for one in errors]
    # A misspelt key explains the missing one beside it, so it comes first.
    order = sorted(range(len(errors)), key=lambda i: errors[i]["type"] != "extra_forbidden")
    problems: list[str] = []
    cure = ""
    for number in order[: 2 * _MOST_PROBLEMS]:
        key, one = keys[number], errors[number]
        # A list counts as too short once its only element is wrong: the element's error says enough.
        if one["type"] == "too_short" and any(other[: len(key)] == key != other for other in keys):
            continue
        field = _field_at(model, key)
        problems.append(": ".join(filter(None, (place(key), _problem(one, key, model, field, label)))))
        named = key[:-1] if key[-1:] == (_OF_THE_KEY,) else key
        cure = cure or _cure(one, label(named) if named else "", field, described_in)
    left = len(errors) - len(order[: 2 * _MOST_PROBLEMS])
    details = [*problems[1 : _MOST_PROBLEMS + 1], *([f"and {left} more"] if left else [])]
    return RequestError(problems[0], details="\n".join(details), cure=cure)


def wrong_key(error: WrongKeyError, model: type[BaseModel], place: Callable[[Key], str]) -> RequestError:
    """Return what was found wrong in a key once the whole model was there, as an error for users."""
    name, field = f"key '{key_text(error.key)}'", _field_at(model, error.key)
    cure = (
        f"{name} means: {field.description}" if field is not None and field.description else "mend that key"
    )
    return RequestError(f"{place(error.key)}: {name}: {error}", cure=error.cure or cure)


def describe_wrong_value(error: BaseException | None) -> str:
    """Return what pydantic found wrong in a single value, such as an option's; '' for any other error."""
    return _wrong_value(error.errors()[0], None) if isinstance(error, ValidationError) else ""


def describe_problems(error: ValidationError, skip: int = 0) -> str:
    """Return the first problems in our words, a line each: for text that no user has written.

    skip: parts of each path that name no key, such as the kind of a message.
    """
    errors = error.errors(include_url=False)[:_MOST_PROBLEMS_DESCRIBED]
    return "\n".join(
        f"{key_text(tuple(map(str, one['loc'][skip:])))}: {_wrong_value(one, None)}".removeprefix(": ")
        for one in errors
    )


def _problem(
    error: Any,  # noqa: ANN401 - pydantic's ErrorDetails
    key: Key,
    model: type[BaseModel],
    field: FieldInfo | None,
    label: Callable[[Key], str],
) -> str:
    if error["type"] == "extra_forbidden":
        owners = _models_at(model, key[:-1])[:1]
        known = [info.alias or name for owner in owners for name, info in owner.model_fields.items()]
        return f"unknown {label(key)}{nearest(key[-1][:100], known)} (known: {', '.join(known)})"
    if error["type"] == "missing":
        return f"the {label(key)} is missing"
    if key and key[-1] == _OF_THE_KEY:
        return f"{label(key[:-1])}: a key {_words(error, None)}"
    return f"{label(key)}: {_wrong_value(error, field)}" if key else _words(error, field)


def _cure(error: Any, name: str, field: FieldInfo | None, described_in: str) -> str:  # noqa: ANN401 - the same
    if error["type"] == "extra_forbidden":
        return "take it out, or write one of the known keys"
    if own := getattr(_raised(error), "cure", ""):
        return str(own)
    if field is not None and field.description:
        limits = "" if error["type"] in _OUT_OF_RANGE else range_text(field)
        meaning = re.sub(r"\.?( \[default: .*\])?$", "", field.description)
        return f"{name} means: {'; '.join(filter(None, (meaning, limits)))}"
    return f"see {described_in}" if described_in else "write what it should be"


def _wrong_value(error: Any, field: FieldInfo | None) -> str:  # noqa: ANN401 - the same
    """Return what is wrong in a value, with the value if it is no list or mapping, and no secret."""
    message, given = _words(error, field), error.get("input")
    named = error["type"] == "value_error" and str(given)[:80] in message
    secret = field is not None and not field.repr
    plain = named or secret or isinstance(given, dict | list | tuple | BaseModel)
    if isinstance(given, str):
        given = mask_command([given])[0]  # of the lab's commands, and addresses
    return message if plain else f"{message} (got {shown(given)})"


def _words(error: Any, field: FieldInfo | None) -> str:  # noqa: ANN401 - the same
    """Return pydantic's error in our words."""
    kind = error["type"]
    if kind == "value_error":
        return str(_raised(error) or "is not understood")
    if kind in _OUT_OF_RANGE and field is not None and (limits := range_text(field)):
        return f"must be {limits}"
    return WORDS.get(kind, "is not understood").format_map(error.get("ctx", {}))


def _raised(error: Any) -> BaseException | None:  # noqa: ANN401 - the same
    """Return the exception that a validator of ours raised."""
    found = error.get("ctx", {}).get("error")
    return found if isinstance(found, BaseException) else None


def _field_at(model: type[BaseModel], key: Key) -> FieldInfo | None:
    """Return the field of a value, or of the list or mapping that the value is in."""
    for length in range(len(key), 0, -1):
        for owner in _models_at(model, key[: length - 1]):
            for name, info in owner.model_fields.items():
                if key[length - 1] in (name, info.alias):
                    return info
    return None


def _models_at(model: type[BaseModel], key: Key) -> list[type[BaseModel]]:
    """Follow a key path through nested models, lists and mappings; several where there are several kinds."""
    current: Any = model
    for part in key:
        for candidate in _models_in(current):
            for name, info in candidate.model_fields.items():
                if part in (name, info.alias):
                    current = info.annotation
        # a list index or a mapping key: stay on the annotation that holds the element type
    return _models_in(current)


def _models_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any type annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if typing.get_origin(annotation) in (None, typing.Literal) and not isinstance(
        annotation, types.UnionType
    ):
        return []
    return [m for inner in typing.get_args(annotation) for m in _models_in(inner)]
