"""Chores go on whatever one of them does."""

from __future__ import annotations

import threading

from bisector.engine.chores import Chore, Chores
from bisector.errors import InfrastructureError, Interrupted

GUARD_SECONDS = 30


def test_each_has_a_thread_of_its_own_and_one_that_hangs_holds_up_no_other() -> None:
    began, release, others = threading.Event(), threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        began.set()
        release.wait(GUARD_SECONDS)

    chores = Chores([Chore("hangs", 0.01, hang), Chore("works", 0.01, others.release)], lambda text: None)
    chores.start()
    assert began.wait(GUARD_SECONDS)
    assert all(others.acquire(timeout=GUARD_SECONDS) for _ in range(3))
    release.set()
    chores.end()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("chore-")]


def test_what_goes_wrong_is_told_once_until_it_goes_otherwise() -> None:
    left: list[Exception | None] = [
        InfrastructureError("no server", details="refused"),
        InfrastructureError("no server", details="refused"),
        ValueError("ours"),
        Interrupted("told to end"),
        None,
        None,
    ]

    def do() -> None:
        error = left.pop(0)
        if error is not None:
            raise error

    told: list[str] = []
    chores = Chores([Chore("mail", 1, do)], told.append)
    while left:
        chores.do_all()
    assert told == ["mail: no server\nrefused", "mail: ValueError: ours", "mail: works again"]


def test_a_chore_that_is_hurried_does_not_wait_for_its_time() -> None:
    done = threading.Semaphore(0)
    chores = Chores([Chore("nights", 3600, done.release)], lambda text: None)
    chores.start()
    assert done.acquire(timeout=GUARD_SECONDS)
    chores.hurry()
    assert done.acquire(timeout=GUARD_SECONDS)
    chores.end()
