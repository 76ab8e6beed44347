"""Power by a BMC over Redfish, with sushy; also a boot from the network, once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import sushy
import urllib3
from sushy.exceptions import (
    AccessError,
    BadRequestError,
    HTTPError,
    InvalidParameterValueError,
    MalformedAttributeError,
    MissingActionError,
    MissingAttributeError,
    ResourceNotFoundError,
    SushyError,
)
from sushy.resources.system.system import System

from bisector.adapters.machine.machine_parts import PowerStatus
from bisector.adapters.machine.power.power_stage import PowerConflict, PowerRefused
from bisector.adapters.machine.power.redfish_connection import BmcConnector, RedfishLogin, trusted
from bisector.adapters.system.secret_file import need_password
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.machine.power import RedfishPowerSettings as Variables
from bisector.schemas.masking import mask

_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
"""OpenSSL's name of it, in the text of an error."""

_INCOMPLETE = (InvalidParameterValueError, MalformedAttributeError, MissingActionError, MissingAttributeError)
"""What sushy raises of an answer that lacks something, or has no value that it looks for."""

_MALFORMED = (AttributeError, LookupError, TypeError, ValueError)
"""What escapes sushy at an answer that is JSON of another shape: null or a list in place of a mapping."""

_NOT_IMPLEMENTED = 501
_NOT_ALLOWED = 405
_CONFLICT = 409
"""By Redfish (DSP0266, status codes) a conflict with the resource's state. Dell's answer so where a machine
is on or off already (PSU501), others while it is changing."""


class RedfishPower:
    """See `Power`."""

    def __init__(self, variables: Variables) -> None:
        self.name = f"redfish {variables.url.split('://')[1].rstrip('/')}"
        self._variables = variables
        self._login = RedfishLogin(variables.user)

    def on(self) -> None:
        """See `Power.on`."""
        self._reset(sushy.ResetType.ON, unless=sushy.PowerState.ON)

    def off(self) -> None:
        """See `Power.off`."""
        self._reset(sushy.ResetType.FORCE_OFF, unless=sushy.PowerState.OFF)

    def cycle(self) -> None:
        """See `Power.cycle`."""
        self._reset(sushy.ResetType.POWER_CYCLE)

    def status(self) -> PowerStatus:
        """See `Power.status`."""
        with self._system() as system:
            return _state(system)

    def boot_once_from_network(self) -> None:
        """See `BootOverride.boot_once_from_network`."""
        with self._system() as system:
            if sushy.BootSource.PXE not in system.get_allowed_system_boot_source_values():
                raise PowerRefused(f"the BMC has no boot source '{sushy.BootSource.PXE.value}'")
            once = sushy.BootSourceOverrideEnabled.ONCE
            system.set_system_boot_options(sushy.BootSource.PXE, once, _said_again(system))

    def end_boot_override(self) -> None:
        """See `BootOverride.end_boot_override`. Where 'None' is no boot source, the disk is."""
        with self._system() as system:
            boot, off = system.boot, sushy.BootSourceOverrideEnabled.DISABLED
            if boot is None or boot.target != sushy.BootSource.PXE or boot.enabled == off:
                return
            known = system.get_allowed_system_boot_source_values()
            none = sushy.BootSource.NONE
            source = none if none in known else sushy.BootSource.HDD
            system.set_system_boot_options(source, off, _said_again(system))

    def _reset(self, kind: sushy.ResetType, unless: sushy.PowerState | None = None) -> None:
        with self._system() as system:
            if unless is not None and system.power_state == unless:
                return
            if kind not in system.get_allowed_reset_system_values():
                raise PowerRefused(f"the BMC has no '{kind.value}'")
            system.reset_system(kind)

    @contextlib.contextmanager
    def _system(self) -> Iterator[System]:
        """Give the machine as the BMC sees it; what the BMC answers becomes our errors.

        Each request logs in for itself, and out where it had a session.
        """
        wanted = self._variables
        password = need_password(wanted.password_env, wanted.password_file)
        if wanted.certificate == "any":
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # one at each request
        try:
            connector = BmcConnector(wanted.url, *trusted(wanted))
            with self._login.enter(wanted.url, connector, password) as (bmc, paths):
                yield bmc.get_system(_choose(paths, wanted.system))
        except AccessError:
            raise PowerRefused(f"the BMC does not accept the user '{wanted.user}' and its password") from None
        except HTTPError as error:
            message = mask(str(error), {password})
            refused = error.status_code in (_NOT_IMPLEMENTED, _NOT_ALLOWED) or isinstance(
                error, BadRequestError | ResourceNotFoundError
            )
            conflict = error.status_code == _CONFLICT
            kind = PowerRefused if refused else PowerConflict if conflict else InfrastructureError
            raise kind(f"the BMC answers with status {error.status_code}", details=message) from None
        except UnicodeEncodeError:  # its text has a character of the password
            raise PowerRefused(
                "the user or the password has a character beyond Latin-1, which HTTP Basic cannot carry"
            ) from None
        except _INCOMPLETE as error:
            raise _unexpected(error, password) from None
        except (SushyError, OSError, urllib3.exceptions.HTTPError) as error:
            if _UNTRUSTED in str(error):
                raise PowerRefused(
                    "the BMC shows a certificate that is not trusted",
                    details=mask(str(error), {password}),
                    cure="write its own into a file and name that as 'certificate' (machines-over-ssh.md has "
                    "the command); if it was there, the BMC has a new one, or somebody is in between",
                ) from None
            raise InfrastructureError(
                "the BMC does not answer", details=mask(str(error), {password})
            ) from None
        except _MALFORMED as error:
            raise _unexpected(error, password) from None


def _unexpected(error: Exception, password: str) -> InfrastructureError:
    return InfrastructureError(
        "the BMC answers with something unexpected",
        details=mask(f"{type(error).__name__}: {error}", {password}),
    )


def _choose(paths: list[str], wanted: str) -> str:
    """Return the path of the system that the inventory means. Raises RequestError naming those there are."""
    found = [path for path in paths if not wanted or wanted in (path, path.rstrip("/").rsplit("/", 1)[-1])]
    if len(found) != 1:
        raise RequestError(
            f"the BMC has no system '{wanted}'" if wanted else f"the BMC has {len(paths)} systems",
            details="\n".join(paths),
            cure="write one of them as 'system' into perfbisect_power",
        )
    return found[0]


def _said_again(system: System) -> sushy.BootSourceOverrideMode | None:
    """Return the mode, UEFI or Legacy, where a BMC goes back to its default unless that is set again.

    Supermicro's do (DMTF/Redfishtool #106); HPE's refuse a request that has it.
    """
    maker = (system.manufacturer or "").lower()
    return system.boot.mode if maker.startswith("supermicro") and system.boot is not None else None


def _state(system: System) -> PowerStatus:
    """Return whether it has power: on its way up or down it has, also where it stays on that way."""
    match system.power_state:
        case sushy.PowerState.ON | sushy.PowerState.POWERING_ON | sushy.PowerState.POWERING_OFF:
            return "on"
        case sushy.PowerState.OFF:
            return "off"
    return "unknown"
