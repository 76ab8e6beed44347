"""Switches a testbed by hand: `perfbisect lab power`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bisector.app.testbeds.machine_marks import require_unmarked
from bisector.app.testbeds.testbed_use import use_testbed
from bisector.errors import RequestError
from bisector.model.leases import TestbedState

if TYPE_CHECKING:
    from bisector.adapters.machine.machine_parts import PowerStatus
    from bisector.app.wiring import Wiring
    from bisector.ports import Progress


ANY_STATE: tuple[TestbedState, ...] = ("maintenance", "suspect", "retired")
"""States that allow this besides good: a machine is switched by hand because something is wrong with it."""


@dataclass(frozen=True, slots=True)
class Switched:
    """state: its power afterwards; stage: which of several switched it, '' where it is alone or was asked."""

    state: PowerStatus
    stage: str


def switch_power(
    wiring: Wiring, name: str, action: Literal["on", "off", "cycle", "status"], progress: Progress
) -> Switched:
    """Switch a testbed, or ask only.

    Nobody else uses it meanwhile, on any host. Raises RequestError where the inventory names nothing that
    switches it, or another person has reserved it; MachineInUse; InfrastructureError; Interrupted.
    """
    from bisector.adapters.machine.power.open_power import check_passwords, open_power

    spec = wiring.lab.testbed(name)
    check_passwords(spec)
    power = open_power(spec, wiring.stop.is_set, progress)
    if power is None:
        raise RequestError(
            f"the testbed '{name}' cannot be switched from here",
            cure="write its BMC or commands into perfbisect_power; see docs/how-to/machines-over-ssh.md",
        )
    if action != "status":
        with use_testbed(wiring, name, progress, wiring.stop.is_set, ANY_STATE):
            require_unmarked(wiring, name, progress)
            {"on": power.on, "off": power.off, "cycle": power.cycle}[action]()
    return Switched(power.status(), power.switched_by())
