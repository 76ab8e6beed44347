"""Kernels for searches on machines, in lists for `--kernels`: Debian's own, so that little is compiled.

A kernel's folder has the few modules that an emulated machine loads. Which ones are slower is the workload's
choice, by `uname -r`: the clock on the wall decides there, and other load on this host makes anything slower.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.debian_kernel import DEFAULT_PACKAGE, DebianKernel, available, resolve, unpack
from tests.lab.disk_image import FILES
from tests.lab.machines import LAB_CACHE
from tests.support import demo_history, small_history
from tests.support.installed_command import perfbisect

_PACKAGES = r"^linux-image-6\.1\.0-[0-9]+-cloud-amd64$"
"""Not the unsigned ones: those are the same releases again."""

_NETWORK = "virtio_net"
_DISKLESS_RECIPE = "x86_64-small"
"""Its kernel has no driver of any disk: it panics where it would mount its root."""

_HEADER_SECTORS = 0x1F1
"""Where a bzImage says how long its first part is, see Documentation/arch/x86/boot.rst."""

_ENTRIES = (0, 0x200)
"""Of the second part: where boot loaders jump to in 32 bits, and kexec in 64."""

_LOOP = b"\xeb\xfe"
"""A jump to itself, in both."""

_RESET = b"\x0f\x0b"
"""An invalid instruction, in both: nobody handles interrupts yet, so the CPU resets the machine."""


@dataclass(frozen=True)
class KernelList:
    """A list of kernels with its ends. options: of 'start'; releases: of the kernels, in order."""

    options: Sequence[str]
    releases: Sequence[str]


def sound_list(folder: Path, kernels: int, culprit: int) -> KernelList:
    """Make a list of kernels that boot; from the culprit on, counted from 0, they are slower."""
    chosen = _debian(kernels)
    for number, kernel in enumerate(chosen):
        _fill(folder / f"kernel-{number}", kernel)
    return _write(folder, [kernel.version for kernel in chosen], culprit)


FAILING = {2: "panic", 3: "hang", 4: "no network"}
RESCUED_CULPRIT = 6
"""The last of seven, by numbers from 0. Before the planner names it, it has tried all that fail."""


def list_with_failing(folder: Path) -> KernelList:
    """Make a list of seven kernels, in whose middle are those of FAILING."""
    one, two, hanging, deaf, five, six = _debian(6)
    _fill(folder / "kernel-0", one)
    _fill(folder / "kernel-1", two)
    panics = folder / "kernel-2"
    panics.mkdir(parents=True)
    release = _copy_diskless(panics)
    _fill(folder / "kernel-3", hanging)
    make_hang(folder / "kernel-3" / "vmlinuz")
    _fill(folder / "kernel-4", deaf, without=_NETWORK)
    _fill(folder / "kernel-5", five)
    _fill(folder / "kernel-6", six)
    releases = [one.version, two.version, release, hanging.version, deaf.version, five.version, six.version]
    return _write(folder, releases, RESCUED_CULPRIT)


def make_hang(image: Path) -> None:
    """Have a kernel go round in a circle from its first instruction on."""
    _begin_with(_LOOP, image)


def make_reset(image: Path) -> None:
    """Have a kernel reset the machine with its first instruction."""
    _begin_with(_RESET, image)


def _begin_with(code: bytes, image: Path) -> None:
    data = bytearray(image.read_bytes())
    (sectors,) = struct.unpack_from("B", data, _HEADER_SECTORS)
    for entry in _ENTRIES:
        start = (sectors + 1) * 512 + entry
        data[start : start + len(code)] = code
    image.write_bytes(data)


def _debian(number: int) -> list[DebianKernel]:
    """Return so many of Debian's kernels, the oldest first, without the machines' own."""
    own = resolve(DEFAULT_PACKAGE)
    packages = [package for package in available(_PACKAGES) if package != own]
    return [unpack(package, LAB_CACHE) for package in packages[-number:]]


def _fill(folder: Path, kernel: DebianKernel, without: str = "") -> None:
    modules = [name for name in (FILES / "modules").read_text().split() if name != without]
    kernel.copy_modules(modules, folder)
    shutil.copy(kernel.image, folder / "vmlinuz")
    shutil.copy(kernel.config, folder / "config")


def _copy_diskless(folder: Path) -> str:
    """Take the small kernel from the cache, or build it in minutes; return its release."""
    repository, state = folder / "linux", folder / "state"
    state.mkdir()
    small_history.make(repository, demo_history.prepare(), (), "lab")
    done = perfbisect(
        *("kernel", "build", "lab-00", "--repo", str(repository), "--recipe", _DISKLESS_RECIPE, "--json"),
        environment=demo_history.environment(state),
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    shutil.copy(made["image"], folder / "vmlinuz")
    shutil.copy(made["config"], folder / "config")
    shutil.rmtree(repository)
    shutil.rmtree(state)
    return str(made["release"])


def _write(folder: Path, releases: Sequence[str], culprit: int) -> KernelList:
    listed = folder / "kernels.list"
    listed.write_text("".join(f"kernel-{number}\n" for number in range(len(releases))))
    slow = "|".join(releases[culprit:])
    command = f'case "$(uname -r)" in {slow}) sleep 1;; esac; sleep 0.1'
    options = (
        *("--kernels", str(listed), "--good", "kernel-0", "--bad", f"kernel-{len(releases) - 1}"),
        *("--run", command, "--threshold", "100%"),
    )
    return KernelList(options, releases)
