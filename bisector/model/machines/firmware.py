"""Firmware and microcode of a machine, by the facts of its boots, as the measuring agent reports them.

Both change how fast a machine is, without any commit: a microcode update that mitigates a flaw of the CPU
costs some workloads 10% and more. Values from before and after are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CMDLINE = "machine.cmdline"
"""The fact that says what every kernel got on its command line: that of the machine's own kernel, or the
inventory's."""

FIRMWARE: Mapping[str, str] = {
    "cpu.microcode": "microcode",
    "machine.bios": "firmware (BIOS)",
    "machine.bios_date": "firmware's date",
    "machine.bmc.firmware_revision": "BMC's firmware",
    CMDLINE: "command line of kernels",
}
"""Name of a fact -> what it is, in words; and what else is a machine's own, and not any commit's."""

TESTBED = "testbed"
"""The fact that names whose boot it was, where samples have lost that."""

_MACHINE: Mapping[str, str] = {
    "cpu.model": "processor",
    "machine.vendor": "vendor",
    "machine.name": "model",
    TESTBED: "testbed",
}
"""Where one of these differs it is another machine, and not the same one with other firmware."""

_WORDS = {**_MACHINE, **FIRMWARE}


def firmware(facts: Mapping[str, str]) -> dict[str, str]:
    """Return what a boot reports about its machine's firmware; a kernel may not show all of it."""
    return {name: facts[name] for name in FIRMWARE if facts.get(name)}


def machine_and_firmware(facts: Mapping[str, str]) -> dict[str, str]:
    """Return what a boot reports about its machine: which one it is, and its firmware."""
    return {name: facts[name] for name in _WORDS if name != TESTBED and facts.get(name)}


@dataclass(frozen=True, slots=True)
class FirmwareDifference:
    """What is other on one machine than before. values: name of a fact -> before, now; one at least."""

    values: Mapping[str, tuple[str, str]]

    def __str__(self) -> str:
        return "; ".join(f"{_WORDS[name]}: {old} -> {new}" for name, (old, new) in self.values.items())

    def subject(self, testbed: str) -> str:
        """Return what changed, in words. testbed: as a sentence names it."""
        if self.values.keys() & _MACHINE.keys():
            return f"the machine of {testbed}"
        only_cmdline = set(self.values) == {CMDLINE}
        return f"the command line of kernels on {testbed}" if only_cmdline else f"the firmware of {testbed}"


def firmware_difference(
    before: Iterable[Mapping[str, str]], now: Mapping[str, str], *, one_testbed: bool = False
) -> FirmwareDifference | None:
    """Return what differs from the first boot that reported it; None where nothing does.

    one_testbed: all are boots of it, so that another machine in its place is a difference, too; else those
    of another one are left out.
    """
    known: dict[str, str] = {}
    for facts in before:
        if other := {name: (facts[name], now[name]) for name in _MACHINE if _differs(name, facts, now)}:
            if one_testbed:
                return FirmwareDifference(other)
            continue
        known = {**firmware(facts), **known}
    current = firmware(now)
    values = {
        name: (known[name], current[name])
        for name in FIRMWARE
        if name in known and name in current and known[name] != current[name]
    }
    return FirmwareDifference(values) if values else None


def _differs(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether both report a fact, and not the same; Linux before 4.2 named CPUs with more blanks."""
    then, found = before.get(name, "").split(), now.get(name, "").split()
    return bool(then and found) and then != found
