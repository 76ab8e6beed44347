"""Kernels for trials: what a build records, and what an interruption must not."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine.events import Event, EventSender
from bisector.engine.journal import Journal
from bisector.engine.trial_kernels import TrialKernels, _note_on_weights
from bisector.errors import BuildFailed, InfrastructureError, Interrupted
from bisector.model.decisions import Measure
from bisector.model.facts import KernelFacts
from bisector.model.goal import Find, Goal
from bisector.model.records import Booted, Built, Discarded, FunctionEvidence, Irrelevant, Record, Weighed
from bisector.model.state import State
from bisector.ports import BuildOrder, Kernel, Progress
from bisector.testing.fakes import FakeBuilder
from tests.support import fake_bisection as fake
from tests.support.report_material import METRIC
from tests.support.waiting import until


class Bench:
    """The kernels of one bisection, with a builder of the test's own."""

    def __init__(self, folder: Path, build: Callable[[BuildOrder], Kernel] | None = None) -> None:
        lab, store = fake.a_lab(), MemoryStore()
        stored = fake.begin(store, lab)
        self.stop = threading.Event()
        self.events: list[Event] = []
        real = FakeBuilder(lab, folder / "kernels")

        class Builder:
            def build(self, order: BuildOrder, progress: Progress) -> Kernel:
                return build(order) if build is not None else real.build(order, progress)

            def cached(self, order: BuildOrder) -> Kernel | None:
                return None

        services = fake.services(lab, folder, store=store)
        self.services = dataclasses.replace(
            services,
            builders=[lambda stop: Builder()],
            irrelevant=lambda graph: Irrelevant((1, 2), {"compiled": 3}, 2),
            weigh=lambda graph, irrelevant, functions: Weighed(
                (3, 4), (1.5, 0.5), len(irrelevant), functions
            ),
        )
        accepted = fake.accepted(lab)
        self.journal = Journal(store, stored.id, lab.graph, accepted.the_goal(), folder / "bisection")
        sender = EventSender(self.events.append, lambda: self.journal.state.costs)
        self.kernels = TrialKernels(accepted, lab.graph, self.services, self.journal, sender, self.stop)

    @property
    def records(self) -> tuple[Record, ...]:
        return self.journal.state.records


@contextmanager
def closing(bench: Bench) -> Iterator[Bench]:
    try:
        yield bench
    finally:
        bench.kernels.close()


def trial(commit: int, layout: int = 0) -> Measure:
    return Measure(commit, 1, "search", "why", layout=layout)


@pytest.mark.parametrize("fails", [False, True])
def test_two_testbeds_that_wait_for_one_kernel_record_one_build(tmp_path: Path, fails: bool) -> None:
    builder = FakeBuilder(fake.a_lab(), tmp_path / "kernels")

    def slowly(order: BuildOrder) -> Kernel:
        time.sleep(0.2)  # until both wait
        if fails:
            raise BuildFailed("no")
        return builder.build(order, lambda text: None)

    with closing(Bench(tmp_path, slowly)) as bench:
        threads = [threading.Thread(target=bench.kernels.build, args=(trial(3), name)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert [r.ok for r in bench.records if isinstance(r, Built)] == [not fails]


def test_a_build_is_recorded_once_with_what_is_known_of_the_kernel(tmp_path: Path) -> None:
    with closing(Bench(tmp_path)) as bench:
        assert bench.kernels.build(trial(3), "t") is not None
        assert bench.kernels.build(trial(3), "t") is not None
        (built,) = [r for r in bench.records if isinstance(r, Built)]
        assert (built.commit, built.ok) == (3, True)
        assert built.kernel is not None and built.kernel.options == {"FAKE": "y"}
        assert [e.text for e in bench.events if e.kind == "build"] == ["the kernel is built"]


def test_what_is_tried_is_another_commit_with_patches_of_its_own(tmp_path: Path) -> None:
    orders: list[BuildOrder] = []

    def note(order: BuildOrder) -> Kernel:
        orders.append(order)
        return Kernel(
            order.sha, "fake", order.sha, tmp_path, tmp_path, tmp_path, "6.1", "", 1.0, cached=False
        )

    with closing(Bench(tmp_path, note)) as bench:
        shas, common, own = fake.a_lab().graph.shas, Path("/common.patch"), Path("/own.patch")
        bench.kernels._services = dataclasses.replace(
            bench.services, patches=(common,), patched={shas[3]: (shas[2], (own,))}
        )
        bench.kernels.build(trial(2), "t")
        bench.kernels.build(trial(3, layout=1), "t")
    assert [(one.sha, one.layout, one.patches) for one in orders] == [
        (shas[2], 0, (common,)),
        (shas[2], 1, (common, own)),
    ]


def test_a_kernel_of_an_earlier_bisection_is_said_to_be_in_the_cache(tmp_path: Path) -> None:
    """Else whoever watches wonders at a build of no seconds."""
    path = tmp_path / "image"

    def found(order: BuildOrder) -> Kernel:
        return Kernel(order.sha, "fake", order.sha, path, path, path, "6.1", "", 0.0, cached=True)

    with closing(Bench(tmp_path, found)) as bench:
        bench.kernels.build(trial(3), "t")
        assert [e.text for e in bench.events if e.kind == "build"] == ["the kernel is in the cache"]


def test_a_commit_that_does_not_build_is_recorded_with_its_log(tmp_path: Path) -> None:
    def fail(order: BuildOrder) -> Kernel:
        raise BuildFailed("a.c:1: error ", details="the log")

    with closing(Bench(tmp_path, fail)) as bench:
        assert bench.kernels.build(trial(3), "t") is None
        (built,) = [r for r in bench.records if isinstance(r, Built)]
        assert (built.ok, built.failure, built.details) == (False, "a.c:1: error", "the log")
        assert bench.journal.state.untestable == {3: "does not build: a.c:1: error"}


def test_a_build_that_fails_because_it_was_interrupted_says_nothing_of_the_commit(tmp_path: Path) -> None:
    """A compiler that Ctrl-C ends exits as one that fails: recorded, the commit would be skipped for good."""

    def fail(order: BuildOrder) -> Kernel:
        bench.stop.set()
        raise BuildFailed("interrupted")

    bench = Bench(tmp_path, fail)
    with closing(bench), pytest.raises(Interrupted):
        bench.kernels.build(trial(3), "t")
    assert bench.records == ()


def test_commits_that_cannot_change_the_kernel_are_recorded_when_they_are_others_than_before(
    tmp_path: Path,
) -> None:
    with closing(Bench(tmp_path)) as bench:
        bench.kernels.build(trial(3), "t")
        bench.kernels.build(trial(4), "t")
        assert [r.commits for r in bench.records if isinstance(r, Irrelevant)] == [(1, 2)]
        assert [r.commits for r in bench.records if isinstance(r, Weighed)] == [(3, 4)]
        assert bench.journal.state.graph.weights[3] == 1.5
        told = [e.text for e in bench.events if "priors" in e.text]
        assert told == [
            "the other 2 have priors by the folders that they change; 2 that a later fix or revert names "
            "have more"
        ]


@pytest.mark.parametrize(
    ("find", "scan", "named", "said"),
    [
        ("regression", False, 1, "1 that a later fix or revert names has more"),
        ("fix", False, 2, "2 that mend or revert an older one have more"),
        ("regression", True, 2, "2 that a fix or revert names, or that mend or revert one, have more"),
        ("fix", True, 2, "2 that a fix or revert names, or that mend or revert one, have more"),
    ],
)
def test_the_note_says_at_which_commits_messages_point(find: Find, scan: bool, named: int, said: str) -> None:
    told = _note_on_weights(Weighed((3,), (1.0,), named), Goal(METRIC, find=find, scan=scan))
    assert told == f"the other one has priors by the folders that it changes; {said}"


TOLD = FunctionEvidence(differ=(4,), call=(), elsewhere=(3,))


def functions(bench: Bench, find: Callable[[State], FunctionEvidence | None]) -> list[State]:
    """Have the bench ask this, once a kernel was built; return what it is asked with."""
    asked: list[State] = []

    def note(state: State, progress: Progress) -> FunctionEvidence | None:
        asked.append(state)
        progress("reading what commits change")
        return find(state)

    bench.kernels._services = dataclasses.replace(bench.services, functions=note)
    bench.kernels.build(trial(3), "t")
    return asked


def weighed(bench: Bench) -> list[FunctionEvidence | None]:
    return [r.functions for r in bench.records if isinstance(r, Weighed)]


def test_commits_are_weighed_once_more_by_functions_as_soon_as_these_tell_anything(tmp_path: Path) -> None:
    answers = [None, TOLD]
    with closing(Bench(tmp_path)) as bench:
        asked = functions(bench, lambda state: answers.pop(0))
        assert not bench.kernels.weigh_by_functions(trial(3), "t")
        assert weighed(bench) == [None]
        assert bench.kernels.weigh_by_functions(trial(4), "t")
        assert weighed(bench) == [None, TOLD]
        assert not bench.kernels.weigh_by_functions(trial(3), "t")
        assert len(asked) == 2
        assert [e.text for e in bench.events][-1] == (
            "the other 2 have priors by the folders that they change, and by what the functions that differ "
            "between the ends tell: 1 changes or calls one; 2 that a later fix or revert names have more; "
            "this trial is decided anew"
        )


def test_functions_are_not_read_for_a_trial_of_the_ends_or_a_proof_or_before_both_were_built(
    tmp_path: Path,
) -> None:
    with closing(Bench(tmp_path)) as bench:
        asked = functions(bench, lambda state: TOLD)
        for purpose in ("verify", "certify"):
            assert not bench.kernels.weigh_by_functions(Measure(4, 1, purpose, "why"), "t")
    with closing(Bench(tmp_path / "none")) as bench:
        bench.services = dataclasses.replace(bench.services, irrelevant=lambda graph: None)
        asked += functions(bench, lambda state: TOLD)
        assert not bench.kernels.weigh_by_functions(trial(4), "t")
        assert weighed(bench) == []
    assert asked == []


def test_what_functions_tell_is_kept_by_later_weights_and_by_who_takes_the_bisection_up(
    tmp_path: Path,
) -> None:
    with closing(Bench(tmp_path)) as bench:
        functions(bench, lambda state: TOLD)
        bench.kernels.weigh_by_functions(trial(4), "t")
        resumed = TrialKernels(
            bench.kernels._accepted,
            bench.journal.state.graph,
            dataclasses.replace(
                bench.kernels._services,
                irrelevant=lambda graph: Irrelevant((1,), {"compiled": 4}, 3),
                functions=lambda *_: pytest.fail("it is recorded"),
            ),
            bench.journal,
            EventSender(bench.events.append, lambda: bench.journal.state.costs),
            bench.stop,
        )
        assert not resumed.weigh_by_functions(trial(4), "t")
        resumed.build(trial(4), "t")
        resumed.close()
        assert weighed(bench) == [None, TOLD, TOLD]


def test_what_another_worker_read_meanwhile_is_not_recorded_again(tmp_path: Path) -> None:
    def meanwhile(state: State) -> FunctionEvidence:
        bench.journal.store.append(bench.journal.id, Weighed((3, 4), (1.5, 0.5), 2, TOLD))
        return FunctionEvidence((), (), ())

    with closing(Bench(tmp_path)) as bench:
        functions(bench, meanwhile)
        assert bench.kernels.weigh_by_functions(trial(4), "t"), "it is decided anew"
        assert weighed(bench) == [None, TOLD]


def test_a_history_that_cannot_be_read_is_told_once_and_the_search_goes_on(tmp_path: Path) -> None:
    def fail(state: State) -> FunctionEvidence:
        raise InfrastructureError("git cannot read the repository /linux")

    with closing(Bench(tmp_path)) as bench:
        asked = functions(bench, fail)
        for _ in range(2):
            assert not bench.kernels.weigh_by_functions(trial(4), "t")
        assert len(asked) == 1
        assert weighed(bench) == [None]
        assert [e.text for e in bench.events if "no priors" in e.text] == [
            "no priors by the functions that differ between the ends: git cannot read the repository /linux"
        ]


def test_who_is_told_to_stop_while_it_reads_says_nothing_of_it(tmp_path: Path) -> None:
    def stopped(state: State) -> FunctionEvidence:
        bench.stop.set()
        raise InfrastructureError("git was killed")

    with closing(Bench(tmp_path)) as bench:
        functions(bench, stopped)
        with pytest.raises(Interrupted):
            bench.kernels.weigh_by_functions(trial(4), "t")
        assert not any("no priors" in e.text for e in bench.events)


def test_another_testbed_goes_on_while_one_reads_what_commits_change(tmp_path: Path) -> None:
    with closing(Bench(tmp_path)) as bench:

        def slowly(state: State) -> FunctionEvidence:
            other: list[bool] = []
            thread = threading.Thread(
                target=lambda: other.append(bench.kernels.weigh_by_functions(trial(3), "t"))
            )
            thread.start()
            thread.join(30)
            assert other == [False]
            return TOLD

        asked = functions(bench, slowly)
        assert bench.kernels.weigh_by_functions(trial(4), "t")
        assert len(asked) == 1


def test_layouts_are_kernels_of_their_own(tmp_path: Path) -> None:
    with closing(Bench(tmp_path)) as bench:
        bench.kernels.build(trial(3), "t")
        bench.kernels.build(trial(3, layout=1), "t")
        assert [(r.commit, r.layout) for r in bench.records if isinstance(r, Built)] == [(3, 0), (3, 1)]


@pytest.mark.parametrize(("measuring", "looks"), [((), True), ((0,), True), ((0, 1), False)])
def test_nothing_is_decided_ahead_where_every_builder_would_disturb_a_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measuring: tuple[int, ...], looks: bool
) -> None:
    looked = threading.Event()
    monkeypatch.setattr(TrialKernels, "_look_ahead", lambda kernels, limit, pending: looked.set())
    with closing(Bench(tmp_path)) as bench:
        bench.kernels._services = dataclasses.replace(
            bench.services,
            builders=[*bench.services.builders, *bench.services.builders],
            measuring_builders=frozenset(measuring),
        )
        accepted = bench.kernels._accepted
        request = accepted.request.model_copy(update={"build_ahead": 2})
        bench.kernels._accepted = accepted.model_copy(update={"request": request})
        bench.kernels.ahead([])
        assert looked.wait(20 if looks else 0.2) is looks


class _Planner:
    """Decides what a test says, one after the other; an exception is raised."""

    def __init__(self, *decisions: Measure | Exception) -> None:
        self.left = list(decisions)

    def next(self, state: State) -> Measure:
        decision = self.left.pop(0)
        if isinstance(decision, Exception):
            raise decision
        return decision


def looked_ahead(bench: Bench, planner: _Planner, limit: int) -> list[BuildOrder]:
    """Return what is asked for ahead when the planner decides so."""
    asked: list[BuildOrder] = []
    bench.kernels._services = dataclasses.replace(bench.services, planner=planner)
    bench.kernels._queue.ahead = asked.extend  # type: ignore[assignment,method-assign]
    bench.kernels._look_ahead(limit, [])
    return asked


def test_what_is_built_ahead_is_what_the_planner_would_measure_and_is_not_built_yet(tmp_path: Path) -> None:
    with closing(Bench(tmp_path)) as bench:
        bench.kernels.build(trial(3), "t")
        asked = looked_ahead(bench, _Planner(*(trial(n) for n in (3, 5, 7, 9, 11))), 2)
        assert [order.sha for order in asked] == [bench.kernels._graph.shas[n] for n in (5, 7)]


def test_looking_ahead_ends_where_the_planner_fails_as_a_trial_would_meet_it(tmp_path: Path) -> None:
    with closing(Bench(tmp_path)) as bench:
        asked = looked_ahead(bench, _Planner(trial(5), InfrastructureError("no disk")), 3)
        assert [order.sha for order in asked] == [bench.kernels._graph.shas[5]]


def test_a_defect_in_looking_ahead_is_not_hidden(tmp_path: Path) -> None:
    with closing(Bench(tmp_path)) as bench, pytest.raises(ZeroDivisionError):
        looked_ahead(bench, _Planner(ZeroDivisionError()), 3)


GCC_12 = {"compiler": "gcc", "toolchain": "gcc 12"}


@pytest.mark.parametrize(
    ("second", "now", "wrong"),
    [
        (trial(5), {}, ""),
        (trial(6), {}, ""),
        (trial(6), {"toolchain": "gcc 14"}, "is not the one that built"),
        (trial(6), {"compiler": "gcc-4", "toolchain": "gcc 4"}, ""),  # kernels of another age need it
        (trial(6), {"compiler": "", "toolchain": "gcc 14"}, ""),
        (trial(5), {"compiler": "", "toolchain": "gcc 14"}, "is not the one that built"),
        (trial(5), {"toolchain": ""}, ""),
        (trial(5), {"binary": "another"}, "the kernel is another one"),
        (trial(5, layout=1), {"binary": "another"}, ""),
        (trial(6), {"binary": "another"}, ""),
    ],
)
def test_kernels_that_cannot_be_compared_are_infrastructure_and_not_recorded(
    tmp_path: Path, second: Measure, now: dict[str, Any], wrong: str
) -> None:
    """Two builders, or hosts, may have two compilers: their difference would be taken for a commit's."""
    changes: list[dict[str, Any]] = [dict(GCC_12), {**GCC_12, **now}]
    real = FakeBuilder(fake.a_lab(), tmp_path / "kernels")
    with closing(
        Bench(
            tmp_path,
            lambda order: dataclasses.replace(real.build(order, lambda text: None), **changes.pop(0)),
        )
    ) as bench:
        bench.kernels.build(trial(5), "a")
        bench.journal.record(Booted("boot-001", 5, "a", True, 1.0, 0.0))
        known = bench.records
        if not wrong:
            bench.kernels.build(second, "a")
            return
        with pytest.raises(InfrastructureError, match=wrong) as error:
            bench.kernels.build(second, "a")
        assert bench.records == known
        then, after = error.value.details.splitlines()
        assert then.startswith("then ") and after.startswith("now  ") and then[5:] != after[5:]


def test_a_kernel_that_another_worker_built_meanwhile_by_another_compiler_is_seen(tmp_path: Path) -> None:
    """Both would be measured in one search, and the compilers' difference taken for a commit's."""
    real = FakeBuilder(fake.a_lab(), tmp_path / "kernels")

    def build(order: BuildOrder) -> Kernel:
        facts = KernelFacts(toolchain="gcc 14", compiler="gcc")
        other = Built(6, True, 1.0, "another", kernel=facts)
        bench.journal.store.append(bench.journal.id, other)
        kernel = real.build(order, lambda text: None)
        return dataclasses.replace(kernel, toolchain="gcc 12", compiler="gcc")

    with closing(Bench(tmp_path, build)) as bench:
        with pytest.raises(InfrastructureError, match="is not the one that built"):
            bench.kernels.build(trial(5), "a")
        assert [r.commit for r in bench.records if isinstance(r, Built)] == [6]


def test_another_kernel_takes_the_place_of_one_of_which_no_boot_counts(tmp_path: Path) -> None:
    """Where a search goes on elsewhere, the kernels are built again, and some may come out as others."""
    binaries = iter("abccde")
    real = FakeBuilder(fake.a_lab(), tmp_path / "kernels")

    def build(order: BuildOrder) -> Kernel:
        return dataclasses.replace(real.build(order, lambda text: None), binary=next(binaries))

    def built(bench: Bench) -> list[str]:
        return [record.binary for record in bench.records if isinstance(record, Built)]

    with closing(Bench(tmp_path, build)) as bench:
        bench.kernels.build(trial(5), "t")
        for boot in ("boot-001", "boot-002"):
            bench.journal.record(Booted(boot, 5, "t", True, 1.0, 0.0))
        bench.journal.record(Discarded("boot", "boot-001", ""))
        with pytest.raises(InfrastructureError, match="another one") as error:
            bench.kernels.build(trial(5), "t")
        assert "count no more (boot-002)" in error.value.cure
        bench.journal.record(Discarded("boot", "boot-002", ""))
        assert bench.kernels.build(trial(5), "t") is not None
        assert bench.journal.state.binaries[5, 0] == "c"
        bench.journal.record(Booted("boot-003", 5, "t", True, 1.0, 0.0))
        assert bench.kernels.build(trial(5), "t") is not None
        for _ in range(2):  # another layout, of which no boot counts
            assert bench.kernels.build(trial(5, layout=1), "t") is not None
        assert built(bench) == ["a", "c", "d", "e"]


def test_a_kernel_that_is_left_is_awaited_until_it_is_built_and_recorded_when_it_is_asked_for(
    tmp_path: Path,
) -> None:
    real, go = FakeBuilder(fake.a_lab(), tmp_path / "kernels"), threading.Event()

    def slowly(order: BuildOrder) -> Kernel:
        assert go.wait(30)
        return real.build(order, lambda text: None)

    with closing(Bench(tmp_path, slowly)) as bench:
        assert not bench.kernels.is_awaited("t")
        assert bench.kernels.build(trial(3), "t", lambda: True) is None
        assert bench.records == ()
        assert [e.text for e in bench.events] == [
            "the kernel is being built; the testbed is left to others meanwhile"
        ]
        assert bench.kernels.is_awaited("t") and not bench.kernels.is_awaited("other")
        go.set()
        until(lambda: not bench.kernels.is_awaited("t"), 30)
        assert bench.kernels.build(trial(3), "t", lambda: True) is not None
        assert len(bench.records) == 3  # the build, and what it tells of history
