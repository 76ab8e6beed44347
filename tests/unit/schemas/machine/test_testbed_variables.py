"""The host variables of a testbed that contradict each other are refused; the rest is read."""

from typing import Any

import pytest
from pydantic import ValidationError

from bisector.schemas.machine.testbed_variables import TestbedVariables


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"block_device": "sdb"}, "must be a path below /dev"),
        ({"kind": "libvirt", "block_device": "/dev/sdb"}, "gets a disk of its own"),
        ({"kind": "libvirt", "boot_method": "kexec"}, "booted directly"),
        ({"kind": "ssh", "boot_method": "direct"}, "choose kexec, grub"),
        ({"kind": "ssh", "clock": "instructions"}, "needs an emulated guest"),
        ({"kind": "ssh", "cmdline": "quiet"}, "needs root="),
        ({"boot_method": "kexec", "cmdline": "nfsroot=192.0.2.1:/srv"}, "needs root="),
        ({"boot_method": "grub", "cmdline": "netconsole=@/eth0,6666@192.0.2.1/"}, "needs root="),
        ({"boot_method": "systemd-boot", "cmdline": "quiet"}, "needs root="),
        ({"power": {"off": ["pdu", "off"]}}, "would be off for good"),
        ({"power": [{"cycle": ["x"]}, {"off": ["x"], "status": ["x"]}]}, "would be off for good"),
        ({"power": [{}]}, "needs one of the commands"),
        ({"power": {"kind": "command"}}, "needs one of the commands"),
        ({"workdir": "/usr"}, "two levels deep"),
        ({"workdir": "/tmp/../usr"}, "without '.' and '..'"),
        ({"workdir": "/usr/."}, "without '.' and '..'"),
        ({"workdir": "/./usr"}, "without '.' and '..'"),
        ({"workdir": "/tmp/.."}, "without '.' and '..'"),
    ],
)
def test_variables_that_contradict_each_other_are_refused(variables: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        TestbedVariables.model_validate(variables)


@pytest.mark.parametrize("path", ["", "/var/tmp/perfbisect", "/work/.own", "/work/..own/a.b", "/srv/a.."])
def test_a_folder_whose_name_begins_with_a_dot_is_one(path: str) -> None:
    assert TestbedVariables.model_validate({"workdir": path}).workdir == path


@pytest.mark.parametrize("commands", [("on",), ("status",), ("cycle",), ("on", "off"), ("off", "cycle")])
def test_commands_that_leave_no_machine_off_are_taken(commands: tuple[str, ...]) -> None:
    power = {name: ["pdu", name] for name in commands}
    assert len(TestbedVariables.model_validate({"power": power}).power) == 1


def test_a_machines_whole_command_line_is_taken() -> None:
    found = TestbedVariables.model_validate({"boot_method": "kexec", "cmdline": "root=/dev/sda1 quiet"})
    assert (found.kind, found.cmdline) == ("ssh", "root=/dev/sda1 quiet")
