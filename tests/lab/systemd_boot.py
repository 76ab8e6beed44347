"""What systemd-boot needs of a disk: a GPT, and an EFI system partition with the loader and its kernels."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bisector.adapters.system.command import run_command

ESP_MIB = 96
"""Loader, default kernel, and a kernel under test with its initramfs."""

_ENTRY = """\
title default
linux /vmlinuz
options root=/dev/nvme0n1p1 rw console=ttyS0 panic=10 no_timer_check
"""
_LOADER = "usr/lib/systemd/boot/efi/systemd-bootx64.efi"
_PLACES = ("EFI/BOOT/BOOTX64.EFI", "EFI/systemd/systemd-bootx64.efi")
"""Where firmware looks that was told nothing, and where bootctl looks for itself."""


def mount_esp(tree: Path) -> None:
    """Have the machine mount its EFI system partition where bootctl looks for it."""
    (tree / "efi").mkdir()
    (tree / "etc/lab/mounts").write_text("/dev/nvme0n1p2 /efi\n")


def write_partitions(disk: Path, root_mib: int) -> None:
    """Write a GPT: root, then the EFI system partition. bootctl takes no other kind of table."""
    table = (
        "label: gpt\n"
        f"start=1MiB, size={root_mib}MiB, type=linux\n"
        f"start={1 + root_mib}MiB, size={ESP_MIB}MiB, type=uefi\n"
    )
    subprocess.run(["sfdisk", "--quiet", disk], input=table, text=True, check=True)


def write_esp(disk: Path, root_mib: int, tree: Path, kernel: Path, work: Path) -> None:
    """Write the file system of the EFI system partition. tree: the root's, which has the loader."""
    esp, entry, settings = work / "esp.img", work / "default.conf", work / "loader.conf"
    entry.write_text(_ENTRY)
    settings.write_text("default default.conf\ntimeout 0\n")
    with esp.open("wb") as file:
        file.truncate(ESP_MIB << 20)
    run_command(["mkfs.vfat", esp])
    folders = ("EFI", "EFI/BOOT", "EFI/systemd", "loader", "loader/entries")
    run_command(["mmd", "-i", esp, *(f"::{folder}" for folder in folders)])
    copies = [(tree / _LOADER, place) for place in _PLACES]
    for source, place in (*copies, (kernel, "vmlinuz"), (entry, "loader/entries"), (settings, "loader")):
        run_command(["mcopy", "-i", esp, source, f"::{place}"])
    with disk.open("r+b") as file:
        file.seek((1 + root_mib) << 20)
        file.write(esp.read_bytes())
