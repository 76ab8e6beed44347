"""From an answer to a result: what a failure is called, what is kept, and each flag of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.agent.answers import Finished, StartError
from bisector.adapters.agent.run_outcome import Outcome, flags, read_values, write_output
from bisector.errors import WorkloadFailed
from bisector.ports import Job, MetricSpec
from tests.support.agent_answers import finished

START_ERROR = StartError(error="./toy", reason="Permission denied")


def job(**changed: Any) -> Job:
    return Job("toy", Path("/nonexistent"), ("toy",), (MetricSpec("real", "s"),), **changed)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(finished(), 1.0), None),
        (Outcome(finished(code=3), 1.0), "ended with code 3"),
        (Outcome(finished(code=-1, signal=11), 1.0), "was ended by signal 11"),
        (Outcome(finished(code=-1, signal=9, killed=1), 3.0, 2.0), "did not end within 2 s"),
        (Outcome(START_ERROR, 1.0), "cannot be started: ./toy: Permission denied"),
        (Outcome(START_ERROR, 1.0, 2.0), "cannot be started: ./toy: Permission denied"),
    ],
)
def test_a_failure_says_how_it_ended(outcome: Outcome, words: str | None) -> None:
    assert outcome.failure() == words


def test_values_of_a_run_that_ended_well() -> None:
    assert read_values(job(), Outcome(finished(out=b"real: 1.5 s\n"), 1.0), None) == {"real": 1.5}


def test_the_time_that_a_run_took_is_by_the_testbeds_clock() -> None:
    outcome = Outcome(finished(out=b"real: 9 s\n", seconds=1.25), 3.0)
    assert read_values(job(parse="elapsed"), outcome, None) == {"real": 1.25}
    with pytest.raises(WorkloadFailed, match="ended with code 125"):
        read_values(job(parse="elapsed"), Outcome(finished(code=125), 1.0), None)


def test_a_ratio_beside_the_time_is_none_of_seconds() -> None:
    # It was the seconds themselves, in the ratio's unit.
    counted = MetricSpec("rate", "instructions/s", optional=True, ratio=("instructions", "real"))
    timed = Job("toy", Path("/nonexistent"), ("toy",), (MetricSpec("real", "s"), counted), parse="elapsed")
    assert read_values(timed, Outcome(finished(seconds=1.25), 3.0), None) == {"real": 1.25}


def test_values_of_a_run_that_failed_are_not_read() -> None:
    answer = finished(code=1, out=b"real: 1.5 s\n", err=b"x" * 5000 + b"last words\n")
    with pytest.raises(WorkloadFailed, match="the workload 'toy' ended with code 1") as caught:
        read_values(job(), Outcome(answer, 1.0), None)
    assert "last words" in caught.value.details
    assert "real: 1.5" in caught.value.details
    assert len(caught.value.details) < 3000


def test_what_the_machine_lacks_is_the_reason_where_the_runner_says_so() -> None:
    err = b"setup\nperfbisect-runner: 4096 CPUs are needed\n"
    with pytest.raises(WorkloadFailed, match="'toy' cannot run here: 4096 CPUs are needed"):
        read_values(job(), Outcome(finished(code=1, err=err), 1.0), None)
    with pytest.raises(WorkloadFailed, match="was ended by signal 9"):
        read_values(job(), Outcome(finished(code=-1, signal=9, err=err), 1.0), None)


def test_a_run_that_needs_longer_is_told_where_its_time_is_written() -> None:
    killed = Outcome(finished(code=-1, signal=9), 300.2, missed_deadline=300.0)
    with pytest.raises(WorkloadFailed, match="did not end within 300 s") as caught:
        read_values(job(), killed, None)
    assert "timeout: SECONDS" in caught.value.cure
    with pytest.raises(WorkloadFailed, match="was ended by signal 9") as caught:
        read_values(job(), Outcome(finished(code=-1, signal=9), 1.0), None)
    assert "timeout" not in caught.value.cure


def test_results_are_read_from_the_files_of_the_run(tmp_path: Path) -> None:
    wanted = job(results="out", parse="results")
    (tmp_path / "stats.json").write_text('{"real": 2.5}')
    assert read_values(wanted, Outcome(finished(), 1.0), tmp_path) == {"real": 2.5}
    with pytest.raises(WorkloadFailed, match="the run left no 'out'") as caught:
        read_values(wanted, Outcome(finished(out=b"real: 1.5\n", err=b"no space"), 1.0), None)
    assert caught.value.details == "it printed:\nreal: 1.5\non standard error:\nno space"


def test_files_that_are_only_kept_are_not_read_for_what_the_run_printed(tmp_path: Path) -> None:
    (tmp_path / "stats.json").write_text('{"real": 2.5}')
    printed = Outcome(finished(out=b"real: 1.5 s\n"), 1.0)
    assert read_values(job(results="out"), printed, tmp_path) == {"real": 1.5}


def failure_of(outcome: Outcome, **changed: Any) -> WorkloadFailed:
    with pytest.raises(WorkloadFailed) as caught:
        read_values(job(**changed), outcome, None)
    return caught.value


def test_a_metric_on_standard_error_is_said_to_be_there() -> None:
    failed = failure_of(Outcome(finished(out=b"done", err=b"real\t0m1.5s\n"), 1.0), parse="time")
    assert "no metric 'real'; it is on standard error, which is not read" in failed.message
    assert failed.details == "it printed:\ndone\non standard error:\nreal\t0m1.5s\n"
    assert "standard error" not in failure_of(Outcome(finished(out=b"x", err=b"y"), 1.0)).message


def test_a_metric_in_the_part_that_is_not_kept_is_no_riddle() -> None:
    failed = failure_of(Outcome(finished(out=b"x\n" * 500, out_cut=4_000_000), 1.0))
    assert "no metric 'real' (the first 4,000,000 bytes of the output are not kept" in failed.message
    assert failed.details == "it printed:\n...\n" + "x\n" * 30, "short lines fill no screen"


def test_what_a_run_printed_explains_no_metric_that_its_files_lack(tmp_path: Path) -> None:
    (tmp_path / "stats.json").write_text('{"other": 2.5}')
    wanted, ended = job(results="out", parse="results"), Outcome(finished(out_cut=4_000_000), 1.0)
    with pytest.raises(WorkloadFailed) as caught:
        read_values(wanted, ended, tmp_path)
    assert "print less" not in caught.value.message


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("Permission denied", "chmod +x"),
        ("Exec format error", "#!/bin/sh"),
        ("No such file or directory", "carriage return"),
        ("Out of memory", ""),
    ],
)
def test_what_cannot_be_started_is_told_with_what_mostly_is_wrong(reason: str, hint: str) -> None:
    failed = failure_of(Outcome(StartError(error="./toy", reason=reason), 1.0))
    assert hint in failed.details
    assert bool(failed.details) == bool(hint)


def test_the_raw_output_is_kept_whatever_came_of_it(tmp_path: Path) -> None:
    raw = tmp_path / "boot" / "run-000.out"
    write_output(Outcome(finished(out=b"\xff out", err=b"err", ticks=7), 1.25), raw)
    assert raw.read_bytes() == b"\xff out"
    assert raw.with_suffix(".err").read_bytes() == b"err"
    about = json.loads(raw.with_suffix(".json").read_text())
    assert (about["ticks"], about["host_seconds"], about["code"]) == (7, 1.25, 0)
    assert not {"out", "err", "monitor", "overdue"} & set(about)
    write_output(Outcome(START_ERROR, 1.0, 2.0), raw)
    assert raw.read_bytes() == b""
    assert json.loads(raw.with_suffix(".json").read_text()) == {
        "error": "./toy",
        "reason": "Permission denied",
        "host_seconds": 1.0,
        "overdue": 2.0,
    }


def flags_of(answer: Finished, host_seconds: float = 1.0, **changed: Any) -> tuple[str, ...]:
    given = {"taint_at_boot": 0, "ticks_per_second": None, "wall_clock": True}
    return flags(answer, host_seconds, **{**given, **changed})


def test_a_quiet_run_has_no_flag() -> None:
    assert flags_of(finished(kernel=["random: crng init done", "e1000: link is up"])) == ()


@pytest.mark.parametrize(
    ("message", "flag"),
    [
        ("WARNING: CPU: 0 PID: 1 at kernel/sched/core.c:1", "warn"),
        ("BUG: scheduling while atomic: toy/42", "warn"),
        ("Oops: 0000 [#1] SMP", "warn"),
        ("------------[ cut here ]------------", "warn"),
        ("rcu: INFO: rcu_sched detected stalls on CPUs/tasks", "stall"),
        ("rcu: INFO: rcu_preempt self-detected stall on CPU", "stall"),
        ("watchdog: soft lockup - CPU#0 stuck for 22s!", "stall"),
        ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 0", "stall"),
        ("INFO: task toy:42 blocked for more than 120 seconds.", "stall"),
        ("Out of memory: Killed process 42 (toy)", "oom"),
        ("toy invoked oom-killer: gfp_mask=0x100cca", "oom"),
        ("oom-kill:constraint=CONSTRAINT_MEMCG", "oom"),
        ("Memory cgroup out of memory: Killed process 12 (toy) total-vm:1kB", "oom"),
        ("general protection fault: 0000 [#1] SMP", "warn"),
        ("general protection fault, probably for non-canonical address 0xdead: 0000 [#1]", "warn"),
        ("Unable to handle kernel paging request at virtual address dead", "warn"),
        ("blk_update_request: I/O error, dev sda, sector 1", "io"),
        ("Buffer I/O error on dev vda1, logical block 7, lost async page write", "io"),
        ("Buffer I/O error on device sdb, logical block 7", "io"),
        ("EXT4-fs error (device vda): ext4_find_entry:1455", "io"),
        ("CPU0: Core temperature above threshold, cpu clock throttled (total events = 1)", "throttle"),
        ("CPU1: Package temperature above threshold, cpu clock is throttled", "throttle"),
        ("timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because", "clock"),
        ("Clocksource tsc unstable (delta = -170284 ns)", "clock"),
    ],
)
def test_what_the_kernel_says_during_a_run_sets_its_flag(message: str, flag: str) -> None:
    assert flags_of(finished(kernel=["harmless", message])) == (flag,)


@pytest.mark.parametrize(
    "message",
    [
        "traps: toy[42] general protection fault ip:401000 sp:7ffd0 error:0 in toy[400000+1000]",
        "blk_update_request: I/O error, dev fd0, sector 0",
        "Buffer I/O error on dev sr0, logical block 0, async page read",
        "CPU0: Core temperature/speed normal",
        "clocksource: Switched to clocksource tsc",
        "clocksource: timekeeping watchdog on CPU1: wd-tsc-wd read-back delay of 1 ns",
        "perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate",
        "hrtimer: interrupt took 1234 ns",
    ],
)
def test_what_says_nothing_of_a_run_sets_no_flag(message: str) -> None:
    assert flags_of(finished(kernel=[message])) == ()


def test_a_clock_that_is_wrong_in_two_ways_is_flagged_once() -> None:
    unstable = "Marking clocksource 'tsc' as unstable"
    assert flags_of(finished(kernel=[unstable], seconds=9.0)) == ("clock",)


@pytest.mark.parametrize("seconds", [0.2, 1.0])
def test_a_clock_that_runs_fast_shows_in_short_runs(seconds: float) -> None:
    """A host that is busy sees more time pass than a run took, never less."""
    assert flags_of(finished(seconds=1.3 * seconds, ticks=5), seconds + 0.02) == ("clock",)
    assert flags_of(finished(seconds=seconds, ticks=5), seconds + 0.4) == ()
    assert flags_of(finished(seconds=seconds + 0.01, ticks=5), seconds) == (), "a clock of whole ticks"


def test_a_taint_that_came_or_went_since_boot() -> None:
    assert flags_of(finished(tainted=512), taint_at_boot=512) == ()
    assert flags_of(finished(tainted=512)) == ("taint",)
    assert flags_of(finished(tainted=0), taint_at_boot=1) == ("taint",)


@pytest.mark.parametrize(
    ("seconds", "host_seconds", "flagged"),
    [(100.0, 100.4, False), (100.0, 102.6, True), (100.0, 97.0, True), (0.1, 0.5, False), (0.1, 0.7, True)],
)
def test_wall_clocks_must_agree(seconds: float, host_seconds: float, flagged: bool) -> None:
    answer = finished(seconds=seconds, ticks=5)
    assert flags_of(answer, host_seconds) == (("clock",) if flagged else ())
    assert flags_of(answer, host_seconds, wall_clock=False) == ()


@pytest.mark.parametrize(("seconds", "flagged"), [(1.0, False), (1.015, False), (1.03, True), (0.97, True)])
def test_the_guests_clock_must_agree_with_its_counter_whatever_the_host_says(
    seconds: float, flagged: bool
) -> None:
    answer = finished(seconds=seconds, ticks=1_000_000_000)
    for wall_clock in (False, True):
        found = flags_of(answer, 50.0, ticks_per_second=1e9, wall_clock=wall_clock)
        assert found == (("clock",) if flagged else ())


def test_without_a_counter_the_clock_of_an_emulated_guest_is_compared_with_nothing() -> None:
    assert flags_of(finished(ticks=0), 50.0, ticks_per_second=1e9, wall_clock=False) == ()


def test_all_flags_at_once() -> None:
    messages = ["WARNING: x", "soft lockup", "Out of memory: y"]
    found = flags_of(finished(kernel=messages, tainted=1, seconds=9.0))
    assert found == ("warn", "stall", "oom", "taint", "clock")


def test_a_counter_of_ticks_is_exact_in_short_runs_too() -> None:
    answer = finished(seconds=0.105, ticks=100_000_000)
    assert flags_of(answer, 50.0, ticks_per_second=1e9) == ("clock",)
