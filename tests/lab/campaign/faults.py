"""Faults of a campaign on emulated machines: kinds, when they strike, how a seed draws them. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Moment = Literal["starts", "booted", "ran", "concluded"]
"""What is seen of a machine: a kernel under test begins on its console; a boot of it is recorded,
so that runs begin; a run of it is recorded. Of the search: it has its answer, and gives the machines back."""

_IN_GIVING_BACK = "killed in giving back"

MOMENTS: Mapping[str, tuple[Moment, ...]] = {
    "perfbisect killed": ("starts",),
    _IN_GIVING_BACK: ("concluded",),
    "Ctrl-C": ("starts", "booted"),
    "state locked": ("booted", "ran"),
    "BMC dead": ("booted", "ran"),
    "BMC dead, powered off": ("booted", "ran"),
    "SSH cut": ("booted", "ran"),
    "network cut": ("booted", "ran"),
    "powered off": ("starts", "booted"),
    "hung": ("starts", "booted"),
    "rebooted by somebody": ("booted",),
    "second user": ("starts", "booted"),
    "disk full": ("booted",),
}
"""Kind -> when it strikes: a kill comes between kexec and SSH, or while machines are given back; what cuts or
fills comes in a run."""

ENDS: Mapping[str, int] = {"Ctrl-C": 130, "state locked": 3}
"""Kind that perfbisect answers by ending -> its exit code. The machines are given back by then."""

MAY_GO_ON = ("state locked",)
"""Of these: what a trial could not write is tried again with the trial, and the lock may be gone then."""

SECONDS = (10.0, 90.0)
"""How long what does not last for ever lasts: shorter and longer than a boot."""

MACHINES = 2


@dataclass(frozen=True, slots=True)
class Fault:
    """It strikes a machine at the first such moment after the fault before was over."""

    kind: str
    moment: Moment
    machine: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.kind} at '{self.moment}' of machine {self.machine}, {self.seconds:.0f} s"


def draw(seed: int, number: int, size: int) -> tuple[Fault, ...]:
    """Return the faults of a case: as many as `size`. Each kind comes once before any comes again.

    What strikes at the end of the search is the last of its case, and comes once there.
    """
    chance = random.Random(f"lab {seed}")
    kinds: list[str] = []
    while len(kinds) < (number + 1) * size:
        kinds += chance.sample(list(MOMENTS), len(MOMENTS))
    of_case = kinds[number * size : (number + 1) * size]
    if of_case.count(_IN_GIVING_BACK) > 1:
        of_case[of_case.index(_IN_GIVING_BACK)] = "perfbisect killed"
    drawn = random.Random(f"lab {seed}/{number}")
    faults = [
        Fault(
            kind,
            drawn.choice(MOMENTS[kind]),
            drawn.randrange(MACHINES),
            drawn.uniform(*SECONDS),
        )
        for kind in of_case
    ]
    return tuple(sorted(faults, key=lambda fault: fault.moment == "concluded"))
