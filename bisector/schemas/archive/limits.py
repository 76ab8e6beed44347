"""Limits of what an exported bisection may say, beside its types: times, counts, and lengths of texts.

perfbisect itself writes nothing beyond them. What is beyond would end every command that shows it, take all
memory, or fill a screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel

from bisector.model.decisions import Decision
from bisector.model.printable import cut
from bisector.model.records import Left, Record
from bisector.schemas.documents.document import Key, shown
from bisector.schemas.ranges import LAST_TIME
from bisector.schemas.refusal import WrongKeyError

_SECONDS = 1e9
"""Longest time of a build, a boot or a run: thirty years, far beyond any timeout."""

_RANGES: Mapping[str, tuple[float, float]] = {
    "at": (0, LAST_TIME),
    "seconds": (0, _SECONDS),
    "overhead": (-_SECONDS, _SECONDS),
    "left": (0, 1e12),  # an estimate, of a search that nobody would wait for
    "index": (0, 19_999),  # of a boot's runs with warm-up: `ranges.Runs` and `WarmupRuns`
    "runs": (0, 10_000),  # `ranges.Runs`
    "layout": (0, 9_999),  # alternative layouts of one commit, each a build of its own
    "builds": (0, 1_000_000),  # `ranges.Amount`
    "named": (0, 1_000_000),
}
"""Fields of events and their smallest and largest values."""

_A_TIME = "must be a time: seconds since 1970, of a year up to 9999"
_TIMES = ("when", "begun")
"""Keys of times in a request: of a listed kernel, and of a series."""

_MAX_CHARACTERS = 5000
"""Of a text: the longest is a console's line with the reason before it (4096), or an argument (4096)."""
_MAX_CHARACTERS_OF: Mapping[str, int] = {"details": 20_000}
"""Of other fields: seven lines of a build's log of 2,000 characters each, with the log's place."""
MAX_REASON_CHARACTERS = 300
"""Why a commit is untestable: `perfbisect show` and reports have it in a line."""
_MAX_NAME = 255
"""Of a workload, or a part of its path: no file system of Linux has a longer name."""
_MAX_ARGUMENT = 10_000
"""Of a text of a request: `loading.Argument`."""
CURE = "export it again, with the perfbisect that has the bisection"

S = TypeVar("S", bound=BaseModel)


def _check_time(value: float) -> float:
    if not 0 <= value <= LAST_TIME:
        raise WrongKeyError(_A_TIME, cure=CURE)
    return value


Time = Annotated[float, AfterValidator(_check_time)]
"""Seconds since the epoch."""


def wrong_number(event: Record | Decision) -> str:
    """Return which number of an event is out of its range; '' if none is."""
    for key, value in _numbers(event):
        low, high = _RANGES[key.rpartition(".")[2]]
        if not low <= value <= high:
            right = _A_TIME if key == "at" else f"must be from {low:,.0f} to {high:,.0f}"
            return f"key '{key}': {right} (got {shown(value)})"
    return ""


def _numbers(event: Record | Decision) -> Iterator[tuple[str, float]]:
    for name in _RANGES:
        value = getattr(event, name, None)
        if isinstance(value, int | float):
            yield name, value
    if isinstance(event, Left):
        for number, result in enumerate(event.monitors):
            yield f"monitors.{number}.seconds", result.seconds


def with_short_texts(value: Any, characters: int = _MAX_CHARACTERS) -> Any:  # noqa: ANN401 - JSON values
    """Return JSON values whose texts are cut where they are longer than any that perfbisect writes."""
    if isinstance(value, str):
        return cut(value, characters) if len(value) > characters else value
    if isinstance(value, list):
        return [with_short_texts(one, characters) for one in value]
    if isinstance(value, dict):
        limits = _MAX_CHARACTERS_OF
        return {name: with_short_texts(one, limits.get(name, _MAX_CHARACTERS)) for name, one in value.items()}
    return value


def check_request(request: S) -> S:
    """Return a request if its times are some, and its texts no longer than any has. Raises WrongKeyError.

    No text is cut: with another one it is another request.
    """
    for key, value in _values(request.model_dump(mode="json"), ()):
        wrong = _wrong_text(key[-1], value) if isinstance(value, str) else ""
        if key[-1] in _TIMES and isinstance(value, float) and not 0 <= value <= LAST_TIME:
            wrong = f"{_A_TIME} (got {shown(value)})"
        if wrong:
            raise WrongKeyError(wrong, *key, cure=CURE)
    return request


def _wrong_text(name: str, text: str) -> str:
    if len(text) > _MAX_ARGUMENT:
        return f"must have at most {_MAX_ARGUMENT:,} characters (got {len(text):,})"
    longest = max(map(len, text.split("/")))
    if name == "workload" and longest > _MAX_NAME:
        return f"no workload has a name of more than {_MAX_NAME} characters (got {longest:,})"
    return ""


def _values(value: object, key: Key) -> Iterator[tuple[Key, object]]:
    if isinstance(value, dict | list):
        for name, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _values(one, (*key, str(name)))
    else:
        yield key, value
