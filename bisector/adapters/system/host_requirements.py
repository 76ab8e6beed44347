"""What this machine brings for building and measuring: programs, headers, disk; each with its cure."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.system.command import run_command
from bisector.errors import InfrastructureError

DISK_GIB = 10
"""A kernel tree with objects takes 2.5 GiB, the guest image 0.5, the demo's history 2, ccache grows to 5."""


@dataclass(frozen=True, slots=True)
class Check:
    """One prerequisite. found: what is there; wrong: what is not, empty if all is well; cure: a command.

    needed: what cannot be done without it. optional: things still work, only worse.
    """

    name: str
    found: str = ""
    wrong: str = ""
    cure: str = ""
    needed: str = ""
    optional: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


_BUILDING, _GUESTS, _WORKLOADS = "building kernels", "guests", "static workloads"

PROGRAMS = (
    ("git", "git", _BUILDING),
    ("make", "make", _BUILDING),
    ("gcc", "gcc", _BUILDING),
    ("flex", "flex", _BUILDING),
    ("bison", "bison", _BUILDING),
    ("bc", "bc", _BUILDING),
    ("perl", "perl", _BUILDING),
    ("cpio", "cpio", _BUILDING),
    ("patch", "patch", _BUILDING),
    ("ccache", "ccache", _BUILDING),
    ("qemu-system-x86_64", "qemu-system-x86", _GUESTS),
    ("libvirtd", "libvirt-daemon", _GUESTS),
    ("mmdebstrap", "mmdebstrap", _GUESTS),
    ("mke2fs", "e2fsprogs", _GUESTS),
    ("ssh-keygen", "openssh-client", _GUESTS),
    ("musl-gcc", "musl-tools", _WORKLOADS),
)
"""(program, Debian package, what it is needed for)"""

HEADERS = (("libelf.h", "libelf-dev", _BUILDING), ("openssl/opensslv.h", "libssl-dev", _BUILDING))
"""(header below /usr/include, Debian package, what it is needed for)"""


def checks(disk: Path) -> list[Check]:
    """Return all checks that need neither libvirt nor a guest. disk: a folder where builds will lie."""
    return [
        *(_program(*row) for row in PROGRAMS),
        *(_header(*row) for row in HEADERS),
        _driver(),
        _python_libvirt(),
        _tuxmake(),
        _disk(disk),
    ]


def has_libvirt() -> bool:
    """Return whether libvirt-python, an extra of this package, can be imported."""
    return importlib.util.find_spec("libvirt") is not None


def install(packages: str) -> str:
    """Return the command that installs Debian packages, for the user that we are."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install --no-install-recommends {packages}"


def _program(program: str, package: str, needed: str) -> Check:
    # sbin is not in every user's PATH, and libvirtd and mke2fs live there
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        return Check(program, wrong="not installed", cure=install(package), needed=needed)
    return Check(program, found=path, needed=needed)


def _header(header: str, package: str, needed: str) -> Check:
    places = [Path("/usr/include"), Path(f"/usr/include/{platform.machine()}-linux-gnu")]
    for place in places:
        if (place / header).exists():
            return Check(header, found=str(place / header), needed=needed)
    return Check(header, wrong="not installed", cure=install(package), needed=needed)


def _driver() -> Check:
    """libvirt without its QEMU driver answers every connection with 'no connection driver'."""
    found = sorted(Path("/usr/lib").glob("*/libvirt/connection-driver/libvirt_driver_qemu.so"))
    if not found:
        return Check(
            "libvirt's QEMU driver",
            wrong="not installed",
            cure=install("libvirt-daemon-driver-qemu"),
            needed=_GUESTS,
        )
    return Check("libvirt's QEMU driver", found=str(found[0]), needed=_GUESTS)


def _python_libvirt() -> Check:
    if not has_libvirt():
        return Check(
            "libvirt-python",
            wrong="not in this Python environment",
            cure="make deps   (in perfbisect's folder; or: pip install 'perfbisect[libvirt]')",
            needed=_GUESTS,
        )
    version = importlib.metadata.version("libvirt-python")
    return Check("libvirt-python", found=version, needed=_GUESTS)


def _tuxmake() -> Check:
    path = Path(sys.executable).parent / "tuxmake"
    if not path.exists() and shutil.which("tuxmake") is None:
        return Check("tuxmake", wrong="not in this Python environment", cure="make setup", needed=_BUILDING)
    return Check("tuxmake", found=str(path), needed=_BUILDING)


def _disk(folder: Path) -> Check:
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 2**30
    name = f"disk space in {folder}"
    if free < DISK_GIB:
        return Check(
            name,
            wrong=f"{free:.1f} GiB free, builds and images want {DISK_GIB}",
            cure="free some, or point cache_dir (PERFBISECT_CACHE_DIR) to another disk",
            needed=_BUILDING,
        )
    return Check(name, found=f"{free:.0f} GiB free", needed=_BUILDING)


def description() -> dict[str, str]:
    """Return what a report says of this machine: system, processor, memory, versions of the tools."""
    out = {"host kernel": f"{platform.system()} {platform.release()} {platform.machine()}"}
    release = Path("/etc/os-release")
    if release.exists():
        names = dict(
            line.split("=", 1) for line in release.read_text(encoding="utf-8").splitlines() if "=" in line
        )
        out["host system"] = names.get("PRETTY_NAME", "").strip('"')
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    models = [line.split(":", 1)[1].strip() for line in cpuinfo.splitlines() if line.startswith("model name")]
    out["host CPU"] = f"{os.cpu_count()} x {models[0] if models else platform.machine()}"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    out["host memory"] = f"{memory:.0f} GiB"
    out["python"] = platform.python_version()
    for name, command in (
        ("QEMU", ("qemu-system-x86_64", "--version")),
        ("libvirt", ("libvirtd", "--version")),
        ("ccache", ("ccache", "--version")),
        ("git", ("git", "--version")),
    ):
        version = _first_line(command)
        if version:
            out[name] = version
    return out


def _first_line(command: tuple[str, ...]) -> str:
    try:
        done = run_command(command, timeout=10, check=False, env={"PATH": f"{os.environ['PATH']}:/usr/sbin"})
    except InfrastructureError:
        return ""
    return done.output.strip().splitlines()[0] if done.code == 0 and done.output.strip() else ""
