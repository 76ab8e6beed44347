"""Watching a bisection that others execute: what names its commits, and what happens to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Protocol

from bisector.app.execution.following import Executors, follow, place
from bisector.app.load_report import find_bisection
from bisector.app.packages.listed_sources import source_of
from bisector.app.time_left import ExpectedWork
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError, RequestError
from bisector.model.commit_graph import described, short_name
from bisector.model.stored_bisection import RESTING, TO_EXECUTE, Stored
from bisector.schemas.request import Accepted, read_accepted

if TYPE_CHECKING:
    from bisector.engine.events import OnEvent


class Watching(Protocol):
    """Who watches a bisection that others execute."""

    def progress(
        self, label: Callable[[int], str], expected: ExpectedWork | None
    ) -> AbstractContextManager[OnEvent]:
        """Return what takes the events. label: names a commit of the graph."""
        ...


def labels(wiring: Wiring, stored: Stored, accepted: Accepted) -> Callable[[int], str]:
    """Return what names a commit of the graph; by its id alone where the repository is not there."""
    repository = None
    with suppress(PerfbisectError):
        repository = source_of(wiring, accepted)

    def label(index: int) -> str:
        sha, attempt = stored.graph.shas[index], accepted.attempt
        if attempt is not None and attempt.patches and sha == attempt.tried:
            return f"{short_name(sha)} ({attempt.tried_name()})"
        if repository is None:
            return short_name(sha)
        try:
            return described(sha, repository.infos([sha])[0].subject)
        except PerfbisectError:
            return short_name(sha)

    return label


def watch(wiring: Wiring, identity: str | None, observer: Watching) -> Stored:
    """Watch a bisection that others execute, until it ends; return it.

    Raises InfrastructureError where it stops without a conclusion.
    """
    stored = find_bisection(wiring, identity)
    store, name, state_dir = wiring.store, stored.id, wiring.settings.state_dir
    require_watchable(stored)
    accepted = read_accepted(stored.request)
    with observer.progress(labels(wiring, stored, accepted), None) as on_event:

        def where() -> str:
            return place(store, name, Executors(state_dir, wiring.shared_coordinator).find(name))

        follow(store, name, lambda: store.status(name) in TO_EXECUTE, on_event, where)
    return stored


def require_watchable(stored: Stored) -> None:
    """Raise RequestError for a bisection that nobody executes, and that has not ended."""
    if stored.status in RESTING:
        name = stored.id
        message = f"the bisection '{name}' is not executed ({stored.status})"
        raise RequestError(message, cure=f"perfbisect resume {name}")
