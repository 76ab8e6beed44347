"""Packages and folders of kernels, made small: an image that says who it is, a configuration, one module."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Literal


def image(release: str, version: str) -> bytes:
    """Return the head of a bzImage that says what `uname -r` and `uname -v` would."""
    head = bytearray(0x1000)
    head[0x202:0x206] = b"HdrS"
    head[0x20E:0x210] = (0x400).to_bytes(2, "little")
    text = f"{release} (me@here) {version}\0".encode()
    head[0x600 : 0x600 + len(text)] = text
    return bytes(head)


def kernel_folder(folder: Path, release: str, version: str = "#1 SMP") -> Path:
    """Make a kernel's folder as a person has it after a build."""
    folder.mkdir(parents=True)
    (folder / "vmlinuz").write_bytes(image(release, version))
    (folder / "config").write_text('CONFIG_CC_VERSION_TEXT="gcc 12"\nCONFIG_SMP=y\n', encoding="utf-8")
    return folder


def tree(folder: Path, release: str, version: str, *, modules: bool = True) -> Path:
    """Make what a package of Debian installs."""
    (folder / "boot").mkdir(parents=True)
    (folder / f"boot/vmlinuz-{release}").write_bytes(image(release, version))
    (folder / f"boot/config-{release}").write_text("CONFIG_SMP=y\n", encoding="utf-8")
    if modules:
        module = folder / f"lib/modules/{release}/kernel/drivers/toy.ko"
        module.parent.mkdir(parents=True)
        shutil.copyfile("/bin/true", module)  # depmod reads ELF files only
    return folder


def pack_deb(root: Path, name: str, version: str, arch: str = "amd64") -> Path:
    """Pack a folder as a Debian package beside it."""
    control = root / "DEBIAN" / "control"
    control.parent.mkdir()
    control.write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: {arch}\nMaintainer: Me <me@example.org>\n"
        "Description: a kernel\n",
        encoding="utf-8",
    )
    target = root.parent / f"{name}_{version}_{arch}.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(root), str(target)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def deb(folder: Path, version: str, *, release: str = "", arch: str = "amd64", built: str = "") -> Path:
    """Make a package of a kernel. built: what `uname -v` would say."""
    release = release or f"{version}-toy".replace("~", "-")
    root = tree(folder / f"root-{release}-{version}", release, built or f"#1 SMP Debian {version}")
    return pack_deb(root, f"linux-image-{release}", version, arch)


def rpm(
    folder: Path, version: str, symbols: bytes = b"", *, holds: Literal["all", "kernel", "modules"] = "all"
) -> Path:
    """Make an RPM package as Fedora lays kernels out. symbols: its System.map."""
    release, name = f"{version}-1.x86_64", "kernel-modules-core" if holds == "modules" else "kernel-core"
    where = folder / f"rpm-{name}-{version}"
    root = where / "root" / f"lib/modules/{release}"
    root.mkdir(parents=True)
    if holds != "modules":
        (root / "vmlinuz").write_bytes(image(release, "#1 SMP Fedora"))
        (root / "config").write_text("CONFIG_SMP=y\n", encoding="utf-8")
        (root / "System.map").write_bytes(symbols)
    if holds != "kernel":
        module = root / "kernel/drivers/toy.ko"
        module.parent.mkdir(parents=True)
        shutil.copyfile("/bin/true", module)  # depmod reads ELF files only
    spec = where / "kernel.spec"
    spec.write_text(
        f"Name: {name}\nVersion: {version}\nRelease: 1\nSummary: a kernel\nLicense: GPL\n%description\n"
        f"A kernel.\n%install\ncp -r {where}/root/* %{{buildroot}}/\n%files\n/lib/modules/{release}\n",
        encoding="utf-8",
    )
    options = ["--define", f"_topdir {where}", "--define", "debug_package %{nil}", "--target", "x86_64"]
    strip = ["--define", "__strip /bin/true", "--define", "_build_id_links none"]
    subprocess.run(["rpmbuild", "-bb", *options, *strip, str(spec)], check=True, capture_output=True)
    (package,) = (where / "RPMS").rglob("*.rpm")
    return package


def listed(folder: Path, *lines: object) -> Path:
    """Write a list."""
    path = folder / "kernels.list"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
