"""The campaign's own parts: draws that repeat, faults that strike once, checks that can fail."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from filelock import FileLock

from bisector.model.decisions import Measure
from bisector.model.records import Booted, Built, Left, Ran, RunFailed
from tests.campaign import fake_lab, invariants
from tests.campaign.faults import CLASSES, PASSED, Case, Fault, draw_case
from tests.campaign.invariants import Ended, Records, Truth
from tests.campaign.record_checks import repeated_work
from tests.campaign.striking import STRUCK, Striker, lines
from tests.campaign.summary import summarise, table
from tests.campaign.supervising import Result
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]


def draw(seed: int, number: int) -> Case:
    return draw_case(seed, number, 8, (1, 6), PASSED)


def test_a_seed_draws_the_same_cases_in_every_process() -> None:
    cases = [draw(16, number) for number in range(300)]
    assert cases == [draw(16, number) for number in range(300)]
    assert cases != [draw(17, number) for number in range(300)]
    # Written down: the same in another process, and in a later version of Python.
    assert (cases[0].variant, str(cases[0].faults[0])) == (4, "cache entry corrupted at cached 2 (0.943)")
    drawn = Counter(fault.kind for case in cases for fault in case.faults)
    assert set(drawn) == set(CLASSES)
    assert {case.variant for case in cases} == set(range(8))
    assert {len(case.faults) for case in cases} == set(range(1, 7))
    for case in cases:
        for place, fault in enumerate(case.faults):
            assert fault.moment in CLASSES[fault.kind].moments
            assert (
                1
                <= fault.count
                <= (PASSED[fault.moment] if place == 0 else max(1, PASSED[fault.moment] // 4))
            )


def test_each_fault_strikes_once_in_order_and_in_the_next_process(tmp_path: Path) -> None:
    struck: list[str] = []
    faults = [Fault("a", "boot", 2, 0.5), Fault("b", "boot", 1, 0.5), Fault("a", "run", 1, 0.5)]

    def striker() -> Striker:
        strikes = {kind: lambda fault: struck.append(f"{fault.kind} {fault.moment}") for kind in "ab"}
        return Striker(faults, tmp_path, strikes)

    first = striker()
    for moment in ("run", "boot", "boot"):
        first.moment(moment)
    assert struck == ["a boot"]
    again = striker()  # the first fault has ended the process
    for moment in ("run", "boot", "boot", "run", "run"):
        again.moment(moment)
    assert struck == ["a boot", "b boot", "a run"]
    assert len(lines(tmp_path / STRUCK)) == 3


GOOD = (
    (1, Measure(0, 2, "verify", "why")),
    (2, Built(0, True, 60.0, binary="a")),
    (3, Booted("b1", 0, "guest", True, 10.0, 100.0)),
    (4, Ran("b1", 0, {"m": 1.0}, 2.0, 102.0)),
    (5, Ran("b1", 1, {"m": 1.0}, 2.0, 104.0)),
    (6, Left("b1")),
)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ((), []),
        ((Built(0, True, 60.0, binary="a"),), ["built 2 times"]),
        ((Left("b1"),), ["left 2 times"]),
        ((Ran("b1", 2, {"m": 1.0}, 2.0, 106.0),), ["more than 2 runs"]),
        (
            (Measure(0, 1, "verify", "why"), Ran("b1", 1, {"m": 1.0}, 2.0, 106.0)),
            ["runs of b1 are [0, 1, 1]"],
        ),
        ((Booted("b2", 0, "guest", True, 10.0, 110.0),), ["b2 was left 0 times"]),
    ],
)
def test_work_that_is_recorded_twice_is_found(more: tuple[object, ...], found: list[str]) -> None:
    rows = [*GOOD, *((number, row) for number, row in enumerate(more, start=7))]
    said = repeated_work(rows)  # type: ignore[arg-type]
    assert len(said) == len(found)
    assert all(part in line for part, line in zip(found, said, strict=True))


def test_a_record_that_is_lost_or_changed_is_found() -> None:
    before, after = Records("x", "running", GOOD[:4]), Records("x", "running", GOOD)
    assert invariants.nothing_lost(before, after) == []
    assert invariants.nothing_lost(after, before) != []
    changed = Records("x", "running", (*GOOD[:1], (2, Built(0, True, 61.0, binary="a")), *GOOD[2:]))
    (said,) = invariants.nothing_lost(before, changed)
    assert "61.0" in said


def test_only_broken_commits_may_be_blamed() -> None:
    failures = (
        (1, Built(0, False, 1.0)),
        (2, Booted("b1", 1, "guest", False, 1.0, 1.0)),
        (3, Booted("b2", 2, "guest", True, 1.0, 1.0)),
        (4, RunFailed("b2", "it died")),
    )
    stored = Records("x", "done", failures, shas=("a", "b", "c"))
    assert len(invariants.nobody_blamed(stored, Truth("c"))) == 3
    known = Truth("c", no_build=frozenset("a"), no_boot=frozenset("b"))
    assert len(invariants.nobody_blamed(stored, known)) == 1
    swapped = Truth("c", no_build=frozenset("b"), no_boot=frozenset("a"))
    assert len(invariants.nobody_blamed(stored, swapped)) == 3


@pytest.mark.parametrize(
    ("code", "said", "found"),
    [
        (0, "Result", 0),
        (3, "trouble; perfbisect resume x", 0),
        (3, "trouble", 1),
        (1, "error", 1),
        (-11, "", 1),
        (3, "perfbisect itself failed: resume", 1),
        (130, "Traceback (most recent call last)", 1),
    ],
)
def test_an_end_that_nobody_thought_of_is_found(code: int, said: str, found: int) -> None:
    assert len(invariants.well_said(code, said)) == found


FLAGGED = "1 run was flagged as suspicious and does not count."


@pytest.mark.parametrize(
    ("flags", "report", "found"),
    [
        ((), {"total": 0.1002}, 0),
        ((), {"total": 0.103}, 1),
        ((), {"warnings": ["Runs have heavy tails."]}, 1),
        ((), {"levels": [{"commit": 1, "level": 2.0}]}, 1),
        (("clock",), {"warnings": [FLAGGED], "total": 0.103}, 0),
        (("clock",), {"warnings": [FLAGGED], "total": 0.11}, 1),
        (("clock",), {"warnings": [FLAGGED, "Runs have heavy tails."]}, 1),
        (("clock",), {"warnings": [FLAGGED], "levels": []}, 1),
        (("clock",), {"warnings": [FLAGGED], "ending": "spread"}, 1),
    ],
)
def test_the_same_runs_give_the_same_report(
    flags: tuple[str, ...], report: dict[str, object], found: int
) -> None:
    plain = {"ending": "culprit", "total": 0.1, "warnings": [], "levels": [{"commit": 1, "level": 1.0}]}
    last = (5, Ran("b1", 1, {"m": 1.0}, 2.0, 104.0, flags=flags))
    mine = Ended(Records("x", "done", (*GOOD[:4], last, GOOD[5])), {**plain, **report})
    assert len(invariants.as_without_faults(mine, Ended(Records("x", "done", GOOD), plain))) == found


def test_what_is_left_is_found(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (disk / "tmp").mkdir(parents=True)
    boot = disk / "state" / "bisections" / "x" / "boots" / "boot-001"
    boot.mkdir(parents=True)
    (boot / "console.log").touch()
    (disk / "state" / "executor.lock").touch()
    assert invariants.nothing_left(tmp_path) == []
    (boot / "initramfs").touch()
    (disk / "tmp" / "pb-1").mkdir()
    environment = {**os.environ, "FAULT_CAMPAIGN": str(tmp_path)}
    sleeper = subprocess.Popen(["sleep", "60"], env=environment)
    try:
        until(lambda: invariants.processes_of(tmp_path) != [], 30)  # it has executed its program
        with FileLock(disk / "state" / "executor.lock"):
            found = "\n".join(invariants.nothing_left(tmp_path))
    finally:
        sleeper.kill()
        sleeper.wait()
    for part in ("initramfs", "pb-1", "sleep", "lock is held"):
        assert part in found


def test_a_damaged_image_of_the_fake_lab_does_not_boot(tmp_path: Path) -> None:
    image, path = fake_lab.Image(3, 0, "b3", broken=False), tmp_path / "image"
    path.write_bytes(image.content())
    assert fake_lab.Image.read(path) == image
    data = bytearray(image.content())
    data[-1] ^= 1
    path.write_bytes(data)
    assert fake_lab.Image.read(path) is None


def test_a_run_is_counted_before_its_answer_can_be_read(tmp_path: Path) -> None:
    """A guest that is ended as soon as its run is recorded must have counted it."""
    fifos, log, answers = tmp_path / "serial", tmp_path / "runs.log", tmp_path / "answers"
    answers.write_text("{}\nanswer\n")
    lines_of = {}
    for end in ("in", "out"):
        os.mkfifo(f"{fifos}.{end}")
        lines_of[end] = os.open(f"{fifos}.{end}", os.O_RDWR | os.O_NONBLOCK)
    line = lines_of["out"]
    room = fcntl.fcntl(line, fcntl.F_SETPIPE_SZ, 4096)
    arguments = (tmp_path / "console", fifos, answers, log, 0)
    guest = subprocess.Popen(["sh", "-c", fake_lab._GUEST, "sh", *map(str, arguments)])
    try:
        said = b""
        while said.count(b"\n") < 2:  # its facts, and that it is ready
            until(lambda: select.select([line], [], [], 0)[0] != [], 30)
            said += os.read(line, room)
        assert os.write(line, b"x" * room) == room  # nobody reads: the guest cannot answer
        os.write(lines_of["in"], b"run\n")
        until(lambda: lines(log) != [], 30)
        os.read(line, room)
        until(lambda: select.select([line], [], [], 0)[0] != [], 30)
        assert os.read(line, room) == b"answer\n"
    finally:
        guest.kill()
        guest.wait()
        for descriptor in lines_of.values():
            os.close(descriptor)


def test_the_summary_counts_faults_that_struck_and_cases_that_failed() -> None:
    results = [
        Result(0, 0, [], ["guest killed", "disk full"], struck=2),
        Result(1, 0, [], ["guest killed", "guest killed"], struck=1, violations=["lost"]),
    ]
    summary = summarise(16, results)
    assert summary["classes"]["guest killed"] == {"drawn": 3, "struck": 2, "cases": 2, "green": 1}
    assert summary["all"] == {"drawn": 4, "struck": 3, "cases": 2, "green": 1}
    assert summary["failed"] == [1]
    assert "guest killed" in table(summary)


_ONE_CASE = """
import sys
from pathlib import Path
from tests.campaign.faults import Case, Fault
from tests.campaign.subjects import on_fakes
from tests.campaign.supervising import Supervisor
fakes = on_fakes()
supervisor = Supervisor(Path(sys.argv[1]), fakes.run_process, fakes.start, fakes.truths, fakes.hang_seconds)
faults = (
    Fault("killed between records", "written", 20, 0.5),
    Fault("cache entry corrupted", "cached", 1, 0.1),
    Fault("guest killed", "running", 1, 0.5),
)
print(supervisor.run(Case(0, 0, faults), None)[0].json())
"""


def test_a_bisection_is_hurt_and_ends_as_it_should(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ONE_CASE, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["violations"] == []
    assert result["struck"] == 3
    assert result["codes"] == [-9, 0]
