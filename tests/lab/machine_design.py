"""What kinds of emulated machines there are, and the command of QEMU that is such a machine."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.lab.disk_image import Initramfs

MAC = "52:54:00:70:62:01"
"""Each machine has a network of its own, so all have one address."""

MEMORY_MB = 512
_ACCELERATOR = "tcg,tb-size=64"
"""Megabytes of translated code. QEMU's own 1,024 keep the code of earlier kernels through reboots. One that
unpacks itself over it went on at 2 kB/s: boots by GRUB stood still for up to 178 s.
"""

_FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
_VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
_NETWORK_SCRIPT = "#!ipxe\nchain --autofree perfbisect/${net0/mac:hexhyp}.ipxe || exit\n"


@dataclass(frozen=True, slots=True)
class Design:
    """A kind of machine. method: how it boots kernels under test.

    bmc, console, firmware, watchdog, initramfs: what it has. switch: what the inventory knows of its power:
    the BMC; that, and a PDU behind it; or a command alone that switches it off and on and tells no state.
    """

    method: Literal["kexec", "grub", "pxe", "systemd-boot"]
    bmc: Literal["ipmi", "redfish"]
    console: Literal["sol", "tcp", "none"]
    firmware: Literal["bios", "uefi"] = "bios"
    switch: Literal["BMC", "BMC and PDU", "command"] = "BMC"
    watchdog: Literal["chipset", "ipmi"] = "chipset"
    initramfs: Initramfs = "initramfs-tools-core"


DESIGNS = {
    "ipmi": Design("kexec", "ipmi", "sol"),
    "redfish": Design("grub", "redfish", "tcp"),
    "deaf": Design("grub", "ipmi", "none"),
    "uefi": Design("grub", "redfish", "tcp", "uefi"),
    "pxe": Design("pxe", "redfish", "tcp"),
    "systemd-boot": Design("systemd-boot", "redfish", "tcp", "uefi"),
    "two-stage": Design("kexec", "ipmi", "sol", switch="BMC and PDU"),
    "plain": Design("grub", "ipmi", "none", switch="command"),
    "ipmi-watchdog": Design("kexec", "ipmi", "sol", watchdog="ipmi"),
    "dracut": Design("kexec", "ipmi", "sol", initramfs="dracut"),
}
"""deaf: nobody hears its console. plain: SSH, and a command that reboots it, are all that is known of it."""

_WATCHDOGS = {
    "chipset": ("-device", "i6300esb", "-action", "watchdog=reset"),
    "ipmi": ("-device", "ipmi-bmc-sim,id=inner", "-device", "isa-ipmi-kcs,bmc=inner"),
}
"""ipmi: a management controller that the machine itself sees, with a timer. It is QEMU's own: ipmi_sim, which
is asked over the network, has none that resets.
"""


def qemu_command(
    design: Design, name: str, folder: Path, ssh_port: int, serial_port: int, cpu: int
) -> list[str]:
    """Return the command of such a machine; what it needs beside its disk is put into `folder`.

    cpu: of this host, for all its threads. QEMU 7.2 lacks memory barriers around the NVMe queues' shadow
    doorbells: with the disk's thread on another CPU a command was missed now and then, and the kernel's root
    stood still for the 30 to 60 s of the driver's timeouts.
    """
    network = f"user,id=net,hostfwd=tcp:127.0.0.1:{ssh_port}-:22"
    rom = ",romfile="
    if design.method == "pxe":
        served = folder / "tftp"
        (served / "perfbisect").mkdir(parents=True)
        (served / "boot.ipxe").write_text(_NETWORK_SCRIPT)
        network += f",tftp={served},bootfile=boot.ipxe"
        rom = ""
    firmware: list[str] = []
    if design.firmware == "uefi":
        shutil.copyfile(_VARIABLES, folder / "variables.fd")
        firmware = [
            *("-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={_FIRMWARE}"),
            *("-drive", f"if=pflash,format=raw,unit=1,file={folder}/variables.fd"),
        ]
    return [
        *("taskset", "--cpu-list", str(cpu)),
        *("qemu-system-x86_64", "-name", name, "-machine", "q35,graphics=off", "-cpu", "qemu64"),
        *("-m", str(MEMORY_MB), "-accel", _ACCELERATOR, "-display", "none", "-vga", "none"),
        *("-daemonize", "-pidfile", f"{folder}/qemu.pid"),
        *("-qmp", f"unix:{folder}/qmp,server=on,wait=off"),
        *("-qmp", f"unix:{folder}/qmp-events,server=on,wait=off"),
        *firmware,
        *("-drive", f"file={folder}/disk.img,format=raw,if=none,id=disk,discard=unmap"),
        *("-device", f"nvme,drive=disk,serial={name},bootindex=1"),
        *("-netdev", network),
        *("-device", f"virtio-net-pci,netdev=net,id=nic,mac={MAC}{rom}"),
        "-chardev",
        f"socket,id=serial,host=127.0.0.1,port={serial_port},server=on,wait=off,"
        f"logfile={folder}/serial.log,logappend=on",
        *("-serial", "chardev:serial"),
        *_WATCHDOGS[design.watchdog],
    ]
