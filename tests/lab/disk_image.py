"""The disk of an emulated machine: Debian's user space, its kernel, GRUB, all written without root's mounts.

`base_image` returns a disk that machines copy. It is made once of each recipe and kept in the cache: the root
file system comes as a tar from mmdebstrap, the disk from mke2fs; GRUB is written by hand, since there is no
loop device for grub-install to look at.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bisector.adapters.guest.debian_packages import bootstrap
from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import exclusive_lock, publish_folder
from tests.lab import systemd_boot
from tests.lab.debian_kernel import DebianKernel

PACKAGES = (
    *("openssh-server", "python3", "iproute2", "procps", "kmod", "mount", "busybox", "cpio"),
    *("kexec-tools", "grub-common", "grub2-common", "systemd-boot"),
)
"""A way in, Ansible's interpreter, an init, and what boots kernels; not systemd, which takes minutes here."""

Loader = Literal["GRUB", "systemd-boot"]
Initramfs = Literal["initramfs-tools-core", "dracut"]
"""The package that makes one. Not both: perfbisect takes the first."""

FILES = Path(__file__).parent / "files"
_LAYOUT = 1
"""Raised when the way of making changes, so that disks of the old way are not taken for new ones."""

SECTOR = 512
ROOT_SECTOR = 2048
"""The first MiB is for the boot loader, as every partitioner leaves it."""

ROOT_MIB = 768
"""230 MB are taken; room for kernels, modules and workloads, and little enough to be filled by a test."""

ESP_MIB = 8
"""The partition that UEFI boots from holds GRUB alone, 1 MB."""

_ROOT_UUID = "70657266-6269-7365-6374-00000000001a"
_GRUB_BIOS = Path("/usr/lib/grub/i386-pc")
_GRUB_BIOS_MODULES = ("biosdisk", "part_msdos", "ext2", "serial")
_GRUB_UEFI = Path("/usr/lib/grub/x86_64-efi")
_GRUB_UEFI_MODULES = ("part_msdos", "ext2", "fat", "serial", "search", "search_fs_uuid")
_PREFIX = "(hd0,msdos1)/boot/grub"
_BOOT_CODE_BYTES = 440
"""The rest of the first sector is the partition table."""

_APPLETS = ("init", "reboot", "halt", "poweroff")
_REMOVED = ("var/lib/apt", "var/cache", "usr/share/doc", "usr/share/man", "usr/lib/grub", "boot")


@dataclass(frozen=True, slots=True)
class BaseImage:
    """A disk that machines copy. key: lets root in. host_key: 'type base64'. root: its partition."""

    disk: Path
    key: Path
    host_key: str
    kernel: str
    root: str = "/dev/nvme0n1p1"


def base_image(
    kernel: DebianKernel, cache: Path, loader: Loader = "GRUB", initramfs: Initramfs = "initramfs-tools-core"
) -> BaseImage:
    """Return the disk with this default kernel; making it takes root, and one to three minutes, once.

    loader: GRUB boots it on a BIOS and on UEFI, systemd-boot on UEFI.
    """
    packages = (*PACKAGES, initramfs)
    final = cache / "disks" / _key(kernel, loader, packages)
    if not final.is_dir():
        tree = _root_tar(cache, packages)
        final.parent.mkdir(parents=True, exist_ok=True)
        with (
            exclusive_lock(cache / "disks" / ".lock"),
            tempfile.TemporaryDirectory(prefix=".partial-", dir=final.parent) as folder,
        ):
            if not final.is_dir():
                _make_disk(Path(folder), tree, kernel, loader)
                made = Path(folder) / "image"
                publish_folder(made, final)
    about = json.loads((final / "image.json").read_text())
    return BaseImage(final / "disk.img", final / "client_key", about["host_key"], about["kernel"])


def _root_tar(cache: Path, packages: tuple[str, ...]) -> Path:
    key = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:16]
    final = cache / "roots" / key
    if not final.is_dir():
        final.parent.mkdir(parents=True, exist_ok=True)
        with (
            exclusive_lock(cache / "roots" / ".lock"),
            tempfile.TemporaryDirectory(prefix=".partial-", dir=final.parent) as folder,
        ):
            made = Path(folder) / "root"
            made.mkdir()
            if not final.is_dir():
                bootstrap(Path(folder), packages, made / "root.tar")
                publish_folder(made, final)
    return final / "root.tar"


def _key(kernel: DebianKernel, loader: Loader, packages: tuple[str, ...]) -> str:
    digest = hashlib.sha256(f"{_LAYOUT} {ROOT_MIB} {kernel.package} {' '.join(packages)} {loader}".encode())
    sources = [Path(__file__), Path(systemd_boot.__file__)]
    for file in [*sorted(FILES.iterdir()), *sources]:
        digest.update(f"{file.name}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _make_disk(work: Path, tar: Path, kernel: DebianKernel, loader: Loader) -> None:
    made, tree = work / "image", work / "tree"
    made.mkdir()
    tree.mkdir()
    run_command(["tar", "-x", "--numeric-owner", "--exclude=./dev/*", "-f", tar, "-C", tree], timeout=300)
    for name, comment in (("host_key", "machine"), ("client_key", "perfbisect")):
        run_command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", made / name])
    _fill(tree, made, kernel)
    if loader == "systemd-boot":
        systemd_boot.mount_esp(tree)
    disk = made / "disk.img"
    with disk.open("wb") as file:
        file.truncate((1 + ROOT_MIB + (ESP_MIB if loader == "GRUB" else systemd_boot.ESP_MIB + 1)) << 20)
    offset = ROOT_SECTOR * SECTOR
    run_command(
        [
            *("mke2fs", "-q", "-F", "-t", "ext4", "-d", tree, "-U", _ROOT_UUID, "-m", "0"),
            *("-E", f"offset={offset},root_owner=0:0,lazy_itable_init=0,lazy_journal_init=0"),
            *(disk, f"{ROOT_MIB << 10}k"),
        ],
        timeout=600,
    )
    if loader == "GRUB":
        _write_boot_sectors(disk, work)
        _write_esp(disk, work)
    else:
        systemd_boot.write_partitions(disk, ROOT_MIB)
        systemd_boot.write_esp(disk, ROOT_MIB, tree, kernel.image, work)
    host_key = " ".join((made / "host_key.pub").read_text().split()[:2])
    about = {"host_key": host_key, "kernel": kernel.version}
    (made / "image.json").write_text(json.dumps(about))


def _fill(tree: Path, keys: Path, kernel: DebianKernel) -> None:
    """Turn a fresh Debian into the machine: init, network, SSH, kernel, boot menu."""
    for part in _REMOVED:
        shutil.rmtree(tree / part, ignore_errors=True)
    for part in ("boot/grub", "etc/lab", "var/cache", "var/log", "dev", "proc", "sys", "run", "tmp"):
        (tree / part).mkdir(parents=True, exist_ok=True)
    (tree / "tmp").chmod(0o1777)
    for kind, minor, name in (("c 5", 1, "console"), ("c 1", 3, "null"), ("c 1", 9, "urandom")):
        run_command(["mknod", "-m", "666", tree / "dev" / name, *kind.split(), str(minor)])
    for name in _APPLETS:
        (tree / "usr/sbin" / name).unlink(missing_ok=True)
        (tree / "usr/sbin" / name).symlink_to("/bin/busybox")
    shutil.copy(FILES / "inittab", tree / "etc/inittab")
    shutil.copy(FILES / "sshd_config", tree / "etc/ssh/sshd_config")
    for name in ("start", "stop", "modules"):
        shutil.copy(FILES / name, tree / "etc/lab")
    (tree / "etc/lab/mounts").write_text("")
    for old in (tree / "etc/ssh").glob("ssh_host_*"):
        old.unlink()
    shutil.copy(keys / "host_key", tree / "etc/ssh/ssh_host_ed25519_key")
    shutil.copy(keys / "client_key.pub", tree / "etc/ssh/authorized_keys")
    shadow = tree / "etc/shadow"  # '*' may come in with a key, '!' may not
    lines = shadow.read_text().splitlines()
    shadow.write_text(
        "\n".join("root:*:19000:0:99999:7:::" if x.startswith("root:") else x for x in lines) + "\n"
    )
    (tree / "etc/hostname").write_text("machine\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost machine\n")
    (tree / "etc/machine-id").write_text(f"{uuid.UUID(_ROOT_UUID).hex}\n")
    (tree / "etc/default").mkdir(exist_ok=True)
    (tree / "etc/default/grub").write_text("GRUB_DEFAULT=saved\nGRUB_TIMEOUT=0\n")
    (tree / "etc/initramfs-tools").mkdir(exist_ok=True)
    (tree / "etc/initramfs-tools/modules").write_text("nvme\next4\n")  # there is no udev to find them
    if (tree / "etc/dracut.conf.d").is_dir():  # as Fedora and RHEL have it: what the machine needs, no more
        (tree / "etc/dracut.conf.d/hostonly.conf").write_text('hostonly="yes"\n')
    for file in (kernel.image, kernel.config):
        shutil.copy(file, tree / "boot")
    kernel.copy_modules((FILES / "modules").read_text().split(), tree)
    for modules in (_GRUB_BIOS, _GRUB_UEFI):
        programs = shutil.ignore_patterns("*.module", "*.efi", "*.img", "gdb*")
        shutil.copytree(modules, tree / "boot/grub" / modules.name, ignore=programs)
    menu = (FILES / "grub.cfg").read_text().replace("@UUID@", _ROOT_UUID).replace("@VERSION@", kernel.version)
    (tree / "boot/grub/grub.cfg").write_text(menu)
    run_command(["grub-editenv", tree / "boot/grub/grubenv", "create"])


def _write_boot_sectors(disk: Path, work: Path) -> None:
    """Write GRUB for a BIOS into the first MiB, and the partition table: root, then the one for UEFI."""
    core = work / "core.img"
    run_command(
        [
            *("grub-mkimage", "-O", "i386-pc", "-p", _PREFIX, "-o", core),
            *_GRUB_BIOS_MODULES,
        ]
    )
    sectors = (ROOT_MIB << 20) // SECTOR
    table = partition(True, 0x83, ROOT_SECTOR, sectors)
    table += partition(False, 0xEF, ROOT_SECTOR + sectors, (ESP_MIB << 20) // SECTOR)
    with disk.open("r+b") as file:
        file.write((_GRUB_BIOS / "boot.img").read_bytes()[:_BOOT_CODE_BYTES])
        file.seek(446)
        file.write(table.ljust(64, b"\0") + b"\x55\xaa")
        file.seek(SECTOR)
        file.write(core.read_bytes())


def _write_esp(disk: Path, work: Path) -> None:
    """Write GRUB for UEFI, where firmware looks that was told nothing, into the second partition."""
    grub, esp = work / "BOOTX64.EFI", work / "esp.img"
    run_command(["grub-mkimage", "-O", "x86_64-efi", "-p", _PREFIX, "-o", grub, *_GRUB_UEFI_MODULES])
    with esp.open("wb") as file:
        file.truncate(ESP_MIB << 20)
    run_command(["mkfs.vfat", esp])
    run_command(["mmd", "-i", esp, "::EFI", "::EFI/BOOT"])
    run_command(["mcopy", "-i", esp, grub, "::EFI/BOOT/BOOTX64.EFI"])
    with disk.open("r+b") as file:
        file.seek((1 + ROOT_MIB) << 20)
        file.write(esp.read_bytes())


def partition(active: bool, kind: int, first: int, sectors: int) -> bytes:
    """Return an entry of a partition table in a master boot record; places by sectors, not by cylinders."""
    return struct.pack(
        "<B3sB3sII", 0x80 if active else 0, b"\xfe\xff\xff", kind, b"\xfe\xff\xff", first, sectors
    )
