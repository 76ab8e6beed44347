"""Measurements of a commit as JSON values and back, to compare what a server has stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bisector.errors import InfrastructureError
from bisector.linux.profile import Profile, Stack, Symbol
from bisector.stats.samples import SampleSeries, SampleSet

_BY_SYMBOL = ("own", "whole", "calls", "spent", "spreads")
"""Fields of a profile with a weight for each symbol."""
_PLAIN = ("name", "total", "samples", "event", "cut", "places", "notes", "exact", "geometry", "no_stacks")
"""`blocks` is a file of the server's, which cannot be read elsewhere."""


def samples_to_json(found: Sequence[SampleSet]) -> list[dict[str, Any]]:
    """Return sets of samples as JSON values."""
    return [dataclasses.asdict(one) for one in found]


def samples_from(values: Sequence[Mapping[str, Any]]) -> list[SampleSet]:
    """Return what `samples_to_json` was given. Raises InfrastructureError: it is something else."""
    try:
        return [
            SampleSet(**{**one, "series": _series_from(one["series"]), "notes": tuple(one["notes"])})
            for one in values
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise _other_version() from error


def _series_from(values: Mapping[str, Mapping[str, Any]]) -> dict[str, SampleSeries]:
    return {
        name: SampleSeries(**{**one, "boots": tuple(tuple(runs) for runs in one["boots"])})
        for name, one in values.items()
    }


def profile_to_json(profile: Profile) -> dict[str, Any]:
    """Return a profile as JSON values: each symbol once, in weights and stacks by its number."""
    stacked = (symbol for stack in profile.stacks for symbol in stack)
    weighed = (symbol for field in (*_BY_SYMBOL, "misses") for symbol in getattr(profile, field))
    numbers = {symbol: i for i, symbol in enumerate(dict.fromkeys((*weighed, *stacked)))}
    return {
        **{field: getattr(profile, field) for field in _PLAIN},
        "symbols": [[symbol.name, symbol.origin] for symbol in numbers],
        **{field: [[numbers[s], w] for s, w in getattr(profile, field).items()] for field in _BY_SYMBOL},
        "stacks": [[[numbers[s] for s in stack], weight] for stack, weight in profile.stacks.items()],
        "misses": [[numbers[s], list(counts)] for s, counts in profile.misses.items()],
        "callers": [[*pair, weight] for pair, weight in profile.callers.items()],
    }


def profile_from(values: Mapping[str, Any]) -> Profile:
    """Return what `profile_to_json` was given. Raises InfrastructureError: it is something else."""
    try:
        symbols = [Symbol(str(name), origin) for name, origin in values["symbols"]]
        stacks: dict[Stack, float] = {tuple(symbols[i] for i in s): float(w) for s, w in values["stacks"]}
        weights = {f: {symbols[i]: float(w) for i, w in values[f]} for f in _BY_SYMBOL}
        plain = {field: values[field] for field in _PLAIN}
        exact = {
            "misses": {symbols[i]: tuple(map(float, counts)) for i, counts in values["misses"]},
            "callers": {(str(a), str(b)): float(w) for a, b, w in values["callers"]},
        }
        notes = tuple(values["notes"])
        fields: dict[str, Any] = {**plain, **weights, **exact, "notes": notes, "stacks": stacks}
        return Profile(**fields)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _other_version() from error


def _other_version() -> InfrastructureError:
    return InfrastructureError(
        "the server's answer is not understood", cure="use the same version of perfbisect here and there"
    )
