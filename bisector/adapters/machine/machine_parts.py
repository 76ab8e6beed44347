"""The parts of a machine over SSH: its power switch, its console, and how it boots a kernel once.

Each is made for one testbed of the inventory; `ssh_testbed` puts them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from bisector.ports import Job, Kernel, Progress

PowerStatus = Literal["on", "off", "unknown"]

ConsoleState = Literal["off", "silent", "heard", "lost"]
"""No console is known; nothing was heard yet; something was; it ended and could not be opened again."""


class Switch(Protocol):
    """What switches a machine: its management controller (BMC), a power strip, a command of the lab."""

    def on(self) -> None:
        """Switch it on. Raises InfrastructureError, as all of these do."""
        ...

    def off(self) -> None:
        """Switch it off at once."""
        ...

    def cycle(self) -> None:
        """Switch it off and on."""
        ...

    def status(self) -> PowerStatus:
        """Return whether it has power; unknown where the switch cannot say."""
        ...


class Power(Switch, Protocol):
    """All power switches of a machine, as stages: where one fails, the next is used."""

    def further(self) -> Power | None:
        """Return the stages after the one that switched last, which may have had no effect; None: none."""
        ...


class BootOverride(Protocol):
    """What makes a machine's firmware boot from the network once: its Redfish controller."""

    def boot_once_from_network(self) -> None:
        """Set it. Raises InfrastructureError."""
        ...

    def end_boot_override(self) -> None:
        """Take it back, also where 'once' was stored as 'always'. Raises InfrastructureError."""
        ...


class Console(Protocol):
    """What a machine prints since its boot began. path: of the recording, None where there is no console."""

    path: Path | None

    def death(self) -> str | None:
        """Return the console's end, from the kernel's message on, if the kernel has died."""
        ...

    def end(self) -> str:
        """Return the last of the console."""
        ...

    def state(self) -> ConsoleState:
        """Return whether the console is heard."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


@dataclass(frozen=True, slots=True)
class RunningKernel:
    """What a machine says of the kernel that it runs now.

    ours: the key of the kernel under test that it is, '' for the machine's own; left: what of ours is on the
    machine: files, a note, an entry of its boot menu; default_release: of the machine's own kernel, as noted
    before the first boot of a kernel under test, '' before that.
    """

    boot_id: str
    release: str
    build_id: str
    ours: str
    left: tuple[str, ...] = ()
    default_release: str = ""


class BootMethod(Protocol):
    """Boots a kernel once; the next boot after that runs the machine's own kernel again.

    facts: of the last request: the machine's own kernel, and the command line that the kernel was given; ran:
    the key of the kernel under test that ran there then, '' for the machine's own.
    watchdog_spare: seconds beyond the boot timeout after which a watchdog resets the machine, 0 for none.
    """

    facts: Mapping[str, str]
    ran: str
    watchdog_spare: float

    def must_leave_kernel(self) -> bool:
        """Return whether a kernel under test runs, and the next boot must begin from the machine's own.

        Raises InfrastructureError.
        """
        ...

    def request_boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> str:
        """Put a kernel on the machine and boot it; return the id of the boot that is about to end.

        Raises InfrastructureError: the machine cannot boot it, which says nothing about the kernel.
        """
        ...

    def end_request(self, *, up: bool) -> None:
        """Take back what would start the kernel once more. up: it runs; else what runs is unknown.

        Never raises for a machine that is gone.
        """
        ...

    def crash(self) -> str:
        """Return what a kernel that died since the request left in memory that outlives it (pstore), raw.

        What was returned is gone from there. Raises InfrastructureError.
        """
        ...

    def running(self) -> RunningKernel:
        """Ask the machine what it runs. Raises SSHRefused when nobody answers, or InfrastructureError."""
        ...

    def restart(self) -> None:
        """Reboot the machine into its own kernel, through the firmware; return before it goes down."""
        ...

    def forget(self) -> None:
        """Remove what perfbisect put there. Raises InfrastructureError, also while a kernel of ours runs."""
        ...
