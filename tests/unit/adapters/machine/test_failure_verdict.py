"""Each clause of the table: the evidence that it is for, and whose failure that is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.adapters.machine.failure_evidence import FailureEvidence
from bisector.adapters.machine.failure_verdict import CLAUSES, describe, error_of, judge
from bisector.adapters.machine.machine_parts import ConsoleState
from bisector.errors import BootFailed, BootTooSlow, BootUnclear, InfrastructureError, PerfbisectError

SILENT = FailureEvidence("boot", "no answer", "nobody", "power cycle", seconds=180.0)
"""A boot that never answered; the machine was well once it was switched off and on."""
FELL_BACK = replace(SILENT, answered="own kernel", came_back="by itself")
RAN = replace(SILENT, stage="run", failure="the testbed was lost during a run")
PANIC = "[1.2] Kernel panic - not syncing: VFS: Unable to mount root fs"
MACHINE_CHECK = """[ 12.0] mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00000000800400
[ 12.0] Kernel panic - not syncing: Fatal machine check"""

CASES = {
    "did not come back": (replace(SILENT, came_back="never", panic=PANIC, unwell="no route"), "machine"),
    "unwell": (replace(FELL_BACK, panic=PANIC, unwell="No space left on device"), "machine"),
    "hardware failed": (replace(RAN, came_back="by itself", panic=MACHINE_CHECK, closed=True), "machine"),
    "panic": (replace(FELL_BACK, panic=PANIC, power="off"), "kernel"),
    "switched itself off": (
        replace(SILENT, power="off", came_back="switched on", shutdown="critical temperature reached"),
        "kernel",
    ),
    "the one before": (replace(SILENT, after_another=True), "unclear"),
    "switched off": (replace(SILENT, power="off", came_back="switched on"), "machine"),
    "did not reboot": (replace(SILENT, answered="same boot", came_back="answered"), "machine"),
    "never started": (replace(FELL_BACK, console="heard", starts=0), "kernel"),
    "rebooted by somebody": (replace(RAN, came_back="by itself", closed=True), "machine"),
    "boot loop": (replace(FELL_BACK, console="heard", starts=3), "kernel"),
    "fell back": (FELL_BACK, "kernel"),
    "disk gone": (replace(RAN, stage="deploy", answered="same boot", disk="Read-only file system"), "kernel"),
    "hung": (replace(RAN, answered="same boot", came_back="restarted", hung="dd (D (disk sleep))"), "kernel"),
    "connection cut": (replace(RAN, answered="same boot", came_back="answered", closed=True), "machine"),
    "crashed": (replace(RAN, came_back="by itself"), "kernel"),
    "too slow": (replace(SILENT, console="heard", starts=1, logged_in=True, came_back="restarted"), "either"),
    "idle switch": (replace(RAN, idle_switch=True, starts=1, logged_in=True), "machine"),
    "no network": (replace(SILENT, console="heard", starts=1, logged_in=True), "kernel"),
    "hang": (SILENT, "kernel"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_clause(name: str) -> None:
    seen, owner = CASES[name]
    clause, words = judge(seen)
    assert (clause.name, clause.owner) == (name, owner)
    error = error_of(seen, "box1")
    kinds: dict[str, type[PerfbisectError]] = {
        "kernel": BootFailed,
        "either": BootTooSlow,
        "machine": InfrastructureError,
        "unclear": BootUnclear,
    }
    assert type(error) is kinds[owner]
    assert words in error.message
    if owner == "machine":
        assert error.message.startswith("the testbed 'box1': ")
        assert "nothing was held against the commit" in error.cure


def test_every_clause_has_a_case_in_its_order() -> None:
    assert [clause.name for clause in CLAUSES] == list(CASES)


@pytest.mark.parametrize("seen", [seen for seen, _ in CASES.values()])
def test_no_commit_is_blamed_on_a_machine_that_is_not_well_afterwards(seen: FailureEvidence) -> None:
    for unwell in (replace(seen, came_back="never"), replace(seen, unwell="Input/output error")):
        assert judge(unwell)[0].owner == "machine"


AFTER = CASES["the one before"][0]


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (replace(AFTER, console="heard", starts=0), "the one before"),
        (replace(AFTER, console="heard", starts=1), "hang"),  # the one before had come to its end
        (replace(AFTER, panic=PANIC), "panic"),
        (replace(AFTER, answered="same boot", came_back="restarted"), "the one before"),
        (replace(AFTER, came_back="restarted"), "the one before"),  # the power cycle booted this kernel
        (replace(AFTER, answered="own kernel", came_back="by itself", starts=0), "the one before"),
        (replace(AFTER, power="off", came_back="switched on"), "the one before"),
        (replace(AFTER, idle_switch=True), "the one before"),
        (replace(AFTER, stage="run"), "hang"),
        (replace(AFTER, unwell="Input/output error"), "unwell"),
        (replace(AFTER, came_back="never"), "did not come back"),
    ],
)
def test_a_kernel_that_was_not_seen_to_start_may_have_waited_for_the_one_before(
    seen: FailureEvidence, name: str
) -> None:
    assert judge(seen)[0].name == name


HOT = "critical temperature reached"
DISK = "Input/output error"
LEFT_OFF = replace(SILENT, power="off", came_back="power cycle")
"""It was off, was switched on in vain, and came back by the next stage of its power."""
ENDED_OFF = replace(SILENT, power="on", came_back="switched on")
"""It went off only while it was brought back."""
REBOOTED = replace(RAN, answered="own kernel", came_back="by itself")


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (LEFT_OFF, "switched off"),
        (ENDED_OFF, "switched off"),
        (replace(LEFT_OFF, shutdown=HOT), "switched itself off"),
        (replace(ENDED_OFF, shutdown=HOT), "switched itself off"),
        (replace(REBOOTED, console="heard", starts=0), "crashed"),  # it did start: a workload ran
        (REBOOTED, "crashed"),
        (replace(REBOOTED, closed=True), "crashed"),  # its own kernel was back when the connection closed
        (replace(RAN, closed=True), "hang"),  # it closed connections, and did not come back by itself
        (replace(RAN, stage="deploy", answered="same boot", came_back="restarted", disk=DISK), "disk gone"),
        (replace(SILENT, came_back="by itself"), "hang"),  # a boot never was up to fall silent
        (replace(RAN, came_back="restarted"), "hang"),  # another boot of that kernel came up, by itself
        (replace(RAN, stage="deploy", came_back="restarted"), "hang"),
        (replace(RAN, console="heard", starts=1, logged_in=True), "hang"),  # it had a network: it ran
        (replace(RAN, stage="deploy", console="heard", starts=1, logged_in=True), "hang"),
        (replace(RAN, stage="deploy", came_back="by itself"), "crashed"),
        (replace(SILENT, console="heard", starts=2), "boot loop"),  # nobody ever answered
        (replace(RAN, console="heard", starts=2), "boot loop"),
        (replace(SILENT, console="heard", logged_in=True), "no network"),  # 'quiet': it shows no start
    ],
)
def test_what_lacks_one_sign_of_a_clause_is_told_by_another(seen: FailureEvidence, name: str) -> None:
    clause, _ = judge(seen)
    assert clause.name == name
    assert type(error_of(seen, "box1")) is (BootFailed if clause.owner == "kernel" else InfrastructureError)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (CASES["panic"][0], "the kernel died while it booted (kernel panic: VFS: Unable to mount root fs); "),
        (FELL_BACK, "the machine came back by itself with its own kernel"),
        (
            SILENT,
            "never answered over SSH within 180 s (perfbisect_boot_timeout); the machine came back with",
        ),
        (
            CASES["switched itself off"][0],
            "the kernel switched the machine off while it booted (critical temperature reached); the machine "
            "was switched on and is well",
        ),
        (RAN, "the kernel fell silent while the workload ran; the machine came back"),
        (replace(FELL_BACK, panic="[1.2] no known word"), "died while it booted (see its console); the "),
        (replace(RAN, answered="kernel under test"), "the kernel started again and again while the workload"),
    ],
)
def test_a_sentence_says_what_happened_and_how_the_machine_came_back(
    seen: FailureEvidence, words: str
) -> None:
    assert words in judge(seen)[1]


def test_a_machine_that_stays_away_without_a_word_is_told_in_a_whole_sentence() -> None:
    assert judge(replace(SILENT, came_back="never"))[1] == "the machine does not come back"


@pytest.mark.parametrize("name", ["did not reboot", "connection cut", "rebooted by somebody"])
def test_starts_that_the_console_shows_twice_blame_no_kernel_that_runs_on_or_was_rebooted_in_order(
    name: str,
) -> None:
    """A BMC sends old text again; the machine's own kernel may have the same release."""
    seen = replace(CASES[name][0], console="heard", starts=2)
    assert (judge(seen)[0].name, judge(seen)[0].owner) == (name, "machine")


def test_a_machine_that_was_hot_and_not_off_has_not_been_switched_off_by_its_kernel() -> None:
    assert judge(replace(SILENT, power="on", shutdown="critical temperature reached"))[0].name == "hang"


@pytest.mark.parametrize("state", ["silent", "lost"])
def test_a_console_that_showed_nothing_is_named(state: ConsoleState) -> None:
    words = f"; the machine's console was {state}"
    assert error_of(replace(SILENT, console=state), "box1").message.endswith(words)
    assert words not in error_of(replace(SILENT, console=state, panic=PANIC), "box1").message


@pytest.mark.parametrize("state", ["off", "heard"])
def test_a_console_that_is_not_there_or_was_heard_is_not_complained_of(state: ConsoleState) -> None:
    assert "console" not in error_of(replace(SILENT, console=state), "box1").message


@pytest.mark.parametrize("starts", [None, 1])
def test_a_kernel_that_answers_after_its_time_is_slow_also_where_no_console_shows_its_start(
    starts: int | None,
) -> None:
    seen = replace(SILENT, came_back="restarted", starts=starts)
    assert judge(seen)[0].name == "too slow"
    assert type(error_of(seen, "box1")) is BootTooSlow


def test_a_power_switch_that_is_dead_is_named_and_blames_nobody() -> None:
    seen = replace(FELL_BACK, power="dead", power_trouble="the BMC does not answer")
    assert judge(seen)[0].name == "fell back"
    assert "power: dead (the BMC does not answer)" in describe(seen)


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (replace(SILENT, idle_switch=True), "idle switch"),
        (replace(SILENT, idle_switch=True, console="silent", starts=0), "idle switch"),
        (replace(SILENT, idle_switch=True, console="heard", logged_in=True), "idle switch"),  # by whichever
        (replace(SILENT, idle_switch=True, console="heard", starts=1), "hang"),  # it did start
        (replace(SILENT, idle_switch=True, panic=PANIC), "panic"),
    ],
)
def test_silence_alone_blames_no_commit_on_a_machine_whose_power_did_nothing(
    seen: FailureEvidence, name: str
) -> None:
    assert judge(seen)[0].name == name


def test_an_own_kernel_is_no_proof_against_a_start_that_nobody_could_see() -> None:
    assert judge(replace(FELL_BACK, console="heard", starts=None))[0].name == "fell back"


def test_the_evidence_is_named_line_by_line() -> None:
    seen = replace(
        FELL_BACK, boots=("a", "b"), details="refused", console="heard", last_words="one\nlast line"
    )
    assert describe(seen).splitlines() == [
        "noticed: no answer",
        "then answered: own kernel; it came back: by itself",
        "power: unknown; console: heard",
        "boots: a, b",
        "refused",
        "console:",
        "one",
        "last line",
    ]
    assert describe(replace(seen, panic=PANIC)).endswith(f"console:\n{PANIC}")


def test_what_the_details_show_already_is_not_shown_twice() -> None:
    seen = replace(FELL_BACK, details=f"the end of its console:\n{PANIC}", last_words=PANIC)
    assert describe(seen).count(PANIC) == 1
    record = f"Panic#1 Part1\n{PANIC}"
    seen = replace(FELL_BACK, panic=record, record=record, console="heard", last_words="GRUB loading")
    assert describe(seen).splitlines()[-5:] == [
        "console:",
        "GRUB loading",
        "left in memory by the kernel that died (pstore):",
        *record.splitlines(),
    ]


def test_only_a_machine_that_stays_away_is_to_be_brought_up_by_hand() -> None:
    away = error_of(CASES["did not come back"][0], "box1").cure
    assert away.startswith("bring it up by hand with its own kernel, then: perfbisect testbed release box1; ")
    assert "perfbisect mark" in away
    assert "by hand" not in error_of(replace(SILENT, unwell=DISK), "box1").cure


def test_hardware_that_a_panic_names_is_told_with_the_panic_and_what_to_look_at() -> None:
    error = error_of(CASES["hardware failed"][0], "box1")
    assert "'box1': its hardware failed while the workload ran (kernel panic: Fatal machine check); " in str(
        error
    )
    assert MACHINE_CHECK in error.details
    assert error.cure.startswith("look at the event log of its BMC, and test its memory; 'perfbisect lab")
    assert "BMC" not in error_of(CASES["connection cut"][0], "box1").cure
    away = error_of(replace(CASES["hardware failed"][0], came_back="never"), "box1").cure
    assert away.startswith("bring it up by hand"), "there is nobody to test its memory on"


def test_a_kernel_without_its_root_is_told_where_drivers_come_from() -> None:
    assert "--recipe RECIPE+bare-metal" in error_of(CASES["panic"][0], "box1").cure
    other = replace(CASES["panic"][0], panic="Kernel panic - not syncing: Attempted to kill init!")
    assert "bare-metal" not in error_of(other, "box1").cure
