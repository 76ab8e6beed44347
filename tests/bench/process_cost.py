"""What a process and all that it starts cost: CPU seconds, wall seconds and peak memory."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

PROGRAM = "import sys; sys.argv[0] = 'perfbisect'; from bisector.interfaces.cli import main; main()"


@dataclass(frozen=True)
class Cost:
    """What one process took. cpu: user and system seconds, its children's too; memory: peak, in bytes."""

    cpu: float
    wall: float
    memory: float


def perfbisect(*arguments: str) -> list[str]:
    """Return the command that runs this checkout's perfbisect."""
    return [sys.executable, "-c", PROGRAM, *arguments]


def measure(command: list[str], variables: Mapping[str, str] | None = None, repeats: int = 1) -> Cost:
    """Return the cost of a command whose output goes nowhere: that of the call with the least CPU seconds.

    Other work on the machine only makes a call dearer. Raises SystemExit where the command fails.
    """
    environment = {**os.environ, **(variables or {})}
    costs = []
    for _ in range(repeats):
        actions = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_WRONLY, 0) for number in (1, 2)]
        began = time.monotonic()
        process = os.posix_spawnp(command[0], command, environment, file_actions=actions)
        _, status, used = os.wait4(process, 0)
        if status != 0:
            raise SystemExit(f"{' '.join(command)}: failed ({status})")
        taken = time.monotonic() - began
        costs.append(Cost(used.ru_utime + used.ru_stime, taken, used.ru_maxrss * 1024))
    return min(costs, key=lambda cost: cost.cpu)
