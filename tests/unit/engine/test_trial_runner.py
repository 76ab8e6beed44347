"""The engine's hands on fakes: each kind of fault is kept apart, and each unit is recorded once."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bisector.adapters.machine.host_turns import TestbedOnHost
from bisector.adapters.store.memory_store import MemoryStore
from bisector.adapters.system.machine_locks import MachineLock
from bisector.app import bisections
from bisector.engine import trial_runner
from bisector.engine.bisection_run import OpenBisection
from bisector.engine.events import Event
from bisector.engine.services import Services
from bisector.engine.trial_kernels import TrialKernels
from bisector.errors import (
    BootFailed,
    FirmwareChanged,
    InfrastructureError,
    Interrupted,
    RecordsUnusable,
    RequestError,
    TestbedLost,
    WorkloadFailed,
)
from bisector.model.decisions import Conclusion, Decision, Ending, Measure
from bisector.model.records import Booted, Built, Left, Ran, Record, RunFailed
from bisector.model.state import State, fold
from bisector.model.stored_bisection import Stored
from bisector.ports import Job, Kernel, Monitor, Progress, RunResult
from bisector.schemas.request import read_accepted
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fake_testbed import FakeSession, FakeTestbed
from bisector.testing.fakes import FakeBuilder, Faults, Pace
from tests.support import fake_bisection as fake
from tests.support.waiting import until

END = Conclusion(Ending.INCONCLUSIVE, "the script is over")


class Script:
    """A planner that wants so many samples of some commits, in order; goes on in a live boot."""

    def __init__(self, wanted: Sequence[tuple[int, int]], a_visit: int = 100) -> None:
        self.wanted, self.a_visit = wanted, a_visit

    def next(self, state: State) -> Decision:
        busy = {m.commit for m in state.pending}
        for commit, runs in self.wanted:
            if commit in state.untestable or commit in busy:
                continue
            visits = [v for v in state.visits if v.commit == commit]
            missing = runs - sum(len(v.samples) for v in visits)
            twin = any(
                c != commit and b == state.binaries.get((commit, 0)) for (c, _), b in state.binaries.items()
            )
            if missing > 0 and not twin:
                boots = [v.boot for v in visits if v.live and v.testbed == state.idle]
                return Measure(
                    commit, min(missing, self.a_visit), "search", "scripted", boots[0] if boots else None
                )
        return END


Kind = TypeVar("Kind")


class Bench:
    """One bisection on fakes, driven trial by trial."""

    def __init__(
        self,
        folder: Path,
        script: Sequence[tuple[int, int]],
        faults: Faults | None = None,
        lab: SyntheticLab | None = None,
        a_visit: int = 100,
        warmup: int = 0,
        testbeds: tuple[str, ...] = ("fake",),
    ) -> None:
        self.lab = lab or fake.a_lab()
        self.store = MemoryStore()
        self.events: list[Event] = []
        self.stop = threading.Event()
        self.services: Services = _with(
            fake.services(
                self.lab, folder, store=self.store, faults=faults, warmup=warmup, testbeds=testbeds
            ),
            planner=Script(script, a_visit),
        )
        self.stored: Stored = fake.begin(self.store, self.lab, testbeds)
        self.runner = self.again()

    def again(self) -> OpenBisection:
        self.runner = OpenBisection.take_up(self.stored, self.services, self.events.append, self.stop)
        return self.runner

    def run(self, testbed: str = "fake", most: int = 60) -> None:
        for _ in range(most):
            decision = self.runner.decider.decide(testbed)
            if isinstance(decision, Conclusion):
                self.runner.conclude(decision)
                return
            assert isinstance(decision, Measure)
            failed = self.runner.carry_out(decision, testbed)
            if failed is not None:
                raise failed
        raise AssertionError("it does not end")

    @property
    def records(self) -> list[Record]:
        return [record for _, record in self.store.records(self.stored.id)]

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [r for r in self.records if isinstance(r, kind)]

    def state(self) -> State:
        return fold(self.lab.graph, read_accepted(self.stored.request).the_goal(), self.records)


def faults_of(kind: str, places: Any) -> Faults:
    return Faults(**{kind: places})


def _with(services: Services, **changes: Any) -> Services:
    import dataclasses

    return dataclasses.replace(services, **changes)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.0)


def untestable(kind: str) -> SyntheticLab:
    lab = fake.a_lab()
    lab.untestable[5] = kind
    return lab


def test_every_unit_is_recorded_in_the_order_it_happened(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 3), (6, 1)], a_visit=2)
    bench.run()
    names = [type(r).__name__ for r in bench.records]
    assert names == ["Built", "Booted", "Ran", "Ran", "Ran", "Left", "Built", "Booted", "Ran", "Left"]
    assert [r.index for r in bench.of(Ran)] == [0, 1, 2, 0]
    assert bench.store.status(bench.stored.id) == "done"
    assert bench.store.load(bench.stored.id).conclusion == END


def test_a_boot_lives_across_decisions(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 4)], a_visit=1)
    bench.run()
    assert len(bench.of(Booted)) == 1
    assert len(bench.of(Ran)) == 4


def test_a_boot_has_other_random_numbers_where_that_was_decided_and_its_record_says_so(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, [], lab=fake.a_lab(model=LabModel(clock="instructions", copied=True)))
    for fresh in (False, False, True, True):
        bench.runner.carry_out(Measure(5, 2, "search", "scripted", fresh_seed=fresh), "fake")
    assert [booted.fresh_seed for booted in bench.of(Booted)] == [False, False, True, True]
    first, copy, *others = [visit.samples for visit in bench.state().visits]
    assert first == copy
    assert len({first, *others}) == 3


def test_warm_up_runs_are_recorded_and_are_no_samples(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 2)], warmup=2)
    bench.run()
    assert [(r.index, r.warmup) for r in bench.of(Ran)] == [(0, True), (1, True), (2, False), (3, False)]
    assert len(bench.state().visits[0].samples) == 2


def test_raw_output_of_every_run_is_kept_and_noted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 2)])
    bench.run()
    assert bench.of(Ran)
    for record in bench.of(Ran):
        assert repr(record.values["simulated"]) in Path(record.raw).read_text()


@pytest.mark.parametrize(("bad", "untestable"), [(4, False), (1000, True)])
def test_a_kernel_whose_runs_never_count_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: int, untestable: bool
) -> None:
    measure = FakeSession.run

    def flagged(self: FakeSession, index: int) -> RunResult:
        result = measure(self, index)
        return dataclasses.replace(result, flags=("clock",)) if index < bad else result

    monkeypatch.setattr(FakeSession, "run", flagged)
    bench = Bench(tmp_path, [(5, 2)])
    bench.run()
    if untestable:  # in two boots, as every failure
        assert [len(v.flagged) for v in bench.state().visits] == [5, 5]
        assert "none of 5 runs can be counted: clock" in bench.state().untestable[5]
    else:
        assert 5 not in bench.state().untestable
        assert len(bench.state().visits[0].samples) >= 1


# --- kernels that fail ----------------------------------------------------------------------------


def test_a_commit_that_does_not_build_is_untestable_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 2), (6, 1)], lab=untestable("build"))
    bench.run()
    assert [(r.commit, r.ok) for r in bench.of(Built)] == [(5, False), (6, True)]
    assert "does not build" in bench.state().untestable[5]
    assert "expected ';'" in bench.of(Built)[0].details


def test_a_commit_that_does_not_boot_twice_is_untestable(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 2), (6, 1)], lab=untestable("boot"))
    bench.run()
    assert [(r.commit, r.ok) for r in bench.of(Booted)] == [(5, False), (6, True)]
    assert "does not boot" in bench.state().untestable[5]
    assert sum(e.kind == "trouble" for e in bench.events) == 2


def test_a_boot_that_fails_once_is_tried_again_and_not_held_against_the_commit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 2)], Faults(boot={1: BootFailed("panic")}))
    bench.run()
    assert [r.ok for r in bench.of(Booted)] == [True]
    assert not bench.state().untestable
    assert len(bench.of(Ran)) == 2


def test_a_kernel_that_dies_in_two_runs_is_untestable(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 4), (6, 1)], Faults(run={2: BootFailed("oops"), 3: BootFailed("oops")}))
    bench.run()
    assert [r.failure for r in bench.of(RunFailed)] == ["oops"]
    assert "workload fails: oops" in bench.state().untestable[5]


def test_a_kernel_that_dies_in_one_run_gets_a_new_boot_and_keeps_its_samples(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 4)], Faults(run={3: BootFailed("oops")}))
    bench.run()
    assert [len(v.samples) for v in bench.state().visits] == [2, 2]
    assert not bench.of(RunFailed)


@pytest.mark.parametrize("fault", ["no_workload", "no_metric", "nan"])
def test_a_workload_that_fails_in_two_boots_makes_the_commit_untestable(tmp_path: Path, fault: str) -> None:
    bench = Bench(tmp_path, [(5, 2), (6, 1)], faults_of(fault, [5]))
    bench.run()
    assert "workload fails" in bench.state().untestable[5]
    assert len(bench.of(RunFailed)) == 1
    assert 6 not in bench.state().untestable


def test_a_workload_that_fails_in_deployment_is_the_workloads_failure(tmp_path: Path) -> None:
    twice = Faults(boot={1: WorkloadFailed("no library"), 2: WorkloadFailed("no library")})
    bench = Bench(tmp_path, [(5, 2), (6, 1)], twice)
    bench.run()
    assert "workload fails: no library" in bench.state().untestable[5]
    booted = bench.of(Booted)[0]
    assert (booted.commit, booted.ok, booted.failure) == (5, True, ""), "the report counts it as a boot"


# --- kernels that fail on one testbed only --------------------------------------------------------

BOOT, RUN, DEPLOY = BootFailed("no root"), WorkloadFailed("no library"), WorkloadFailed("no space")


def two(folder: Path, on_b: Sequence[tuple[int, int]], **faults: Any) -> Bench:
    """Return a bench whose testbed 'a' is well and whose testbed 'b' has faults and measures `on_b`."""
    bench = Bench(folder, on_b, testbeds=("a", "b"))
    testbeds = {"a": FakeTestbed("a", bench.lab), "b": FakeTestbed("b", bench.lab, faults=Faults(**faults))}
    bench.services = _with(bench.services, testbeds=testbeds)
    bench.again()
    return bench


def carry_out(bench: Bench, testbed: str, commit: int, runs: int = 1) -> InfrastructureError | None:
    return bench.runner.carry_out(Measure(commit, runs, "search", "scripted"), testbed)


@pytest.mark.parametrize(
    "faults",
    [{"boot": {2: BOOT, 3: BOOT}}, {"run": {2: RUN, 3: RUN}}, {"boot": {2: DEPLOY, 3: DEPLOY}}],
    ids=["boot", "run", "deployment"],
)
@pytest.mark.parametrize("measured", [False, True])
def test_a_commit_that_was_measured_elsewhere_is_not_given_up_for_failures_here(
    tmp_path: Path, faults: dict[str, dict[int, Exception]], measured: bool
) -> None:
    bench = two(tmp_path, [], **faults)
    assert carry_out(bench, "b", 7) is None  # the testbed is not new
    assert carry_out(bench, "a", 5 if measured else 6) is None
    failed = carry_out(bench, "b", 5)
    if measured:
        assert failed is not None
        assert " on 'a'; here it does not)" in failed.message
        assert f"perfbisect mark {bench.stored.id} {bench.lab.graph.shas[5][:12]} skip" in failed.cure
        assert not bench.state().untestable
        assert not any(v.live and v.testbed == "b" for v in bench.state().visits)
    else:
        assert failed is None
        assert 5 in bench.state().untestable


OOPS = BootFailed("oops")


@pytest.mark.parametrize(
    ("faults", "believed"),
    [
        ({"boot": {2: BOOT, 3: BOOT}}, False),
        ({"run": {2: OOPS, 3: OOPS}}, True),
        ({"boot": {2: DEPLOY, 3: DEPLOY}}, True),
    ],
    ids=["boot", "run", "deployment"],
)
def test_a_boot_elsewhere_says_nothing_about_the_workload(
    tmp_path: Path, faults: dict[str, dict[int, Exception]], believed: bool
) -> None:
    bench = two(tmp_path, [], **faults)
    carry_out(bench, "b", 7)
    carry_out(bench, "a", 6)
    bench.runner.journal.record(Booted("boot-900", 5, "a", True, 1.0, 1.0))
    failed = carry_out(bench, "b", 5)
    assert (failed is None) == believed == (5 in bench.state().untestable)


@pytest.mark.parametrize("booted", [False, True])
def test_a_testbed_that_never_booted_anything_is_not_believed_where_others_did(
    tmp_path: Path, booted: bool
) -> None:
    bench = two(tmp_path, [], boot={1 + booted: BOOT, 2 + booted: BOOT})
    carry_out(bench, "a", 6)
    if booted:
        carry_out(bench, "b", 7)
    failed = carry_out(bench, "b", 5)
    assert (failed is not None) == (not booted) == (not bench.state().untestable)
    if failed is not None:
        assert failed.message == "no root (a kernel booted on 'a', and never here in this bisection)"


@pytest.mark.parametrize("ran", [False, True])
def test_a_testbed_on_which_the_workload_never_ran_is_not_believed_where_it_did(
    tmp_path: Path, ran: bool
) -> None:
    bench = two(tmp_path, [], run={1 + ran: RUN, 2 + ran: RUN})
    carry_out(bench, "a", 6)
    if ran:
        carry_out(bench, "b", 7)
    failed = carry_out(bench, "b", 5)
    assert (failed is not None) == (not ran) == (not bench.state().untestable)
    if failed is not None:
        assert failed.message.startswith("no library (the workload ran on 'a', and never here")


@pytest.mark.parametrize("faults", [{"boot": {1: BOOT, 2: BOOT}}, {"run": {1: RUN, 2: RUN}}])
def test_the_first_testbed_is_believed_and_so_is_one_whose_others_did_nothing_better(
    tmp_path: Path, faults: dict[str, dict[int, Exception]]
) -> None:
    bench = two(tmp_path, [], **faults)
    assert carry_out(bench, "b", 5) is None
    assert 5 in bench.state().untestable


def test_of_new_testbeds_that_try_at_once_only_the_last_is_believed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 1), (6, 1)], testbeds=("a", "b"), lab=untestable("boot"))
    first, second = bench.runner.decider.decide("b"), bench.runner.decider.decide("a")
    assert isinstance(first, Measure) and isinstance(second, Measure)
    failed = bench.runner.carry_out(first, "b")
    assert failed is not None
    assert "(a kernel never booted here in this bisection, and 'a' is still at work)" in failed.message
    assert not bench.state().untestable
    assert bench.runner.carry_out(first, "a") is None
    assert 5 in bench.state().untestable


def test_what_another_worker_recorded_meanwhile_is_evidence_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = two(tmp_path, [], boot={2: BOOT, 3: BOOT})
    carry_out(bench, "b", 7)
    boot, calls = FakeTestbed.boot, []

    def meanwhile(self: FakeTestbed, *arguments: Any) -> FakeSession:
        calls.append(1)
        if len(calls) == 2:  # the last try, after its build
            bench.store.append(bench.stored.id, Booted("boot-900", 5, "a", True, 1.0, 1.0))
        return boot(self, *arguments)

    monkeypatch.setattr(FakeTestbed, "boot", meanwhile)
    failed = carry_out(bench, "b", 5)
    assert failed is not None
    assert not bench.state().untestable


def test_a_testbed_that_booted_is_believed_while_others_are_at_work(tmp_path: Path) -> None:
    bench = two(tmp_path, [(6, 1)], boot={2: BOOT, 3: BOOT})
    carry_out(bench, "b", 7)
    assert isinstance(bench.runner.decider.decide("a"), Measure)
    assert carry_out(bench, "b", 5) is None
    assert 5 in bench.state().untestable


# --- infrastructure: never evidence about a commit ------------------------------------------------


def test_a_lost_testbed_costs_the_boot_and_nothing_else(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 4)], Faults(run={3: TestbedLost("QEMU was killed")}))
    bench.run()
    assert [r.lost for r in bench.of(Left)] == [True, False]
    assert [len(v.samples) for v in bench.state().visits] == [2, 2]
    assert not bench.state().untestable


@pytest.mark.parametrize("door", ["build", "boot", "run"])
def test_infrastructure_is_tried_three_times(tmp_path: Path, door: str) -> None:
    faults = faults_of(door, {1: InfrastructureError("disk full"), 2: InfrastructureError("disk full")})
    bench = Bench(tmp_path, [(5, 2)], faults)
    bench.run()
    assert len(bench.of(Ran)) == 2
    assert not bench.state().untestable


def test_the_pause_before_each_further_try_is_twice_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that is away for seconds comes back meanwhile; without pauses all tries fail at once."""
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 3.0)
    lost = InfrastructureError("lost")
    bench = Bench(tmp_path, [(5, 2)], faults_of("boot", {1: lost, 2: lost}))
    pauses: list[float] = []
    monkeypatch.setattr(bench.stop, "wait", pauses.append)
    bench.run()
    assert pauses == [3.0, 6.0]


@pytest.mark.parametrize("door", ["build", "boot", "run"])
def test_infrastructure_that_stays_broken_stops_and_can_be_resumed(tmp_path: Path, door: str) -> None:
    faults = faults_of(door, {n: InfrastructureError("disk full") for n in (1, 2, 3)})
    bench = Bench(tmp_path, [(5, 2)], faults)
    with pytest.raises(InfrastructureError, match="disk full"):
        bench.run()
    bench.runner.trials.close()
    assert not bench.state().untestable
    assert not any(v.live for v in bench.state().visits)
    bench.again().trials.close()
    bench.run()
    assert len(bench.of(Ran)) == 2


LOST = InfrastructureError("no answer", details="ssh: no route", cure="look at it")


def outcomes(bench: Bench, trials: int) -> list[InfrastructureError | None]:
    """Carry out so many trials of one boot each, or until the testbed is given up; return how they ended."""
    ended: list[InfrastructureError | None] = []
    while len(ended) < trials and (not ended or ended[-1] is None):
        ended.append(carry_out(bench, "fake", 5 + len(ended)))
    return ended


def test_a_testbed_that_fails_again_and_again_is_given_up_though_each_trial_ends_well(
    tmp_path: Path,
) -> None:
    """Two failures in each trial: the third try worked each time, and the search took three times as long."""
    bench = Bench(tmp_path, [], Faults(boot=dict.fromkeys((1, 2, 4, 5, 7, 8), LOST)))
    *well, error = outcomes(bench, 9)
    assert well == [None, None]
    assert error is not None
    assert error.message == "the testbed 'fake' failed in 5 of its last 7 tries; the last time: no answer"
    assert (error.details, error.cure) == ("ssh: no route", "look at it")
    assert [e.text for e in bench.events if e.kind == "trouble"][-1] == error.message
    assert not bench.state().untestable
    bench.again()
    assert outcomes(bench, 2) == [None] * 2, (
        "whoever takes the search up counts anew: the next try fails, too"
    )


@pytest.mark.parametrize(
    ("faults", "given_up"),
    [
        ({"boot": dict.fromkeys((1, 3, 5, 7, 9), LOST)}, True),
        ({"run": dict.fromkeys((1, 3, 5, 7, 9), LOST)}, True),
        ({"build": dict.fromkeys((1, 3, 5, 7, 9), LOST)}, False),  # not the testbed's
        ({"boot": {n: BootFailed("panic") for n in (1, 3, 5, 7, 9)}}, False),
    ],
)
def test_only_what_the_testbed_broke_is_a_failure_of_it(
    tmp_path: Path, faults: dict[str, Any], given_up: bool
) -> None:
    ended = outcomes(Bench(tmp_path, [], Faults(**faults)), 8)
    assert (ended[-1] is not None) == given_up
    assert len(ended) == (5 if given_up else 8)


def test_faults_of_the_builder_do_not_count_against_the_testbed(tmp_path: Path) -> None:
    lost = InfrastructureError("lost")
    bench = Bench(tmp_path, [(5, 2)], Faults(build={1: lost, 2: lost}, boot={1: lost, 2: lost}))
    bench.run()
    assert len(bench.of(Ran)) == 2


@pytest.mark.parametrize(("door", "raised"), [("build", True), ("boot", False), ("run", False)])
def test_only_what_happens_on_the_testbed_is_its_failure(tmp_path: Path, door: str, raised: bool) -> None:
    """Another testbed would meet a broken builder too."""
    faults = faults_of(door, {n: InfrastructureError("broken") for n in (1, 2, 3)})
    bench = Bench(tmp_path, [(5, 2)], faults)
    decision = bench.runner.decider.decide("fake")
    assert isinstance(decision, Measure)
    try:
        failed = bench.runner.carry_out(decision, "fake")
    except InfrastructureError:
        assert raised
    else:
        assert not raised
        assert failed is not None
        assert failed.message == "broken"


def test_a_further_run_of_a_live_boot_that_is_lost_is_the_testbeds_failure(tmp_path: Path) -> None:
    """Each boot has a run that counts; were they the builder's, the whole search would stop."""
    lost = dict.fromkeys((2, 4, 6), InfrastructureError("broken"))
    bench = Bench(tmp_path, [], Faults(run=lost))
    error = carry_out(bench, "fake", 5, runs=4)
    assert error is not None
    assert error.message == "broken"
    assert len(bench.of(Ran)) == 3


@pytest.mark.parametrize(("failures", "raised"), [(2, False), (3, True)])
def test_records_that_cannot_be_written_are_no_failure_of_the_testbed(
    tmp_path: Path, failures: int, raised: bool
) -> None:
    """A machine that is well was set aside while another program kept the state file locked."""
    bench = Bench(tmp_path, [(5, 2)])
    decision = bench.runner.decider.decide("fake")
    assert isinstance(decision, Measure)
    append, left = bench.store.append, [RecordsUnusable("database is locked")] * failures

    def locked(bisection: str, record: Record) -> int:
        if left and isinstance(record, Ran):
            raise left.pop()
        return append(bisection, record)

    bench.store.append = locked  # type: ignore[method-assign]
    with pytest.raises(RecordsUnusable) if raised else contextlib.nullcontext():
        assert bench.runner.carry_out(decision, "fake") is None
    assert (len(bench.of(Ran)) == 2) is not raised
    assert left == []


def test_a_store_that_cannot_be_written_does_not_keep_guests_alive(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 2)])
    decision = bench.runner.decider.decide("fake")
    assert isinstance(decision, Measure)
    bench.runner.carry_out(decision, "fake")

    def full(*_: object, **__: object) -> int:
        raise InfrastructureError("disk full")

    bench.store.append = full  # type: ignore[method-assign]
    bench.runner.trials.close()
    assert bench.services.testbeds["fake"]._live is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("fault", [LOST, BootFailed("panic")])
def test_a_testbed_is_not_left_to_others_in_the_middle_of_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """What its first boot did would be forgotten: a commit that panics each time is booted for ever."""
    bench = Bench(tmp_path, [], Faults(boot={1: fault}))
    build, asked = TrialKernels.build, list[object]()

    def noted(self: TrialKernels, measure: Measure, testbed: str, leaves: Any = None) -> Kernel | None:
        asked.append(leaves)
        return build(self, measure, testbed)

    monkeypatch.setattr(TrialKernels, "build", noted)

    def wanted() -> bool:
        return True

    bench.runner.carry_out(Measure(5, 1, "search", "scripted"), "fake", wanted)
    assert asked == [wanted, None]


def test_another_firmware_is_not_tried_again_and_its_boot_is_not_recorded(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [])
    testbed = _Telling("fake", bench.lab)
    bench.services = _with(bench.services, testbeds={"fake": testbed})
    bench.again()
    testbed.facts = {"machine.bios": "F2"}
    assert carry_out(bench, "fake", 5) is None
    testbed.facts = {"machine.bios": "F3"}
    failed = carry_out(bench, "fake", 6)
    assert isinstance(failed, FirmwareChanged)
    assert testbed.boots == 2
    assert [r.commit for r in bench.of(Booted)] == [5], "its samples are of another machine"
    assert any("--boot BOOT" in e.text for e in bench.events if e.kind == "trouble"), "what to do about it"


def test_an_image_that_only_the_guest_names_must_stay_the_same_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [])
    testbed = _Telling("fake", bench.lab)
    bench.services = _with(bench.services, testbeds={"fake": testbed}, guest_image="")
    bench.again()
    testbed.facts = {"image": "1234"}
    assert carry_out(bench, "fake", 5) is None
    testbed.facts = {"image": "5678"}
    with pytest.raises(RequestError, match="the guest image changed"):
        carry_out(bench, "fake", 6)


class _Telling(FakeTestbed):
    """A testbed whose boots tell these facts."""

    facts: dict[str, str]

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        session = super().boot(kernel, job, folder, progress)
        session.facts = dataclasses.replace(session.facts, facts=self.facts)
        return session


def test_how_a_boot_failed_that_is_tried_once_more_is_recorded(tmp_path: Path) -> None:
    slow = WorkloadFailed("the workload did not end within 150 s")
    bench = Bench(tmp_path, [(5, 3)], Faults(run={2: slow}))
    bench.run()
    assert bench.of(RunFailed) == []
    assert [(left.boot, left.failure) for left in bench.of(Left)] == [
        ("boot-001", slow.message),
        ("boot-002", ""),
    ]
    assert [len(v.samples) for v in bench.state().visits] == [1, 2]


# --- stopping and starting ------------------------------------------------------------------------


def test_who_takes_up_a_bisection_closes_boots_that_died_and_decides_anew(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 4)], a_visit=2)
    decision = bench.runner.decider.decide("fake")
    assert isinstance(decision, Measure)
    bench.runner.carry_out(decision, "fake")
    assert isinstance(bench.runner.decider.decide("fake"), Measure)  # never carried out
    bench.services.testbeds["fake"].free()  # type: ignore[attr-defined]
    bench.again()  # as after kill -9
    assert bench.of(Left) == [Left("boot-001", lost=True)]
    bench.run()
    assert [len(v.samples) for v in bench.state().visits] == [2, 2]
    assert len(bench.of(Built)) == 1


def test_stopping_is_not_held_against_anybody(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 4)], Faults(run={1: BootFailed("x")}))

    def stopping(event: Event) -> None:
        bench.events.append(event)
        if event.kind == "run":
            bench.stop.set()
            bench.runner.trials.close()

    bench.runner = OpenBisection.take_up(bench.stored, bench.services, stopping, bench.stop)
    with pytest.raises(Interrupted):
        bench.run()
    bench.runner.trials.close()
    assert len(bench.of(Ran)) == 1
    assert not bench.of(RunFailed)
    assert not bench.state().untestable
    assert [r.lost for r in bench.of(Left)] == [False, False]


def test_a_testbed_that_breaks_off_while_told_to_stop_has_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We end guests when we stop: after two real faults the testbed would be set aside."""
    bench = Bench(tmp_path, [])
    calls: list[int] = []

    def dying(*_: object) -> FakeSession:
        calls.append(1)
        if len(calls) == 3:
            bench.stop.set()
        raise LOST

    monkeypatch.setattr(FakeTestbed, "boot", dying)
    with pytest.raises(Interrupted):
        carry_out(bench, "fake", 5)
    assert sum(event.kind == "trouble" for event in bench.events) == 2


def test_a_decision_for_a_boot_that_is_gone_makes_no_runs_in_another(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [])
    assert carry_out(bench, "fake", 5) is None
    assert bench.runner.carry_out(Measure(5, 2, "search", "scripted", "boot-900"), "fake") is None
    assert [(r.boot, r.index) for r in bench.of(Ran)] == [("boot-001", 0)]


def test_marks_and_discards_of_other_processes_are_seen_by_the_next_decision(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 2), (6, 2)])
    decision = bench.runner.decider.decide("fake")
    assert isinstance(decision, Measure)
    bench.runner.carry_out(decision, "fake")
    bisections.mark(bench.store, bench.stored, bench.lab.graph.shas[6], "skip", "known bad")
    bisections.discard(bench.store, bench.stored, "boot", "boot-001", "a backup ran")
    decision = bench.runner.decider.decide("fake")
    assert isinstance(decision, Measure)
    assert decision.commit == 5  # its data are gone; 6 is skipped
    with pytest.raises(RequestError, match="not in the range"):
        bisections.mark(bench.store, bench.stored, "f" * 40, "bad")
    with pytest.raises(RequestError, match="no testbed 'fakk'"):
        bisections.discard(bench.store, bench.stored, "testbed", "fakk", "")


# --- what makes samples comparable, and what saves boots ------------------------------------------


def test_a_commit_with_the_kernel_of_a_measured_one_is_not_booted(tmp_path: Path) -> None:
    model = LabModel(run_noise=0.2, inert=1.0)
    bench = Bench(tmp_path, [(5, 2), (6, 2)], lab=fake.a_lab(model=model))
    bench.run()
    assert [r.commit for r in bench.of(Built)] == [5, 6]
    assert {r.binary for r in bench.of(Built)} == {"b0"}
    assert [r.commit for r in bench.of(Booted)] == [5]


@pytest.mark.parametrize("what", ["workload", "image"])
def test_another_workload_or_image_ends_the_comparison(tmp_path: Path, what: str) -> None:
    bench = Bench(tmp_path, [(5, 2), (6, 2)])
    bench.services = _of(bench.services, what, "1234")
    bench.again()
    decision = bench.runner.decider.decide("fake")
    assert isinstance(decision, Measure)
    bench.runner.carry_out(decision, "fake")
    bench.runner.trials.close()
    bench.services = _of(bench.services, what, "5678")
    bench.again()
    with pytest.raises(RequestError, match="changed since the bisection"):
        bench.run()


def _of(services: Services, what: str, checksum: str) -> Services:
    """Return services whose workload or guest image has a checksum."""
    if what == "image":
        return _with(services, guest_image=checksum)
    make = services.make_job
    return _with(services, make_job=lambda folder: dataclasses.replace(make(folder), checksum=checksum))


def test_a_planner_that_repeats_itself_is_a_defect_and_no_endless_loop(tmp_path: Path) -> None:
    class Stuck:
        def next(self, state: State) -> Decision:
            return Measure(5, 1, "search", "again", "boot-999")

    bench = Bench(tmp_path, [])
    bench.services = _with(bench.services, planner=Stuck())
    bench.again()
    with pytest.raises(InfrastructureError, match="does not move: again"):
        bench.run()


def test_an_id_is_the_name_of_one_folder(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 1)])
    nested = fake.accepted(bench.lab).model_copy(update={"workload": "db-aio/fio"})
    stored, _ = bisections.begin(bench.store, nested, bench.lab.graph, 2.0)
    assert stored.id.startswith("db-aio-fio-")


# --- the same request -----------------------------------------------------------------------------


def test_the_same_request_takes_up_the_unfinished_bisection_and_begins_anew_after_a_finished_one(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, [(5, 1)])
    request = fake.accepted(bench.lab)
    again, new = bisections.begin(bench.store, request, bench.lab.graph, 2.0)
    assert (again.id, new) == (bench.stored.id, False)
    bench.run()
    second, new = bisections.begin(bench.store, request, bench.lab.graph, 3.0)
    assert new
    assert second.id == f"{bench.stored.id}-2"
    bisections.cancel(bench.store, second)
    third, new = bisections.begin(bench.store, request, bench.lab.graph, 4.0)
    assert new
    assert third.id.endswith("-3")
    with pytest.raises(RequestError, match="has ended"):
        bisections.cancel(bench.store, bench.store.load(second.id))


def watching(bench: Bench, *names: str) -> Bench:
    """Have monitors watch the bench's job."""
    make = bench.services.make_job
    monitors = tuple(Monitor(name, ()) for name in names)
    bench.services = _with(bench.services, make_job=lambda folder: _watched(make(folder), monitors))
    bench.again()
    return bench


def _watched(job: Job, monitors: tuple[Monitor, ...]) -> Job:
    return dataclasses.replace(job, monitors=monitors)


def seen_by_monitors(bench: Bench) -> list[tuple[str, str]]:
    """Return (boot, monitor) of everything that monitors gave, in order."""
    return [(record.boot, result.monitor) for record in bench.of(Left) for result in record.monitors]


def test_monitors_have_runs_of_their_own_once_a_commit(tmp_path: Path) -> None:
    bench = watching(Bench(tmp_path, [(5, 2), (6, 1), (5, 4)], a_visit=2), "proc", "dmesg")
    bench.run()
    boots = [r.boot for r in bench.of(Booted)]
    assert [r.commit for r in bench.of(Booted)] == [5, 6, 5]
    assert seen_by_monitors(bench) == [(boot, name) for boot in boots[:2] for name in ("proc", "dmesg")]
    assert len(bench.of(Ran)) == 5
    assert len(bench.state().visits[0].samples) == 2
    bench.again()
    journal = bench.runner.journal
    assert [c for c in range(10) if journal.monitored(c, "fake")] == [5, 6]
    assert not journal.monitored(5, "another")


def test_what_goes_wrong_while_watching_judges_no_commit(tmp_path: Path) -> None:
    faults = Faults(monitor={1: BootFailed("the kernel died while the workload ran")})
    bench = watching(Bench(tmp_path, [(5, 2), (6, 1)], faults), "proc", "dmesg")
    bench.run()
    assert not bench.state().untestable
    assert len(bench.of(Ran)) == 3
    assert not bench.of(RunFailed)
    assert [name for _, name in seen_by_monitors(bench)] == ["proc", "proc", "dmesg"]
    assert [e.text for e in bench.events if e.kind == "trouble"] == [
        "proc: the kernel died while the workload ran"
    ]


def test_what_the_boot_before_has_told_is_known_to_the_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What functions executed is recorded when a boot is left: the next trial was decided before that."""
    bench = watching(Bench(tmp_path, [(5, 1), (6, 1)]), "counters")
    left: list[int] = []

    def learns(kernels: TrialKernels, measure: Measure, testbed: str) -> bool:
        left.append(len(bench.of(Left)))
        return left == [0, 1]

    monkeypatch.setattr(TrialKernels, "weigh_by_functions", learns)
    bench.run()
    assert left == [0, 1, 1], "the second trial is decided again, as the first one behind both ends"
    assert [r.commit for r in bench.of(Booted)] == [5, 6]


def test_a_boot_whose_kernel_failed_is_not_watched(tmp_path: Path) -> None:
    """Monitors disturb what they watch, and may wait for long in a boot that hangs."""
    bench = watching(Bench(tmp_path, [(5, 2)], Faults(run={2: WorkloadFailed("it broke")})), "proc")
    bench.run()
    assert seen_by_monitors(bench) == [("boot-002", "proc")]


def test_a_boot_that_is_lost_or_told_to_end_is_not_watched(tmp_path: Path) -> None:
    faults = Faults(run={2: TestbedLost("gone")})
    bench = watching(Bench(tmp_path, [(5, 2)], faults), "proc")
    decision = bench.runner.decider.decide("fake")
    assert isinstance(decision, Measure)
    bench.runner.carry_out(decision, "fake")
    assert seen_by_monitors(bench) == []
    bench.stop.set()
    bench.runner.trials.close()
    assert seen_by_monitors(bench) == []
    assert [r.lost for r in bench.of(Left)] == [True, False]


class _StopsWhileItBoots(FakeTestbed):
    """A machine whose bisection is told to stop when its boot is nearly there."""

    stop: threading.Event

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        session = super().boot(kernel, job, folder, progress)
        self.stop.set()
        return session


def test_a_boot_that_was_not_recorded_is_not_left(tmp_path: Path) -> None:
    """On another host its name is free: that boot's records would have an end before their beginning."""
    bench = Bench(tmp_path, [(5, 1)])
    testbed = _StopsWhileItBoots("fake", bench.lab)
    testbed.stop = bench.stop
    bench.services = _with(bench.services, testbeds={"fake": testbed})
    bench.again()
    with pytest.raises(Interrupted):
        bench.run()
    bench.runner.trials.close()
    assert [*bench.of(Booted), *bench.of(Left)] == []


class _Bare(FakeTestbed):
    """A machine that lacks a setting which the workload asks for."""

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        session = super().boot(kernel, job, folder, progress)
        absent = {"setting.turbo.before": "absent", "setting.turbo.after": "absent"}
        session.facts = dataclasses.replace(session.facts, facts=absent)
        return session


def test_what_cannot_be_set_is_told_once_and_not_with_each_boot(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [(5, 1), (6, 1)])
    bench.services = _with(bench.services, testbeds={"fake": _Bare("fake", bench.lab)})
    bench.again()
    bench.run()
    assert len(bench.of(Booted)) == 2
    told = [event.text for event in bench.events if event.text.startswith("turbo")]
    assert told == ["turbo: not set: there is no such setting here"]


def test_a_kernel_failure_while_told_to_stop_is_no_failure_of_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We end guests when we stop: the second 'failure' would skip the commit for good."""
    bench = Bench(tmp_path, [(5, 2)], Faults(boot={1: BootFailed("panic")}))
    boot = FakeTestbed.boot
    calls = []

    def dying(self: FakeTestbed, *arguments: Any) -> FakeSession:
        calls.append(1)
        if len(calls) == 2:
            bench.stop.set()
            raise BootFailed("it is gone")
        return boot(self, *arguments)

    monkeypatch.setattr(FakeTestbed, "boot", dying)
    decision = bench.runner.decider.decide("fake")
    assert isinstance(decision, Measure)
    with pytest.raises(Interrupted):
        bench.runner.carry_out(decision, "fake")
    assert len(calls) == 2
    assert not bench.state().untestable
    assert not bench.of(RunFailed)


def test_the_planner_is_told_what_the_other_testbeds_do_and_not_what_the_asking_one_did(
    tmp_path: Path,
) -> None:
    asked: list[tuple[str | None, list[int]]] = []

    class Asked:
        def next(self, state: State) -> Decision:
            asked.append((state.idle, [m.commit for m in state.pending]))
            return Measure(5 + len(asked), 1, "search", "why")

    bench = Bench(tmp_path, [], testbeds=("a", "b"))
    bench.services = _with(bench.services, planner=Asked())
    runner = bench.again()
    first = runner.decider.decide("a")
    runner.decider.decide("b")
    runner.decider.decide("a")
    assert asked == [("a", []), ("b", [6]), ("a", [7])]
    assert isinstance(first, Measure)
    runner.carry_out(first, "a")
    runner.decider.decide("b")
    assert asked[-1] == ("b", []), "a trial that has ended is not pending"


class _Watched(FakeTestbed):
    """A testbed whose runs lie within a context of the test's."""

    def __init__(
        self, name: str, lab: SyntheticLab, around: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        super().__init__(name, lab)
        self.around = around

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        session = super().boot(kernel, job, folder, progress)
        run = session.run

        def watched(index: int) -> RunResult:
            with self.around():
                return run(index)

        session.run = watched  # type: ignore[method-assign]
        return session


def carry_out_together(bench: Bench, testbeds: Sequence[str]) -> None:
    """Carry out one trial on each testbed at once."""
    trials = [(bench.runner.decider.decide(name), name) for name in testbeds]
    threads = [threading.Thread(target=bench.runner.carry_out, args=trial, daemon=True) for trial in trials]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def measure_on(folder: Path, hosts: Sequence[str], around: Callable[[], AbstractContextManager[Any]]) -> int:
    """Measure three runs on each of three testbeds of these hosts at once; return how many were recorded."""
    names = ("a", "b", "c")
    bench = Bench(folder, [(5, 3), (6, 3), (7, 3)], testbeds=names)
    turns = [
        MachineLock(folder / "locks", (host,), "its turn", "the test", bench.stop.is_set) for host in hosts
    ]
    testbeds = {
        name: TestbedOnHost(_Watched(name, bench.lab, around), turn)
        for name, turn in zip(names, turns, strict=True)
    }
    bench.services = _with(bench.services, testbeds=testbeds)
    bench.again()
    carry_out_together(bench, names)
    bench.runner.trials.close()
    return len(bench.of(Ran))


def test_testbeds_on_three_hosts_measure_side_by_side(tmp_path: Path) -> None:
    """Each run waits for the two others: they end only if nothing lets one testbed wait for another."""
    together = threading.Barrier(3, timeout=60)

    @contextlib.contextmanager
    def all_three() -> Iterator[None]:
        together.wait()
        yield

    assert measure_on(tmp_path, ("one", "two", "three"), all_three) == 9


def test_testbeds_on_one_host_measure_one_at_a_time(tmp_path: Path) -> None:
    alone = threading.Lock()
    met: list[bool] = []

    @contextlib.contextmanager
    def nobody_else() -> Iterator[None]:
        met.append(not alone.acquire(blocking=False))
        time.sleep(0.01)  # time for another to come
        yield
        alone.release()

    assert measure_on(tmp_path, ("one", "one", "one"), nobody_else) == 9
    assert met == [False] * 9


def test_waiting_for_the_host_is_no_part_of_what_a_boot_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, [(5, 1)])
    boot = FakeTestbed.boot

    def waited(self: FakeTestbed, *what: Any) -> FakeSession:
        session = boot(self, *what)
        session.facts = dataclasses.replace(session.facts, waited_seconds=1e6)
        return session

    monkeypatch.setattr(FakeTestbed, "boot", waited)
    bench.run()
    (booted,) = bench.of(Booted)
    assert booted.seconds < 0.0  # less than it says it waited


def test_a_trial_that_has_failed_once_is_not_left_for_its_kernel(tmp_path: Path) -> None:
    """Else what is tried twice would begin anew each time, and a kernel that never boots never be judged."""
    bench = Bench(tmp_path, [], Faults(boot={1: OOPS, 2: OOPS}))
    slow = partial(FakeBuilder, bench.lab, tmp_path / "kernels", pace=Pace(build=0.5))
    bench.services = _with(bench.services, builders=[lambda stop: slow()])
    runner = bench.again()
    trial = Measure(5, 1, "search", "scripted")
    assert runner.carry_out(trial, "fake", lambda: True) is None
    assert bench.records == [], "left at once"
    until(lambda: not runner.kernels.is_awaited("fake"), 30)
    (tmp_path / "kernels" / "builds.log").unlink()
    for kernel in (tmp_path / "kernels").iterdir():
        kernel.unlink()  # so that the second try has to wait for a build
    runner.carry_out(trial, "fake", lambda: True)
    assert 5 in bench.state().untestable
