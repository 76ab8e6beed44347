"""Requirements of building and measuring on this machine: programs, headers, disk; with cures."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from bisector.adapters.system.command import find_program, run_command, search_path
from bisector.errors import ExitCode, InfrastructureError

DISK_GIB = 10
"""A kernel tree with objects takes 2.5 GiB, the guest image 0.5, the demo's history 2, ccache grows to 5."""
_LEAST_BYTES = 2 << 20
"""Free for records: an executor keeps 1 MiB back, and does not begin without it (`engine.disk_reserve`)."""


@dataclass(frozen=True, slots=True)
class Check:
    """One prerequisite. found: what is there; wrong: what is not, empty if all is well; cure: a command.

    needed: what cannot be done without it. optional: things still work, only worse. exit_code: of a
    command that ends for it.
    """

    name: str
    found: str = ""
    wrong: str = ""
    cure: str = ""
    needed: str = ""
    optional: bool = False
    exit_code: ExitCode = ExitCode.INFRASTRUCTURE

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


BUILDING, GUESTS, _WORKLOADS = "building kernels", "guests", "static workloads"

PROGRAMS = (
    *((name, name, BUILDING) for name in ("git", "make", "gcc", "flex", "bison", "bc", "perl")),
    *((name, name, BUILDING) for name in ("cpio", "patch", "ccache")),
    ("qemu-system-x86_64", "qemu-system-x86", GUESTS),
    ("libvirtd", "libvirt-daemon", GUESTS),
    ("mmdebstrap", "mmdebstrap", GUESTS),
    ("mke2fs", "e2fsprogs", GUESTS),
    ("ssh-keygen", "openssh-client", GUESTS),
    ("musl-gcc", "musl-tools", _WORKLOADS),
)
"""(program, Debian package, what it is needed for)"""

HEADERS = (("libelf.h", "libelf-dev", BUILDING), ("openssl/opensslv.h", "libssl-dev", BUILDING))
"""(header below /usr/include, Debian package, what it is needed for)"""


def checks(disk: Path, gib: float = DISK_GIB) -> list[Check]:
    """Return all checks that need neither libvirt nor a guest.

    disk: a folder where builds will lie; gib: what must be free there.
    """
    return [
        *(_program(*row) for row in PROGRAMS),
        *(_header(*row) for row in HEADERS),
        replace(_program("bwrap", "bubblewrap", "the best sandbox for builds"), optional=True),
        _driver(),
        _python_libvirt(),
        _tuxmake(),
        _disk(disk, gib),
        _starts_programs(disk),
    ]


def has_libvirt() -> bool:
    """Return whether libvirt-python, an extra of this package, can be imported."""
    return importlib.util.find_spec("libvirt") is not None


def install(packages: str) -> str:
    """Return the command that installs Debian packages, for the user that we are."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install --no-install-recommends {packages}"


def _installed(name: str, found: object, *, cure: str, needed: str, wrong: str = "not installed") -> Check:
    """Return the check of something that is there where `found` is not None."""
    if found is None:
        return Check(name, wrong=wrong, cure=cure, needed=needed)
    return Check(name, found=str(found), needed=needed)


def _program(program: str, package: str, needed: str) -> Check:
    return _installed(program, find_program(program), cure=install(package), needed=needed)


def _header(header: str, package: str, needed: str) -> Check:
    places = [Path("/usr/include"), Path(f"/usr/include/{platform.machine()}-linux-gnu")]
    found = next((place / header for place in places if (place / header).exists()), None)
    return _installed(header, found, cure=install(package), needed=needed)


def _driver() -> Check:
    """libvirt without its QEMU driver answers every connection with 'no connection driver'."""
    found = sorted(Path("/usr/lib").glob("*/libvirt/connection-driver/libvirt_driver_qemu.so"))
    cure = install("libvirt-daemon-driver-qemu")
    return _installed("libvirt's QEMU driver", found[0] if found else None, cure=cure, needed=GUESTS)


def _python_libvirt() -> Check:
    version = importlib.metadata.version("libvirt-python") if has_libvirt() else None
    return _installed(
        "libvirt-python",
        version,
        wrong="not in this Python environment",
        cure="perfbisect doctor --fix",
        needed=GUESTS,
    )


def _tuxmake() -> Check:
    path = Path(sys.executable).parent / "tuxmake"
    found = path if path.exists() or shutil.which("tuxmake") is not None else None
    wrong, cure = "not in this Python environment", "install perfbisect again (in its checkout: make setup)"
    return _installed("tuxmake", found, wrong=wrong, cure=cure, needed=BUILDING)


def free_bytes(folder: Path) -> tuple[Path, int]:
    """Return what is nearest above (or `folder` itself) and can be seen, and the free bytes of its disk."""
    nearest = _nearest(folder)
    return nearest, shutil.disk_usage(nearest).free


def _nearest(folder: Path) -> Path:
    while not os.path.exists(folder):  # noqa: PTH110 - Path.exists raises where a folder may not be entered
        folder = folder.parent
    return folder


def check_folder(name: str, folder: Path, setting: str, *, needed: str) -> Check:
    """Return whether files can be written in a folder, which may not be there yet. setting: what names it."""
    nearest, free = free_bytes(folder)
    another = f"or set another folder ({setting})"
    if not nearest.is_dir():
        cure = f"move it away, {another}"
        return Check(name, wrong=f"{nearest} is a file, not a folder", cure=cure, needed=needed)
    if not os.access(nearest, os.W_OK | os.X_OK):
        cure = f"have its owner give the right to write there, {another}"
        return Check(name, wrong=f"{nearest} cannot be written", cure=cure, needed=needed)
    if free < _LEAST_BYTES:
        cure = f"free some space ('perfbisect prune'), {another}"
        return Check(name, wrong=f"the disk of {nearest} is full", cure=cure, needed=needed)
    return Check(name, found=str(folder), needed=needed)


def _disk(folder: Path, gib: float) -> Check:
    free = free_bytes(folder)[1] / 2**30
    name = "disk space"
    if free < gib:
        return Check(
            name,
            wrong=f"{free:.1f} GiB free in {folder}, builds and images want {gib:g}",
            cure="free some, or point cache_dir (PERFBISECT_CACHE_DIR) to another disk",
            needed=BUILDING,
        )
    return Check(name, found=f"{free:.0f} GiB free in {folder}", needed=BUILDING)


def _starts_programs(folder: Path) -> Check:
    """Kernels are built by programs that the build has made, the counters are loaded from there."""
    name, place = "programs of builds", _nearest(folder)
    if os.statvfs(place).f_flag & os.ST_NOEXEC:
        cure = "mount it without that option, or point cache_dir (PERFBISECT_CACHE_DIR) to another disk"
        return Check(name, wrong=f"{place} is mounted noexec", cure=cure, needed=BUILDING)
    return Check(name, found=f"can be started in {folder}", needed=BUILDING)


def description() -> dict[str, str]:
    """Return what a report says of this machine: system, processor, memory, versions of the tools."""
    out = {"host kernel": f"{platform.system()} {platform.release()} {platform.machine()}"}
    with contextlib.suppress(OSError):
        out["host system"] = platform.freedesktop_os_release()["PRETTY_NAME"]
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    models = [line.split(":", 1)[1].strip() for line in cpuinfo.splitlines() if line.startswith("model name")]
    out["host CPU"] = f"{os.cpu_count()} x {models[0] if models else platform.machine()}"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    out["host memory"] = f"{memory:.0f} GiB"
    out["python"] = platform.python_version()
    tools = {"QEMU": "qemu-system-x86_64", "libvirt": "libvirtd", "ccache": "ccache", "git": "git"}
    for name, tool in tools.items():
        version = _first_line((tool, "--version"))
        if version:
            out[name] = version
    return out


def _first_line(command: tuple[str, ...]) -> str:
    try:
        done = run_command(command, timeout=10, check=False, env={"PATH": search_path()})
    except InfrastructureError:
        return ""
    return done.output.strip().splitlines()[0] if done.code == 0 and done.output.strip() else ""
