"""The points of a parameter matrix: every combination of values, and the command at each point.

A value `4x` means four times the CPUs that the workload may use. Only the testbed knows that number, so the
value stays a placeholder (`{cpus*4}`) until the runner there replaces it, and its label stays '4x'. Plain
numbers in the same list that exceed the largest such value are left out on that testbed.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bisector.model.format import whole_number
from bisector.schemas.documents.document import shown

BLOCK_DEVICE = "block_device"
"""The placeholder for the path of the testbed's scratch disk."""

MAX_POINTS = 1000
"""Combinations of parameters: each is executed in each run, so a run has no more."""

_TIMES_CPUS = re.compile(r"(?P<factor>[0-9]+(?:\.[0-9]+)?)x")
_PLACEHOLDER = re.compile(r"\{(?P<name>[a-z][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Combination:
    """One combination. values: parameter -> text as in the manifest; limits: (number, factor of the CPUs)."""

    values: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[tuple[int, float], ...] = ()

    @property
    def label(self) -> str:
        """Return 'threads=4x,size=10'."""
        return ",".join(f"{name}={value}" for name, value in self.values.items())

    def command(self, words: Sequence[str], fixed: Mapping[str, str]) -> tuple[str, ...]:
        """Return a command with `{name}` replaced by its value here. fixed: parameters with one value.

        `{block_device}` stays; the runner on the testbed replaces it.
        """
        values = {BLOCK_DEVICE: f"{{{BLOCK_DEVICE}}}", **fixed, **self.values}
        return tuple(_PLACEHOLDER.sub(lambda m: _runner_value(values[m["name"]]), word) for word in words)


def points(parameters: Mapping[str, Sequence[str]]) -> tuple[Combination, ...]:
    """Return all combinations of the parameters that have several values; one empty point if none has."""
    varied = {name: values for name, values in parameters.items() if len(values) > 1}
    found = []
    for choice in itertools.product(*varied.values()):
        chosen = dict(zip(varied, choice, strict=True))
        limits = tuple(
            (number, largest)
            for name, value in chosen.items()
            if (number := whole_number(value)) is not None
            and (largest := _largest_factor(varied[name])) is not None
        )
        found.append(Combination(chosen, limits))
    return tuple(found)


def single_values(parameters: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the parameters that have one value."""
    return {name: values[0] for name, values in parameters.items() if len(values) == 1}


def placeholders(words: Sequence[str]) -> set[str]:
    """Return the parameters that a command names."""
    return {match["name"] for word in words for match in _PLACEHOLDER.finditer(word)}


def _runner_value(value: str) -> str:
    match = _TIMES_CPUS.fullmatch(value)
    return value if match is None else f"{{cpus*{match['factor']}}}"


def _largest_factor(values: Sequence[str]) -> float | None:
    factors = [float(match["factor"]) for value in values if (match := _TIMES_CPUS.fullmatch(value))]
    return max(factors, default=None)


def lists_of(given: Mapping[object, object]) -> dict[object, list[str]]:
    """Return the values of all parameters as texts. given: as in a file. Raises ValueError."""
    found = {name: _values(name, values) for name, values in given.items()}
    if math.prod(len(values) for values in found.values()) > MAX_POINTS:
        raise ValueError(f"all combinations of their values are more than {MAX_POINTS:,}")
    return found


def _values(name: object, given: object) -> list[str]:
    if name == BLOCK_DEVICE:
        raise ValueError(f"'{BLOCK_DEVICE}' is not a parameter: it stands for the path of a scratch disk")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,99}", str(name)):
        raise ValueError(f"the parameter {shown(name)} needs a name of small letters, digits and '_'")
    listed = given if isinstance(given, list | tuple) else [given]
    texts = [str(value) for value in listed if is_plain(value)]
    if len(texts) != len(listed) or not texts or any(re.search(r"[\n\r\0]", text) for text in texts):
        raise ValueError(f"the parameter '{name}' needs a number or text of one line, or a list of them")
    if len(set(texts)) != len(texts):
        raise ValueError(f"the parameter '{name}' has a value twice")
    return texts


def is_plain(value: object) -> bool:
    """Return whether a value of YAML is a number or a text; 'yes' without quotes is neither."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)
