"""A bisection's life as interfaces see it: begun or taken up, run, followed, marked, cancelled."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.app import bisections
from bisector.app.execution.following import Executors
from bisector.engine import executor, trial_runner
from bisector.engine.state_lock import lock
from bisector.errors import InfrastructureError, RequestError
from bisector.model.decisions import Conclusion, Ending
from bisector.model.records import Booted, Discarded, Marked
from bisector.model.stored_bisection import ENDED, Stored
from bisector.schemas.request import Attempt, NightSpec
from bisector.testing.fakes import Faults
from tests.support import fake_bisection as fake

CONCLUSION = Conclusion(Ending.NOT_REPRODUCED, "the ends do not differ", ())


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def stored(store: MemoryStore) -> Stored:
    return fake.begin(store, fake.a_lab())


def begin_again(store: MemoryStore) -> tuple[Stored, bool]:
    lab = fake.a_lab()
    return bisections.begin(store, fake.accepted(lab), lab.graph, 3.0)


@pytest.mark.parametrize("status", ["new", "running", "interrupted", "failed"])
def test_the_same_request_takes_up_what_has_not_ended(
    store: MemoryStore, stored: Stored, status: str
) -> None:
    store.set_status(stored.id, status)
    again, new = begin_again(store)
    assert (again.id, new) == (stored.id, False)


@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_after_one_that_has_ended_a_new_one_begins(store: MemoryStore, stored: Stored, status: str) -> None:
    store.set_status(stored.id, status)
    again, new = begin_again(store)
    assert (again.id, new) == (f"{stored.id}-2", True)
    assert store.load(again.id).status == "new"


def test_an_id_is_the_name_of_one_folder(store: MemoryStore) -> None:
    lab = fake.a_lab()
    accepted = fake.accepted(lab).model_copy(update={"workload": "db-aio/fio"})
    stored, _ = bisections.begin(store, accepted, lab.graph, 1.0)
    assert stored.id == f"db-aio-fio-{accepted.identity()}"


# --- running ------------------------------------------------------------------------------------------------


def test_what_has_concluded_is_not_run_again(stored: Stored, tmp_path: Path) -> None:
    services = fake.services(fake.a_lab(), tmp_path)
    done = replace(stored, status="done", conclusion=CONCLUSION)
    with lock(tmp_path, "another"):  # a run would raise Busy
        assert bisections.run(done, services, lambda event: None, threading.Event()) is CONCLUSION


def test_what_a_process_left_that_was_killed_after_the_end_is_removed(stored: Stored, tmp_path: Path) -> None:
    tidied: list[Path] = []
    services = replace(fake.services(fake.a_lab(), tmp_path), tidy=tidied.append)
    for name in ("reserve", "probe", "executor.holder", "kept"):
        (tmp_path / name).touch()
    done = replace(stored, status="done", conclusion=CONCLUSION)
    with lock(tmp_path, "another"):
        bisections.run(done, services, lambda event: None, threading.Event())
        assert (tmp_path / "reserve").exists()  # it may be the other's
        assert tidied == []
    bisections.run(done, services, lambda event: None, threading.Event())
    left = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert left <= {"kept", "executor.lock"}
    assert tidied == [services.folder(stored.id)]


def test_a_run_that_leaves_no_conclusion_says_how_to_go_on(
    store: MemoryStore, stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "execute", lambda *_: store.set_status(stored.id, "interrupted"))
    services = fake.services(fake.a_lab(), tmp_path, store=store)
    with pytest.raises(InfrastructureError, match=r"stopped without a conclusion \(interrupted\)") as caught:
        bisections.run(stored, services, lambda event: None, threading.Event())
    assert caught.value.cure == f"perfbisect resume {stored.id}"


@pytest.mark.parametrize("breaks", ["running", "failed", "append"])
def test_whatever_breaks_the_cure_ends_with_the_command_that_goes_on(
    store: MemoryStore, stored: Stored, tmp_path: Path, breaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state file fails at a change of the status, or at each record."""
    full = InfrastructureError("the state file cannot be used", cure="make room")
    broken = {n: InfrastructureError("no compiler", cure="install one") for n in (1, 2, 3)}
    services = fake.services(fake.a_lab(), tmp_path, store=store, faults=Faults(build=broken))
    set_status = store.set_status

    def fail(*_: object) -> int:
        raise full

    def fail_at(bisection: str, status: str, *more: object, **expected: object) -> bool:
        if status == breaks:
            fail()
        return set_status(bisection, status, *more, **expected)  # type: ignore[arg-type]

    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(store, "set_status", fail_at)
    if breaks == "append":
        monkeypatch.setattr(store, "append", fail)
        services = fake.services(fake.a_lab(), tmp_path, store=store)
    with pytest.raises(InfrastructureError) as caught:
        bisections.run(stored, services, lambda event: None, threading.Event())
    said = {"failed": ("no compiler", "install one")}.get(breaks, (full.message, "make room"))
    assert caught.value.message == said[0]
    assert caught.value.cure == f"{said[1]}; then: perfbisect resume {stored.id}"


# --- what a person knows ------------------------------------------------------------------------------------


def test_a_mark_is_recorded_for_a_commit_of_the_range_only(store: MemoryStore, stored: Stored) -> None:
    bisections.mark(store, stored, stored.graph.shas[4], "bad", "seen")
    assert [record for _, record in store.records(stored.id)] == [Marked(4, "bad", "seen")]
    with pytest.raises(RequestError, match="not in the range"):
        bisections.mark(store, stored, "f" * 40, "bad")


def test_a_mark_may_be_changed_and_a_skip_contradicts_nothing(store: MemoryStore, stored: Stored) -> None:
    shas = stored.graph.shas
    for commit, said in ((6, "skip"), (4, "bad"), (4, "good"), (2, "skip"), (3, "good"), (6, "bad")):
        bisections.mark(store, stored, shas[commit], said)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=r"cannot be bad: .* which contains it, is marked good"):
        bisections.mark(store, stored, shas[3], "bad")
    bisections.mark(store, stored, shas[4], "skip")
    bisections.mark(store, stored, shas[3], "bad")
    assert len(store.records(stored.id)) == 8


def test_three_kernels_take_no_verdicts(store: MemoryStore) -> None:
    lab = fake.a_lab()
    accepted, shas = fake.accepted(lab), lab.graph.shas
    attempt = Attempt(of="found", culprit=shas[4], unpatched=shas[4], tried=shas[9])
    stored, _ = bisections.begin(store, accepted.model_copy(update={"attempt": attempt}), lab.graph, 1.0)
    assert stored.id.startswith("try-fake-")
    with pytest.raises(RequestError, match="takes no verdicts"):
        bisections.mark(store, stored, shas[4], "bad")


def test_a_night_takes_no_verdicts(store: MemoryStore) -> None:
    lab = fake.a_lab()
    night = NightSpec(series="nightly", begun=1.0, number=1, kind="night")
    accepted = fake.accepted(lab).model_copy(update={"night": night})
    stored, _ = bisections.begin(store, accepted, lab.graph, 1.0)
    with pytest.raises(RequestError, match="belongs to the series 'nightly' and takes no verdicts"):
        bisections.mark(store, stored, lab.graph.shas[4], "bad")
    assert list(store.records(stored.id)) == []


def test_a_mark_is_in_the_terms_of_who_says_it(store: MemoryStore) -> None:
    lab = fake.a_lab()
    accepted = fake.accepted(lab)
    looking = accepted.model_copy(update={"request": accepted.request.model_copy(update={"find": "fix"})})
    stored, _ = bisections.begin(store, looking, lab.graph, 1.0)
    bisections.mark(store, stored, stored.graph.shas[4], "bad")
    assert [record for _, record in store.records(stored.id)] == [Marked(4, "good")]
    with pytest.raises(RequestError, match=r"cannot be good: .* which contains it, is marked bad"):
        bisections.mark(store, stored, stored.graph.shas[3], "good")
    with pytest.raises(RequestError, match="cannot be skipped: it is the bad end"):
        bisections.mark(store, stored, stored.graph.shas[stored.graph.good], "skip")


@pytest.mark.parametrize(("kind", "name"), [("boot", "b1"), ("testbed", "bed")])
def test_what_was_never_booted_cannot_be_discarded(
    store: MemoryStore, stored: Stored, kind: str, name: str
) -> None:
    store.append(stored.id, Booted("b1", 0, "bed", True, 10.0, 1.0))
    with pytest.raises(RequestError) as caught:
        bisections.discard(store, stored, kind, "other", "")  # type: ignore[arg-type]
    assert caught.value.details == f"it has: {name}"
    bisections.discard(store, stored, kind, name, "why")  # type: ignore[arg-type]
    assert list(store.records(stored.id))[-1][1] == Discarded(kind, name, "why")  # type: ignore[arg-type]


@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_nothing_is_added_to_what_has_ended(store: MemoryStore, stored: Stored, status: str) -> None:
    ended = replace(stored, status=status)
    refused = pytest.raises(RequestError, match=f"has ended \\({status}\\)")
    with refused:
        bisections.cancel(store, ended)
    with refused:
        bisections.mark(store, ended, ended.graph.shas[1], "bad")
    with refused:
        bisections.discard(store, ended, "boot", "b1", "")
    assert list(store.records(stored.id)) == []


def test_nothing_is_added_once_the_result_is_found(store: MemoryStore, stored: Stored) -> None:
    """Guests are ended between the conclusion and 'done': what is added then would be in no result."""
    seen = store.append(stored.id, Booted("b1", 0, "bed", True, 10.0, 1.0))
    store.conclude(stored.id, CONCLUSION, seen=seen)
    assert store.status(stored.id) not in ENDED
    with pytest.raises(RequestError, match="has its result"):
        bisections.mark(store, stored, stored.graph.shas[1], "bad")
    with pytest.raises(RequestError, match="has its result"):
        bisections.discard(store, stored, "boot", "b1", "")
    assert len(store.records(stored.id)) == 1


def test_nothing_is_added_to_what_ended_after_it_was_loaded(store: MemoryStore, stored: Stored) -> None:
    store.append(stored.id, Booted("b1", 0, "bed", True, 10.0, 1.0))
    store.set_status(stored.id, "done", CONCLUSION)
    with pytest.raises(RequestError, match=r"has ended \(done\)"):
        bisections.mark(store, stored, stored.graph.shas[1], "bad")
    with pytest.raises(RequestError, match=r"has ended \(done\)"):
        bisections.discard(store, stored, "boot", "b1", "")
    assert len(store.records(stored.id)) == 1


def test_cancelling_is_kept(store: MemoryStore, stored: Stored) -> None:
    bisections.cancel(store, stored)
    assert store.status(stored.id) == "cancelled"


def test_nobody_waits_for_a_worker_that_has_none_of_the_testbeds(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator(time.time)
    lab, store = fake.a_lab(), MemoryStore(coordinator)
    coordinator.register("elsewhere-1", "elsewhere")
    stored, told = fake.begin(store, lab), list[str]()
    services = replace(fake.services(lab, tmp_path, store=store), coordinator=coordinator)
    mine = replace(services, served_by=lambda worker: worker == "mine")
    assert Executors(tmp_path, coordinator).find(stored.id, mine.served_by) is None
    assert Executors(tmp_path, coordinator).find(stored.id) is not None
    bisections.run(stored, mine, lambda event: told.append(event.text), threading.Event())
    assert store.status(stored.id) == "done"
    assert not [text for text in told if "elsewhere" in text], "nor is it said to execute this"
