"""Watches a machine that was told to boot: whether it went down, answers again, or its kernel died."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bisector.adapters.machine.machine_parts import Console
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.ssh import SSHRefused
from bisector.errors import InfrastructureError

PAUSE_SECONDS = 1.0
"""Pause between two attempts to reach a machine."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was seen of a boot until it answered, died, or time was up.

    boot: the id of the boot that answered last, '' where nobody did at the end; refusal: how nobody did then.
    """

    boot: str
    death: str
    refusal: str


def watch_boot(reach: MachineReach, before: str, console: Console, seconds: float) -> Sighting:
    """Wait until SSH answers from another boot than `before`, or the console shows a death."""
    deadline = awake_seconds() + seconds
    boot, refusal = before, ""
    while awake_seconds() < deadline:
        try:
            boot, refusal = reach.boot_id(), ""
            if boot != before:
                break
        except SSHRefused as error:
            boot, refusal = "", error.details
        death = console.death()
        if death is not None:
            return Sighting(boot, death, refusal)
        time.sleep(PAUSE_SECONDS)
    return Sighting(boot, "", refusal)


def wait_for_boot_after(reach: MachineReach, before: str, seconds: float) -> str:
    """Return the id of the boot that answers and is not `before`. Raises InfrastructureError."""
    deadline = awake_seconds() + seconds
    refusal = "the same boot answers"
    while awake_seconds() < deadline:
        try:
            boot, refusal = reach.boot_id(), "the same boot answers"
            if boot != before:
                return boot
        except SSHRefused as error:
            refusal = error.details
        time.sleep(PAUSE_SECONDS)
    raise InfrastructureError(
        f"{reach.host} did not come back within {seconds:.0f} s after it was rebooted", details=refusal
    )


def wait_for_answer(reach: MachineReach, seconds: float) -> str:
    """Return the id of the boot that answers within so many seconds. Raises SSHRefused."""
    deadline = awake_seconds() + seconds
    while True:
        try:
            return reach.boot_id()
        except SSHRefused:
            if awake_seconds() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)
