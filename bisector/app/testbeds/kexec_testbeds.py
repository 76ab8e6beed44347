"""One machine as two testbeds: rebooted before each boot, and booted by kexec at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bisector.adapters.machine.mark_keeper import MarkKeeper
    from bisector.app.wiring import Wiring
    from bisector.ports import Testbed
    from bisector.schemas.machine.testbed_variables import BetweenBoots


def kexec_testbeds(wiring: Wiring, name: str) -> dict[BetweenBoots, Testbed]:
    """Return a machine with each value of `between_boots`; to the machine both are one user."""
    from bisector.adapters.machine.host_turns import TestbedOnHost
    from bisector.adapters.machine.machine_mark import machine_user
    from bisector.adapters.machine.ssh_testbed import SSHTestbed

    spec, settings = wiring.lab.testbed(name), wiring.settings
    user = machine_user(settings.database, settings.lock_dir, wiring.user())

    def boots(way: BetweenBoots, keeper: MarkKeeper | None) -> SSHTestbed:
        variables = spec.variables.model_copy(update={"between_boots": way})
        own = replace(spec, variables=variables)
        return SSHTestbed(own, wiring.ansible(), user, settings.state_dir, keeper)

    first = boots("reboot", None)
    machines: dict[BetweenBoots, SSHTestbed] = {"reboot": first, "kexec": boots("kexec", first.keeper)}
    return {way: TestbedOnHost(one, wiring.host_lock(spec, None)) for way, one in machines.items()}
