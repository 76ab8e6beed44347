"""The faults of a campaign: their classes, the moments at which they strike, and how a seed draws them. Pure.

A moment is a place in the bisection's process that says its name as it is passed ("a record is written", "the
guest has been started"). A fault strikes at the n-th passing of one moment, so the same seed hurts the same
place again. A bisection may get several: the next is armed once the one before has struck.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

DELAY_SECONDS_MAX = 0.03
"""A kill at any time comes so long after its moment at most: about as long as an action on fakes takes."""

ACTIONS = ("build", "playing", "boot", "guest", "booted", "running", "ran", "leave", "left")
"""The moments of a trial: before a build, in its playbook, before a boot, with the guest started, with the
session open, while the workload runs, after it, before and after the boot is left."""


@dataclass(frozen=True, slots=True)
class FaultClass:
    """moments: where it may strike; kills: whether it ends the process that it strikes."""

    moments: tuple[str, ...]
    kills: bool = False


CLASSES: Mapping[str, FaultClass] = {
    "killed between records": FaultClass(("write", "written"), kills=True),
    "killed in an action": FaultClass(ACTIONS, kills=True),
    "killed in the engine": FaultClass(("engine",), kills=True),
    "killed at any time": FaultClass((*ACTIONS, "written", "engine"), kills=True),
    "told to end": FaultClass((*ACTIONS, "written"), kills=True),
    "guest killed": FaultClass(("guest", "booted", "running")),
    "guest stopped a while": FaultClass(("guest", "running")),
    "libvirtd killed": FaultClass(("boot", "booted", "running")),
    "ansible killed": FaultClass(("playing",)),
    "disk full": FaultClass(("write", "build", "boot", "running", "ran")),
    "network cut": FaultClass(("booted", "running")),
    "clock stepped": FaultClass((*ACTIONS, "written")),
    "stopped a while": FaultClass((*ACTIONS, "written")),
    "database locked": FaultClass(("write", "engine")),
    "cache entry corrupted": FaultClass(("cached",)),
    "image truncated": FaultClass(("cached",)),
    "wrong kernel": FaultClass(("boot", "cached")),
}
"""Class -> where it strikes. What each does is in `striking`."""

PASSED: Mapping[str, int] = {
    "write": 66,
    "written": 66,
    "engine": 60,
    "build": 8,
    "cached": 4,
    "playing": 8,
    "boot": 11,
    "guest": 11,
    "booted": 11,
    "running": 20,
    "ran": 20,
    "leave": 11,
    "left": 11,
}
"""About how often a bisection on fakes passes each moment. Not counted in each campaign: that differs with
the speed of the machine, and a seed would draw other faults. A fault whose moment never comes does not
strike."""

PASSED_ON_GUESTS: Mapping[str, int] = {
    "write": 50,
    "written": 50,
    "engine": 150,
    "cached": 7,
    "playing": 7,
    "boot": 7,
    "booted": 7,
    "running": 20,
    "ran": 20,
    "leave": 7,
    "left": 7,
}
"""The same on real guests, with all kernels in the cache."""

SHARES: Mapping[str, int] = {"killed between records": 4, "killed in an action": 2}
"""How many times as often as the others a class is drawn: there are about 150 places between two records."""


@dataclass(frozen=True, slots=True)
class Fault:
    """kind: its class; it strikes when `moment` is passed the `count`-th time since it was armed.

    choice: in [0, 1), decides what the class leaves open: how long, which way, which file.
    """

    kind: str
    moment: str
    count: int
    choice: float

    def __str__(self) -> str:
        return f"{self.kind} at {self.moment} {self.count} ({self.choice:.3f})"


@dataclass(frozen=True, slots=True)
class Case:
    """One bisection with its faults. variant: which of the histories it searches."""

    number: int
    variant: int
    faults: tuple[Fault, ...]


def draw_case(
    seed: int, number: int, variants: int, faults: tuple[int, int], passed: Mapping[str, int]
) -> Case:
    """Return a case. faults: how many it gets, at least and at most; passed: PASSED or PASSED_ON_GUESTS.

    The first fault may strike at any passing. A further one counts from the fault before, when part of the
    way lies behind: it strikes in the first quarter of the passings.
    """
    chance = random.Random(f"{seed}/{number}")  # not a tuple: its hash differs from process to process
    variant = chance.randrange(variants)
    kinds = [kind for kind in CLASSES if any(moment in passed for moment in CLASSES[kind].moments)]
    weights = [SHARES.get(kind, 1) for kind in kinds]
    drawn = []
    for place in range(chance.randint(*faults)):
        (kind,) = chance.choices(kinds, weights)
        moment = chance.choice([m for m in CLASSES[kind].moments if m in passed])
        most = passed[moment] if place == 0 else max(1, passed[moment] // 4)
        drawn.append(Fault(kind, moment, chance.randint(1, most), chance.random()))
    return Case(number, variant, tuple(drawn))
