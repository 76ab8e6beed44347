"""Which evidence is collected of a failure, and that the machine is brought back and looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.machine.boot_watch import Sighting
from bisector.adapters.machine.bring_back import Rescue
from bisector.adapters.machine.failure_examination import Examination
from bisector.adapters.machine.machine_parts import RunningKernel
from bisector.adapters.machine.machine_reach import Answer, MachineReach
from bisector.adapters.system.channel import CommandUnanswered, LineClosed, LineSilent
from bisector.adapters.system.ssh import LoginRefused, SSHRefused, UnverifiedHost
from bisector.errors import (
    BootFailed,
    BootUnclear,
    InfrastructureError,
    PerfbisectError,
    TestbedLost,
    WorkloadFailed,
)
from bisector.ports import Kernel
from tests.support.machines.scripted_machine import OWN, PANIC, TESTED, ScriptedMachine, quiet

RELEASE = "6.2.0-tested"
STARTED = f"Linux version {RELEASE} (gcc) #1\n"
FELL_BACK = "Linux version 6.1.0-own (gcc) #1\nbox1 login: "


def examination(machine: ScriptedMachine, folder: Path) -> Examination:
    rescue = Rescue("box1", MachineReach.__new__(MachineReach), machine, machine, boot_timeout=0.2)
    kernel = Kernel("a", "x", "a", folder, folder, folder, RELEASE, "", 1.0, False)
    return Examination(rescue, machine.console, kernel, OWN, "/var/tmp/perfbisect", quiet)


def seen_of(*answer: str) -> Sighting:
    return Sighting(Answer(answer[0], "key" if answer[0].startswith("tested") else "") if answer else None)


def test_a_boot_that_falls_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = ScriptedMachine(monkeypatch, "own 2")
    error = examination(machine, tmp_path).of_boot(seen_of("own 2"))
    assert isinstance(error, BootFailed)
    assert "boots: own 1, own 2" in error.details
    machine.unwritable = ["Read-only file system"]
    error = examination(machine, tmp_path).of_boot(seen_of("own 2"))
    assert isinstance(error, InfrastructureError)
    assert error.message.endswith("not well under its own kernel either: Read-only file system")


@pytest.mark.parametrize(
    ("shown", "own", "told", "words"),
    [
        (STARTED + FELL_BACK, "6.1.0-own", BootFailed, "ended before it answered"),
        (FELL_BACK, "6.1.0-own", BootFailed, "ended before its console showed that it had started"),
        (STARTED * 2 + FELL_BACK, "6.1.0-own", BootFailed, "started again and again"),
        ("login: ", "6.1.0-own", BootFailed, "ended before it answered"),  # 'quiet': no start is ever shown
        (STARTED * 2, RELEASE, BootFailed, "ended before it answered"),  # both call themselves so
    ],
)
def test_what_the_console_shows_of_a_boot_that_falls_back(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    shown: str,
    own: str,
    told: type[PerfbisectError],
    words: str,
) -> None:
    machine = ScriptedMachine(monkeypatch, "own 2")
    machine.own_release = own
    machine.console.show(tmp_path / "console.log", shown)
    error = examination(machine, tmp_path).of_boot(seen_of("own 2"))
    assert isinstance(error, told)
    assert words in error.message


def test_a_console_shows_nothing_for_certain_where_nobody_says_which_kernel_the_machines_own_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "own 2")
    machine.console.show(tmp_path / "console.log", FELL_BACK)

    def gone() -> RunningKernel:
        raise InfrastructureError("no answer")

    monkeypatch.setattr(machine, "running", gone)
    told = examination(machine, tmp_path).of_boot(seen_of("own 2"))
    assert "the kernel ended before it answered over SSH" in told.message


def test_a_silent_boot_is_switched_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits = "cycle"
    machine.console.show(tmp_path / "console.log", STARTED + "Reached target Multi-User System\n")
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert isinstance(error, BootFailed)
    assert "no network: its console shows a whole boot" in error.message
    assert machine.done == ["cycle"]
    hung = ScriptedMachine(monkeypatch, "", "own 2")
    hung.awaits = "cycle"
    hung.console.show(tmp_path / "console.log", STARTED)
    assert "never answered over SSH" in examination(hung, tmp_path).of_boot(seen_of()).message


@pytest.mark.parametrize(
    ("shown", "whole"),
    [
        (STARTED + "[  OK  ] Reached target Multi-User System.\n", True),
        (STARTED + "[  OK  ] Reached target Network.\n", True),
        (STARTED + "[  OK  ] Reached target Login Prompts.\n", True),
        (STARTED + "Starting sshd: done\n", True),
        (STARTED + "\nbox1 login: ", True),
        ("\nbox1 login: ", True),  # 'quiet' has no start shown
        (STARTED + "Welcome to Fedora Linux 38 dracut-059 (Initramfs)!\n", False),  # where it hangs then
        (STARTED + "[  OK  ] Reached target Basic System.\n", False),
    ],
)
def test_a_console_that_shows_services_shows_a_whole_boot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shown: str, whole: bool
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits = "cycle"
    machine.console.show(tmp_path / "console.log", shown)
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert isinstance(error, BootFailed)
    assert ("no network: its console shows a whole boot" in error.message) == whole
    assert ("the kernel never answered over SSH within 0 s" in error.message) == (not whole)
    assert "\npower: unknown; console: heard\n" in error.details


def test_an_error_names_how_long_an_answer_was_waited_for_and_why_there_was_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits = "cycle"
    one = examination(machine, tmp_path)
    patient = replace(one, rescue=replace(one.rescue, boot_timeout=1.0))
    error = patient.of_boot(Sighting(None, refusal="box1 does not answer: no route"))
    assert "never answered over SSH within 1 s" in error.message
    assert "\nbox1 does not answer: no route" in error.details
    assert "console: off" in error.details


def test_an_own_kernel_that_is_gone_again_for_a_moment_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is well, and needs no switch. Each boot that answered is named."""
    machine = ScriptedMachine(monkeypatch, "", "", "", "own 3")
    error = examination(machine, tmp_path).of_boot(seen_of("own 2"))
    assert isinstance(error, BootFailed)
    assert "boots: own 1, own 2, own 3\n" in f"{error.details}\n"
    assert machine.done == []


@pytest.mark.parametrize("after", ["", STARTED])
def test_a_whole_boot_of_the_machines_own_kernel_is_none_of_the_kernel_under_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, after: str
) -> None:
    """It was rebooted to its own kernel first; the kernel under test then hung at once, or a little later."""
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits = "cycle"
    before = FELL_BACK + "\n[   23.0] kexec_core: Starting new kernel\n"
    machine.console.show(tmp_path / "console.log", before + after)
    assert "never answered over SSH" in examination(machine, tmp_path).of_boot(seen_of()).message


def test_a_longer_release_that_begins_alike_is_another_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits, machine.own_release = "cycle", f"{RELEASE}+"
    shown = STARTED.replace(RELEASE, machine.own_release)
    machine.console.show(tmp_path / "console.log", f"{shown}box1 login: \n{STARTED}")
    assert "never answered over SSH" in examination(machine, tmp_path).of_boot(seen_of()).message


def test_a_whole_boot_on_the_console_is_nobodys_where_both_kernels_have_one_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits, machine.own_release = "cycle", RELEASE
    machine.console.show(tmp_path / "console.log", f"{STARTED}box1 login: \n{STARTED}")
    assert "never answered over SSH" in examination(machine, tmp_path).of_boot(seen_of()).message


def test_a_power_cycle_after_which_the_boot_of_before_answers_blames_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The network was away, and the BMC did nothing: it was not rebooted, nor did the kernel fall silent."""
    machine = ScriptedMachine(monkeypatch, "", OWN)
    machine.awaits = "cycle"
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert isinstance(error, InfrastructureError)
    assert "the machine did not reboot" in error.message
    assert "death of a kernel" not in error.details, "its console has shown none"
    machine = ScriptedMachine(monkeypatch, "", TESTED, "own 2")
    machine.awaits = "cycle"
    error = of_run(examination(machine, tmp_path), HANG, closed=False)
    assert isinstance(error, InfrastructureError)
    assert "the machine ran on" in error.message


def test_a_bmc_that_does_nothing_is_evidence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits, machine.now, machine.stages = "cycle 2", "on", 2
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert isinstance(error, InfrastructureError)
    assert "was not switched by a stage of its power that said so" in error.message
    assert "power: on (a stage said that it had switched" in error.details
    assert machine.done == ["cycle", "cycle 2"]


def test_a_machine_that_somebody_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits, machine.now = "on", "off"
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert isinstance(error, InfrastructureError)
    assert "somebody switched the machine off" in error.message


HOT = "[ 8.1] thermal thermal_zone0: acpitz: critical temperature reached, shutting down\n"
DOWN = "[ 8.9] reboot: Power down\n"


@pytest.mark.parametrize(
    ("shown", "own", "told"),
    [
        (STARTED + HOT + DOWN, "6.1.0-own", BootFailed),
        (STARTED + DOWN, "6.1.0-own", InfrastructureError),  # also where somebody asked for it
        (FELL_BACK + HOT + DOWN, "6.1.0-own", InfrastructureError),  # the machine's own kernel
        (FELL_BACK + HOT + STARTED, "6.1.0-own", InfrastructureError),
        (HOT + DOWN, "6.1.0-own", InfrastructureError),  # no start is shown: it may be either's
        (STARTED + HOT + DOWN, RELEASE, InfrastructureError),  # both call themselves so
    ],
)
@pytest.mark.parametrize("stage", ["boot", "run"])
def test_a_kernel_that_switches_its_machine_off_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    shown: str,
    own: str,
    told: type[PerfbisectError],
    stage: str,
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits, machine.now, machine.own_release = "on", "off", own
    machine.console.show(tmp_path / "console.log", shown)
    one = examination(machine, tmp_path)
    error = one.of_boot(seen_of()) if stage == "boot" else of_run(one)
    assert isinstance(error, told)
    words = f"({HOT.strip()}); the machine was switched on" if told is BootFailed else "somebody switched the"
    assert words in error.message


def test_a_panic_waits_for_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = ScriptedMachine(monkeypatch, "", "", "own 2")
    error = examination(machine, tmp_path).of_boot(Sighting(None, PANIC))
    assert isinstance(error, BootFailed)
    assert "kernel panic: no init" in error.message
    assert PANIC in error.details
    assert machine.done == [], "panic=10 brings it back by itself"
    machine.answers = [""]
    error = examination(machine, tmp_path).of_boot(Sighting(None, PANIC))
    assert isinstance(error, InfrastructureError), "whatever killed the machine"


def test_a_silent_boot_that_was_waited_for_is_not_waited_for_once_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """That takes minutes of each boot which hangs."""
    machine = ScriptedMachine(monkeypatch, "", "", "", "own 2")
    assert isinstance(examination(machine, tmp_path).of_boot(seen_of()), BootFailed)
    assert machine.done == ["cycle"]


def test_a_death_that_the_boot_of_before_outlives_is_no_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A BMC sends old text again, with the start and the death of a kernel that was tried before."""
    shown = "its console shows the death of a kernel, after which the boot of before it answered"
    for first in (Answer(OWN, ""), None):  # it was out of reach for a while
        machine = ScriptedMachine(monkeypatch, OWN)
        machine.console.show(tmp_path / "console.log", f"{STARTED}{PANIC}\n")
        told = examination(machine, tmp_path).of_boot(Sighting(first, PANIC))
        assert isinstance(told, InfrastructureError)
        assert "the machine did not reboot" in told.message
        assert shown in told.details
        assert PANIC in told.details
        assert f"boots: {OWN}\n" in f"{told.details}\n", "one boot, however often it answered"
        machine = ScriptedMachine(monkeypatch, *([TESTED] if first else [""]), TESTED, TESTED, "own 2")
        machine.console.dead = True
        told = of_run(examination(machine, tmp_path))
        assert isinstance(told, InfrastructureError)
        assert "the machine ran on" in told.message
        assert machine.done == ["restart"], "it runs its own kernel again all the same"


def test_a_death_right_after_the_last_answer_of_that_boot_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "own 2")
    told = examination(machine, tmp_path).of_boot(Sighting(Answer(OWN, ""), PANIC))
    assert isinstance(told, BootFailed)
    assert "kernel panic: no init); the machine came back by itself with its own kernel" in told.message


def test_a_machine_that_never_went_down_is_looked_at_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, OWN)
    machine.unwritable = ["Read-only file system"]
    told = examination(machine, tmp_path).of_boot(Sighting(Answer(OWN, ""), PANIC))
    assert told.message == "the testbed 'box1': the machine is not well: Read-only file system"


def test_hardware_that_the_console_names_is_not_hidden_by_the_record_of_the_same_death(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A record has a few kilobytes, and may have lost the line."""
    machine = ScriptedMachine(monkeypatch, "", "", "own 2")
    machine.record = DIED
    told = examination(machine, tmp_path).of_boot(
        Sighting(None, "Kernel panic - not syncing: Fatal machine check")
    )
    assert isinstance(told, InfrastructureError)
    assert "its hardware failed while it booted" in told.message
    assert "Attempted to kill init!" in told.details


def test_a_console_that_cannot_be_read_is_still_told_to_be_silent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "own 2")
    machine.console.path, machine.console.now = tmp_path / "gone" / "console.log", "silent"
    told = examination(machine, tmp_path).of_boot(seen_of("own 2"))
    assert told.message.endswith("; the machine's console was silent")


DIED = f"""Panic#1 Part1
<0>[    2.1] Kernel panic - not syncing: Attempted to kill init!
<4>[    2.1] CPU: 0 PID: 1 Comm: init Tainted: G        W          {RELEASE} #1
"""


@pytest.mark.parametrize(
    ("record", "own", "panic"),
    [
        (DIED, "6.1.0-own", True),
        (DIED.replace("Tainted: G        W         ", "Not tainted"), "6.1.0-own", True),
        (DIED.replace("PID: 1 Comm: init", "UID: 0 PID: 312 Comm: kworker/u128:10"), "6.1.0-own", True),
        (DIED.replace("CPU: 0 PID: 1 Comm", "Pid: 1, comm"), "6.1.0-own", True),  # up to 3.9
        (DIED.replace(RELEASE, "6.1.0-own"), "6.1.0-own", False),  # the machine's own, at its shutdown
        (DIED, RELEASE, False),  # it cannot be told whose it is
        (DIED + DIED.replace(RELEASE, "6.1.0-own"), "6.1.0-own", False),
        ("Kernel panic - not syncing: no", "6.1.0-own", False),  # of whatever kernel
        (
            f"Oops: 0002 [#1] SMP\nComm: a Not tainted {RELEASE} #1",
            "6.1.0-own",
            False,
        ),  # it may have survived
        (f"Comm: a Not tainted {RELEASE} #1\nreboot: Restarting system", "6.1.0-own", False),  # by somebody
    ],
)
def test_what_a_kernel_left_in_memory_when_it_died(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, record: str, own: str, panic: bool
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits, machine.own_release, machine.record = "cycle", own, record
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert isinstance(error, BootFailed)
    words = "died while it booted (kernel panic: Attempted to kill init!)" if panic else "never answered over"
    assert words in error.message
    assert "(pstore):" in error.details
    assert record.splitlines()[-1].strip() in error.details


NOT_SYNCING = "[ 9.1] Kernel panic - not syncing: Attempted to kill init!\n"
OWN_TRACE = "[ 9.1] CPU: 0 PID: 1 Comm: systemd-shutdow Not tainted 6.1.0-own #1\n"
TESTED_TRACE = f"[ 2.1] CPU: 0 PID: 1 Comm: init Not tainted {RELEASE} #1\n"
LINES = "".join(f"[ 1.{i}] more of a boot\n" for i in range(20))


@pytest.mark.parametrize(
    ("panic", "own", "blamed"),
    [
        (NOT_SYNCING + OWN_TRACE, "6.1.0-own", False),
        (OWN_TRACE + LINES + NOT_SYNCING, "6.1.0-own", False),  # an oops names it before
        ("Linux version 6.1.0-own (gcc) #1\n" + NOT_SYNCING, "6.1.0-own", False),
        (OWN_TRACE + STARTED + LINES + NOT_SYNCING, "6.1.0-own", True),  # a warning of the last boot
        (TESTED_TRACE + FELL_BACK + LINES + NOT_SYNCING + OWN_TRACE, "6.1.0-own", False),
        (STARTED + "Linux version 6.1.0-own (gcc) #1\n" + NOT_SYNCING, "6.1.0-own", False),
        (OWN_TRACE + NOT_SYNCING + TESTED_TRACE, "6.1.0-own", True),
        (f"Pid: 1, comm: swapper Not tainted ({RELEASE} #1)\n" + NOT_SYNCING, "6.1.0-own", True),
        ("Pid: 1, comm: reboot Not tainted (6.1.0-own #1)\n" + NOT_SYNCING, "6.1.0-own", False),
        (NOT_SYNCING + LINES + OWN_TRACE, "6.1.0-own", True),  # of the boot after it
        (NOT_SYNCING, "6.1.0-own", True),  # no kernel is named, as of 2.6.18
        (NOT_SYNCING + OWN_TRACE.replace("6.1.0-own", RELEASE), RELEASE, True),
        (NOT_SYNCING + OWN_TRACE, RELEASE, True),  # a third one, where whose death it is cannot be told
    ],
)
def test_a_death_of_the_machines_own_kernel_is_not_held_against_the_one_under_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, panic: str, own: str, blamed: bool
) -> None:
    """Its own kernel may die as it shuts down, before the one under test has started."""
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.own_release = own
    error = examination(machine, tmp_path).of_boot(Sighting(None, panic))
    assert isinstance(error, BootFailed) == blamed
    assert panic.strip() in error.details
    how = "kernel panic: Attempted to kill init!"
    if blamed:
        assert f"the kernel died while it booted ({how})" in error.message
    else:
        words = f"not well under its own kernel either: it died as another kernel was to boot ({how})"
        assert words in error.message


def test_a_kernel_that_starts_after_the_death_of_the_machines_own_is_judged_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    panic = NOT_SYNCING + OWN_TRACE
    machine.console.show(tmp_path / "console.log", panic + LINES + STARTED)
    error = examination(machine, tmp_path).of_boot(Sighting(None, panic))
    assert isinstance(error, BootFailed)
    assert "never answered over SSH" in error.message or "fell silent" in error.message
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.record = DIED
    machine.console.show(tmp_path / "console.log", panic + LINES + STARTED)
    error = examination(machine, tmp_path).of_boot(Sighting(None, panic))
    assert "the kernel died while it booted (kernel panic: Attempted to kill init!)" in error.message


@pytest.mark.parametrize(
    ("answers", "seen", "done"),
    [
        (("", "own 2"), Sighting(None), ["cycle"]),
        ((TESTED, "own 2"), Sighting(Answer(TESTED, "key")), ["restart", "cycle"]),
        (("own 2",), Sighting(None, NOT_SYNCING + OWN_TRACE.replace("6.1.0-own", "6.3.0-before")), []),
    ],
    ids=["nobody answers", "it still answers", "it died as it shut down"],
)
def test_whether_the_kernel_that_ran_before_has_shut_down_is_unclear(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answers: Sequence[str], seen: Sighting, done: list[str]
) -> None:
    """It is brought back, and neither the kernel that was asked for nor the machine is blamed."""
    machine = ScriptedMachine(monkeypatch, *answers)
    machine.ran, machine.awaits = "key", "cycle"
    error = replace(examination(machine, tmp_path), before=TESTED).of_boot(seen)
    assert isinstance(error, BootUnclear), error.message
    assert "the one that ran there before may not have shut down" in error.message
    assert machine.done == done


def test_a_console_that_shows_a_start_shows_that_the_kernel_before_had_shut_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.ran, machine.awaits = "key", "cycle"
    machine.console.show(tmp_path / "console.log", STARTED)
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert isinstance(error, BootFailed)
    assert "never answered over SSH" in error.message


def test_hardware_that_the_machines_own_kernel_died_of_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    panic = "Kernel panic - not syncing: Fatal machine check\n" + OWN_TRACE
    error = examination(machine, tmp_path).of_boot(Sighting(None, panic))
    assert "its hardware failed while it booted (kernel panic: Fatal machine check)" in error.message


def test_in_a_run_a_death_is_that_of_the_kernel_under_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its crash kernel may have the machine's own release, and its traces may name nobody."""
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    monkeypatch.setattr(machine.console, "death", lambda: NOT_SYNCING + OWN_TRACE)
    told = of_run(examination(machine, tmp_path))
    assert isinstance(told, BootFailed)
    assert "the kernel died while the workload ran" in told.message


@pytest.mark.parametrize("message", ["---[ end Kernel panic", "VFS: Unable to mount root fs via NFS"])
def test_a_record_whose_beginning_is_lost_shows_a_death_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, message: str
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits, machine.record = "cycle", f"Comm: init Not tainted {RELEASE} #1\n{message}\n"
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert "the kernel died while it booted (see its console)" in error.message


@pytest.mark.parametrize(
    ("release", "own"),
    [
        (RELEASE, "6.1.0-own"),
        (RELEASE, RELEASE),  # whose it is cannot be told
        ("6.1.0-own", "6.1.0-own"),  # the machine's own, at its shutdown
        ("", "6.1.0-own"),  # it names no kernel
    ],
)
@pytest.mark.parametrize("shown", ["", PANIC], ids=["nothing shown", "another death shown"])
def test_hardware_that_a_record_names_has_failed_whichever_kernel_died_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str, own: str, shown: str
) -> None:
    """The kernel under test was blamed unless the record named it and the machine's own had another name."""
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits, machine.own_release = "cycle", own
    machine.record = "[   12.0] Kernel panic - not syncing: Fatal machine check\n"
    if release:
        machine.record += f"[   12.0] CPU: 3 PID: 0 Comm: swapper/3 Not tainted {release} #1\n"
    error = examination(machine, tmp_path).of_boot(Sighting(None, shown))
    assert isinstance(error, InfrastructureError)
    assert "'box1': its hardware failed while it booted (kernel panic: Fatal machine check)" in error.message
    assert machine.record.strip() in error.details
    assert error.cure.startswith("look at the event log of its BMC")


def test_hardware_that_failed_and_was_survived_is_no_death(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A record is also written of an oops, or of a reboot that somebody asked for."""
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits = "cycle"
    machine.record = f"Oops: Machine check, sig: 7 [#1]\nCPU: 3 PID: 9 Comm: a Not tainted {RELEASE} #1\n"
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert isinstance(error, BootFailed)
    assert "never answered over SSH" in error.message


def test_a_record_is_hostile_text_and_may_be_out_of_reach(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.record = DIED + "\x1b]0;title\x07\x00" + "x" * 500_000 + "Comm: Tainted: " + "A " * 200_000
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert len(error.details) < 10_000
    assert "\x1b" not in error.details
    assert "\x00" not in error.details
    machine.answers, machine.record = ["own 2"], SSHRefused("no route")
    assert isinstance(examination(machine, tmp_path).of_boot(seen_of("own 2")), BootFailed)


def test_a_machine_that_stays_is_asked_for_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = ScriptedMachine(monkeypatch, OWN)
    machine.console.show(tmp_path / "console.log", "box1 login: ")
    error = examination(machine, tmp_path).of_boot(seen_of(OWN))
    assert "the testbed 'box1': the machine did not reboot" in error.message
    assert error.details.endswith("console: heard\nboots: own 1\nconsole:\nbox1 login:")
    assert machine.done == [] and machine.requests_ended == []


LOST = TestbedLost("the testbed was lost during a run", details="closed")
HANG = BootFailed("the kernel hangs: no end of the workload within 3 s, no answer since")


def of_run(one: Examination, error: PerfbisectError = LOST, *, closed: bool = True) -> PerfbisectError:
    return one.of_run(error, TESTED, closed, deployed=True)


@pytest.mark.parametrize(
    ("answers", "closed", "told", "words"),
    [
        ((TESTED,), True, InfrastructureError, "connection to the machine broke, and the machine ran on"),
        ((TESTED,), False, InfrastructureError, "connection to the machine broke, and the machine ran on"),
        (("", "own 2"), True, InfrastructureError, "somebody rebooted the machine"),
        (("", "own 2"), False, BootFailed, "fell silent while the workload ran; the machine came back by"),
        (("own 2",), True, BootFailed, "fell silent while the workload ran"),  # it was back when that closed
        (("", TESTED, TESTED, "own 2"), False, InfrastructureError, "the machine ran on"),  # out of reach
        (("tested 2", "own 2"), False, BootFailed, "started again and again"),
    ],
)
def test_runs_that_break_off(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    answers: tuple[str, ...],
    closed: bool,
    told: type[PerfbisectError],
    words: str,
) -> None:
    machine = ScriptedMachine(monkeypatch, *answers)
    error = of_run(examination(machine, tmp_path), LOST if closed else HANG, closed=closed)
    assert isinstance(error, told)
    assert words in error.message


@pytest.mark.parametrize("still", [[], [TESTED]], ids=["at once", "after an answer of that boot"])
def test_a_death_on_the_console_in_a_run_is_no_reboot_by_somebody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, still: list[str]
) -> None:
    machine = ScriptedMachine(monkeypatch, *still, "", "own 2")
    machine.console.dead = True
    error = of_run(examination(machine, tmp_path))
    assert isinstance(error, BootFailed)
    assert "the kernel died while the workload ran (kernel panic: no init)" in error.message


def test_a_connection_that_we_closed_is_none_that_the_machine_ended_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lost = TestbedLost("the testbed was lost during a run")
    lost.__cause__ = CommandUnanswered("box1 did not start 'sh' within 10 s")
    error = of_run(examination(ScriptedMachine(monkeypatch, "", "own 2"), tmp_path), lost)
    assert isinstance(error, BootFailed)
    assert "fell silent while the workload ran" in error.message


def test_a_cut_connection_is_no_boot_loop_where_the_console_shows_two_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of the machine's own kernel, which has that release, too; the boot of before answers."""
    machine = ScriptedMachine(monkeypatch, TESTED)
    machine.own_release = RELEASE
    machine.console.show(tmp_path / "console.log", f"{STARTED}box1 login: \n{STARTED}")
    error = of_run(examination(machine, tmp_path))
    assert isinstance(error, InfrastructureError)
    assert "the machine ran on" in error.message


def test_a_workload_that_cannot_be_ended_is_a_hang(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED, TESTED, "own 2")
    machine.survivors = "dd (D (disk sleep))\nsync (D (disk sleep))\n"
    error = of_run(examination(machine, tmp_path), HANG, closed=False)
    assert isinstance(error, BootFailed)
    assert "\nboots: own 1, tested 1, own 2" in error.details
    assert (
        "hangs while the workload ran: dd (D (disk sleep)), sync (D (disk sleep)) cannot be" in error.message
    )
    assert machine.done == ["restart"]


def test_a_disk_that_only_the_kernel_under_test_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED, TESTED, "own 2")
    machine.unwritable = ["Read-only file system"]
    failed = InfrastructureError("the play ended with code 2")
    one = examination(machine, tmp_path)
    error = one.of_run(failed, TESTED, False, deployed=False)
    assert isinstance(error, BootFailed)
    assert "lost the machine's disk while the workload was put on it (Read-only file system)" in error.message


def test_a_disk_that_is_gone_for_good_is_the_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED, TESTED, "")
    machine.unwritable = ["Input/output error"]
    machine.console.show(tmp_path / "console.log", "No bootable device.\n")
    error = of_run(examination(machine, tmp_path), HANG, closed=False)
    assert isinstance(error, InfrastructureError)
    assert "does not come back, and its disk had failed while the workload ran (Input/out" in error.message
    assert "the disk under that kernel: Input/output error" in error.details
    assert error.details.endswith("No bootable device."), "what it shows once it was switched"
    assert machine.done == ["restart", "cycle"]


def test_a_machine_that_stays_away_is_shown_with_what_its_console_said_since(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is asked for no record of a crash: nobody is there to read it."""
    machine = ScriptedMachine(monkeypatch, "")
    machine.console.show(tmp_path / "console.log", STARTED)
    cycle, asked = machine.cycle, list[str]()

    def switched() -> None:
        cycle()
        machine.console.last_words = "grub rescue> "

    monkeypatch.setattr(machine, "cycle", switched)

    def crash() -> str:
        asked.append("crash")
        return ""

    monkeypatch.setattr(machine, "crash", crash)
    error = examination(machine, tmp_path).of_boot(seen_of())
    assert isinstance(error, InfrastructureError)
    assert error.details.endswith("grub rescue>") and asked == []


@pytest.mark.parametrize(
    ("disk", "told", "words"),
    [
        ("Input/output error", BootFailed, "lost the machine's disk while the workload ran"),
        ("No space left on device", InfrastructureError, "the machine is not well: No space left on device"),
        ("", WorkloadFailed, "ended with code 1"),
    ],
)
def test_a_workload_that_fails_has_the_disk_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, disk: str, told: type[PerfbisectError], words: str
) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED, TESTED, "own 2")
    machine.unwritable = [disk]
    error = of_run(examination(machine, tmp_path), WorkloadFailed("it ended with code 1"), closed=False)
    assert isinstance(error, told)
    assert words in error.message
    assert machine.done == (["restart"] if told is BootFailed else [])


def test_a_workload_that_fails_on_a_machine_that_lets_nobody_in_then(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Seen on a machine whose disk was gone: the workload's error came, and no login was possible."""
    failed = WorkloadFailed("it ended with code 1", details="sync: error syncing: Input/output error")
    error = of_run(examination(ScriptedMachine(monkeypatch, ""), tmp_path), failed, closed=False)
    assert isinstance(error, InfrastructureError)
    assert "does not come back" in error.message
    assert "Input/output error" in error.details


@pytest.mark.parametrize(
    "reason",
    [
        "dd: error writing '/w/.probe': No space left on device",
        "mkdir: cannot create directory '/w': Disk quota exceeded",
        "mkdir: cannot create directory '/w': Permission denied",
    ],
)
def test_a_folder_that_cannot_be_written_for_another_reason_than_a_lost_disk_is_the_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reason: str
) -> None:
    """It needs no reboot."""
    for error, deployed in ((LOST, True), (WorkloadFailed("it ended with code 1"), True), (LOST, False)):
        machine = ScriptedMachine(monkeypatch, TESTED)
        machine.unwritable = [reason]
        told = examination(machine, tmp_path).of_run(error, TESTED, True, deployed=deployed)
        assert isinstance(told, InfrastructureError)
        assert told.message == f"the testbed 'box1': the machine is not well: {reason}"
        assert machine.done == []


SILENT = LineSilent("'sh' on box1 did not end within 30 s")


@pytest.mark.parametrize("error", [LOST, HANG, WorkloadFailed("it ended with code 1")])
def test_a_disk_that_does_not_answer_in_time_is_no_lost_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: PerfbisectError
) -> None:
    """It may have gigabytes to write."""
    machine = ScriptedMachine(monkeypatch, TESTED, TESTED, "own 2")
    machine.unwritable = [SILENT]
    told = of_run(examination(machine, tmp_path), error)
    assert isinstance(told, InfrastructureError)
    assert "the connection to the machine broke, and the machine ran on" in told.message
    assert "'sh' on box1 did not end within 30 s" in told.details
    assert machine.done == ["restart"]


def test_what_cannot_be_ended_is_a_hang_where_the_disk_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The list of it is an answer."""
    machine = ScriptedMachine(monkeypatch, TESTED, TESTED, "own 2")
    machine.unwritable, machine.survivors = [SILENT], "dd (D (disk sleep))\n"
    told = of_run(examination(machine, tmp_path), HANG, closed=False)
    assert isinstance(told, BootFailed)
    assert "hangs while the workload ran: dd (D (disk sleep)) cannot be ended" in told.message


def test_a_machine_whose_disk_is_silent_under_its_own_kernel_is_not_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "own 2")
    machine.unwritable = [SILENT]
    told = examination(machine, tmp_path).of_boot(seen_of("own 2"))
    assert isinstance(told, InfrastructureError)
    assert told.message.endswith("not well under its own kernel either: 'sh' on box1 did not end within 30 s")


def test_processes_of_a_workload_that_failed_by_itself_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED)
    machine.survivors = "dd (D (disk sleep))"
    failed = WorkloadFailed("it ended with code 1")
    assert of_run(examination(machine, tmp_path), failed, closed=False) is failed
    assert machine.done == []


def test_what_is_not_the_machines_stays_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED)
    one = examination(machine, tmp_path)
    garbled = TestbedLost("the agent's answer is garbled")
    assert of_run(one, garbled, closed=False) is garbled
    failed = InfrastructureError("ansible is not installed")
    assert one.of_run(failed, TESTED, False, deployed=False) is failed


@pytest.mark.parametrize(
    "refusal",
    [
        SSHRefused("box1 does not answer"),
        LineClosed("the connection broke"),
        CommandUnanswered("box1 did not start 'sh' within 10 s"),
        SILENT,
    ],
)
def test_a_connection_that_fails_is_neither_a_lost_disk_nor_a_hang(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refusal: InfrastructureError
) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED, TESTED, "own 2")
    machine.unwritable = [refusal]
    error = of_run(examination(machine, tmp_path))
    assert isinstance(error, InfrastructureError)
    assert "the connection to the machine broke, and the machine ran on" in error.message
    machine.answers = [TESTED, "", "own 2"]
    machine.unwritable = [refusal]
    error = of_run(examination(machine, tmp_path), HANG, closed=False)
    assert "fell silent while the workload ran; the machine came back by itself" in error.message
    machine.answers = [TESTED, "", "", "own 2"]
    machine.unwritable = [refusal]
    of_run(examination(machine, tmp_path), HANG, closed=False)
    assert "cycle" not in machine.done, "a boot's time is given to come back"
    machine.answers = [TESTED, TESTED, "own 2"]
    script = machine.run

    def run(command: Sequence[str]) -> str:
        if "kill" in command[2]:
            raise refusal
        return script(command)

    machine.run = run  # type: ignore[method-assign]
    assert "the machine ran on" in of_run(examination(machine, tmp_path)).message


@pytest.mark.parametrize(
    "refusal", [UnverifiedHost("box1 shows another host key"), LoginRefused("box1 does not accept the key")]
)
def test_who_does_not_let_us_in_is_the_machines_failure_and_is_not_switched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refusal: InfrastructureError
) -> None:
    machine = ScriptedMachine(monkeypatch, OWN)
    one, ask = examination(machine, tmp_path), machine.ask
    refused = [refusal] * 1000

    def answer() -> Answer:
        if refused:
            raise refused.pop()
        return ask()

    machine.ask = answer  # type: ignore[method-assign]
    for told in (one.of_boot(Sighting(None, refusal=refusal.message)), of_run(one), of_run(one, HANG)):
        assert isinstance(told, InfrastructureError)
        assert f"{refusal.message}; it may be another machine, and is left alone" in told.message
        assert machine.done == []
    machine.answers, refused[:] = ["own 2"], [refusal] * 3  # it was only booting
    told = of_run(one, HANG, closed=False)
    assert isinstance(told, BootFailed)
    assert "fell silent while the workload ran; the machine came back by itself" in told.message
    machine.answers, machine.unwritable = ["own 2"], [refusal]
    told = one.of_boot(seen_of("own 2"))
    assert told.message.endswith(f"not well under its own kernel either: {refusal.message}")


def test_a_machine_that_is_silent_once_it_is_back_is_not_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = ScriptedMachine(monkeypatch, "own 2")
    machine.unwritable = [SSHRefused("box1 does not answer")]
    error = examination(machine, tmp_path).of_boot(seen_of("own 2"))
    assert isinstance(error, InfrastructureError)
    assert "not well under its own kernel either: box1 does not answer" in error.message
