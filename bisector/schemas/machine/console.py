"""Where the console of a testbed is read: `perfbisect_console`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, PlainValidator

from bisector.schemas.loading import Argument, Spec
from bisector.schemas.machine.kinds import read_kind
from bisector.schemas.ranges import Port
from bisector.schemas.web_settings import HostName

_PORT = "the TCP port of the console server; of netconsole, the UDP port here"


class CommandConsole(Spec):
    """A program of this machine that prints the console: conserver, picocom, ssh to a console server, ..."""

    kind: Literal["command"] = Field(default="command", description="'command', 'sol', 'tcp' or 'netconsole'")
    command: Annotated[tuple[Argument, ...], Field(min_length=1)] = Field(
        description="command that prints the console continuously; it has a terminal"
    )


class SolConsole(Spec):
    """Serial over LAN of the BMC that perfbisect_power names."""

    kind: Literal["sol"] = Field(description="'command', 'sol', 'tcp' or 'netconsole'")


class TcpConsole(Spec):
    """A console server: ser2net, a terminal server by telnet, QEMU's chardev."""

    kind: Literal["tcp"] = Field(description="'command', 'sol', 'tcp' or 'netconsole'")
    address: HostName = Field(description="the console server")
    port: Port = Field(description=_PORT)


class NetConsole(Spec):
    """The kernel's own netconsole: messages as UDP packets, which come here."""

    kind: Literal["netconsole"] = Field(description="'command', 'sol', 'tcp' or 'netconsole'")
    port: Port = Field(
        default=6666, description="the TCP port of the console server; of netconsole, the UDP port here"
    )
    source: HostName | None = Field(
        default=None, description="the address that packets must come from; unset: ansible_host"
    )


ConsoleSource: TypeAlias = CommandConsole | SolConsole | TcpConsole | NetConsole

_read_source: Callable[[object], ConsoleSource] = read_kind(
    {"command": CommandConsole, "sol": SolConsole, "tcp": TcpConsole, "netconsole": NetConsole},
    "command",
)


def _read(value: object) -> ConsoleSource | None:
    if isinstance(value, list | tuple):  # a command alone
        return CommandConsole.model_validate({"command": value}) if value else None
    if not isinstance(value, dict):
        raise ValueError("must be a command as a list, or a mapping with the key 'kind'")
    return _read_source(value)


ConsoleVariable = Annotated[ConsoleSource | None, PlainValidator(_read)]
