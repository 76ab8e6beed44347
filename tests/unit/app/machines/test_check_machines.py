"""`perfbisect lab check`: all machines, in order, with the rest of the time; who uses one is known."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.machine.checks import lab_check
from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.app.machines import check_machines as check_machines_module
from bisector.app.machines.check_machines import around, check_machines, user_of
from bisector.app.wiring import Wiring
from bisector.engine.membership import join
from bisector.errors import RequestError
from bisector.model.machines.lab_findings import LabFinding
from bisector.schemas.settings import Settings

INVENTORY = """all:
  children:
    testbeds:
      hosts:
        a: {ansible_host: 192.0.2.1}
        twin: {ansible_host: 192.0.2.1}
    builders:
      hosts:
        b: {ansible_connection: local}
"""
Look = Callable[[], Iterator[LabFinding]]


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    (tmp_path / "lab.yml").write_text(INVENTORY)
    lab, state, cache, locks = (tmp_path / name for name in ("lab.yml", "state", "cache", "locks"))
    return Wiring(Settings(lab=lab, state_dir=state, cache_dir=cache, lock_dir=locks))


def found(result: str) -> Look:
    return lambda: iter([LabFinding("ssh", result, "words")])  # type: ignore[arg-type]


def test_the_order_is_the_inventorys_and_the_rest_of_the_time_is_told(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    others_done = threading.Event()

    def last() -> Iterator[LabFinding]:
        others_done.set()
        yield from found("ok")()

    def first() -> Iterator[LabFinding]:
        assert others_done.wait(10)
        yield from found("wrong")()

    rows = [("testbed a", first), ("testbed twin", found("ok")), ("builder b", last)]
    monkeypatch.setattr(lab_check, "lab_checks", lambda lab, around: iter(rows))
    told: list[str] = []
    machines = check_machines(wiring, told.append)
    assert [(m.name, m.ok) for m in machines] == [
        ("testbed a", False),
        ("testbed twin", True),
        ("builder b", True),
    ]
    assert told == ["1 of 3 machines", "2 of 3 machines"], (
        "one that answers at once tells nothing of the rest"
    )
    for name in ("b", "builder b"):
        assert [m.name for m in check_machines(wiring, names=[name])] == ["builder b"]
    with pytest.raises(RequestError, match="did you mean 'twin'"):
        check_machines(wiring, names=["twon"])
    assert check_machines(wiring, names=[]) == []
    clock = SimpleNamespace(monotonic=chain([0.0], repeat(60.0)).__next__)
    monkeypatch.setattr(check_machines_module, "time", clock)
    told.clear()
    check_machines(wiring, told.append)
    assert told == ["1 of 3 machines; about 2 min left", "2 of 3 machines; about 30 s left"]


def test_a_name_that_is_no_machine_is_refused_with_testbeds_and_builders(wiring: Wiring) -> None:
    """Of a builder's name that was misspelt it was said that there is no such testbed."""
    with pytest.raises(RequestError, match="the lab has no machine 'bb'; did you mean 'b'") as caught:
        check_machines(wiring, names=["a", "bb"])
    assert caught.value.details.endswith("lab.yml: testbed a, testbed twin, builder b")


def test_a_defect_of_a_check_is_not_taken_for_an_answer(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect() -> Iterator[LabFinding]:
        yield LabFinding("ssh", "ok", f"{1 / 0}")

    monkeypatch.setattr(lab_check, "lab_checks", lambda lab, around: iter([("testbed a", defect)]))
    with pytest.raises(ZeroDivisionError):
        check_machines(wiring)


def test_an_interrupt_waits_for_no_machine_that_is_silent(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def silent() -> Iterator[LabFinding]:
        release.wait(60)
        yield LabFinding("ssh", "wrong", "silent")

    def interrupted() -> Iterator[LabFinding]:
        raise KeyboardInterrupt
        yield

    rows = [("testbed a", silent), ("testbed twin", interrupted)]
    monkeypatch.setattr(lab_check, "lab_checks", lambda lab, around: iter(rows))
    monkeypatch.setattr(check_machines_module, "_STOP_SECONDS", 0.1)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        check_machines(wiring)
    took = time.monotonic() - started
    release.set()
    assert took < 30 and wiring.stop.is_set()


def test_an_interrupt_lets_checks_under_way_end_and_begins_no_other(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    def look(name: str) -> Look:
        def found() -> Iterator[LabFinding]:
            assert wiring.stop.wait(60)
            time.sleep(0.2)
            ended.append(name)
            yield LabFinding("ssh", "wrong", "stopped")

        return found

    def interrupted() -> Iterator[LabFinding]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(check_machines_module, "_SIDE_BY_SIDE", 2)
    rows = [("testbed a", look("a")), ("testbed twin", interrupted), *(("builder b", look("b")),) * 3]
    monkeypatch.setattr(lab_check, "lab_checks", lambda lab, around: iter(rows))
    with pytest.raises(KeyboardInterrupt):
        check_machines(wiring)
    assert ended[0] == "a" and len(ended) <= 2, "at most the one that had begun as the other ended"
    time.sleep(0.5)
    assert len(ended) <= 2


def test_who_uses_a_machine_is_told_by_leases_here_and_by_its_mark_elsewhere(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator(time.time)
    monkeypatch.setattr(Wiring, "shared_coordinator", coordinator)
    monkeypatch.setattr(
        "bisector.app.testbeds.machine_marks.marked_by_others", lambda wiring, name: f"a mark on {name}"
    )
    user = user_of(wiring)
    assert user("a") == "a mark on a"
    with join(coordinator, "north", wiring.settings.state_dir) as worker:
        assert worker.acquire_testbed("a") is not None
        assert user("a") == "the worker 'north'"


def test_a_machine_is_in_use_while_somebody_holds_it_under_any_of_its_names(wiring: Wiring) -> None:
    user = around(wiring).in_use
    with wiring.claim_testbed("a", print):
        assert user("twin") == "another perfbisect of this machine"
    assert user("twin") == ""


def test_two_names_of_one_machine_that_are_checked_at_once_do_not_use_it(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object) -> str:
        time.sleep(0.2)
        return ""

    monkeypatch.setattr("bisector.app.testbeds.machine_marks.marked_by_others", ask)
    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(user_of(wiring), ["a", "twin"])] == ["", ""]


def test_a_play_under_way_ends_when_the_check_is_stopped(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wiring, "ansible", lambda _, stopped: stopped)
    stopped: Any = around(wiring).ansible
    assert not stopped()
    wiring.stop.set()
    assert stopped()
