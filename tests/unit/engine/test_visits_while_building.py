"""A testbed is left while a kernel is built, if another bisection can use it at once; alone it is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine import build_queue, executor, testbed_leases, trial_runner
from bisector.engine.events import Event
from bisector.engine.others import Others
from bisector.engine.services import Services
from bisector.errors import BuildFailed, InfrastructureError, Interrupted
from bisector.model.records import Booted, Built, SetAside
from bisector.model.stored_bisection import Stored
from bisector.ports import BuildOrder, Kernel, Progress
from bisector.testing.fakes import FakeBuilder, Pace
from tests.support import fake_bisection as fake
from tests.support.waiting import until

SECONDS = 60.0
LEFT = "the kernel is being built; the testbed is left to others meanwhile"


@dataclass
class Lab:
    """Bisections that one process executes, or several workers; each compiles kernels of its own.

    slow: bisection -> seconds of each build; failures: (number of a build, commit) -> its error;
    compiled: (bisection, begin, end) of builds that ended well or not; visits: (bisection, testbed), told:
    (bisection, text). A worker executes those bisections alone whose names begin with its own.
    """

    folder: Path
    slow: dict[str, float] = field(default_factory=dict)
    failures: dict[str, Callable[[int, int], Exception | None]] = field(default_factory=dict)
    compiled: list[tuple[str, float, float]] = field(default_factory=list)
    visits: list[tuple[str, str]] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    coordinator: MemoryCoordinator | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.lab = fake.a_lab()
        self.store = MemoryStore(self.coordinator)

    def queue(self, name: str, *testbeds: str, priority: int = 5) -> None:
        request = fake.accepted(self.lab, testbeds or ("a",)).model_dump_json()
        self.store.create(Stored(name, time.time(), request, "queued", self.lab.graph, priority=priority))

    def serve(self, worker: str = "", *testbeds: str, until_idle: bool = True) -> None:
        """Execute what is queued; with a coordinator as a worker, with testbeds of its own."""
        folder, ours = self.folder / (worker or "here"), testbeds or ("a",)
        folder.mkdir(exist_ok=True)

        def open_(stored: Stored, stop: threading.Event) -> Services:
            name, lab = stored.id, self

            class Builder(FakeBuilder):
                def build(self, order: BuildOrder, progress: Progress) -> Kernel:
                    begun, number = time.time(), sum(one == name for one, *_ in lab.compiled) + 1
                    commit = lab.lab.graph.shas.index(order.sha)
                    fails = lab.failures[name](number, commit) if name in lab.failures else None
                    try:
                        kernel = super().build(order, progress)
                        if fails is not None:
                            raise fails
                        return kernel
                    finally:
                        lab.compiled.append((name, begun, time.time()))

            @contextmanager
            def claim(testbed: str, *_: object) -> Iterator[Callable[[], bool]]:
                self.visits.append((name, testbed))
                yield lambda: False

            pace, kernels = Pace(build=self.slow.get(name, 0.0)), folder / "kernels" / name
            made = fake.services(self.lab, folder, store=self.store, testbeds=ours, pace=Pace(boot=0.03))
            return replace(
                made,
                builders=[lambda stopped: Builder(self.lab, kernels, pace=pace, stop=stopped)],
                claim=claim,
                coordinator=self.coordinator,
                stop=stop,
            )

        def tell(name: str, event: Event) -> None:
            self.told.append((name, event.text))

        executor.serve(
            self.store,
            folder,
            Others(lambda one: ours if one.id.startswith(worker) else (), open_, tell, lambda name: None),
            self.stop,
            until_idle=until_idle,
            coordinator=self.coordinator,
            name=worker,
        )

    @contextmanager
    def serving(self, *workers: tuple[str, ...]) -> Iterator[None]:
        """Let workers execute until the end of the block. workers: the name of each, and its testbeds."""
        threads = [
            threading.Thread(target=self.serve, args=words, kwargs={"until_idle": False}, daemon=True)
            for words in workers or ((),)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stop.set()
            for thread in threads:
                thread.join(SECONDS)
                assert not thread.is_alive()

    def boots(self, name: str) -> list[float]:
        """Return when the boots of a bisection began."""
        return sorted(r.at for _, r in self.store.records(name) if isinstance(r, Booted))

    def boots_during_builds(self, name: str, of: str) -> int:
        """Return how many boots of a bisection began while a kernel of another one was built."""
        spans = [(begun, ended) for one, begun, ended in self.compiled if one == of]
        return sum(any(begun < at < ended for begun, ended in spans) for at in self.boots(name))

    def check_right(self, *names: str) -> None:
        for name in names:
            conclusion = self.store.load(name).conclusion
            assert conclusion is not None
            assert conclusion.findings[0].commits == (fake.CULPRIT,)

    def left(self, name: str) -> int:
        return self.told.count((name, LEFT))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(executor, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(build_queue, "_WAIT_SECONDS", 0.02)
    monkeypatch.setattr(testbed_leases, "_ASK_SECONDS", 0.02)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_another_measures_while_a_kernel_is_built(lab: Lab) -> None:
    lab.slow["x"] = 0.3
    for name in "xy":
        lab.queue(name)
    lab.serve()
    lab.check_right("x", "y")
    assert lab.left("x") >= 1
    assert lab.boots_during_builds("y", of="x") >= len(lab.boots("y")) / 2
    assert lab.left("y") == 0, "its kernels take no time"


def test_alone_it_keeps_its_testbed(lab: Lab) -> None:
    lab.slow["x"] = 0.05
    lab.queue("x")
    lab.serve()
    lab.check_right("x")
    assert lab.visits == [("x", "a")]
    assert lab.left("x") == 0


def test_two_that_both_build_do_not_pass_the_testbed_to_and_fro(lab: Lab) -> None:
    """Whoever waits for a kernel itself takes nothing; it comes when the kernel is there."""
    for name in "xy":
        lab.slow[name] = 0.2
        lab.queue(name)
    lab.serve()
    lab.check_right("x", "y")
    for name in "xy":
        visits = sum(one == name for one, _ in lab.visits)
        assert visits <= 2 * len(lab.boots(name)) + 1
        built = [r for _, r in lab.store.records(name) if isinstance(r, Built)]
        assert len(built) == len({(r.commit, r.layout) for r in built}), "each build is recorded once"


def test_the_more_urgent_one_has_the_testbed_again_at_the_next_boot(lab: Lab) -> None:
    lab.slow["urgent"] = 0.3
    lab.queue("late", priority=8)
    lab.queue("urgent", priority=2)
    lab.serve()
    lab.check_right("late", "urgent")
    assert lab.boots_during_builds("late", of="urgent") > 0
    urgent, late = lab.boots("urgent"), lab.boots("late")
    ends = [ended for name, begun, ended in lab.compiled if name == "urgent" and ended - begun > 0.2]
    for ended in ends:
        again = min((at for at in urgent if at > ended), default=ended)
        between = sum(ended < at < again for at in late)
        assert between <= 1, "it is noticed within a hundredth of a boot; one may have begun meanwhile"


def test_each_way_in_which_a_build_can_end_badly_is_as_if_it_had_been_waited_for(lab: Lab) -> None:
    lab.slow["x"] = 0.1

    def fail(number: int, commit: int) -> Exception | None:
        if commit == fake.COMMITS // 2:
            return BuildFailed("a.c:1: error")
        return InfrastructureError("no space") if number in (2, 3) else None

    lab.failures["x"] = fail
    for name in "xy":
        lab.queue(name)
    lab.serve()
    lab.check_right("x", "y")
    assert [r.failure for _, r in lab.store.records("x") if isinstance(r, Built) and not r.ok] == [
        "a.c:1: error"
    ]
    assert sum(text == "no space; trying again" for _, text in lab.told) == 2


def test_a_builder_that_stays_broken_ends_the_bisection_though_each_build_is_left(lab: Lab) -> None:
    lab.slow.update(x=0.1)
    lab.failures["x"] = lambda number, commit: InfrastructureError("no space")
    for name in "xy":
        lab.queue(name)
    lab.serve()
    lab.check_right("y")
    assert lab.store.status("x") == "failed"
    assert lab.left("x") >= 1
    assert len(lab.compiled) - len(lab.boots("y")) < 40
    assert not [r for _, r in lab.store.records("x") if isinstance(r, SetAside)], "not the testbed's fault"


def test_what_is_cancelled_while_its_kernel_is_built_ends_the_build(lab: Lab) -> None:
    lab.slow["x"] = SECONDS
    for name in "xy":
        lab.queue(name)
    with lab.serving():
        until(lambda: lab.left("x") > 0, SECONDS)
        lab.store.set_status("x", "cancelled")
        until(lambda: [name for name, *_ in lab.compiled].count("x") == 1, SECONDS)
        until(lambda: lab.store.status("y") == "done", SECONDS)
    assert lab.store.status("x") == "cancelled"


def test_told_to_stop_while_a_kernel_is_built_it_ends_soon_and_the_bisection_waits(lab: Lab) -> None:
    lab.slow["x"] = SECONDS
    before = set(threading.enumerate())  # of other tests, too
    for name in "xy":
        lab.queue(name)
    with lab.serving():
        until(lambda: lab.left("x") > 0 and lab.store.status("y") == "done", SECONDS)
    assert lab.store.status("x") == "queued"
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if thread.name == "builder-0"]
    lab.stop.clear()
    lab.slow.clear()
    lab.serve()
    lab.check_right("x")


def test_a_killed_build_that_nobody_stopped_is_a_fault(lab: Lab) -> None:
    """As where the testbed waits: else the bisection would stand still without a word."""
    lab.slow["x"] = 0.2
    lab.failures["x"] = lambda number, commit: Interrupted("killed") if number == 3 else None
    for name in "xy":
        lab.queue(name)
    lab.serve()
    lab.check_right("y")
    assert lab.store.status("x") == "failed"


def test_another_worker_gets_the_testbed_while_a_kernel_is_built(tmp_path: Path) -> None:
    lab = Lab(tmp_path, slow={"first": 0.4}, coordinator=MemoryCoordinator(time.time))
    names = "first", "second"
    for name in names:
        lab.queue(name)
    with lab.serving(*((name,) for name in names)):
        until(lambda: all(lab.store.status(name) == "done" for name in names), SECONDS)
    lab.check_right(*names)
    assert lab.boots_during_builds("second", of="first") >= len(lab.boots("second")) / 2
