"""How checks of a lab reach a machine, and what is not tried where they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from bisector.adapters.machine.machine_facts import MachineFacts, read_machine_facts
from bisector.adapters.machine.machine_needs import failed, finding
from bisector.adapters.machine.machine_reach import MachineReach, ssh_host
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.ssh import SSH, SSHRefused, UnverifiedHost
from bisector.errors import PerfbisectError
from bisector.model.machines.lab_findings import LabFinding
from bisector.schemas.lab import BuilderSpec, TestbedSpec


def each_name(tools: Sequence[str]) -> list[str]:
    """Return the programs of a list in which 'a|b' stands for either."""
    return [name for one in tools for name in one.split("|")]


def untried(cause: str, *names: str) -> Iterator[LabFinding]:
    """Yield what was not tried, and which failure before is the cause."""
    for name in names:
        yield LabFinding(name, "not tried", f"it needs {cause}")


@contextmanager
def connected(spec: TestbedSpec | BuilderSpec) -> Iterator[tuple[list[LabFinding], SSH | None]]:
    """Give what connecting showed, and the connection if there is one."""
    with ExitStack() as stack:
        opened: list[SSH] = []
        pinned = f"the pinned one; {spec.connection.address} is who it should be"

        def connect() -> str:
            host = ssh_host(spec)
            slow = spec.variables.boot_timeout if isinstance(spec, TestbedSpec) else 0.0
            login = MachineReach(host, slow).probe_seconds
            opened.append(stack.enter_context(SSH(host, login_timeout=login)))
            return f"{host} answers and takes the key"

        started = awake_seconds()
        try:
            text = connect()
        except UnverifiedHost as error:
            later = LabFinding("ssh", "not tried", "it needs a host key that is known")
            yield [failed("host key", error), later], None
        except SSHRefused as error:
            error.cure = "switch it on, and look at its address, port and firewall"
            yield [LabFinding("host key", "not tried", "it needs an answer"), failed("ssh", error)], None
        except PerfbisectError as error:
            yield [failed("ssh", error)], None
        else:
            reached = LabFinding("ssh", "ok", text, seconds=awake_seconds() - started)
            yield [LabFinding("host key", "ok", pinned), reached], opened[0]


def facts_of(ssh: SSH, folder: str, tools: Sequence[str]) -> tuple[LabFinding, MachineFacts | None]:
    """Return what the machine reports about itself, and whether it runs scripts at all."""
    read: list[MachineFacts] = []

    def read_facts() -> str:
        read.append(read_machine_facts(ssh, folder, tools))
        return "it runs scripts"

    seen = finding("shell", read_facts)
    return seen, read[0] if read else None
