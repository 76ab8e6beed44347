"""Requirements of a trial, tested against the facts of a machine: one function for each.

Each returns what it found, or raises: `Doubt` for what may hurt later, InfrastructureError for what would
make a trial fail there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from bisector.adapters.machine.machine_facts import MachineFacts
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.errors import InfrastructureError, Interrupted, PerfbisectError, RequestError
from bisector.model.machines.lab_findings import LabFinding, Result
from bisector.schemas.machine.testbed_variables import TestbedVariables

BOOT_MIB = 64
"""Free space for kernels in /boot: a kernel of 15 MB and an initramfs of 40, as distributions have them."""

WORK_MIB = 256
"""Free space for a workload on a testbed: the largest payload here has 60 MiB, and results come on top."""

BUILDER_MIB = 4096
"""Free space on a builder: a kernel tree with objects takes 2.5 GiB; ccache grows beside it."""

SKEW_SECONDS = 5.0
"""A clock further off than this is not kept by NTP; `make` takes files of such a host for old or new."""

BUILDER_SKEW_SECONDS = 120.0
"""Nothing is built on a builder whose clock is further off: playbooks/roles/build/files/build.sh."""

_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")
"""Clock sources of which each reading takes 0.5 microseconds and more, or that tick with the timer only."""


class Doubt(PerfbisectError):
    """It works, and something may hurt later."""


def finding(check: str, look: Callable[[], str]) -> LabFinding:
    """Return what a check found. Errors that are ours become findings; others are defects, and are raised, as
    is Interrupted."""
    started = awake_seconds()

    try:
        found = LabFinding(check, "ok", look())
    except Interrupted:
        raise
    except PerfbisectError as error:
        found = failed(check, error)
    return replace(found, seconds=awake_seconds() - started)


def failed(check: str, error: PerfbisectError) -> LabFinding:
    """Return an error as what a check found."""
    own = error.cure if error.cure != error.usual_cure else ""  # the usual one names this command
    result: Result = "doubtful" if isinstance(error, Doubt) else "wrong"
    return LabFinding(
        check, result, error.message, own, error.details, is_setting=isinstance(error, RequestError)
    )


def is_root(facts: MachineFacts) -> str:
    """Whether we may boot kernels there."""
    if facts.get("uid") != "0":
        raise InfrastructureError(
            f"the user has id {facts.get('uid')}, and is not root",
            cure="set ansible_user to root: kernels are booted and settings are made by root",
        )
    return "the user is root"


def has_tools(facts: MachineFacts, tools: Sequence[str]) -> str:
    """Whether programs are there."""
    missing = [one for one in tools if not any(facts.has(name) for name in one.split("|"))]
    if missing:
        cure = "install them there"
        if "kexec" in missing:
            cure += "; kexec is in the package kexec-tools"
        raise InfrastructureError(f"missing: {', '.join(map(_first, missing))}", cure=cure)
    return ", ".join(map(_first, tools))


def _first(tool: str) -> str:
    return tool.split("|")[0]


def can_boot(facts: MachineFacts, variables: TestbedVariables) -> str:
    """Look for what would stop a boot by this machine's method."""
    method = variables.boot_method
    if method is None:
        raise InfrastructureError(
            "no boot method is set", cure="set perfbisect_boot_method: 'perfbisect lab add' finds out which"
        )
    if method == "kexec" and facts.get("kexec_disabled") == "1":
        raise InfrastructureError(
            "kexec is switched off until the next reboot (kernel.kexec_load_disabled)",
            cure="take it out of /etc/sysctl.d and reboot, or use perfbisect_boot_method: grub",
        )
    if method != "pxe" and (signed := takes_only_signed(facts, method)):
        raise InfrastructureError(
            f"{signed}: it starts no kernel that is not signed", cure="switch Secure Boot off in its firmware"
        )
    if method == "grub" and (menu := facts.get("grub_apart")):
        raise InfrastructureError(
            f"GRUB's menu is {menu}, and /boot/grub2/grubenv is no link to the grubenv there",
            cure="make it that link, as GRUB's package for UEFI does, or use perfbisect_boot_method: kexec",
        )
    if method == "grub" and facts.get("grub_once") != "yes":
        menu = facts.get("grub_menu") or "no grub.cfg in /boot/grub or /boot/grub2"
        raise InfrastructureError(
            f"GRUB does not obey a one-shot choice: {menu} has no next_entry, or does not read custom.cfg",
            cure="ansible-playbook -i LAB playbooks/prepare.yml --limit HOST has its menu written anew",
        )
    if method == "systemd-boot" and facts.get("firmware") != "uefi":
        raise InfrastructureError(
            "the machine was started by a BIOS, and systemd-boot needs UEFI",
            cure="set perfbisect_boot_method to grub or kexec",
        )
    if facts.get("clocksource") in _SLOW_CLOCKS:
        raise Doubt(
            f"by {method}; its clock source is {facts.get('clocksource')}, of which each reading is slow",
            cure="see 'dmesg | grep -i tsc' there: firmware or BIOS settings often decide it",
        )
    return f"by {method} on {facts.get('firmware').upper()}; runs {facts.get('release')}"


def takes_only_signed(facts: MachineFacts, method: str) -> str:
    """Return why a machine starts no kernel of ours, '' where it does.

    kexec asks the running kernel, which may be locked down or not; a boot loader asks the firmware.
    """
    if method == "kexec":
        locked = any(f"[{mode}]" in facts.get("lockdown") for mode in ("integrity", "confidentiality"))
        return "its kernel is locked down (kernel_lockdown)" if locked else ""
    return "Secure Boot is on" if facts.get("secure_boot") == "on" else ""


def has_room(facts: MachineFacts, place: str, folder: str, least: int) -> str:
    """Whether kernels and workloads have room. place: of the facts; least: MiB that must be free."""
    free, options = facts.free_mib(place), facts.get(f"{place}.options").split(",")
    if "ro" in options:
        raise InfrastructureError(f"{folder} is on a file system that is read-only", cure="mount it writable")
    if place == "work" and "noexec" in options:
        raise InfrastructureError(
            f"{folder} is on a file system that takes no executables",
            cure="set perfbisect_workdir to a folder of another one",
        )
    if free is None:
        raise Doubt(f"{folder}: free space is not known", cure=f"look there with df {folder}")
    if free < least:
        raise InfrastructureError(
            f"{folder} has {free} MiB free, {least} are needed", cure="remove old kernels or files there"
        )
    return f"{folder} has {free} MiB free"


def has_right_time(facts: MachineFacts, most: float = math.inf) -> str:
    """Whether its clock is right. most: seconds; one that is further off is of no use."""
    off = abs(facts.skew) - facts.uncertainty
    if off > SKEW_SECONDS:
        which = "ahead of" if facts.skew > 0 else "behind"
        text = f"its clock is {abs(facts.skew):.0f} s {which} this machine's"
        cure = "keep both with NTP, such as systemd-timesyncd or chrony"
        if off > most:
            raise InfrastructureError(f"{text}: nothing is built there", cure=cure)
        raise Doubt(text, cure=cure)
    return f"within {SKEW_SECONDS:g} s of this machine's"
