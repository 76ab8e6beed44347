"""Checks of the machines of a lab: whether each is reached and has what a trial needs. Nothing is changed.

A check returns what it found, or raises: `Doubt` for what may hurt later, any other error for what would make
a trial fail. What needs a connection is 'not tried' where there is none, so that a lab owner sees the first
cause and not its consequences.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bisector.adapters.agent.scratch_disk import check_device
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.checks.builder_sandbox import has_sandbox
from bisector.adapters.machine.checks.check_connection import connected, each_name, facts_of, untried
from bisector.adapters.machine.checks.ignored_settings import ignored_settings
from bisector.adapters.machine.console.open_console import open_console
from bisector.adapters.machine.machine_needs import (
    BOOT_MIB,
    BUILDER_MIB,
    BUILDER_SKEW_SECONDS,
    WORK_MIB,
    Doubt,
    can_boot,
    finding,
    has_right_time,
    has_room,
    has_tools,
    is_root,
)
from bisector.adapters.machine.power.open_power import open_stages
from bisector.adapters.machine.power.staged_power import all_failed
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.host_requirements import checks
from bisector.adapters.system.ssh import SSH
from bisector.adapters.system.ssh_endpoint import LIBVIRT_SOCKET
from bisector.errors import InfrastructureError, PerfbisectError
from bisector.model.machines.lab_findings import LabFinding
from bisector.schemas.lab import BuilderSpec, Lab, TestbedSpec

_TESTBED_TOOLS = ("sh", "tar", "mkdir", "gzip", "sha256sum", "awk")
"""The programs that unpack kernels and workloads on a testbed and start them."""

BOOT_TOOLS = {
    "kexec": ("kexec",),
    "grub": ("grub-reboot|grub2-reboot", "grub-probe|grub2-probe", "grub-mkrelpath|grub2-mkrelpath"),
    "systemd-boot": ("bootctl",),
}
"""What each boot method runs on the machine, with names of other distributions; playbooks/roles/boot."""

BUILDER_TOOLS = (
    *("make", "gcc", "ld", "flex", "bison", "bc", "perl", "ccache", "python3"),
    *("git", "tar", "gzip", "flock", "readelf", "size"),
)
"""Programs that a kernel build needs; playbooks/roles/builder looks for the same before the first one."""

_GUEST_HOST_TOOLS = ("qemu-system-x86_64|qemu-kvm", "dd", "sha256sum", "tail", "find", "xargs")
"""Programs that a host of guests runs; the rest is libvirt's."""

_CONSOLE_SECONDS = 3.0
"""How long a console is held: a session of IPMI that is refused ends within a second or two."""

_OPENING_SECONDS = 12.0
"""How long to wait until it is open: longer than the timeout of a connection to a console server."""

_POLL_SECONDS = 0.1
"""How often to look in that time whether the console was lost: chosen."""

_NO_POWER = "no power switch is set: a machine that hangs stays down until somebody comes"

_NO_CONSOLE = "no console is set: a kernel that panics leaves no words"

_PING_SECONDS = 300.0
"""Timeout of the play that runs one module: 2 s on an idle machine, minutes where all is emulated."""

MachineCheck = Callable[[], Iterator[LabFinding]]


@dataclass(frozen=True, slots=True)
class Around:
    """What checks use beside the lab. cache: this machine's cache folder; in_use: says of a testbed who uses
    it now, '' if nobody does."""

    ansible: Ansible
    cache: Path
    in_use: Callable[[str], str] = lambda _: ""


def lab_checks(lab: Lab, around: Around) -> Iterator[tuple[str, MachineCheck]]:
    """Return each machine with what looks at it; findings come as they are made, and nothing is raised."""
    for testbed in lab.testbeds:
        yield f"testbed {testbed.name}", partial(testbed_checks, testbed, around)
    for builder in lab.builders:
        yield f"builder {builder.name}", partial(_builder, builder, around)


def testbed_checks(testbed: TestbedSpec, around: Around) -> Iterator[LabFinding]:
    """Check one testbed."""
    yield from ignored_settings(testbed)
    match testbed.variables.kind:
        case "libvirt" if testbed.variables.libvirt_uri:
            yield from _guest_host(testbed)
        case "libvirt":
            yield finding("this machine", partial(_this_machine, "guests", around.cache))
        case "local":
            yield LabFinding("this machine", "ok", "it boots no kernels, and needs nothing")
        case "ssh":
            yield from _machine(testbed, around)


testbed_checks.__test__ = False  # type: ignore[attr-defined]  # not a pytest function


def _guest_host(testbed: TestbedSpec) -> Iterator[LabFinding]:
    """Check another host of guests."""
    with connected(testbed) as (reached, ssh):
        yield from reached
        if ssh is None:
            yield from untried("its connection", "tools", "libvirt")
            return
        seen, facts = facts_of(ssh, testbed.workdir, each_name(_GUEST_HOST_TOOLS))
        if facts is None:
            yield seen
            return
        yield finding("tools", partial(has_tools, facts, _GUEST_HOST_TOOLS))
        yield finding("libvirt", partial(_has_libvirt, ssh))


def _has_libvirt(ssh: SSH) -> str:
    if ssh.run(["test", "-S", LIBVIRT_SOCKET], check=False).code != 0:
        raise InfrastructureError(
            f"libvirt does not run there: there is no {LIBVIRT_SOCKET}",
            cure="install libvirt-daemon-system there and start libvirtd",
        )
    return "its daemon runs"


def _builder(builder: BuilderSpec, around: Around) -> Iterator[LabFinding]:
    yield from ignored_settings(builder)
    if builder.connection.local:
        yield finding("this machine", partial(_this_machine, "building kernels", around.cache))
        return
    folder = builder.variables.folder
    with connected(builder) as (reached, ssh):
        yield from reached
        if ssh is None:
            yield from untried("its connection", "tools", "sandbox", "disk", "clock", "python")
            return
        seen, facts = facts_of(ssh, folder, BUILDER_TOOLS)
        if facts is None:
            yield seen
            return
        yield finding("tools", partial(has_tools, facts, BUILDER_TOOLS))
        yield finding("sandbox", partial(has_sandbox, ssh, folder))
        yield finding("disk", partial(has_room, facts, "work", folder, BUILDER_MIB))
        yield finding("clock", partial(has_right_time, facts, BUILDER_SKEW_SECONDS))
        yield finding("python", partial(_runs_modules, builder, ssh, around.ansible))


def _machine(testbed: TestbedSpec, around: Around) -> Iterator[LabFinding]:
    variables = testbed.variables
    tools = (*_TESTBED_TOOLS, *BOOT_TOOLS.get(variables.boot_method or "", ()))
    user = around.in_use(testbed.name)
    later = ("root", "tools", "boot", "disk /boot", "disk workload", "clock", *(() if user else ("python",)))
    with connected(testbed) as (reached, ssh):
        yield from reached
        if ssh is None:
            yield from untried("its connection", *later)
        else:
            seen, facts = facts_of(ssh, testbed.workdir, each_name(tools))
            if facts is None:
                yield seen
                yield from untried("its shell", *later)
            else:
                yield finding("root", partial(is_root, facts))
                yield finding("tools", partial(has_tools, facts, tools))
                yield finding("boot", partial(can_boot, facts, variables))
                yield finding("disk /boot", partial(has_room, facts, "boot", "/boot", BOOT_MIB))
                yield finding("disk workload", partial(has_room, facts, "work", testbed.workdir, WORK_MIB))
                yield finding("clock", partial(has_right_time, facts))
                if variables.block_device:
                    yield finding("device", partial(_device, testbed, ssh))
                if not user:
                    yield finding("python", partial(_runs_modules, testbed, ssh, around.ansible))
    yield _power(testbed)
    if user:
        taken = f"it would disturb who uses the machine: {user}"
        yield from (LabFinding(name, "not tried", taken) for name in ("python", "console"))
    else:
        yield _console(testbed)


# --- one check each -----------------------------------------------------------------------------------------


def _device(testbed: TestbedSpec, ssh: SSH) -> str:
    path = testbed.variables.block_device
    check_device(path, 0, testbed.name, lambda command: ssh.run(command).output)
    return f"{path} is free"


def _runs_modules(spec: TestbedSpec | BuilderSpec, ssh: SSH, ansible: Ansible) -> str:
    with TemporaryDirectory(prefix="pb-lab-check-") as folder:
        try:
            played = ansible.play(
                "ping",
                limit=spec.name,
                variables={},
                folder=Path(folder),
                timeout=_PING_SECONDS,
                progress=lambda _: None,
                connection=ssh.host,
                reap=False,
            )
        except InfrastructureError as error:
            raise InfrastructureError(
                f"Ansible cannot run a module there: {error.message}",
                details=error.details,
                cure="install the package python3 there, for python3-minimal lacks what modules import; "
                "or look at its load",
            ) from error
    facts = played.tasks[-1].result.get("ansible_facts", {})
    return f"Ansible runs modules with {facts.get('discovered_interpreter_python', 'its Python')}"


def _power(testbed: TestbedSpec) -> LabFinding:
    """Ask each stage of what switches the machine: the first that answers hides others that are dead."""
    stages = open_stages(testbed)
    if not stages:
        return LabFinding(
            "power", "not tried", _NO_POWER, cure="set perfbisect_power; see machines-over-ssh.md"
        )

    def ask_stages() -> str:
        states: list[tuple[str, str]] = []
        failures: list[tuple[str, PerfbisectError]] = []
        for stage in stages:
            try:
                states.append((stage.name, stage.status()))
            except InfrastructureError as error:
                failures.append((stage.name, error))
        told = "; ".join(f"{name}: {state}" for name, state in states)
        if failures:
            dead = all_failed(testbed.name, "asked for its state", failures)
            if not states:
                raise dead
            why = "; ".join(f"{name}: {error.message}" for name, error in failures)
            raise Doubt(
                f"not every stage of its power answers: {why}; {told}", details=dead.details, cure=dead.cure
            )
        if all(state == "unknown" for _, state in states):
            raise Doubt(
                "nobody says whether it has power: its switch tells no status",
                cure="'perfbisect lab check --deep' tries the switch itself",
            )
        return (
            f"its switch answers: it is {states[0][1]}" if len(states) == 1 else f"all stages answer: {told}"
        )

    return finding("power", ask_stages)


def _console(testbed: TestbedSpec) -> LabFinding:
    """Open the console for a moment. An idle machine prints nothing, so silence is well here."""
    if testbed.variables.console is None:
        return LabFinding("console", "not tried", _NO_CONSOLE, cure="set perfbisect_console")

    def try_console() -> str:
        with TemporaryDirectory(prefix="pb-lab-check-") as folder:
            console = open_console(testbed, Path(folder) / "console.log")
            try:
                opened = console.opened(_OPENING_SECONDS)
                deadline = awake_seconds() + _CONSOLE_SECONDS
                while (state := console.state()) != "lost" and awake_seconds() < deadline:
                    time.sleep(_POLL_SECONDS)
            finally:
                console.close()
            if state in ("off", "lost") or not opened:
                raise InfrastructureError(
                    "the console cannot be opened, or ended at once",
                    details=console.reason() or console.end(),
                    cure="try perfbisect_console by hand; another user of it may have to close it",
                )
        return "it can be opened; " + ("the machine printed something" if state == "heard" else "silent now")

    return finding("console", try_console)


def _this_machine(needed: str, cache: Path) -> str:
    wrong = [c for c in checks(cache) if c.needed == needed and not c.ok]
    if wrong:
        raise InfrastructureError(
            "; ".join(f"{c.name}: {c.wrong}" for c in wrong), cure="; ".join(c.cure for c in wrong)
        )
    return f"it has what {needed} takes"
