"""Metrics that no workload prints: counted in emulated guests, between the begin and the end of each run.

Any workload can be asked for them, with `--metric NAME` or the key `counters` of its manifest. Instructions,
loads, stores and branches are counted; misses and cycles are those of a model (`kernels/cpus.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from bisector.errors import nearest
from bisector.model.goal import MODELLED
from bisector.schemas.documents.document import shown
from bisector.schemas.workload.metric import MetricManifest


@dataclass(frozen=True, slots=True)
class Counter:
    """One number. needs: what the plugin must do for it beside counting instructions."""

    unit: str
    needs: frozenset[str] = frozenset()


MEMORY, PREDICTOR, CACHES, FUNCTIONS = "memory", "predictor", "caches", "functions"
"""FUNCTIONS: counts of blocks, and the kernel's symbols, which say where each function begins."""

_EVENTS = {"page-faults": "faults", "interrupts": "interrupts", "context-switches": "switches"}
"""What is counted by where the kernel is entered (linux/kernel_entries.py), with their units."""

_INSTRUCTIONS = ("instructions", "user-instructions", "kernel-instructions")
_LEVELS = ("L1i", "L1d", "L2", "LL", "iTLB", "dTLB", "sTLB")

COUNTERS: Mapping[str, Counter] = {
    **{name: Counter("instructions") for name in _INSTRUCTIONS},
    **{name: Counter(name, frozenset([MEMORY])) for name in ("loads", "stores")},
    **{name: Counter("branches", frozenset([PREDICTOR])) for name in ("branches", "taken-branches")},
    **{name: Counter(unit, frozenset([FUNCTIONS])) for name, unit in _EVENTS.items()},
    "branch-misses": Counter(f"{MODELLED}misses", frozenset([PREDICTOR])),
    **{f"{level}-misses": Counter(f"{MODELLED}misses", frozenset([CACHES])) for level in _LEVELS},
    "modelled-cycles": Counter(f"{MODELLED}cycles", frozenset([CACHES, PREDICTOR])),
}


_OF_FUNCTION = "instructions."
"""Before the name of a function of the kernel: a metric of its own, named as any metric may be."""
_FUNCTION = re.compile(re.escape(_OF_FUNCTION) + r"(?P<function>[A-Za-z_][A-Za-z0-9_.]{0,86})")


def of_function(function: str) -> str | None:
    """Return the counter of what a function of the kernel executes; None for no function's name."""
    name = _OF_FUNCTION + function
    return name if _FUNCTION.fullmatch(name) is not None else None


def counted_function(name: str) -> str | None:
    """Return the function of the kernel whose instructions a counter is; None for another one."""
    match = _FUNCTION.fullmatch(name)
    return match["function"] if match is not None else None


def counter(name: str) -> Counter | None:
    """Return what is counted by a name: one of COUNTERS, or one function's instructions; else None."""
    return COUNTERS.get(name) or (_ONE_FUNCTION if counted_function(name) is not None else None)


_ONE_FUNCTION = Counter("instructions", frozenset([FUNCTIONS]))


def needs_of(names: Iterable[str]) -> frozenset[str]:
    """Return what the plugin must do for counters, beside counting instructions."""
    found = (counter(name) for name in names)
    return frozenset[str]().union(*(one.needs for one in found if one is not None))


def is_modelled(name: str) -> bool:
    """Return whether a counter is a model's: of caches, TLBs or a branch predictor."""
    found = COUNTERS.get(name)
    return found is not None and (CACHES in found.needs or name == "branch-misses")


def is_unasked(name: str) -> bool:
    """Return whether a counter costs nothing where the instructions of functions are counted anyway."""
    return not COUNTERS[name].needs - {FUNCTIONS}


def counted_operands(metric: MetricManifest, metrics: Iterable[MetricManifest]) -> tuple[str, ...]:
    """Return what must be counted for a metric that is a ratio. metrics: those that the workload prints."""
    printed = {one.name for one in metrics}
    return tuple(name for name in metric.operands or () if counter(name) is not None and name not in printed)


def _known(name: str) -> str:
    if counter(name) is None:
        raise ValueError(f"nothing counts {shown(name)}{nearest(name, COUNTERS)}")
    return name


CounterName = Annotated[str, AfterValidator(_known)]

_SPREAD = 0.03
_SPREADS: Mapping[str, float] = {"L1d-misses": 0.2, "dTLB-misses": 0.4, "L2-misses": 0.04, "LL-misses": 0.04}
"""Relative differences below which one boot beside another proves nothing. In 20 boots of one kernel, means
of three runs differed by up to 18%, 38% and 3.7%, and by less than 2% for all other metrics. It depends on
where programs lie (docs/explanation/counters.md)."""


def modelled_spread(name: str) -> float:
    """Return the relative difference of a modelled count that single boots of one kernel do not reach."""
    return _SPREADS.get(name, _SPREAD)


_THRESHOLD = "1%"
"""Instructions of one kernel repeat exactly; where misses repeat less, more boots are needed."""


def counted_metric(name: str) -> MetricManifest:
    """Return a counter as a metric, which is lower where it is better."""
    unit = found.unit if (found := counter(name)) is not None else ""
    return MetricManifest(
        name=name, unit=unit, better="lower", threshold=_THRESHOLD, clocks=("instructions",)
    )
