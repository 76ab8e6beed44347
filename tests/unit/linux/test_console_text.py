"""What the serial console says, recognised: deaths, stages, and the part that a person wants to read."""

from __future__ import annotations

import pytest

from bisector.linux.console_text import clean, death, hardware_failed, own_shutdown, stage, tail

PANIC = """[    0.41] VFS: Cannot open root device "vda" or unknown-block(0,0): error -6
[    0.42] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)
[    0.43] CPU: 0 PID: 1 Comm: swapper/0 Not tainted 6.1.176 #1
"""
OOPS = """[    3.10] BUG: kernel NULL pointer dereference, address: 0000000000000000
[    3.10] #PF: supervisor read access in kernel mode
[    3.10] Oops: 0000 [#1] PREEMPT SMP
[    3.11] Kernel panic - not syncing: Fatal exception
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("[ 0.0] Linux version 6.1\n[ 1.0] WARNING: CPU: 0 PID: 1 at kernel/x.c:3\n", None),
        ("perfbisect: ready\n[ 9.0] rcu: INFO: rcu_sched self-detected stall on CPU\n", None),
        (PANIC, "kernel panic: VFS: Unable to mount root fs on unknown-block(0,0)"),
        (OOPS, "kernel panic: Fatal exception"),
        (OOPS.splitlines()[2], "kernel oops: 0000 [#1] PREEMPT SMP"),
        (
            "PANIC: early exception 0x0e IP 10:ffff error 0",
            "early exception: early exception 0x0e IP 10:ffff error 0",
        ),
        ("[ 5.0] reboot: Restarting system", "the guest ended itself: Restarting system"),
        ("[ 5.0] reboot: machine restart", None),
    ],
)
def test_a_death_is_recognised_and_nothing_else_is(text: str, expected: str | None) -> None:
    assert death(text) == expected


P = "[   12.1] Kernel panic - not syncing: "


@pytest.mark.parametrize(
    ("panic", "expected"),
    [
        (P + "Fatal machine check", True),
        (P + "Fatal local machine check", True),
        (P + "Uncorrected machine check", True),
        (P + "Machine check from unknown source", True),
        (P + "Timeout: Not all CPUs entered broadcast exception handler", True),
        (P + "Fatal hardware error!", True),
        (P + "Uncorrected hardware memory error in user-access at 1", True),
        (P + "NMI: Not continuing", True),
        (P + "NMI IOCK error: Not continuing", True),
        ("[1.0] Oops: Machine check, sig: 7 [#1]\n" + P + "Fatal exception", True),
        ("[1.0] mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00\n" + P + "x", True),
        ("[1.0] {1}[Hardware Error]: event severity: fatal\n" + P + "x", True),
        (PANIC, False),
        (OOPS, False),
        (P + "Asynchronous SError Interrupt", False),  # of a driver that reads what has no clock, too
        (P + "Hard LOCKUP", False),
        (P + "Attempted to kill init! exitcode=0x0000000b", False),
        ("[1.0] mce: [Hardware Error]: Machine check events logged\n" + P + "Fatal exception", False),
        ("[1.0] {1}[Hardware Error]: event severity: corrected\n" + P + "Fatal exception", False),
        ("[1.0] mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 4: d400\n" + P + "x", False),
    ],
)
def test_a_death_that_names_the_hardware(panic: str, expected: bool) -> None:
    assert hardware_failed(panic) == expected


@pytest.mark.parametrize(
    "line",
    [
        "[ 8.1] thermal thermal_zone0: acpitz: critical temperature reached, shutting down",
        "[ 8.1] thermal thermal_zone0: critical temperature reached(105 C),shutting down",
        "Critical temperature reached (105 C), shutting down.",  # before 2.6.30
    ],
)
def test_a_kernel_says_why_it_switches_its_machine_off(line: str) -> None:
    assert own_shutdown(f"Linux version 6.1\n{line}\n[ 8.9] reboot: Power down\n") == line
    assert len(own_shutdown(line + "x" * 1000)) == 200


@pytest.mark.parametrize(
    "text",
    [
        "[ 8.9] reboot: Power down\n",  # also of 'poweroff'
        "[ 8.9] reboot: System halted\n",
        "Power down.\n",
        "[ 8.1] CPU0: Core temperature above threshold, cpu clock throttled\n",
        "",
    ],
)
def test_a_shutdown_that_somebody_may_have_asked_for_is_not_the_kernels_own(text: str) -> None:
    assert own_shutdown(text) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "silent"),
        ("\n\n", "silent"),
        ("Linux version", "kernel"),
        ("Linux version\nperfbisect: init\n", "init"),
        ("perfbisect: init\nperfbisect: ready\n", "ready"),
        ("perfbisect: init\nperfbisect: sshd has ended\nperfbisect: not ready\n", "not-ready"),
    ],
)
def test_how_far_a_boot_came(text: str, expected: str) -> None:
    assert stage(text) == expected


def test_escape_sequences_and_broken_bytes_do_no_harm() -> None:
    assert clean(b"\x1bc\x1b[?7l\x1b[2JSeaBIOS\r\n\xff[ 0.0] Linux") == "SeaBIOS\n\ufffd[ 0.0] Linux"


def test_the_tail_begins_shortly_before_the_death_and_is_bounded() -> None:
    before = [f"[ 0.{n}] before" for n in range(100)]
    trace = [f"[ 1.{n}] trace" for n in range(60)]
    told = tail("\n".join([*before, "[ 1.0] Kernel panic - not syncing: x", *trace])).splitlines()
    assert told[0] == "[ 0.95] before"
    assert told[5] == "[ 1.0] Kernel panic - not syncing: x"
    assert told[-1] == "[ 1.59] trace"
    assert len(tail("\n".join(before), lines=10).splitlines()) == 10
    assert len(tail("\n".join(["Oops: 0", *trace * 10])).splitlines()) == 120


@pytest.mark.parametrize("words", ["perfbisect: not ready: no port", "perfbisect: sshd has ended"])
def test_an_init_that_gives_up_says_so_in_either_way(words: str) -> None:
    """Without it the boot would be waited for until its deadline."""
    assert stage(f"perfbisect: init\n{words}\n") == "not-ready"
