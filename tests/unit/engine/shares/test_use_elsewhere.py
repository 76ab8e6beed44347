"""What other executors use: nobody seems to have nothing between two trials."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine.shares.use_elsewhere import UseElsewhere


class Me:
    """This process among the executors. uses: what others have leased."""

    executor = "me"
    uses: tuple[tuple[str, str], ...] = ()

    def uses_of_others(self) -> tuple[tuple[str, str], ...]:
        return self.uses


ME: Any = Me()


class Trials(MemoryStore):
    """A store that says what is under way."""

    under_way: tuple[tuple[str, str], ...] = ()

    def trials_of_others(self, executor: str) -> tuple[tuple[str, str], ...]:
        assert executor == "me"
        return self.under_way


def test_what_a_bisection_uses_elsewhere_counts_for_a_while_after_its_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, now = Trials(), 100.0
    monkeypatch.setattr("bisector.engine.shares.use_elsewhere.time", SimpleNamespace(monotonic=lambda: now))
    elsewhere = UseElsewhere(store)
    assert elsewhere.testbeds_of("x") == frozenset()
    store.under_way = ("x", "a"), ("x", "b"), ("y", "c")
    elsewhere.poll(ME)
    assert elsewhere.testbeds_of("x") == {"a", "b"}
    store.under_way = (("x", "a"),)
    now += 4.0
    elsewhere.poll(ME)
    assert elsewhere.testbeds_of("x") == {"a", "b"}
    now += 2.0
    elsewhere.poll(ME)
    assert elsewhere.testbeds_of("x") == {"a"}
    assert elsewhere.testbeds_of("y") == frozenset()


def test_what_is_leased_for_a_bisection_is_used_before_its_first_trial() -> None:
    me: Any = Me()
    elsewhere, me.uses = UseElsewhere(Trials()), (("x", "a"),)
    elsewhere.poll(me)
    assert elsewhere.testbeds_of("x") == {"a"}


class Names(str):
    """A text that another thread's `poll` comes in between each time it is compared."""

    poll: ClassVar[Callable[[], None]]

    def __eq__(self, other: object) -> bool:
        Names.poll()
        return str.__eq__(self, str(other))

    __hash__ = str.__hash__


def test_a_visit_asks_while_the_database_says_more() -> None:
    store = Trials()
    elsewhere = UseElsewhere(store)
    store.under_way = (Names("x"), "a"), (Names("y"), "b")

    def poll() -> None:
        Names.poll = lambda: None
        store.under_way = ("z", "c"), ("z", "d")
        elsewhere.poll(ME)

    Names.poll = lambda: None
    elsewhere.poll(ME)
    Names.poll = poll
    assert elsewhere.testbeds_of("x") == {"a"}
    assert elsewhere.testbeds_of("z") == {"c", "d"}
