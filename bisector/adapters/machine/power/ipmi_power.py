"""Power by a BMC over IPMI, with ipmitool. The password reaches it by the environment, never as a word."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bisector.adapters.machine.machine_parts import PowerStatus
from bisector.adapters.machine.power.power_stage import PowerConflict, PowerRefused
from bisector.adapters.system.command import run_command
from bisector.adapters.system.secret_file import need_password
from bisector.errors import InfrastructureError
from bisector.schemas.machine.power import IpmiPowerSettings as Variables
from bisector.schemas.masking import mask

_SECONDS = 60.0
"""Timeout of one call; ipmitool itself gives a silent BMC up after 20 s."""

_STATE = re.compile(r"Chassis Power is (on|off)", re.IGNORECASE)

_REFUSED = re.compile(
    r"Set Chassis Power Control to .* failed: "
    r"(?!Node busy|Timeout|BMC initialization|Destination unavailable)(.*)"
)
"""A refusal by the BMC. The exceptions (completion codes 0xc0, 0xc3, 0xd2, 0xd3) are temporary: it is busy,
or has reset itself."""

_PRESENT_STATE = "Command not supported in present state"
"""ipmitool's words for 0xd5, which IPMI 2.0 (28.3) recommends where a request has no effect: Dell's BMCs
answer so where the machine is off already. The state that they tell meanwhile may be some seconds old."""

_NOT_ACCEPTED = re.compile(r"RAKP 2 HMAC is invalid|unauthorized name|insufficient privilege", re.IGNORECASE)
"""What ipmitool says with -v alone: the password, the user or the privilege is wrong."""


class IpmiPower:
    """See `Power`."""

    def __init__(self, variables: Variables) -> None:
        self.name = f"ipmi {variables.address}"
        self._variables = variables

    def on(self) -> None:
        """See `Power.on`."""
        self._ask("on")

    def off(self) -> None:
        """See `Power.off`."""
        self._ask("off")

    def cycle(self) -> None:
        """See `Power.cycle`."""
        self._ask("cycle")

    def status(self) -> PowerStatus:
        """See `Power.status`."""
        answer = self._ask("status")
        found = _STATE.search(answer)
        if found is None:
            raise InfrastructureError("the BMC does not tell its power's state", details=answer)
        return "on" if found[1].lower() == "on" else "off"

    def _ask(self, action: str) -> str:
        command, environment = ipmitool(self._variables)
        done = run_command(
            (*command, "-v", "chassis", "power", action), env=environment, timeout=_SECONDS, check=False
        )
        output = mask(done.output[-4000:], environment.values())
        if done.code == 0:
            return output
        if refused := _REFUSED.search(output):
            kind = PowerConflict if refused[1].startswith(_PRESENT_STATE) else PowerRefused
            raise kind(f"the BMC refuses '{action}': {refused[1]}", details=output)
        check_accepted(self._variables, output)
        lines = [line.removeprefix("Error: ") for line in output.splitlines() if line.strip()]
        raise InfrastructureError(
            f"ipmitool: {lines[-1] if lines else f'code {done.code}'}",
            details=f"{' '.join(done.command)}\n{output}",
        )


def check_accepted(variables: Variables, output: str) -> None:
    """Raise PowerRefused if ipmitool said, with -v, that the BMC did not let it in: it locks accounts."""
    if _NOT_ACCEPTED.search(output):
        raise PowerRefused(
            f"the BMC does not accept the user '{variables.user}' and its password", details=output
        )


def ipmitool(variables: Variables) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return ipmitool with the options of a BMC, to add a command to, and its environment.

    Raises RequestError: there is no password, or others can read it.
    """
    password = need_password(variables.password_env, variables.password_file)
    suite = str(variables.cipher_suite)  # asking the BMC for one takes ipmitool 1.8.19 10 s
    command = (
        *("ipmitool", "-I", "lanplus", "-C", suite),
        *("-H", variables.address.strip("[]"), "-p", str(variables.port)),
        *("-U", variables.user, "-L", variables.privilege.upper(), "-E"),
    )
    return command, {"IPMITOOL_PASSWORD": password}
