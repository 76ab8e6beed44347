"""How a testbed is switched on and off: `perfbisect_power`, one mapping or a list of them, tried in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PlainValidator, TypeAdapter, model_validator

from bisector.schemas.loading import Argument, Spec
from bisector.schemas.machine.kinds import PasswordSource, read_kind
from bisector.schemas.mail_settings import is_loopback, secret_path
from bisector.schemas.ranges import Port
from bisector.schemas.refusal import WrongKeyError
from bisector.schemas.web_settings import HostName, ServerUrl

Command = tuple[Argument, ...]


class CommandPowerSettings(Spec):
    """Commands of this machine, as lists: a PDU's script, a fence agent, labgrid, ..."""

    kind: Literal["command"] = Field(default="command", description="'command', 'ipmi' or 'redfish'")
    on: Command = Field(default=(), description="command that switches it on")
    off: Command = Field(default=(), description="command that switches it off")
    cycle: Command = Field(default=(), description="command that switches it off and on")
    status: Command = Field(default=(), description="command whose last word 'on' or 'off' is the state")

    @model_validator(mode="after")
    def _comes_on_again(self) -> CommandPowerSettings:
        if not (self.on or self.off or self.cycle or self.status):
            raise WrongKeyError("needs one of the commands on, off, cycle and status", "cycle")
        if self.off and not (self.on or self.cycle):
            raise WrongKeyError("is needed with 'off': a machine that hangs would be off for good", "on")
        return self


class IpmiPowerSettings(PasswordSource):
    """A management controller that speaks IPMI 2.0 over the network (RMCP+)."""

    kind: Literal["ipmi"] = Field(description="'command', 'ipmi' or 'redfish'")
    address: HostName = Field(description="the name or address of the BMC")
    port: Port = Field(default=623, description="its UDP port")
    user: Argument = Field(description="the account at the BMC")
    privilege: Literal["administrator", "operator"] = Field(
        default="administrator", description="the level of the session; that of the account or lower"
    )
    cipher_suite: Literal[3, 17] = Field(
        default=3, description="3, which all BMCs have, or 17 where the BMC's owner has switched 3 off"
    )


def _certificate(value: str) -> str:
    return value if value == "any" else str(secret_path(Path(value)))


Certificate = Annotated[str, AfterValidator(_certificate)]


class RedfishPowerSettings(PasswordSource):
    """A management controller that speaks Redfish."""

    kind: Literal["redfish"] = Field(description="'command', 'ipmi' or 'redfish'")
    url: ServerUrl = Field(description="https://HOST of the BMC; http:// only to this machine")
    user: Argument = Field(description="the account at the BMC")
    system: Argument = Field(
        default="", description="the system's id or path; may be left out where the BMC has one"
    )
    certificate: Certificate | None = Field(
        default=None,
        description="a file with the certificate to trust, or 'any'; unset: those that this machine trusts",
    )

    @model_validator(mode="after")
    def _encrypted(self) -> RedfishPowerSettings:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise WrongKeyError("a password must not cross a network without TLS: https://...", "url")
        return self


PowerStage: TypeAlias = CommandPowerSettings | IpmiPowerSettings | RedfishPowerSettings

_KINDS: Mapping[str, type[PowerStage]] = {
    "command": CommandPowerSettings,
    "ipmi": IpmiPowerSettings,
    "redfish": RedfishPowerSettings,
}
_read_stage: Callable[[object], PowerStage] = read_kind(_KINDS, "command")
_STAGES: TypeAdapter[tuple[PowerStage, ...]] = TypeAdapter(
    tuple[Annotated[PowerStage, PlainValidator(lambda value: _read_stage(_with_names(value)))], ...]
)


def _with_names(value: object) -> object:
    """Return a mapping with its keys 'on' and 'off', which YAML 1.1 reads as booleans."""
    if not isinstance(value, dict):
        return value
    names = {True: "on", "true": "on", False: "off", "false": "off"}
    return {names.get(key, key): one for key, one in value.items()}


def _read_stages(value: object) -> tuple[PowerStage, ...]:
    if isinstance(value, list | tuple):
        return _STAGES.validate_python(value)
    return (_read_stage(_with_names(value)),) if value != {} else ()


PowerStages = Annotated[tuple[PowerStage, ...], PlainValidator(_read_stages)]
