"""From what the inventory says of a testbed's power to the switch itself."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from bisector.adapters.machine.machine_parts import BootOverride
from bisector.adapters.machine.power.command_power import CommandPower
from bisector.adapters.machine.power.ipmi_power import IpmiPower
from bisector.adapters.machine.power.power_stage import PowerStage
from bisector.adapters.machine.power.staged_power import StagedPower
from bisector.adapters.machine.power.verified_power import VerifiedPower
from bisector.adapters.system.secret_file import need_password
from bisector.errors import Interrupted
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.machine import power as variables
from bisector.schemas.machine.kinds import PasswordSource

log = logging.getLogger(__name__)


def open_power(
    spec: TestbedSpec,
    stop: Callable[[], bool] | None = None,
    tell: Callable[[str], None] = log.warning,
) -> StagedPower | None:
    """Return the power of a testbed, None where the inventory names nothing that switches it.

    stop: whether to end waiting, with Interrupted. tell: told of a stage that fails while another is left.
    """
    stages = open_stages(spec, stop)
    return StagedPower(spec.name, stages, tell) if stages else None


def open_stages(spec: TestbedSpec, stop: Callable[[], bool] | None = None) -> list[VerifiedPower]:
    """Return each way to switch a testbed by itself. stop: as of `open_power`."""

    def wait(seconds: float) -> None:
        time.sleep(seconds)
        if stop is not None and stop():
            raise Interrupted(f"switching '{spec.name}' was stopped on request")

    return [VerifiedPower(_open_stage(stage), wait) for stage in spec.variables.power]


def open_boot_override(spec: TestbedSpec) -> BootOverride | None:
    """Return what has a testbed boot from the network once: its first BMC over Redfish; None without one."""
    if spec.variables.boot_method != "pxe":
        return None
    for stage in spec.variables.power:
        if isinstance(stage, variables.RedfishPowerSettings):
            from bisector.adapters.machine.power.redfish_power import RedfishPower  # sushy takes 0.5 s

            return RedfishPower(stage)
    return None


def check_passwords(spec: TestbedSpec) -> None:
    """Raise RequestError, without it in the message, where a password is missing or others can read it."""
    for stage in spec.variables.power:
        if isinstance(stage, PasswordSource):
            need_password(stage.password_env, stage.password_file)


def _open_stage(stage: variables.PowerStage) -> PowerStage:
    match stage:
        case variables.IpmiPowerSettings():
            return IpmiPower(stage)
        case variables.RedfishPowerSettings():
            from bisector.adapters.machine.power.redfish_power import RedfishPower  # sushy takes 0.5 s

            return RedfishPower(stage)
        case variables.CommandPowerSettings():
            return CommandPower(stage)
