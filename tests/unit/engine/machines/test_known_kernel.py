"""Two failing boots on a machine, with a known kernel between them."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine import trial_runner
from bisector.engine.bisection_run import OpenBisection
from bisector.engine.events import Event
from bisector.errors import (
    BootFailed,
    BootTooSlow,
    InfrastructureError,
    Interrupted,
    KernelRefused,
    NoKernelRan,
    WorkloadFailed,
)
from bisector.model.decisions import Measure
from bisector.model.records import Booted
from bisector.ports import RunResult
from bisector.testing.fake_testbed import FakeSession, FakeTestbed
from bisector.testing.fakes import Faults, Pace
from tests.support import fake_bisection as fake
from tests.support.waiting import until

PANIC = BootFailed("the kernel died while it booted", details="Kernel panic")
GOOD, BROKEN = 0, 5


class Bench:
    """A bisection on one testbed whose boots fail by number, from 1. The good end is measured first.

    known: there; elsewhere: on another testbed, which is well.
    """

    def __init__(
        self,
        folder: Path,
        boots: dict[int, Exception],
        *,
        machine: bool,
        known: bool = True,
        elsewhere: bool = False,
        runs: dict[int, Exception] | None = None,
    ) -> None:
        lab, store = fake.a_lab(), MemoryStore()
        self.events: list[Event] = []
        self.stop = threading.Event()
        self.testbed = FakeTestbed(
            "fake", lab, faults=Faults(boot=boots, run=runs or {}), has_own_kernel=machine
        )
        testbeds = {"fake": self.testbed, "other": FakeTestbed("other", lab)}
        services = replace(fake.services(lab, folder, store=store), testbeds=testbeds)
        stored = fake.begin(store, lab, tuple(testbeds))
        self.opened = OpenBisection.take_up(stored, services, self.events.append, self.stop)
        if elsewhere:
            self.measure(GOOD, "other")
        if known:
            self.measure(GOOD)

    def measure(self, commit: int, testbed: str = "fake") -> InfrastructureError | None:
        return self.opened.carry_out(Measure(commit, 1, "search", "scripted"), testbed)

    @property
    def failures(self) -> list[str]:
        records = self.opened.journal.state.records
        return [r.failure for r in records if isinstance(r, Booted) and not r.ok]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)


def test_a_known_kernel_that_boots_between_two_failures_holds_them_against_the_commit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {2: PANIC, 4: PANIC}, machine=True)
    assert bench.measure(BROKEN) is None
    assert bench.failures == [PANIC.message]
    assert bench.testbed.boots == 2, "the good end, and that once more"
    assert any("a known kernel" in event.text for event in bench.events)
    assert len(bench.opened.journal.state.visits) == 1, "it is no visit, and gives no sample"


def test_a_known_kernel_that_fails_too_is_the_machines_failure(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {2: PANIC, 3: PANIC}, machine=True)
    error = bench.measure(BROKEN)
    assert error is not None
    assert "ran well on 'fake' before, and does not now: the kernel died while it booted" in error.message
    assert error.details == "Kernel panic"
    assert bench.failures == []


def test_a_known_kernel_that_runs_is_ended_when_told_to_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {2: PANIC}, machine=True)

    def close() -> None:
        until(lambda: bench.testbed.boots == 2 and bool(bench.opened.trials._sessions), 30)
        bench.stop.set()
        bench.opened.trials.close()
        assert bench.testbed._live is None

    thread = threading.Thread(target=close)
    thread.start()
    bench.testbed.pace = Pace(run=0.5)  # a fake notices its end after a run
    with pytest.raises(Interrupted):
        bench.measure(BROKEN)
    thread.join()
    assert bench.testbed._live is None
    assert bench.failures == []


def test_a_known_kernel_that_came_up_when_told_to_stop_is_left(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {2: PANIC}, machine=True)
    boots = bench.testbed.boot

    def boot(*given: Any, **__: Any) -> FakeSession:
        session = boots(*given)
        bench.stop.set()
        return session

    bench.testbed.boot = boot  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        bench.measure(BROKEN)
    assert bench.testbed._live is None


REFUSED = KernelRefused(
    "the testbed 'fake' cannot boot the kernel: kexec cannot load it", details="Bad magic"
)


@pytest.mark.parametrize(
    ("boots", "known", "machine", "whose"),
    [
        ({2: REFUSED, 4: REFUSED}, True, True, "commit"),  # the known kernel is taken in between
        ({2: REFUSED, 3: REFUSED}, True, True, "machine"),  # the known kernel is not
        ({1: REFUSED, 2: REFUSED}, False, True, "machine"),  # none is known
        ({2: REFUSED}, True, True, "nobody"),  # the second time it is taken
    ],
)
def test_whose_failure_a_refused_kernel_is(
    tmp_path: Path, boots: dict[int, Exception], known: bool, machine: bool, whose: str
) -> None:
    bench = Bench(tmp_path, boots, machine=machine, known=known)
    error = bench.measure(BROKEN)
    assert bench.failures == ([REFUSED.message] if whose == "commit" else [])
    assert (error is not None) == (whose == "machine")
    if error is not None:
        assert "cannot boot the kernel: kexec cannot load it" in error.message
        assert error.details == "Bad magic"
        assert known or "no kernel ran on 'fake'" in error.cure
        assert isinstance(error, NoKernelRan) == (not known), "one bad kernel makes no machine suspect"


def test_a_known_kernel_that_is_not_to_be_had_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, {2: REFUSED, 3: REFUSED}, machine=True)
    kernels, build = bench.opened.trials._known._kernels, bench.opened.trials._known._kernels.build

    def only_the_new_one(measure: Measure, *others: Any) -> Any:
        return None if measure.commit == GOOD else build(measure, *others)

    monkeypatch.setattr(kernels, "build", only_the_new_one)
    error = bench.measure(BROKEN)
    assert isinstance(error, NoKernelRan)
    assert error.cure.startswith("the kernel that ran last on 'fake' cannot be built now")
    assert bench.failures == []


def test_a_commit_that_boots_after_all_is_measured(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {2: PANIC}, machine=True)
    assert bench.measure(BROKEN) is None
    assert bench.failures == []
    assert bench.opened.journal.state.visits[-1].samples


def test_faults_of_the_machine_while_it_is_asked_are_tried_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {2: PANIC, 3: InfrastructureError("no route"), 5: PANIC}, machine=True)
    assert bench.measure(BROKEN) is None
    assert bench.failures == [PANIC.message]
    assert bench.testbed.boots == 2


def test_a_machine_that_was_shown_to_be_well_is_not_asked_once_more_for_the_same_failure(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, {2: PANIC, 4: InfrastructureError("no route"), 5: PANIC}, machine=True)
    assert bench.measure(BROKEN) is None
    assert bench.failures == [PANIC.message]
    checks = [event.text for event in bench.events if "shows whether the machine is well" in event.text]
    assert len(checks) == 1


@pytest.mark.parametrize(("machine", "known"), [(False, True), (True, False)])
def test_guests_and_the_first_kernel_of_all_are_judged_without(
    tmp_path: Path, machine: bool, known: bool
) -> None:
    first = 2 if known else 1
    bench = Bench(tmp_path, {first: PANIC, first + 1: PANIC}, machine=machine, known=known)
    assert bench.measure(BROKEN) is None
    assert bench.failures == [PANIC.message]


LATE = BootTooSlow("the kernel answered over SSH only after 90 s; the machine was restarted and is well")
SILENT = BootFailed("the kernel never answered over SSH within 90 s")


@pytest.mark.parametrize(
    ("boots", "known", "whose"),
    [
        ({1: LATE, 2: SILENT}, False, "machine"),  # it does boot, and nothing has booted there in time
        ({1: SILENT, 2: LATE}, False, "machine"),
        ({1: LATE, 2: LATE}, False, "machine"),
        ({1: SILENT, 2: SILENT}, False, "commit"),  # nothing says that it boots
        ({2: LATE, 4: LATE}, True, "commit"),  # another one boots in time between the two
        ({2: LATE, 4: SILENT}, True, "commit"),
        ({2: LATE, 3: LATE}, True, "machine"),  # the other one does not, now
        ({1: LATE}, False, "nobody"),
    ],
)
def test_whose_failure_an_answer_is_that_comes_too_late(
    tmp_path: Path, boots: dict[int, Exception], known: bool, whose: str
) -> None:
    bench = Bench(tmp_path, boots, machine=True, known=known)
    error = bench.measure(BROKEN)
    assert bench.failures == ([boots[max(boots)].args[0]] if whose == "commit" else [])
    assert (error is not None) == (whose == "machine")
    if error is not None and not known:
        assert "it did boot there, only too late" in error.message
        assert "raise its perfbisect_boot_timeout" in error.message


def test_a_workload_that_fails_in_a_boot_after_a_late_one_is_the_kernels(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {1: LATE}, machine=True, known=False, runs={1: WorkloadFailed("it broke")})
    assert bench.measure(BROKEN) is None
    assert BROKEN in bench.opened.journal.state.untestable


NO_DISK = WorkloadFailed("it ended with code 1", details="fio: /mnt/second: No such file or directory")


@pytest.mark.parametrize(
    ("runs", "machine", "whose"),
    [
        ({2: NO_DISK, 3: NO_DISK}, True, "machine"),  # what it uses there has died meanwhile
        ({2: NO_DISK, 4: NO_DISK}, True, "commit"),  # it runs under the known kernel in between
        ({2: NO_DISK}, True, "nobody"),
        ({2: NO_DISK, 3: NO_DISK}, False, "commit"),  # a guest has fresh disks in each boot
    ],
)
def test_whose_failure_a_workload_that_fails_is(
    tmp_path: Path, runs: dict[int, Exception], machine: bool, whose: str
) -> None:
    bench = Bench(tmp_path, {}, machine=machine, runs=runs)
    error = bench.measure(BROKEN)
    assert (BROKEN in bench.opened.journal.state.untestable) == (whose == "commit")
    assert bench.testbed.boots == (3 if whose == "machine" or not machine else 4)
    assert (error is not None) == (whose == "machine")
    if error is not None:
        assert "ran well on 'fake' before, and does not now: it ended with code 1" in error.message
        assert error.details == NO_DISK.details
        assert error.cure.startswith("mend the testbed 'fake', or what the workload uses there")


@pytest.mark.parametrize("well", [False, True])
def test_runs_that_never_count_are_the_machines_where_those_of_the_known_kernel_do_not_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, well: bool
) -> None:
    """Its clock has broken meanwhile."""
    bench = Bench(tmp_path, {}, machine=True)
    run = FakeSession.run
    ran: list[int] = []

    def flagged(session: FakeSession, index: int) -> RunResult:
        ran.append(session._boot.commit)
        known = well and ran.count(GOOD) > 1 and ran[-1] == GOOD
        return replace(run(session, index), flags=() if known else ("clock",))

    monkeypatch.setattr(FakeSession, "run", flagged)
    error = bench.opened.carry_out(Measure(BROKEN, 5, "search", "scripted"), "fake")
    assert ran == [BROKEN] * 5 + ([GOOD] * 2 + [BROKEN] if well else [GOOD] * 5), "one that counts is enough"
    assert (error is None) == well
    assert well or "does not now: none of 5 runs can be counted: clock" in getattr(error, "message", "")


@pytest.mark.parametrize(
    ("faults", "machine", "whose"),
    [
        ({"boots": {1: PANIC, 3: PANIC}}, True, "commit"),  # what runs elsewhere runs here in between
        ({"boots": {1: REFUSED, 3: REFUSED}}, True, "commit"),
        ({"boots": {1: LATE, 3: LATE}}, True, "commit"),
        ({"boots": {}, "runs": {1: NO_DISK, 3: NO_DISK}}, True, "commit"),
        ({"boots": {1: PANIC}}, True, "nobody"),
        ({"boots": {1: PANIC, 2: PANIC}}, True, "open"),  # it does not either
        ({"boots": {1: REFUSED, 2: REFUSED}}, True, "open"),
        ({"boots": {}, "runs": {1: NO_DISK, 2: NO_DISK}}, True, "open"),
        ({"boots": {1: PANIC, 2: PANIC}}, False, "machine"),  # a guest: others are believed, without a boot
    ],
)
def test_whose_failure_the_first_kernel_of_a_machine_is_where_others_ran_one(
    tmp_path: Path, faults: dict[str, dict[int, Exception]], machine: bool, whose: str
) -> None:
    """A well machine became suspect when its first trial was of a commit that panics."""
    bench = Bench(
        tmp_path, faults["boots"], machine=machine, known=False, elsewhere=True, runs=faults.get("runs")
    )
    error = bench.measure(BROKEN)
    assert (BROKEN in bench.opened.journal.state.untestable) == (whose == "commit")
    assert (error is not None) == (whose in ("machine", "open"))
    assert isinstance(error, NoKernelRan) == (error is not None), "nobody knows whose: it is not suspect"
    if error is not None and whose == "open":
        assert "runs on 'other', and does not on 'fake': " in error.message
        assert "nothing was held against the commit: 'perfbisect lab check --deep fake'" in error.cure


def test_a_commit_that_runs_elsewhere_is_not_given_up_where_the_known_kernel_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {1: PANIC, 3: PANIC}, machine=True, known=False, elsewhere=True)
    bench.measure(BROKEN, "other")
    error = bench.measure(BROKEN)
    assert error is not None
    assert "with this commit a kernel booted on 'other'; here it does not" in error.message
    assert bench.failures == []
    assert not isinstance(error, NoKernelRan), "the known one ran there"


def test_a_machine_on_which_that_kernel_itself_ran_before_is_suspect(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {2: PANIC, 3: PANIC}, machine=True, known=False)
    assert bench.measure(BROKEN) is None
    assert bench.measure(BROKEN, "other") is None
    error = bench.measure(BROKEN)
    assert error is not None
    assert not isinstance(error, NoKernelRan)
    assert bench.failures == []


def test_machines_that_begin_with_a_broken_commit_side_by_side_are_not_suspect(tmp_path: Path) -> None:
    """Each began with a commit that panics, and all but the last were taken out of use."""
    bench = Bench(tmp_path, {1: PANIC, 2: PANIC}, machine=True, known=False)
    journal = bench.opened.journal
    assert journal.begin_trial("other", Measure(BROKEN, 1, "search", "scripted"), journal.trials()[0])
    error = bench.measure(BROKEN)
    assert isinstance(error, NoKernelRan)
    assert "a kernel never booted here in this bisection, and 'other' is still at work" in error.message
    assert bench.failures == []


def test_a_machine_that_refuses_a_commit_which_runs_elsewhere_is_suspect_once_others_ran_there(
    tmp_path: Path,
) -> None:
    for ran in (False, True):
        folder = tmp_path / str(ran)
        folder.mkdir()
        bench = Bench(folder, {1 + ran: PANIC, 2 + 2 * ran: PANIC}, machine=True, known=ran)
        assert bench.measure(BROKEN, "other") is None
        error = bench.measure(BROKEN)
        assert error is not None
        assert "with this commit a kernel booted on 'other'; here it does not" in error.message
        assert isinstance(error, NoKernelRan) == (not ran)
        assert error.details == PANIC.details


def test_a_failure_that_counts_is_recorded_of_the_layout_that_failed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {2: PANIC, 4: PANIC}, machine=True)
    assert bench.opened.carry_out(Measure(BROKEN, 1, "search", "scripted", layout=3), "fake") is None
    (failed,) = (r for r in bench.opened.journal.state.records if isinstance(r, Booted) and not r.ok)
    assert (failed.commit, failed.layout) == (BROKEN, 3)


def test_a_machine_on_which_a_kernel_of_another_ran_has_a_known_one(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, {1: PANIC, 3: PANIC, 4: PANIC, 5: PANIC}, machine=True, known=False, elsewhere=True
    )
    assert bench.measure(BROKEN) is None
    assert bench.failures == [PANIC.message]
    error = bench.measure(BROKEN + 1)
    assert error is not None
    assert "ran well on 'fake' before, and does not now" in error.message
    assert not isinstance(error, NoKernelRan)


def _asked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the commits of known kernels are added from now on."""
    kernels, build = bench.opened.trials._known._kernels, bench.opened.trials._known._kernels.build
    asked: list[int] = []

    def noted(measure: Measure, *others: Any) -> Any:
        if "known kernel" in measure.reason:
            asked.append(measure.commit)
        return build(measure, *others)

    monkeypatch.setattr(kernels, "build", noted)
    return asked


def test_a_kernel_that_ran_on_the_machine_itself_is_better_than_a_later_one_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, {2: PANIC, 3: PANIC}, machine=True)
    assert bench.measure(GOOD + 1, "other") is None
    asked = _asked(bench, monkeypatch)
    error = bench.measure(BROKEN)
    assert asked == [GOOD]
    assert error is not None
    assert "ran well on 'fake' before, and does not now" in error.message
    assert not isinstance(error, NoKernelRan), "it did run there, so the machine is suspect"


def test_a_commit_that_ran_once_and_fails_now_is_not_judged_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, {3: PANIC}, machine=True)
    asked = _asked(bench, monkeypatch)
    assert bench.measure(BROKEN) is None
    bench.measure(BROKEN)
    assert asked == [GOOD], "the last that ran there is the one that fails"


def test_the_known_kernel_of_a_machine_is_not_judged_by_itself_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, {1: PANIC, 3: PANIC, 4: PANIC}, machine=True, known=False, elsewhere=True)
    assert bench.measure(BROKEN) is None
    assert bench.opened.trials._known.ran_well["fake"].commit == GOOD
    assert bench.measure(GOOD + 1, "other") is None
    asked = _asked(bench, monkeypatch)
    bench.measure(GOOD)
    assert asked == [GOOD + 1]


def test_the_known_kernel_is_the_last_that_ran_well_there_in_its_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a boot without a sample, or of long ago, may fail by itself: a well machine would be suspect."""
    bench = Bench(tmp_path, {1: PANIC, 3: PANIC}, machine=True, known=False, elsewhere=True)
    assert bench.measure(BROKEN) is None
    assert bench.opened.trials._known.ran_well["fake"].commit == GOOD
    assert bench.measure(GOOD + 1) is None
    bench.opened.carry_out(Measure(GOOD + 2, 1, "search", "scripted", layout=3), "fake")
    run = FakeSession.run
    with monkeypatch.context() as patched:
        patched.setattr(FakeSession, "run", lambda *given: replace(run(*given), flags=("clock",)))
        assert bench.measure(GOOD + 3) is None
    kernels, build = bench.opened.trials._known._kernels, bench.opened.trials._known._kernels.build
    asked: list[tuple[int, int]] = []

    def noted(measure: Measure, *others: Any) -> Any:
        if "known kernel" in measure.reason:
            asked.append((measure.commit, measure.layout))
        return build(measure, *others)

    monkeypatch.setattr(kernels, "build", noted)
    bench.testbed.faults = Faults(boot={1: PANIC})
    assert bench.measure(BROKEN + 1) is None
    assert asked == [(GOOD + 2, 3)]
