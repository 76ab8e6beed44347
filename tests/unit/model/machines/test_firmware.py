"""What of a machine's firmware changed between boots."""

from __future__ import annotations

import pytest

from bisector.model.machines.firmware import TESTBED, firmware_difference

BEFORE = {
    "cpu.model": "E5",
    "cpu.microcode": "0x1",
    "machine.bios": "F2",
    TESTBED: "box",
    "machine.cmdline": "ro quiet",
}


@pytest.mark.parametrize(
    ("now", "changed"),
    [
        (BEFORE, ""),
        ({}, ""),  # nothing is known
        ({"cpu.microcode": "0x2"}, "microcode: 0x1 -> 0x2"),
        ({"machine.bmc.firmware_revision": "1.2"}, ""),  # it was not known before
        (
            {"machine.bios": "F3", "cpu.microcode": "0x2"},
            "microcode: 0x1 -> 0x2; firmware (BIOS): F2 -> F3",
        ),
        (
            {"machine.cmdline": "ro mitigations=off"},
            "command line of kernels: ro quiet -> ro mitigations=off",
        ),
        ({"machine.cmdline": "ro quiet"}, ""),
        ({"cpu.model": "E7", "cpu.microcode": "0x2"}, ""),  # another machine
        ({TESTBED: "rack", "cpu.microcode": "0x2"}, ""),
    ],
)
def test_what_changed(now: dict[str, str], changed: str) -> None:
    assert str(firmware_difference([BEFORE], now) or "") == changed


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({"cpu.microcode": "0x2"}, "the firmware of it"),
        ({"machine.cmdline": "ro"}, "the command line of kernels on it"),
        ({"cpu.microcode": "0x2", "machine.cmdline": "ro"}, "the firmware of it"),
    ],
)
def test_a_command_line_is_no_firmware(now: dict[str, str], words: str) -> None:
    found = firmware_difference([BEFORE], now)
    assert found is not None and found.subject("it") == words


def test_another_machine_is_a_difference_of_one_testbed() -> None:
    now = {"cpu.model": "E7", "cpu.microcode": "0x2"}
    found = firmware_difference([{}, BEFORE], now, one_testbed=True)
    assert str(found) == "processor: E5 -> E7"
    assert found is not None and found.subject("it") == "the machine of it"


def test_the_first_boot_that_tells_counts() -> None:
    boots: list[dict[str, str]] = [{}, {"machine.bios": "F1"}, {"machine.bios": "F2", "cpu.microcode": "0x1"}]
    found = firmware_difference(boots, {"machine.bios": "F2", "cpu.microcode": "0x2"})
    assert str(found) == "microcode: 0x1 -> 0x2; firmware (BIOS): F1 -> F2"
