"""The builders at work: what is waited for comes first, work ahead is kept or dropped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.app import bisections
from bisector.engine import build_queue
from bisector.engine.build_queue import Build, BuildQueue, MakeBuilder
from bisector.errors import (
    BuilderUnwell,
    BuildFailed,
    BuildUnexplained,
    InfrastructureError,
    Interrupted,
    RequestError,
)
from bisector.model.decisions import Ending
from bisector.ports import BuildOrder, Kernel, Progress
from tests.support import fake_bisection as fake
from tests.support.waiting import until

SECONDS = 20.0
"""For what happens at once on an idle machine."""


def order(name: str) -> BuildOrder:
    return BuildOrder(name, "fake")


class Bench:
    """BuildQueue whose builds end when the test says so."""

    def __init__(self, count: int = 1, measuring: tuple[int, ...] = ()) -> None:
        self.begun: list[str] = []
        self.dropped: list[str] = []
        self.said: list[str] = []
        self.stopping: list[str] = []
        self.let_go = threading.Event()
        self.let_go.set()
        self.go: dict[str, threading.Event] = {}
        self.failures: dict[str, Exception] = {}
        self.stop = threading.Event()
        self.builders = BuildQueue([self._make] * count, self.stop.is_set, measuring)

    def _make(self, stop: Callable[[], bool]) -> _Slow:
        return _Slow(self, stop)

    def gate(self, name: str) -> threading.Event:
        return self.go.setdefault(name, threading.Event())

    def build(self, name: str, leaves: Callable[[], bool] | None = None) -> str:
        """Order a kernel and wait for it; return what was built, '' if it was left before."""
        build = self.builders.order(order(name), self.said.append)
        kernel = self.builders.wait(build, leaves)
        return "" if kernel is None else kernel.sha

    def later(self, name: str) -> tuple[threading.Thread, list[object]]:
        """Wait for an order in a thread; what came of it is put into the list."""
        result: list[object] = []

        def wait() -> None:
            try:
                result.append(self.build(name))
            except Exception as error:
                result.append(error)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        return thread, result


class _Slow:
    def __init__(self, bench: Bench, stop: Callable[[], bool]) -> None:
        self.bench, self.stop = bench, stop

    def build(self, what: BuildOrder, progress: Progress) -> Kernel:
        self.bench.begun.append(what.sha)
        progress("compiling")
        while not self.bench.gate(what.sha).wait(0.005):
            if self.stop():
                self.bench.stopping.append(what.sha)
                self.bench.let_go.wait(SECONDS)
                self.bench.dropped.append(what.sha)
                raise Interrupted("stopped")
        if what.sha in self.bench.failures:
            raise self.bench.failures[what.sha]
        path = Path(what.sha)
        return Kernel(what.sha, "fake", what.sha, path, path, path, "0", "", 1.0, False)

    def cached(self, what: BuildOrder) -> Kernel | None:
        return None


def test_what_was_built_ahead_is_there_at_once() -> None:
    bench = Bench()
    bench.gate("a").set()
    bench.builders.ahead([order("a")])
    until(lambda: bench.begun == ["a"], SECONDS)
    bench.gate("b").set()
    bench.builders.ahead([order("b")])
    until(lambda: bench.begun == ["a", "b"], SECONDS)
    assert bench.build("a") == "a"
    assert bench.begun == ["a", "b"]
    bench.builders.close()


def test_what_is_waited_for_takes_the_place_of_what_is_not() -> None:
    bench = Bench()
    bench.builders.ahead([order("a"), order("b")])
    until(lambda: bench.begun == ["a"], SECONDS)
    bench.gate("c").set()
    assert bench.build("c") == "c"
    assert bench.dropped == ["a"]
    assert bench.begun[:2] == ["a", "c"]
    bench.builders.close()


def test_an_idle_builder_takes_it_and_nothing_is_dropped() -> None:
    bench = Bench(count=2)
    bench.builders.ahead([order("a")])
    until(lambda: bench.begun == ["a"], SECONDS)
    bench.gate("c").set()
    assert bench.build("c") == "c"
    assert bench.dropped == []
    bench.builders.close()
    assert bench.dropped == ["a"]


def test_no_more_builds_ahead_are_dropped_than_orders_wait() -> None:
    """A compiler takes seconds to end; what is dropped for nothing has cost minutes."""
    bench = Bench(count=3)
    bench.let_go.clear()
    bench.builders.ahead([order(name) for name in "abc"])
    until(lambda: len(bench.begun) == 3, SECONDS)
    threads: list[threading.Thread] = []

    def one_is_dropped_for_each() -> bool:
        return len(bench.stopping) == len(threads)

    for name in "xy":
        bench.gate(name).set()
        threads.append(bench.later(name)[0])
        until(one_is_dropped_for_each, SECONDS)
    time.sleep(0.05)
    assert len(bench.stopping) == 2
    bench.let_go.set()
    for thread in threads:
        thread.join(SECONDS)
    bench.builders.close()
    assert bench.begun.count("a") == 1, "the most probable one went on"


def test_a_build_ahead_that_is_asked_for_is_waited_for_not_repeated() -> None:
    bench = Bench()
    bench.builders.ahead([order("a")])
    until(lambda: bench.begun == ["a"], SECONDS)
    thread, result = bench.later("a")
    bench.builders.ahead([])  # nobody guesses it any more, but somebody waits
    time.sleep(0.05)
    bench.gate("a").set()
    thread.join(SECONDS)
    assert result == ["a"]
    assert (bench.begun, bench.dropped) == (["a"], [])
    assert bench.said == ["being built already"], "or the user sees nothing for minutes"
    bench.builders.close()


def test_what_is_no_longer_probable_is_dropped() -> None:
    bench = Bench()
    bench.builders.ahead([order("a")])
    until(lambda: bench.begun == ["a"], SECONDS)
    bench.builders.ahead([order("b")])
    until(lambda: bench.begun == ["a", "b"], SECONDS)
    assert bench.dropped == ["a"]
    bench.builders.close()


def test_failures_of_the_commit_are_kept_trouble_is_met_again() -> None:
    bench = Bench()
    bench.failures = {"a": BuildFailed("no"), "b": InfrastructureError("disk")}
    for name in "abc":
        bench.gate(name).set()
    bench.builders.ahead([order("a"), order("b"), order("c")])
    until(lambda: bench.begun == ["a", "b", "c"], SECONDS)
    with pytest.raises(BuildFailed):
        bench.build("a")
    assert bench.begun.count("a") == 1
    del bench.failures["b"]
    assert bench.build("b") == "b"
    bench.builders.close()


def test_a_builder_whose_host_measures_builds_only_what_a_trial_waits_for() -> None:
    bench = Bench(2, measuring=(0,))
    bench.builders.ahead([order("a"), order("b")])
    until(lambda: len(bench.begun) == 1, SECONDS)  # by the other one
    threads = [bench.later(name)[0] for name in "cd"]
    until(lambda: "c" in bench.begun and "d" in bench.begun, SECONDS)
    for name in "abcd":
        bench.gate(name).set()
    for thread in threads:
        thread.join(SECONDS)
    bench.builders.close()
    alone = Bench(1, measuring=(0,))
    alone.builders.ahead([order("a")])
    alone.gate("b").set()
    thread, result = alone.later("b")
    thread.join(SECONDS)
    assert (result, alone.begun) == (["b"], ["b"])
    alone.builders.close()


def test_told_to_stop_it_does_and_can_be_opened_again() -> None:
    before = set(threading.enumerate())  # another test's may still be on their way out
    bench = Bench()
    thread, result = bench.later("a")
    until(lambda: bench.begun == ["a"], SECONDS)
    other, _ = bench.later("b")
    until(lambda: len(bench.builders._waiting) == 1, SECONDS)
    assert "builder-0" in {t.name for t in {*threading.enumerate()} - before}, "as a stack trace shows it"
    bench.let_go.clear()
    bench.stop.set()
    thread.join(SECONDS)
    other.join(SECONDS)
    assert isinstance(result[0], Interrupted)
    threading.Timer(0.2, bench.let_go.set).start()
    bench.builders.close()
    assert not [t for t in {*threading.enumerate()} - before if t.name.startswith("builder-")]
    bench.stop.clear()
    bench.gate("a").set()
    bench.gate("b").set()
    assert bench.build("a") == "a"
    bench.builders.close()
    assert bench.begun == ["a", "a"], "nobody waits for b any more"


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_bisection_ends_the_same_with_and_without(tmp_path: Path, ahead: int) -> None:
    lab = fake.a_lab()
    services = fake.services(lab, tmp_path, builders=3)
    accepted = fake.accepted(lab)
    request = accepted.request.model_copy(update={"build_ahead": ahead})
    accepted = accepted.model_copy(update={"request": request, "clock": "instructions"})
    stored, _ = bisections.begin(services.store, accepted, lab.graph, 0.0)
    conclusion = bisections.run(stored, services, lambda _: None, threading.Event())
    assert conclusion.ending is Ending.CULPRIT
    assert conclusion.findings[0].commits == (fake.CULPRIT,)
    built = (tmp_path / "kernels" / "builds.log").read_text().split()
    assert len(built) == len(set(built))


def test_orders_that_wait_are_built_in_the_order_of_asking() -> None:
    """Else a testbed could stand idle for as long as others keep asking."""
    bench = Bench()
    threads: list[threading.Thread] = []

    def everything_is_asked() -> bool:
        return len(bench.begun) + len(bench.builders._waiting) == len(threads)

    for name in ("a", "b", "c"):
        threads.append(bench.later(name)[0])
        until(everything_is_asked, SECONDS)
    for name in ("a", "b", "c"):
        bench.gate(name).set()
    for thread in threads:
        thread.join(SECONDS)
    bench.builders.close()
    assert bench.begun == ["a", "b", "c"]


def test_what_is_ordered_ahead_while_it_closes_does_not_keep_it_open() -> None:
    """Who looks ahead may take seconds, and order when the search is over."""
    bench = Bench()
    bench.let_go.clear()
    _, result = bench.later("a")
    until(lambda: bench.begun == ["a"], SECONDS)
    closing = threading.Thread(target=bench.builders.close, daemon=True)
    closing.start()
    until(lambda: bench.stopping == ["a"], SECONDS)
    bench.builders.ahead([order("b")])
    bench.let_go.set()
    closing.join(SECONDS)
    assert not closing.is_alive()
    until(lambda: len(result) == 1, SECONDS)
    bench.builders.ahead([order("b")])
    assert bench.begun == ["a"] and not bench.builders._threads, "nobody wants it any more"


def test_a_build_that_does_not_end_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_queue, "_END_SECONDS", 0.2)
    bench = Bench()
    bench.let_go.clear()
    bench.later("a")
    until(lambda: bench.begun == ["a"], SECONDS)
    bench.builders.close()
    assert bench.dropped == []
    bench.gate("b").set()
    assert bench.build("b") == "b", "with a thread of its own"
    bench.let_go.set()
    until(lambda: bench.dropped == ["a"], SECONDS)
    bench.builders.close()


def test_what_is_left_is_built_and_kept() -> None:
    bench = Bench()
    assert bench.build("a", leaves=lambda: True) == ""
    bench.builders.ahead([order("b")])  # it is no guess: it is neither cancelled nor behind the guesses
    bench.gate("a").set()
    until(lambda: bench.begun == ["a", "b"], SECONDS)
    assert bench.dropped == []
    assert bench.build("a") == "a"
    assert bench.begun.count("a") == 1
    bench.builders.close()


def test_what_is_left_before_it_has_begun_is_built_once() -> None:
    bench = Bench()
    assert bench.build("a", leaves=lambda: True) == ""
    assert bench.build("b", leaves=lambda: True) == ""
    thread, result = bench.later("b")
    until(lambda: bench.said.count("being built already") == 1, SECONDS)
    for name in "ab":
        bench.gate(name).set()
    thread.join(SECONDS)
    assert (result, bench.begun) == (["b"], ["a", "b"])
    bench.builders.close()


@pytest.mark.parametrize("error", [BuildFailed("no"), InfrastructureError("disk")])
def test_how_a_build_that_was_left_has_failed_is_told_once(error: Exception) -> None:
    """Else a builder without space would never be noticed: whoever comes back orders the build again."""
    bench = Bench()
    bench.failures["a"] = error
    assert bench.build("a", leaves=lambda: True) == ""
    bench.gate("a").set()
    until(lambda: not bench.builders._active, SECONDS)
    with pytest.raises(type(error)):
        bench.build("a")
    assert bench.begun == ["a"]
    del bench.failures["a"]
    assert bench.build("a") == "a", "a fault that has passed"
    bench.builders.close()


def test_a_failure_that_somebody_waited_for_is_not_told_again() -> None:
    bench = Bench()
    bench.failures["a"] = InfrastructureError("disk")
    thread, result = bench.later("a")
    until(lambda: bench.begun == ["a"], SECONDS)
    assert bench.build("a", leaves=lambda: True) == ""
    bench.gate("a").set()
    thread.join(SECONDS)
    assert isinstance(result[0], InfrastructureError)
    bench.failures.clear()
    assert bench.build("a") == "a"
    bench.builders.close()


def test_a_build_that_is_left_and_closed_is_not_kept() -> None:
    bench = Bench()
    assert bench.build("a", leaves=lambda: True) == ""
    until(lambda: bench.begun == ["a"], SECONDS)
    bench.builders.close()
    assert bench.dropped == ["a"]
    bench.gate("a").set()
    assert bench.build("a") == "a"
    bench.builders.close()


def test_a_failure_without_a_reason_counts_once_a_second_build_has_failed() -> None:
    bench = Bench()
    bench.failures["a"] = BuildUnexplained("make: *** Error 139")
    thread, result = bench.later("a")
    until(lambda: bench.begun == ["a"], SECONDS)
    bench.gate("a").set()
    thread.join(SECONDS)
    assert bench.begun == ["a", "a"]
    assert isinstance(result[0], BuildUnexplained)
    assert "make: *** Error 139: once more, to be sure" in bench.said
    bench.builders.close()


def test_a_failure_without_a_reason_that_does_not_come_again_says_nothing_of_the_commit() -> None:
    bench = Bench()
    bench.failures["a"] = BuildUnexplained("make: *** Error 139")
    bench.gate("a").set()

    def tell(text: str) -> None:
        if "once more" in text:
            bench.failures.clear()

    kernel = bench.builders.wait(bench.builders.order(order("a"), tell))
    assert kernel is not None
    assert bench.begun == ["a", "a"]
    bench.builders.close()


def test_a_failure_without_a_reason_of_a_build_ahead_is_forgotten() -> None:
    bench = Bench()
    bench.failures["a"] = BuildUnexplained("make: *** Error 139")
    for name in "ab":
        bench.gate(name).set()
    bench.builders.ahead([order("a"), order("b")])
    until(lambda: bench.begun == ["a", "b"], SECONDS)
    bench.failures.clear()
    assert bench.build("a") == "a"
    bench.builders.close()


class _Broken:
    """A builder that fails, as one that cannot be reached does."""

    def __init__(self, tries: list[str], error: Exception, go: threading.Event | None = None) -> None:
        self._tries, self._error, self._go = tries, error, go

    def build(self, what: BuildOrder, progress: Progress) -> Kernel:
        self._tries.append(what.sha)
        if self._go is not None:
            self._go.wait(SECONDS)
        raise self._error

    def cached(self, what: BuildOrder) -> Kernel | None:
        return None


@pytest.mark.parametrize("error", [InfrastructureError("not reached"), BuildUnexplained("*** Error 139")])
def test_what_fails_on_one_builder_goes_to_another_even_where_that_is_busy(error: Exception) -> None:
    bench, tries = Bench(), list[str]()
    queue = BuildQueue([lambda _: _Broken(tries, error), bench._make], lambda: False)
    while not bench.begun:  # the other one is busy with this
        first = queue.order(order("first"), bench.said.append)
        until(lambda: bool(tries or bench.begun), SECONDS)
    tries.clear()
    build = queue.order(order("a"), bench.said.append)
    until(lambda: tries == ["a"], SECONDS)
    time.sleep(0.05)
    assert tries == ["a"], "it waits for the builder that has not tried it"
    for name in ("first", "a"):
        bench.gate(name).set()
    assert queue.wait(build) is not None
    assert queue.wait(first) is not None
    queue.close()


def test_what_fails_on_every_builder_is_told_after_one_try_on_each() -> None:
    tries: list[str] = []
    make = [lambda _: _Broken(tries, InfrastructureError("not reached")) for _ in range(3)]
    queue = BuildQueue(make, lambda: False)
    with pytest.raises(InfrastructureError, match="not reached"):
        queue.wait(queue.order(order("a"), lambda _: None))
    assert tries == ["a"] * 3
    queue.close()


def test_a_builder_that_is_out_is_not_waited_for_by_what_failed_elsewhere() -> None:
    tries: list[str] = []
    broken = InfrastructureError("not reached")
    makes: list[MakeBuilder] = [
        lambda _: _Unwell("big", {"big"}, [], tries),
        lambda _: _Broken(tries, broken),
    ]
    queue = BuildQueue(makes, lambda: False)
    with pytest.raises(InfrastructureError, match="not reached"):
        queue.wait(queue.order(order("a"), lambda _: None))
    assert tries in (["big", "a"], ["a", "big", "a"])
    queue.close()


def test_what_fails_while_it_is_closed_is_not_built_again() -> None:
    tries, go = list[str](), threading.Event()
    queue = BuildQueue([lambda _: _Broken(tries, BuildUnexplained("*** Error 139"), go)], lambda: False)
    queue.order(order("a"), lambda _: None)
    until(lambda: tries == ["a"], SECONDS)
    closing = threading.Thread(target=queue.close)
    closing.start()
    until(lambda: queue._ended.is_set(), SECONDS)
    go.set()
    closing.join(SECONDS)
    with pytest.raises(BuildUnexplained):
        queue.wait(queue.order(order("b"), lambda _: None))
    assert tries == ["a", "b", "b"]
    queue.close()


def test_a_builder_that_cannot_be_made_fails_its_builds() -> None:
    def make(stop: Callable[[], bool]) -> _Broken:
        raise RequestError("the builder has no SSH key")

    queue = BuildQueue([make], lambda: False)
    for _ in range(2):
        with pytest.raises(RequestError, match="no SSH key"):
            queue.wait(queue.order(order("a"), lambda _: None))
    queue.close()


class _Unwell:
    """A builder that is unwell as long as its name is in the set."""

    def __init__(
        self, name: str, unwell: set[str], built: list[tuple[str, str]], tried: list[str] | None = None
    ) -> None:
        self._name, self._unwell, self._built = name, unwell, built
        self._tried = [] if tried is None else tried

    def build(self, what: BuildOrder, progress: Progress) -> Kernel:
        self._tried.append(self._name)
        if self._name in self._unwell:
            raise BuilderUnwell(f"the disk of '{self._name}' is full")
        self._built.append((self._name, what.sha))
        path = Path(what.sha)
        return Kernel(what.sha, "fake", what.sha, path, path, path, "0", "", 1.0, False)

    def cached(self, what: BuildOrder) -> Kernel | None:
        return None


def _queue_of(
    *names: str, unwell: set[str], built: list[tuple[str, str]], tried: list[str] | None = None
) -> BuildQueue:
    make = [lambda stop, n=name: _Unwell(n, unwell, built, tried) for name in names]
    return BuildQueue(make, lambda: False)


def test_an_unwell_builder_is_taken_out_and_goes_back_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_queue, "_OUT_SECONDS", 0.05)
    unwell, built, said = {"big"}, list[tuple[str, str]](), list[str]()
    queue = _queue_of("big", "small", unwell=unwell, built=built)
    for number in range(4):
        kernel = queue.wait(queue.order(order(f"a{number}"), said.append))
        assert kernel is not None
    assert {name for name, _ in built} == {"small"}
    unwell.clear()
    number = 0
    while "big" not in {name for name, _ in built}:  # both take what is ordered together
        many = [queue.order(order(f"b{number}-{k}"), said.append) for k in range(4)]
        assert all(queue.wait(one) for one in many)
        number += 1
    said.clear()
    unwell.add("small")
    while not (full := [text for text in said if "is full" in text]):
        many = [queue.order(order(f"c{number}-{k}"), said.append) for k in range(4)]
        assert all(queue.wait(one) for one in many)
        number += 1
    queue.close()
    assert "is taken out" in full[0] and "no builder is well" not in full[0], "the other one is well again"
    assert len(built) == len({sha for _, sha in built})


def test_where_no_builder_is_well_one_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_queue, "_OUT_SECONDS", 0.02)
    unwell, built, said = {"big", "small"}, list[tuple[str, str]](), list[str]()

    def tell(text: str) -> None:
        said.append(text)
        if len(said) == 6:
            unwell.discard("small")

    queue = _queue_of("big", "small", unwell=unwell, built=built)
    assert queue.wait(queue.order(order("a"), tell)) is not None
    assert built == [("small", "a")]
    waits = [text for text in said if "no builder is well" in text]
    assert len(waits) >= 4
    assert "for 60 min at most" in waits[0]
    queue.close()


def test_where_no_builder_is_well_for_too_long_the_trial_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_queue, "_OUT_SECONDS", 0.02)
    monkeypatch.setattr(build_queue, "_UNWELL_SECONDS", 0.3)
    unwell = {"big"}
    queue = _queue_of("big", unwell=unwell, built=[])
    started = time.monotonic()
    with pytest.raises(BuilderUnwell, match="is full"):
        queue.wait(queue.order(order("a"), lambda _: None))
    assert time.monotonic() - started >= 0.3
    said: list[str] = []
    with pytest.raises(BuilderUnwell, match="is full"):
        queue.wait(queue.order(order("a"), said.append))
    assert said == [], "trials try again, and would wait once more each time"
    unwell.clear()
    assert queue.wait(queue.order(order("a"), said.append)) is not None
    unwell.add("big")
    with pytest.raises(BuilderUnwell, match="is full"):
        queue.wait(queue.order(order("b"), said.append))
    assert said, "it was well in between"
    queue.close()


def test_the_wait_for_a_builder_begins_when_a_trial_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_queue, "_OUT_SECONDS", 0.02)
    monkeypatch.setattr(build_queue, "_UNWELL_SECONDS", 0.3)
    tried: list[str] = []
    queue = _queue_of("big", unwell={"big"}, built=[], tried=tried)
    queue.ahead([order("a")])
    until(lambda: tried == ["big"], SECONDS)
    time.sleep(0.4)
    said: list[str] = []
    with pytest.raises(BuilderUnwell, match="is full"):
        queue.wait(queue.order(order("a"), said.append))
    assert said, "a build that nobody waited for did not use the time up"
    queue.close()


def test_a_search_that_waits_for_a_builder_can_be_stopped() -> None:
    stop = threading.Event()
    make = [lambda _: _Unwell("big", {"big"}, [])]
    queue = BuildQueue(make, stop.is_set)
    with pytest.raises(Interrupted):
        queue.wait(queue.order(order("a"), lambda _: stop.set()))
    queue.close()


def test_a_build_ahead_of_an_unwell_builder_is_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep what a trial waits for waiting, though it may not be probable any more."""
    tried: list[str] = []
    queue = _queue_of("big", unwell={"big"}, built=[], tried=tried)
    queue.ahead([order("a")])
    until(lambda: queue._out == {0}, SECONDS)
    with queue._change:
        assert (queue._waiting, queue._active) == ([], {})
    queue.close()


def test_the_pauses_of_an_unwell_builder_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else somebody who has made room would wait for hours until it is seen."""
    monkeypatch.setattr(build_queue, "_OUT_SECONDS", 0.02)
    monkeypatch.setattr(build_queue, "_LONGEST_OUT_SECONDS", 0.03)
    queue = _queue_of("big", unwell=set(), built=[])
    pauses: list[float | None] = []
    for _ in range(3):
        build = Build(order("a"), lambda text: None)
        queue._active[0] = build
        pauses.append(queue._take_out(0, build, BuilderUnwell("the disk is full")))
    assert pauses == [0.02, 0.03, 0.03]


def test_a_dropped_build_is_none_that_a_trial_could_wait_for() -> None:
    """It ends as interrupted: that is no answer to who orders the kernel while its compiler still ends."""
    bench = Bench(count=2)
    bench.let_go.clear()
    bench.builders.ahead([order("a")])
    until(lambda: bench.begun == ["a"], SECONDS)
    bench.builders.ahead([])
    until(lambda: bench.stopping == ["a"], SECONDS)
    thread, result = bench.later("a")
    until(lambda: bench.begun == ["a", "a"], SECONDS)
    bench.gate("a").set()
    thread.join(SECONDS)
    assert result == ["a"]
    bench.let_go.set()
    bench.builders.close()


def test_a_builder_of_a_closed_queue_that_is_unwell_takes_none_of_the_next_out() -> None:
    """Its build has ended with the queue; another one is built in its place by now."""
    go, tried = threading.Event(), list[str]()
    unwell = BuilderUnwell("the disk of 'big' is full")
    queue = BuildQueue([lambda _: _Broken(tried, unwell, go)], lambda: False)
    build = queue.order(order("a"), lambda _: None)
    until(lambda: tried == ["a"], SECONDS)
    with queue._change:
        del queue._active[0]  # as where a thread outlived `close`, and another has its number
    go.set()
    until(build.ended.is_set, SECONDS)
    with pytest.raises(BuilderUnwell):
        queue.wait(build)
    assert queue._out == set()
    queue.close()
