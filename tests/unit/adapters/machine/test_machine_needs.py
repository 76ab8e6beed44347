"""What a trial needs of a machine: one function a question, with the cure."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NoReturn

import pytest

from bisector.adapters.machine import machine_needs as needs
from bisector.adapters.machine.machine_facts import MachineFacts
from bisector.errors import InfrastructureError, Interrupted, RequestError
from bisector.model.machines.lab_findings import LabFinding
from bisector.resources import resource
from bisector.schemas.machine.testbed_variables import TestbedVariables

WELL = {
    "uid": "0",
    "firmware": "bios",
    "release": "6.1.0",
    "tool.sh": "yes",
    "tool.tar": "yes",
    "boot.free_kib": str(100 << 10),
    "boot.options": "rw,relatime",
    "work.free_kib": str(1000 << 10),
    "work.options": "rw,noatime",
    "grub_once": "yes",
}
Question = Callable[[MachineFacts], str]
METHOD = {
    name: TestbedVariables.model_validate({"boot_method": name}) for name in ("kexec", "grub", "systemd-boot")
}
NETBOOT = {"folder": "/srv/tftp", "url": "tftp://192.0.2.1", "mac": "52:54:00:00:00:01"}
PXE = TestbedVariables.model_validate({"boot_method": "pxe", "netboot": NETBOOT})

QUESTIONS: list[tuple[str, Question, dict[str, str], str, str]] = [
    ("root", needs.is_root, {"uid": "1001"}, "the user has id 1001", "ansible_user"),
    (
        "other names",
        lambda f: needs.has_tools(f, ("grub-reboot|grub2-reboot",)),
        {"tool.grub-probe": "yes"},
        "missing: grub-reboot$",
        "install",
    ),
    *(
        (
            f"firmware {name}",
            lambda f: needs.can_boot(f, METHOD["systemd-boot"]),
            {"firmware": name},
            "needs UEFI",
            "grub or kexec",
        )
        for name in ("bios", "")
    ),
    ("tools", lambda f: needs.has_tools(f, ("sh", "kexec")), {}, "missing: kexec", "kexec-tools"),
    (
        "kexec off",
        lambda f: needs.can_boot(f, METHOD["kexec"]),
        {"kexec_disabled": "1"},
        "kexec is switched off",
        "sysctl",
    ),
    (
        "grub",
        lambda f: needs.can_boot(f, METHOD["grub"]),
        {"grub_once": ""},
        "GRUB does not obey",
        "prepare.yml",
    ),
    (
        "grub that says no",
        lambda f: needs.can_boot(f, METHOD["grub"]),
        {"grub_once": "no", "grub_menu": "/boot/grub2/grub.cfg"},
        "GRUB does not obey a one-shot choice: /boot/grub2/grub.cfg has no next_entry",
        "prepare.yml",
    ),
    (
        "grub apart",
        lambda f: needs.can_boot(f, METHOD["grub"]),
        {"grub_once": "", "grub_apart": "/boot/efi/EFI/redhat/grub.cfg"},
        "menu is /boot/efi/EFI/redhat/grub.cfg, and /boot/grub2/grubenv is no link",
        "kexec",
    ),
    *(
        (
            f"lockdown {mode}",
            lambda f: needs.can_boot(f, METHOD["kexec"]),
            {"lockdown": mode},
            "is locked down",
            "Secure Boot off",
        )
        for mode in ("none [integrity] confidentiality", "none integrity [confidentiality]")
    ),
    (
        "Secure Boot",
        lambda f: needs.can_boot(f, METHOD["grub"]),
        {"secure_boot": "on"},
        "Secure Boot is on: it starts no kernel",
        "in its firmware",
    ),
    ("no method", lambda f: needs.can_boot(f, TestbedVariables()), {}, "no boot method", "lab add"),
    *(
        (
            f"{free} MiB free",
            lambda f: needs.has_room(f, "boot", "/boot", 64),
            {"boot.free_kib": f"{free << 10}"},
            f"{free} MiB free, 64 are needed",
            "remove",
        )
        for free in (0, 63)
    ),
    (
        "read-only",
        lambda f: needs.has_room(f, "boot", "/boot", 64),
        {"boot.options": "ro,relatime"},
        "read-only",
        "writable",
    ),
    (
        "noexec",
        lambda f: needs.has_room(f, "work", "/tmp/x", 64),
        {"work.options": "rw,nosuid,noexec"},
        "takes no executables",
        "perfbisect_workdir",
    ),
]


@pytest.mark.parametrize(
    ("_name", "ask", "changes", "wrong", "cure"), QUESTIONS, ids=[q[0] for q in QUESTIONS]
)
def test_what_a_trial_would_fail_for(
    _name: str, ask: Question, changes: dict[str, str], wrong: str, cure: str
) -> None:
    with pytest.raises(InfrastructureError, match=wrong) as error:
        ask(MachineFacts({**WELL, **changes}))
    assert cure in error.value.cure


@pytest.mark.parametrize(
    ("ask", "changes"),
    [
        (lambda f: needs.can_boot(f, METHOD["grub"]), {"kexec_disabled": "1", "secure_boot": "off"}),
        (
            lambda f: needs.can_boot(f, METHOD["kexec"]),
            {"grub_apart": "/boot/efi/grub.cfg", "grub_once": "no"},
        ),
        (lambda f: needs.can_boot(f, METHOD["systemd-boot"]), {"firmware": "uefi"}),
        (lambda f: needs.can_boot(f, PXE), {"secure_boot": "on"}),
        (lambda f: needs.has_room(f, "boot", "/boot", 64), {"boot.free_kib": f"{64 << 10}"}),
        (lambda f: needs.has_room(f, "boot", "/boot", 64), {"boot.options": "rw,noexec"}),
        (lambda f: needs.has_room(f, "boot", "/boot", 64), {"boot.options": ""}),
    ],
)
def test_what_another_way_of_booting_would_fail_for_is_no_matter(
    ask: Question, changes: dict[str, str]
) -> None:
    assert ask(MachineFacts({**WELL, **changes}))


def test_room_that_is_not_known_is_doubtful() -> None:
    with pytest.raises(needs.Doubt, match="/boot: free space is not known"):
        needs.has_room(MachineFacts({**WELL, "boot.free_kib": ""}), "boot", "/boot", 64)


def test_a_machine_that_has_all_of_it() -> None:
    facts = MachineFacts(WELL, 0.4, 0.5)
    assert needs.is_root(facts) == "the user is root"
    assert needs.has_tools(facts, ("sh", "tar")) == "sh, tar"
    assert needs.has_tools(MachineFacts({"tool.grub2-reboot": "yes"}), ("grub-reboot|grub2-reboot",))
    assert needs.can_boot(facts, METHOD["grub"]) == "by grub on BIOS; runs 6.1.0"
    unlocked = MachineFacts({**WELL, "secure_boot": "on", "lockdown": "[none] integrity confidentiality"})
    assert needs.can_boot(unlocked, METHOD["kexec"]), "that kernel lets kexec load what it likes"
    assert needs.has_room(facts, "boot", "/boot", 64) == "/boot has 100 MiB free"
    assert needs.has_room(facts, "work", "/var/tmp/x", 256) == "/var/tmp/x has 1000 MiB free"
    assert needs.has_right_time(facts).startswith("within 5 s")


@pytest.mark.parametrize(("skew", "says"), [(7, "7 s ahead of"), (-3600, "3600 s behind")])
def test_a_clock_that_is_off_is_doubtful(skew: float, says: str) -> None:
    with pytest.raises(needs.Doubt, match=says) as doubt:
        needs.has_right_time(MachineFacts(WELL, skew, 0.6))
    found = needs.failed("clock", doubt.value)
    assert (found.result, found.is_setting) == ("doubtful", False) and "NTP" in found.cure


def test_a_clock_under_which_nothing_is_built_is_wrong() -> None:
    script = (resource("playbooks") / "roles/build/files/build.sh").read_text()
    assert f"-gt {needs.BUILDER_SKEW_SECONDS:.0f} ]" in script
    with pytest.raises(InfrastructureError, match=r"130 s behind .*: nothing is built there") as wrong:
        needs.has_right_time(MachineFacts(WELL, -130.0, 0.6), needs.BUILDER_SKEW_SECONDS)
    assert needs.failed("clock", wrong.value).result == "wrong"
    with pytest.raises(needs.Doubt):
        needs.has_right_time(MachineFacts(WELL, -121.0, 1.5), needs.BUILDER_SKEW_SECONDS)


def test_a_skew_that_may_be_the_connections_is_none() -> None:
    assert needs.has_right_time(MachineFacts(WELL, 7.0, 3.0))


@pytest.mark.parametrize("source", ["acpi_pm", "hpet"])
def test_a_slow_clock_source_is_doubtful(source: str) -> None:
    with pytest.raises(needs.Doubt, match=source):
        needs.can_boot(MachineFacts({**WELL, "clocksource": source}), METHOD["kexec"])


def test_the_cure_of_every_error_is_not_this_command() -> None:
    assert needs.failed("x", InfrastructureError("no route")).cure == ""


def test_a_finding_tells_how_long_it_took_and_all_of_an_error_but_for_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def end(error: Exception) -> NoReturn:
        raise error

    monkeypatch.setattr(needs, "awake_seconds", itertools.count(step=2.5).__next__)
    wrong = needs.finding("ssh", lambda: end(RequestError("no key", details="in lab.yml", cure="name one")))
    assert wrong == LabFinding(
        "ssh", "wrong", "no key", "name one", "in lab.yml", is_setting=True, seconds=2.5
    )
    with pytest.raises(Interrupted):
        needs.finding("ssh", lambda: end(Interrupted("stopped")))
