"""The guest as libvirt gets it: well-formed whatever the names, and each clock with what it needs."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bisector.adapters.guest.domain_xml import Guest, OnDisk, OnSerial, command_line, domain_xml
from bisector.adapters.guest.libvirt_testbed import domain_prefix
from bisector.adapters.system.architectures import ARM64, machine_for
from bisector.errors import InfrastructureError

GUEST = Guest(
    name="perfbisect-0-guest-1",
    kernel=Path("/cache/k&1/image"),
    userspace=OnDisk(Path("/cache/it's <here>/root.ext2"), 2201),
    console=Path('/state/"b"/console.log'),
    clock="instructions",
    kvm=False,
)
QEMU = "{http://libvirt.org/schemas/domain/qemu/1.0}"


def _arguments(guest: Guest) -> list[str]:
    return [arg.get("value", "") for arg in ET.fromstring(domain_xml(guest)).iter(f"{QEMU}arg")]


def _child(element: ET.Element, path: str) -> ET.Element:
    found = element.find(path)
    assert found is not None
    return found


def test_paths_survive_quoting() -> None:
    root = ET.fromstring(domain_xml(GUEST))
    assert root.findtext("os/kernel") == str(GUEST.kernel)
    assert _child(root, "devices/disk/source").get("file") == "/cache/it's <here>/root.ext2"
    assert _child(root, "devices/serial/source").get("path") == str(GUEST.console)


def test_the_instruction_clock_has_nothing_of_the_hosts_time() -> None:
    root = ET.fromstring(domain_xml(GUEST))
    assert root.get("type") == "qemu"
    assert _child(root, "clock").get("offset") == "absolute"
    assert _child(root, "clock/timer").get("track") == "guest"
    arguments = _arguments(GUEST)
    assert arguments[arguments.index("-icount") + 1] == "shift=0,sleep=off,align=off"
    assert arguments[arguments.index("-seed") + 1] == "1"
    # Whatever UUID libvirt gives the domain, the guest's firmware prints the same digits.
    assert arguments[arguments.index("-smbios") + 1] == "type=1,uuid=00000000-0000-0000-0000-000000000000"
    other = _arguments(dataclasses.replace(GUEST, seed=7))
    assert other[other.index("-seed") + 1] == "7"


def test_a_kernel_without_rdrand_has_another_time_for_another_seed() -> None:
    def start(*, seed: int = 1, old: bool = False) -> str | None:
        guest = dataclasses.replace(GUEST, seed=seed, old=old)
        return _child(ET.fromstring(domain_xml(guest)), "clock").get("start")

    assert start() == start(seed=7) == start(old=True) == "1577836800"
    assert start(old=True, seed=7) == "1577836806"
    assert start(old=True, seed=1 + 365 * 86_400) == "1577836800"


def test_the_wall_clock_has_no_tricks() -> None:
    guest = dataclasses.replace(GUEST, clock="wall", kvm=True)
    root = ET.fromstring(domain_xml(guest))
    assert root.get("type") == "kvm"
    assert _child(root, "cpu").get("mode") == "host-passthrough"
    assert not {"-icount", "-seed", "-smbios"} & set(_arguments(guest))
    assert "tsc_early_khz" not in command_line(guest)


def test_a_guest_stops_where_the_host_cannot_read_or_write_its_disks() -> None:
    guest = dataclasses.replace(GUEST, scratch=Path("/state/scratch.raw"))
    drivers = [*ET.fromstring(domain_xml(guest)).iter("driver")]
    assert [driver.get("error_policy") for driver in drivers] == ["stop", "stop"]


def test_the_disk_is_read_only_and_the_port_only_on_loopback() -> None:
    assert ET.fromstring(domain_xml(GUEST)).find("devices/disk/readonly") is not None
    network = next(value for value in _arguments(GUEST) if value.startswith("user,"))
    assert "hostfwd=tcp:127.0.0.1:2201-:22" in network
    assert "restrict=on" in network


def test_an_old_kernel_gets_a_second_serial_port_and_neither_disk_nor_network() -> None:
    userspace = OnSerial(Path("/b/<1>/initramfs"), Path("/b/<1>/agent"))
    guest = dataclasses.replace(GUEST, userspace=userspace, old=True)
    root = ET.fromstring(domain_xml(guest))
    assert root.findtext("os/initrd") == "/b/<1>/initramfs"
    ports = root.findall("devices/serial")
    assert [_child(port, "target").get("port") for port in ports] == ["0", "1"]
    assert _child(ports[1], "source").get("path") == "/b/<1>/agent"
    assert root.find("devices/disk") is None
    assert not [value for value in _arguments(guest) if "net" in value]
    assert "-icount" in _arguments(guest)
    timers = {timer.get("name"): timer.attrib for timer in root.findall("clock/timer")}
    assert timers["hpet"]["present"] == "no"  # with it the clock of x86_64 before 2.6.21 gains 70%
    assert timers["rtc"]["track"] == "guest"
    assert "panic=1 " in command_line(guest)  # a negative number means never to kernels before 2.6.38


def test_a_kernel_of_today_in_an_initramfs_has_the_processor_of_one_with_a_disk() -> None:
    guest = dataclasses.replace(GUEST, userspace=OnSerial(Path("/b/initramfs"), Path("/b/agent")))
    root = ET.fromstring(domain_xml(guest))
    assert _child(root, "cpu").attrib == _child(ET.fromstring(domain_xml(GUEST)), "cpu").attrib
    assert {timer.get("name") for timer in root.findall("clock/timer")} == {"rtc"}
    words = command_line(guest).split()
    # Without ACPI it would otherwise take no precise timers, and seconds to end.
    assert {"panic=-1", "reboot=t", "tsc=reliable", "tsc_early_khz=1000000"} <= set(words)
    wall = command_line(dataclasses.replace(guest, clock="wall")).split()
    assert "reboot=t" in wall and not [word for word in wall if word.startswith("tsc")]


def test_an_arm64_guest_is_an_emulated_machine_of_its_own_kind() -> None:
    userspace = OnSerial(Path("/b/initramfs"), Path("/b/agent"))
    guest = dataclasses.replace(GUEST, userspace=userspace, machine=ARM64)
    root = ET.fromstring(domain_xml(guest))
    assert root.get("type") == "qemu"
    assert _child(root, "os/type").attrib == {"arch": "aarch64", "machine": "virt"}
    assert root.find("features") is None  # ACPI without firmware is refused there
    assert _child(root, "cpu/model").text == "cortex-a72"
    assert [target.get("type") for target in root.findall("devices/serial/target")] == [
        "system-serial",
        "pci-serial",
    ]
    assert {timer.get("name") for timer in root.findall("clock/timer")} == {"rtc"}
    assert "-icount" in _arguments(guest) and "-machine" not in _arguments(guest)
    assert command_line(guest).startswith("console=ttyAMA0,115200 panic=-1 ")


def test_a_foreign_architecture_without_its_tools_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InfrastructureError, match="'qemu-system-aarch64', which runs arm64") as emulator:
        machine_for("arm64").require_emulator()
    assert "install --no-install-recommends qemu-system-arm" in emulator.value.cure
    with pytest.raises(InfrastructureError, match="static arm64 programs") as compiler:
        machine_for("arm64").compiler()
    assert "gcc-aarch64-linux-gnu libc6-dev-arm64-cross" in compiler.value.cure
    with pytest.raises(InfrastructureError, match="no riscv64 guests"):
        machine_for("riscv64")


def test_the_labs_command_line_comes_last() -> None:
    assert command_line(dataclasses.replace(GUEST, cmdline="init=/bin/sleep 9")).endswith(
        " init=/bin/sleep 9"
    )


def test_the_label_is_only_for_the_system_daemon() -> None:
    assert ET.fromstring(domain_xml(GUEST)).find("seclabel") is None
    labelled = ET.fromstring(domain_xml(dataclasses.replace(GUEST, label=(0, 0))))
    assert labelled.findtext("seclabel/label") == "+0:+0"


def test_two_state_folders_never_share_a_prefix(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert domain_prefix(tmp_path / "link") == domain_prefix(tmp_path)  # guests of either are swept
    assert domain_prefix(Path("/a")) != domain_prefix(Path("/b"))
    assert domain_prefix(Path("/a")) == domain_prefix(Path("/a"))


def test_the_scratch_disk_says_what_it_is_for_and_comes_behind_the_root() -> None:
    for userspace in (GUEST.userspace, OnSerial(Path("/b/initramfs"), Path("/b/agent"))):
        guest = dataclasses.replace(GUEST, userspace=userspace, scratch=Path("/b/<1>/scratch.raw"))
        disks = ET.fromstring(domain_xml(guest)).findall("devices/disk")
        assert _child(disks[-1], "source").get("file") == "/b/<1>/scratch.raw"
        assert disks[-1].findtext("serial") == "perfbisect"
        assert disks[-1].find("readonly") is None
        slots = [int(_child(disk, "address").get("slot", "")) for disk in disks]
        assert slots == sorted(slots)  # the kernel names them in this order


def test_a_guest_that_counts_has_the_plugin_and_nothing_that_keeps_qemu_from_it() -> None:
    counting = dataclasses.replace(
        GUEST, plugin="file=/a,,b.so,out=/c", confined_by=("apparmor",), label=(1, 2)
    )
    arguments = _arguments(counting)
    assert arguments[arguments.index("-plugin") + 1] == "file=/a,,b.so,out=/c"
    labels = {
        one.get("model"): one.get("type") for one in ET.fromstring(domain_xml(counting)).iter("seclabel")
    }
    assert labels == {"dac": "static", "apparmor": "none"}
    plain = dataclasses.replace(counting, plugin="")
    assert "-plugin" not in _arguments(plain)
    assert "apparmor" not in domain_xml(plain)
