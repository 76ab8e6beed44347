"""Events of the engine; interfaces turn them into lines, bars and pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from bisector.model.compiling import Compiling
from bisector.model.decisions import Measure, Purpose
from bisector.model.format import count
from bisector.model.goal import Metric
from bisector.model.records import Ran
from bisector.model.state import Costs
from bisector.ports import Progress

EventKind = Literal["decision", "build", "boot", "warmup", "run", "note", "trouble", "done"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens. commit: index in the graph, or None.

    text: a short sentence; reason, purpose: the planner's, with decisions; new_boot: whether the decision
    needs one; seconds: how long the finished thing took; share: of the running build that is done, with
    notes; left: seconds until the next culprit is located or proven, with decisions, where the planner knows;
    suspects: commits with their probabilities, with decisions; runs, boots, builds: totals of this bisection
    so far.
    """

    kind: EventKind
    text: str
    commit: int | None = None
    reason: str = ""
    purpose: Purpose | None = None
    new_boot: bool = False
    share: float | None = None
    testbed: str = ""
    seconds: float | None = None
    value: float | None = None
    left: float | None = None
    suspects: tuple[tuple[int, float], ...] = ()
    runs: int = 0
    boots: int = 0
    builds: int = 0


def decision_event(measure: Measure, text: str, testbed: str = "") -> Event:
    """Return the event of a decision. text: what is done."""
    return Event(
        "decision",
        text,
        measure.commit,
        reason=measure.reason,
        purpose=measure.purpose,
        new_boot=measure.boot is None,
        testbed=testbed,
        left=measure.left,
        suspects=measure.suspects,
    )


def run_event(ran: Ran, metric: Metric, commit: int | None, testbed: str = "") -> Event:
    """Return the event of a run. metric: the deciding one."""
    value = ran.values.get(metric.name)
    suspicious = f" (not counted: {', '.join(ran.flags)})" if ran.flags else ""
    reading = f"{metric.name} {value:.6g} {metric.unit}" if value is not None else "no value"
    text = f"{'warm-up' if ran.warmup else 'run'} {ran.index}: {reading}{suspicious}"
    kind: EventKind = "warmup" if ran.warmup else "run"
    return Event(kind, text, commit, testbed=testbed, seconds=ran.seconds, value=value)


OnEvent = Callable[[Event], None]
"""Called from several threads; must return quickly and never raise."""


class EventSender:
    """Sends the events of one bisection, each with the totals so far."""

    def __init__(self, on_event: OnEvent, costs: Callable[[], Costs]) -> None:
        """on_event: who listens; costs: the totals at the moment."""
        self._on_event = on_event
        self._costs = costs

    def send(
        self,
        kind: EventKind,
        text: str,
        commit: int | None = None,
        testbed: str = "",
        *,
        seconds: float | None = None,
    ) -> None:
        """Send one event; the fields are those of `Event`."""
        self._send(Event(kind, text, commit, testbed=testbed, seconds=seconds))

    def _send(self, event: Event) -> None:
        costs = self._costs()
        runs, boots, builds = len(costs.runs), len(costs.boots), len(costs.builds)
        self._on_event(replace(event, runs=runs, boots=boots, builds=builds))

    def send_run(self, ran: Ran, metric: Metric, commit: int, testbed: str) -> None:
        """Send what a run read. metric: the deciding one."""
        self._send(run_event(ran, metric, commit, testbed))

    def send_decision(self, measure: Measure, testbed: str) -> None:
        """Send what was decided and why."""
        where = "in the running boot" if measure.boot is not None else "in a new boot"
        layout = f" of code layout {measure.layout}" if measure.layout else ""
        seed = " with random numbers of its own" if measure.fresh_seed else ""
        self._send(decision_event(measure, f"{count(measure.runs, 'run')} {where}{layout}{seed}", testbed))

    def progress(self, measure: Measure, testbed: str) -> Progress:
        """Return where an adapter reports what it is doing for a trial."""

        def report(text: str) -> None:
            share = text.share if isinstance(text, Compiling) else None
            self._send(Event("note", text, measure.commit, testbed=testbed, share=share))

        return report
