"""How the driver tells what it does: events with the totals so far."""

from __future__ import annotations

from bisector.engine.events import Event, EventKind, OnEvent
from bisector.engine.journal import Ledger
from bisector.model.format import count
from bisector.model.records import Measure
from bisector.ports import Progress


class Teller:
    """Makes events of one bisection."""

    def __init__(self, on_event: OnEvent, ledger: Ledger) -> None:
        """on_event: who listens; ledger: where the totals are."""
        self._on_event = on_event
        self._ledger = ledger

    def tell(
        self,
        kind: EventKind,
        text: str,
        commit: int | None = None,
        testbed: str = "",
        reason: str = "",
        *,
        seconds: float | None = None,
        value: float | None = None,
        left: float | None = None,
    ) -> None:
        """Tell one thing; the fields are those of `Event`."""
        costs = self._ledger.state.costs
        self._on_event(
            Event(
                kind=kind,
                text=text,
                commit=commit,
                reason=reason,
                testbed=testbed,
                seconds=seconds,
                value=value,
                left=left,
                runs=len(costs.runs),
                boots=len(costs.boots),
                builds=len(costs.builds),
            )
        )

    def progress(self, measure: Measure, testbed: str) -> Progress:
        """Return where an adapter reports what it is doing for a trial."""
        return lambda text: self.tell("note", text, measure.commit, testbed)


def words(measure: Measure) -> str:
    """Return a decision in a few words."""
    where = "in the running boot" if measure.boot is not None else "in a new boot"
    layout = f" of code layout {measure.layout}" if measure.layout else ""
    return f"{count(measure.runs, 'run')} {where}{layout}"
