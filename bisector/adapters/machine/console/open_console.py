"""From what the inventory says of a testbed's console to its recording."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bisector.adapters.machine.console.command_streams import CommandStream, SolStream
from bisector.adapters.machine.console.console_stream import ConsoleStream
from bisector.adapters.machine.console.netconsole_stream import NetconsoleStream
from bisector.adapters.machine.console.recorded_console import RecordedConsole
from bisector.adapters.machine.console.tcp_stream import TcpStream
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.machine import console as variables


def open_console(spec: TestbedSpec, path: Path) -> RecordedConsole:
    """Begin to record the console of a testbed in a file; without one, nothing is recorded.

    Raises InfrastructureError if the file cannot be written. A console that cannot be opened is a state.
    """
    return RecordedConsole(_opener(spec), path)


def _opener(spec: TestbedSpec) -> Callable[[], ConsoleStream] | None:
    match spec.variables.console:
        case variables.CommandConsole(command=command):
            return partial(CommandStream, command)
        case variables.TcpConsole(address=address, port=port):
            return partial(TcpStream, address, port)
        case variables.NetConsole(port=port, source=source):
            return partial(NetconsoleStream, port, source or spec.connection.address)
        case variables.SolConsole() if spec.variables.bmc is not None:
            return partial(SolStream, spec.variables.bmc)
    return None
