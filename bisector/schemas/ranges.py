"""The ranges of numbers that users give. A type says the range once; messages and helps print it."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field
from pydantic.fields import FieldInfo

from bisector.model.format import plain
from bisector.model.goal import LEAST_ALPHA


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
Real = Annotated[float, BeforeValidator(_no_truth)]
"""Numbers as people write them. `on` and `yes` of YAML, and `true`, would count as 1 with pydantic."""

Jobs = Annotated[Whole, Field(ge=1, le=4096)]
"""Parallel compilers: more processes than that end no machine's build earlier."""

CacheGib = Annotated[Whole, Field(ge=1, le=1 << 20)]
"""1 GiB is some 80 kernels of the default recipe; a PiB is more than any host has."""

MAX_CPUS = 8192
"""NR_CPUS of x86_64 with MAXSMP, the largest that Linux has."""

Cpus = Annotated[Whole, Field(ge=1, le=MAX_CPUS)]

MemoryMiB = Annotated[Whole, Field(ge=64, le=1 << 24)]
"""Of a guest: below 64 the kernel has no room for its initramfs; 16 TiB is more than any host has."""

Runs = Annotated[Whole, Field(ge=1, le=10_000)]
"""Of one boot: ten thousand runs of a second take three hours."""

WarmupRuns = Annotated[Whole, Field(ge=0, le=10_000)]

RestSeconds = Annotated[Real, Field(ge=0, le=86_400)]
"""A rest before or between runs: up to a day."""

TimeoutSeconds = Annotated[Real, Field(gt=0, le=604_800)]
"""A deadline: up to a week."""

BootSeconds = Annotated[Real, Field(gt=0, le=3600)]
"""Until a machine answers after a boot: up to an hour. The mark of who uses it holds for three of them."""

Repeats = Annotated[Whole, Field(ge=1, le=100)]
"""Runs of `perf stat -r`, all of them within one timeout."""

SampleFrequency = Annotated[Whole, Field(ge=1, le=20_000)]
"""Samples a second: perf_event_max_sample_rate is 100,000 and falls by itself where that is too many."""

Port = Annotated[Whole, Field(ge=1, le=65_535)]

Nice = Annotated[Whole, Field(ge=-20, le=19)]
"""setpriority(2)."""

Alpha = Annotated[Real, Field(ge=LEAST_ALPHA, lt=0.5)]
"""An error probability: a decision at 0.5 is a coin's."""

Hours = Annotated[Real, Field(gt=0, le=100_000)]
"""A budget: up to eleven years."""

Amount = Annotated[Whole, Field(ge=1, le=1_000_000)]
"""A budget of builds or runs; so many files are in no kernel."""

LAST_TIME = 253_402_214_400.0
"""The last day of 9999 in UTC, in seconds since the epoch: calendars know no later year, in any time zone."""

BuildsAhead = Annotated[Whole, Field(ge=0, le=64)]
"""Kernels that are built before a trial asks: each is some 100 MB of cache."""


def range_text(field: FieldInfo) -> str:
    """Return the range of a field in words: 'from 1 to 64', 'above 0, at most 86,400'; '' for none."""
    _, metadata = kind_and_limits(field)
    names = ("gt", "ge", "lt", "le")
    limits = {name: getattr(one, name) for one in metadata for name in names if hasattr(one, name)}
    if {"ge", "le"} <= limits.keys():
        return f"from {plain(limits['ge'])} to {plain(limits['le'])}"
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    return ", ".join(f"{word} {plain(limits[name])}" for name, word in words.items() if name in limits)


def number_ranges(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield key and range of each number of a model and of the models in it, as users write the key."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        if kind_and_limits(field)[0] is not None:
            yield path, range_text(field)
        for inner in _models_in(field.annotation):
            yield from number_ranges(inner, f"{path}.")


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models_in(inner)


def kind_and_limits(field: FieldInfo) -> tuple[type[int] | type[float] | None, Sequence[object]]:
    """Return the kind of number that a field takes, None for another type, and its limits as pydantic's."""
    annotation, metadata = field.annotation, list(field.metadata)
    for inside in typing.get_args(annotation):  # of 'Jobs | None'
        if typing.get_origin(inside) is Annotated:
            annotation = inside.__origin__
            metadata += [limit for one in inside.__metadata__ for limit in getattr(one, "metadata", ())]
    kinds: tuple[type[int] | type[float], ...] = (int, float)
    return next((kind for kind in kinds if annotation is kind), None), metadata
