"""Metrics that no workload prints: counted in emulated guests, between the begin and the end of each run.

Any workload can be asked for them, with `--metric NAME` or the key `counters` of its manifest. Instructions,
loads, stores and branches are counted; misses and cycles are those of a model (`kernels/cpus.toml`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from bisector.errors import nearest
from bisector.schemas.documents.document import shown
from bisector.schemas.workload.metric import MetricManifest


@dataclass(frozen=True, slots=True)
class Counter:
    """One number. needs: what the plugin must do for it beside counting instructions."""

    unit: str
    needs: frozenset[str] = frozenset()


MEMORY, PREDICTOR, CACHES = "memory", "predictor", "caches"

_INSTRUCTIONS = ("instructions", "user-instructions", "kernel-instructions")
_LEVELS = ("L1i", "L1d", "L2", "LL", "iTLB", "dTLB", "sTLB")

COUNTERS: Mapping[str, Counter] = {
    **{name: Counter("instructions") for name in _INSTRUCTIONS},
    **{name: Counter(name, frozenset([MEMORY])) for name in ("loads", "stores")},
    **{name: Counter("branches", frozenset([PREDICTOR])) for name in ("branches", "taken-branches")},
    "branch-misses": Counter("misses", frozenset([PREDICTOR])),
    **{f"{level}-misses": Counter("misses", frozenset([CACHES])) for level in _LEVELS},
    "modelled-cycles": Counter("cycles", frozenset([CACHES, PREDICTOR])),
}


def is_modelled(name: str) -> bool:
    """Return whether a counter is a model's: of caches, TLBs or a branch predictor."""
    found = COUNTERS.get(name)
    return found is not None and (CACHES in found.needs or name == "branch-misses")


def _known(name: str) -> str:
    if name not in COUNTERS:
        raise ValueError(f"nothing counts {shown(name)}{nearest(name, COUNTERS)}")
    return name


CounterName = Annotated[str, AfterValidator(_known)]

MODELLED_SPREAD = 0.03
"""More than one boot beside another says of a modelled count: misses to memory of one kernel differ by up to
1.7% from boot to boot (docs/explanation/counters.md)."""

_THRESHOLD = "1%"
"""Instructions of one kernel repeat within 0.05%; where misses repeat less, more boots are needed."""


def counted_metric(name: str) -> MetricManifest:
    """Return a counter as a metric, which is lower where it is better."""
    return MetricManifest(
        name=name, unit=COUNTERS[name].unit, better="lower", threshold=_THRESHOLD, clocks=("instructions",)
    )
