"""Several bisections on the testbeds of one process: all end right, share fairly, and are let go of."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import bisections
from bisector.engine import executor, trial_runner
from bisector.engine.chores import CHORES, Chore
from bisector.engine.events import Event
from bisector.engine.others import Others
from bisector.engine.services import Services
from bisector.engine.shares.hour_counter import HourCounter
from bisector.engine.state_lock import find_holder, is_executed
from bisector.errors import InfrastructureError, Interrupted, PerfbisectError, RequestError
from bisector.model.records import Booted, Left
from bisector.model.stored_bisection import Action, Stored
from bisector.ports import Job, Kernel, Progress
from bisector.simulation.noise_model import SyntheticLab
from bisector.testing.fake_testbed import FakeSession, FakeTestbed
from bisector.testing.fakes import Faults, Pace
from tests.support import fake_bisection as fake
from tests.support.waiting import until


@dataclass
class Lab:
    """A state folder with bisections of one synthetic history, all on the same testbeds."""

    folder: Path
    testbeds: tuple[str, ...] = ("fake",)
    pace: Pace | None = None
    opened: list[str] = field(default_factory=list)
    let_go: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    broken: dict[str, PerfbisectError] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    hours: HourCounter | None = None

    def __post_init__(self) -> None:
        self.lab: SyntheticLab = fake.a_lab()
        self.store = SqlStore(open_state_file(self.folder / "perfbisect.sqlite"))

    def begin(self, name: str, status: str = "queued") -> Stored:
        accepted = fake.accepted(self.lab, self.testbeds)
        stored = Stored(name, time.time(), accepted.model_dump_json(), status, self.lab.graph)
        self.store.create(stored)
        return stored

    def services(self) -> Services:
        made = fake.services(self.lab, self.folder, store=self.store, testbeds=self.testbeds, pace=self.pace)
        return replace(made, hours=self.hours)

    def open(self, stored: Stored, stop: threading.Event) -> Services:
        self.opened.append(stored.id)
        if stored.id in self.broken:
            raise self.broken[stored.id]
        return self.services()

    @property
    def others(self) -> Others:
        def tell(name: str, event: Event) -> None:
            self.said.append(event.text)

        return Others(lambda stored: self.testbeds, self.open, tell, self.let_go.append)

    def run(
        self,
        stored: Stored,
        tell: Callable[[Event], object] = lambda event: None,
        stop: threading.Event | None = None,
    ) -> None:
        def on_event(event: Event) -> None:
            self.events.append(event)
            tell(event)

        bisections.run(stored, self.services(), on_event, stop or threading.Event(), self.others)

    def boots(self) -> list[tuple[float, str, str]]:
        """Return (when, bisection, testbed) of all boots, in their order."""
        return sorted(
            (record.at, summary.id, record.testbed)
            for summary in self.store.list()
            for _, record in self.store.records(summary.id)
            if isinstance(record, Booted)
        )

    def status(self, name: str) -> str:
        return self.store.status(name)

    def end_of(self, name: str) -> tuple[int, ...]:
        conclusion = self.store.load(name).conclusion
        assert conclusion is not None
        return conclusion.findings[0].commits


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(executor, "_POLL_SECONDS", 0.02)


def test_queued_bisections_share_the_testbed_boot_by_boot(tmp_path: Path) -> None:
    lab = Lab(tmp_path, pace=Pace(boot=0.02))
    own, other = lab.begin("own"), lab.begin("other")
    lab.run(own)
    assert lab.end_of("own") == (fake.CULPRIT,)
    order = [name for _, name, _ in lab.boots()]
    turns = [len(list(group)) for _, group in groupby(order)]
    assert len(turns) > 6, order
    assert max(turns) <= 2, "nobody waits for another to end"
    assert [e.text for e in lab.events if "shares" in e.text] == [
        "the bisection 'other' shares the testbeds from now on"
    ]
    assert lab.status("other") in ("queued", "done"), "what is not done waits for the next executor"
    lab.run(other)
    assert lab.end_of("other") == (fake.CULPRIT,)
    for name in ("own", "other"):
        assert not any(r.lost for _, r in lab.store.records(name) if isinstance(r, Left))


def test_each_of_two_has_a_testbed_of_its_own_where_there_are_two(tmp_path: Path) -> None:
    lab = Lab(tmp_path, testbeds=("a", "b"), pace=Pace(boot=0.02, run=0.002))
    own = lab.begin("own")
    lab.begin("other")
    lab.run(own)
    changes = 0
    for name in ("a", "b"):
        users = [bisection for _, bisection, testbed in lab.boots() if testbed == name]
        assert users
        changes += sum(one != two for one, two in pairwise(users))
    assert changes <= 3, "once they are even, nobody changes its testbed"


def test_a_bisection_that_is_cancelled_frees_its_testbed(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    own = lab.begin("own")
    other = lab.begin("other")

    def cancel(event: Event) -> None:
        if event.kind == "boot" and lab.status("other") == "running":
            bisections.cancel(lab.store, lab.store.load(other.id))

    lab.run(own, cancel)
    assert lab.end_of("own") == (fake.CULPRIT,)
    assert lab.status("other") == "cancelled"
    open_boots = {r.boot for _, r in lab.store.records("other") if isinstance(r, Booted)}
    assert open_boots == {r.boot for _, r in lab.store.records("other") if isinstance(r, Left)}


@pytest.mark.parametrize("error", [RequestError("the workload changed"), InfrastructureError("no libvirt")])
def test_another_that_cannot_be_executed_fails_alone(tmp_path: Path, error: PerfbisectError) -> None:
    lab = Lab(tmp_path, broken={"other": error})
    own = lab.begin("own")
    lab.begin("other")
    lab.run(own)
    assert lab.end_of("own") == (fake.CULPRIT,)
    assert lab.status("other") == "failed"
    assert [e.text for e in lab.events if "failed" in e.text] == [
        f"the bisection 'other' failed: {error.message}"
    ]
    assert lab.opened == ["other"], "it is not tried again and again"
    assert lab.let_go == ["other"]


def test_what_ended_or_waits_for_resume_is_not_executed(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    own = lab.begin("own")
    others = {"a": "interrupted", "b": "failed", "c": "cancelled", "d": "new", "e": "running"}
    for name, status in others.items():
        lab.begin(name, status)
    (tmp_path / "waiting").mkdir()
    (tmp_path / "waiting" / "e").touch()  # its process was killed
    lab.run(own)
    assert lab.opened == []
    assert {name: lab.status(name) for name in others} == {**others, "e": "interrupted"}


def test_interrupted_the_own_one_waits_for_resume_and_others_for_an_executor(tmp_path: Path) -> None:
    lab = Lab(tmp_path, pace=Pace(boot=0.05))
    own = lab.begin("own")
    lab.begin("other")
    stop, said = threading.Event(), list[str]()

    def at_the_fourth_boot(event: Event) -> None:
        said.append(event.text)
        if event.boots >= 3:
            stop.set()

    with pytest.raises(Interrupted) as caught:
        lab.run(own, at_the_fourth_boot, stop)
    assert caught.value.cure == "perfbisect resume own"
    assert said.count("stopping: guests and builds are ended") == 1, "it takes some time where there are many"
    assert (lab.status("own"), lab.status("other")) == ("interrupted", "queued")
    for name in ("own", "other"):
        kinds = [type(r) for _, r in lab.store.records(name)]
        assert kinds.count(Booted) == kinds.count(Left)


def test_a_stop_says_which_machines_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A boot of the machine's own kernel passes until then, and nothing told why the command went on."""
    lab = Lab(tmp_path, pace=Pace(boot=0.05), testbeds=("box",))
    services, box = lab.services(), FakeTestbed("box", lab.lab, pace=lab.pace, has_own_kernel=True)
    monkeypatch.setattr(lab, "services", lambda: replace(services, testbeds={"box": box}))
    own = lab.begin("own")
    stop, said = threading.Event(), list[str]()

    def at_the_second_boot(event: Event) -> None:
        said.append(event.text)
        if event.boots >= 1:
            stop.set()

    with pytest.raises(Interrupted):
        lab.run(own, at_the_second_boot, stop)
    assert said.count("stopping: guests and builds are ended; it waits until box is given back") == 1
    assert box.given_back == 1


def test_a_testbed_is_used_by_one_bisection_at_a_time(tmp_path: Path) -> None:
    """Three bisections on two testbeds; each testbed notes when two are on it."""
    lab = Lab(tmp_path, testbeds=("a", "b"))
    used: dict[str, threading.Lock] = {name: threading.Lock() for name in lab.testbeds}
    met: list[str] = []

    class Watched(FakeTestbed):
        def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
            if not used[self.name].acquire(blocking=False):
                met.append(self.name)
            session = super().boot(kernel, job, folder, progress)
            leave = session.leave

            def left() -> None:
                leave()
                used[self.name].release()

            session.leave = left  # type: ignore[method-assign]
            return session

    made = lab.services
    lab.services = lambda: replace(  # type: ignore[method-assign]
        made(), testbeds={name: Watched(name, lab.lab) for name in lab.testbeds}
    )
    own = lab.begin("own")
    for name in ("x", "y"):
        lab.begin(name)
    lab.run(own)
    assert lab.end_of("own") == (fake.CULPRIT,)
    assert met == []


def test_a_testbed_that_failed_for_one_still_serves_another(tmp_path: Path) -> None:
    lab = Lab(tmp_path, testbeds=("a", "b"))
    lab.pace = Pace(run=0.01)
    own = lab.begin("own")
    faults = Faults(boot={n: InfrastructureError("no power") for n in (1, 2, 3)})
    testbeds = {n: FakeTestbed(n, lab.lab, faults=faults if n == "b" else None, pace=lab.pace) for n in "ab"}
    broken = replace(lab.services(), testbeds=testbeds)

    def tell(event: Event) -> None:
        if "set aside" in event.text:
            lab.begin("other")

    bisections.run(own, broken, tell, threading.Event(), lab.others)
    assert lab.end_of("own") == (fake.CULPRIT,)
    assert {testbed for _, name, testbed in lab.boots() if name == "own"} == {"a"}
    assert "b" in {testbed for _, name, testbed in lab.boots() if name == "other"}


def serve(lab: Lab, stop: threading.Event | None = None) -> None:
    executor.serve(lab.store, lab.folder, lab.others, stop or threading.Event(), until_idle=stop is None)


def test_who_serves_the_queue_executes_all_that_is_in_it(tmp_path: Path) -> None:
    lab = Lab(tmp_path, testbeds=("a", "b"))
    for name in ("x", "y", "z"):
        lab.begin(name)
    lab.begin("resting", "paused")
    serve(lab)
    assert [lab.end_of(name) for name in ("x", "y", "z")] == [(fake.CULPRIT,)] * 3
    assert lab.status("resting") == "paused"
    assert sorted(lab.let_go) == ["x", "y", "z"]
    serve(lab)  # nothing is left: it ends at once


def test_who_serves_takes_up_what_comes_later_and_queues_it_again_when_told_to_stop(
    tmp_path: Path,
) -> None:
    lab, stop = Lab(tmp_path, pace=Pace(boot=0.05)), threading.Event()
    serving = threading.Thread(target=serve, args=(lab, stop), daemon=True)
    serving.start()
    lab.begin("late")
    until(lambda: len(lab.boots()) >= 2, 30)
    holder = find_holder(tmp_path)
    assert holder is not None and str(holder).endswith("executes what is queued in this state folder")
    assert is_executed(tmp_path, lab.status("late"))
    stop.set()
    serving.join(30)
    assert lab.status("late") == "queued"
    assert find_holder(tmp_path) is None


def test_who_serves_tells_what_failed(tmp_path: Path) -> None:
    lab = Lab(tmp_path, broken={"x": InfrastructureError("no libvirt", details="socket")})
    lab.begin("x")
    told: list[tuple[str, str, str]] = []
    others = replace(lab.others, tell=lambda name, event: told.append((name, event.kind, event.text)))
    executor.serve(lab.store, lab.folder, others, threading.Event(), until_idle=True)
    assert told[-1] == ("x", "trouble", "the bisection 'x' failed: no libvirt\nsocket")
    assert lab.status("x") == "failed"
    action = lab.store.load("x").action
    assert action is not None and (action.what, action.why) == ("failed", "no libvirt"), (
        "who looks later reads it"
    )


def test_chores_go_on_meanwhile_and_what_they_begin_is_executed_before_it_counts_as_idle(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    lab.begin("night")

    def follow() -> None:
        if lab.status("night") == "done" and "confirmation" not in {one.id for one in lab.store.list()}:
            lab.begin("confirmation")

    def break_() -> None:
        raise InfrastructureError("no server")

    told: list[tuple[str, str]] = []
    others = replace(
        lab.others,
        chores=[Chore("nights", 3600, follow), Chore("mail", 3600, break_)],
        tell=lambda name, event: told.append((name, event.text)),
    )
    executor.serve(lab.store, lab.folder, others, threading.Event(), until_idle=True)
    assert lab.end_of("confirmation") == (fake.CULPRIT,)
    assert told.count((CHORES, "mail: no server")) == 1


def test_a_bisection_that_is_executed_alone_has_chores_too(tmp_path: Path) -> None:
    lab, done = Lab(tmp_path), threading.Event()
    others = replace(lab.others, chores=[Chore("nights", 3600, done.set)])
    bisections.run(lab.begin("own"), lab.services(), lambda event: None, threading.Event(), others)
    assert done.is_set()


def test_a_paused_bisection_rests_until_it_is_resumed(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    own = lab.begin("own")

    def pause(event: Event) -> None:
        if event.kind == "boot" and event.boots == 2:
            bisections.pause(lab.store, lab.store.load("own"))

    with pytest.raises(Interrupted, match="the bisection 'own' is paused; nothing is lost"):
        lab.run(own, pause)
    assert lab.status("own") == "paused"
    lab.run(lab.store.load("own"))
    assert lab.end_of("own") == (fake.CULPRIT,)


def test_a_testbed_that_is_drained_is_left_after_its_boot_until_it_is_released(tmp_path: Path) -> None:
    lab = Lab(tmp_path, pace=Pace(boot=0.02))
    own = lab.begin("own")
    drained: list[str] = []
    made = lab.services()
    services = replace(made, why_not=lambda testbed: "maintenance: dust (bob)" if drained else None)

    def tell(event: Event) -> None:
        lab.events.append(event)
        if event.kind == "boot" and event.boots == 3:
            drained.append("now")
        if event.text == "the testbed 'fake' is not used: maintenance: dust (bob)":
            booted = len(lab.boots())
            assert booted in (3, 4)
            assert [type(r) for _, r in lab.store.records("own")].count(Left) == booted
            drained.clear()

    bisections.run(own, services, tell, threading.Event(), lab.others)
    assert lab.end_of("own") == (fake.CULPRIT,)
    told = [(event.kind, event.text) for event in lab.events if event.text.startswith("the testbed")]
    assert told == [
        (
            "trouble",
            "the testbed 'fake' is not used: maintenance: dust (bob)",
        ),  # shown wherever notes are not
        ("note", "the testbed 'fake' is used again"),
    ]


@pytest.mark.parametrize("status", ["cancelled", "paused"])
def test_what_is_ended_while_it_is_opened_is_not_begun(tmp_path: Path, status: str) -> None:
    lab = Lab(tmp_path)
    lab.begin("x")

    def open_slowly(stored: Stored, stop: threading.Event) -> Services:
        lab.store.set_status("x", status)
        return lab.services()

    others = replace(lab.others, open=open_slowly)
    executor.serve(lab.store, lab.folder, others, threading.Event(), until_idle=True)
    assert lab.status("x") == status
    assert lab.boots() == []


@pytest.mark.parametrize(("act", "status"), [(bisections.cancel, "cancelled"), (bisections.pause, "paused")])
def test_what_is_cancelled_or_paused_before_it_begins_does_not_begin(
    tmp_path: Path, act: Callable[..., None], status: str
) -> None:
    lab = Lab(tmp_path)
    own = lab.begin("own")
    act(lab.store, own)
    with pytest.raises(Interrupted, match=f"the bisection 'own' was {status}"):
        lab.run(own)
    assert (lab.status("own"), lab.boots()) == (status, [])


def test_what_was_paused_before_it_began_goes_on_when_it_is_resumed(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    bisections.pause(lab.store, lab.begin("own"))
    lab.run(lab.store.load("own"))
    assert lab.status("own") == "done"


def test_one_whose_request_cannot_be_read_ends_nobody_else(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    own = lab.begin("own")
    lab.store.create(Stored("strange", time.time(), '{"of": "a newer version"}', "queued", lab.lab.graph))
    told: list[Event] = []
    bisections.run(own, lab.services(), told.append, threading.Event(), lab.others)
    assert lab.end_of("own") == (fake.CULPRIT,)
    assert lab.status("strange") == "failed"
    action = lab.store.load("strange").action
    assert action is not None and action.why == "it names no testbed"
    assert any("the bisection 'strange' cannot be executed: " in event.text for event in told)


def test_one_that_is_removed_while_its_visit_ends_ends_nobody_else(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    own = lab.begin("own")
    lab.begin("gone")

    def remove(event: Event) -> None:
        if (
            event.kind == "boot"
            and "gone" in lab.opened
            and any(one.id == "gone" for one in lab.store.list())
        ):
            lab.store.remove("gone")

    lab.run(own, remove)
    assert lab.end_of("own") == (fake.CULPRIT,)


def test_a_priority_that_is_changed_counts_from_the_next_boot_on(tmp_path: Path) -> None:
    lab = Lab(tmp_path, pace=Pace(boot=0.02))
    own = lab.begin("own")
    lab.begin("urgent")
    changed: list[int] = []

    def tell(event: Event) -> None:
        if len(lab.boots()) >= 6 and not changed:
            changed.append(len(lab.boots()))
            lab.store.set_priority("urgent", 1, Action("given priority 1", "ada@lab"))

    lab.run(own, tell)
    order = [name for _, name, _ in lab.boots()]
    later = order[changed[0] + 2 :]
    last = len(later) - later[::-1].index("urgent")
    assert set(order[: changed[0]]) == {"own", "urgent"}
    assert set(later[:last]) == {"urgent"}, "the other one waits until it has ended"


def test_an_owner_that_had_its_hours_waits_and_is_told(tmp_path: Path) -> None:
    lab = Lab(tmp_path, pace=Pace(boot=0.02))
    coordinator = MemoryCoordinator(time.time)
    coordinator.add_machine_time("nightly", 7200.0)
    lab.hours = HourCounter(coordinator, lambda: {"nightly": 2.0})
    lab.store.create(replace(lab.begin("free"), id="capped", owner="nightly", priority=1))
    lab.run(lab.store.load("free"))
    assert {name for _, name, _ in lab.boots()} == {"free"}
    assert any(text.startswith("the bisection 'capped' waits until 20") for text in lab.said), lab.said
    assert sum(coordinator.machine_time("").values()) > 0, "what others have is counted"


def test_a_worker_that_is_refused_for_its_name_does_no_chore(tmp_path: Path) -> None:
    lab, coordinator, done = Lab(tmp_path), MemoryCoordinator(time.time), threading.Event()
    others = replace(lab.others, chores=[Chore("nights", 3600, done.set)])
    coordinator.register("demo-1", "demo")
    stop = threading.Event()
    with pytest.raises(RequestError, match="demo"):
        executor.serve(
            lab.store, tmp_path, others, stop, until_idle=True, coordinator=coordinator, name="demo"
        )
    assert not done.wait(0.2)


@pytest.mark.timeout(20)
def test_a_signal_in_the_middle_of_a_wait_is_heard() -> None:
    """`Event.wait` holds the lock then that `Event.set` waits for: Ctrl-C stopped the process for ever."""
    stop = threading.Event()
    with executor.signals(stop), getattr(stop, "_cond"):  # noqa: B009 - of Python's own, for this once
        signal.raise_signal(signal.SIGINT)
    assert stop.wait(15)
