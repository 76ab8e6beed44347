"""Whether this machine is ready, and making it ready; those of the lab: `app/machines`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, PerfbisectError

if TYPE_CHECKING:
    from bisector.adapters.system.host_requirements import Check
    from bisector.ports import Progress


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Disk usage of one kind of files. prunable: bytes of it that 'perfbisect prune' would free."""

    name: str
    path: Path
    bytes: int
    prunable: int


def disk_use(wiring: Wiring) -> list[DiskUse]:
    """Return what perfbisect keeps on this machine. Builders on other machines have their own."""
    from bisector.adapters.system.disk_usage import disk_usage
    from bisector.app.upkeep.retention import KEEP_DAYS, find_removable

    state, cache = wiring.settings.state_dir, wiring.settings.cache_dir
    removable = find_removable(wiring, KEEP_DAYS)
    found = [DiskUse("records", state, disk_usage(*state.glob("*.sqlite*")), 0)]
    for name, path in (
        ("results", state / "bisections"),
        ("calibrations", state / "calibrations"),
        ("kernels", cache / "kernels"),
        ("guest images", cache / "images"),
        ("builds", cache / "builder"),
        ("compiler cache", cache / "ccache"),
        ("commit graphs", cache / "graphs"),
    ):
        prunable = sum(item.bytes for item in removable if item.path.is_relative_to(path))
        found.append(DiskUse(name, path, disk_usage(path), prunable))
    return [one for one in found if one.bytes]


def check_host(wiring: Wiring, progress: Progress, *, probe: bool = False) -> list[Check]:
    """Return what this machine needs for building and measuring, and whether it has it.

    probe: boot again to see whether KVM works, else take the remembered answer.
    """
    from bisector.adapters.system.host_requirements import check_folder, checks, has_libvirt

    state, cache = wiring.settings.state_dir, wiring.settings.cache_dir
    found = checks(cache)
    found += [
        check_folder("state folder", state, "PERFBISECT_STATE_DIR", needed="records and results"),
        check_folder("cache folder", cache, "PERFBISECT_CACHE_DIR", needed="kernels and guest images"),
    ]
    if has_libvirt():
        from bisector.adapters.guest.preflight import guest_checks

        found += guest_checks(cache, progress, probe=probe, shared=wiring.settings.artefacts is not None)
    return found


def unusable_records(error: PerfbisectError | OSError) -> Check:
    """Return the check that says why the state file or the database, or a folder of files, cannot be used."""
    from bisector.adapters.system.host_requirements import Check

    if isinstance(error, OSError):
        cure = "have its owner give you the right to read it, or set another folder (PERFBISECT_STATE_DIR, "
        cure += "PERFBISECT_CACHE_DIR)"
        return Check("files", wrong=f"{error.filename}: {error.strerror}", cure=cure, needed="what is kept")
    return Check("records", wrong=error.message, cure=error.cure, needed="bisections and their reports")


def missing_packages() -> list[str]:
    """Return the commands that `install_packages` would run."""
    from bisector.adapters.system import host_packages

    return host_packages.missing()


def install_packages(progress: Progress) -> None:
    """Install the packages that are missing. Raises InfrastructureError."""
    from bisector.adapters.system import host_packages

    for command in host_packages.missing():
        progress(f"running: {command}")
    host_packages.install_missing()


def prepare_guests(wiring: Wiring, progress: Progress) -> None:
    """Start libvirt, build the guest image and probe KVM, as far as that is not done. Raises what fails."""
    from bisector.adapters.system.host_requirements import has_libvirt

    if not has_libvirt():
        raise InfrastructureError(
            "libvirt-python is not in this Python environment", cure="perfbisect doctor --fix"
        )
    from bisector.adapters.guest import preflight

    preflight.prepare_guests(wiring.settings.cache_dir, progress)
