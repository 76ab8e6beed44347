"""What no number may be: rows for each number of a file, and the numbers that a schema has."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from bisector.schemas.ranges import number_ranges

WRONG_NUMBERS: Mapping[str, Mapping[str, str]] = {
    "yaml": {
        "infinity": ".inf",
        "minus infinity": "-.inf",
        "not a number": ".nan",
        "past all as text": "1e309",
        "huge": "9" * 90,
        "text": "many",
        "a list": "[1]",
        "a mapping": "{a: 1}",
        "empty": "''",
        "null": "~",
        "a truth": "yes",
        "minutes": "1:30",
    },
    "toml": {
        "infinity": "inf",
        "not a number": "nan",
        "past all": "1e309",
        "huge": "9" * 90,
        "text": '"many"',
        "a list": "[1]",
        "a table": "{a = 1}",
        "a date": "2026-01-01",
        "the word true": '"true"',
        "a truth": "true",
    },
}
"""Language -> name -> text that is no number within any range."""


def number_keys(model: type[BaseModel]) -> set[str]:
    """Return the path of each number of a model and of the models in it, as users write it."""
    return {key for key, _ in number_ranges(model)}
