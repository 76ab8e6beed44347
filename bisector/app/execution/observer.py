"""The port for watching a bisection that this process executes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from bisector.app.time_left import ExpectedWork
    from bisector.engine.events import OnEvent
    from bisector.report.report_model import Material


class Observer(Protocol):
    """Who watches a bisection."""

    stop: threading.Event
    """Set to interrupt the bisection; it can be resumed."""

    def note(self, text: str) -> None:
        """Take one line about what happens around the search."""
        ...

    def progress(
        self, label: Callable[[int], str], expected: ExpectedWork | None
    ) -> AbstractContextManager[OnEvent]:
        """Return what takes the search's events. label: names a commit of the graph."""
        ...

    def concluded(self, material: Material) -> None:
        """Take the report of a bisection that has concluded, before anybody else is told of it."""
        ...
