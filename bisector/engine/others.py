"""How a process executes bisections that somebody else began: what `sharing` is given for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bisector.engine.availability import NoChecks, UseChecks
from bisector.engine.bisection_run import BisectionRun
from bisector.engine.chores import Chore
from bisector.engine.events import Event, EventKind
from bisector.engine.services import Services
from bisector.model.stored_bisection import Stored, Summary


@dataclass(frozen=True, slots=True)
class Others:
    """How bisections are executed that somebody else began.

    testbeds: those of a bisection that are ours, none where we cannot execute it; open: makes its adapters,
    or raises PerfbisectError; tell: is given its events, with the id; ended: called when one is let go of;
    checks: of testbeds, between visits; chores: what is looked after meanwhile.
    """

    testbeds: Callable[[Summary], Sequence[str]]
    open: Callable[[Stored, threading.Event], Services]
    tell: Callable[[str, Event], None]
    ended: Callable[[str], object]
    checks: UseChecks = field(default_factory=NoChecks)
    chores: Sequence[Chore] = ()


def follow_inventory(
    runs: Iterable[BisectionRun],
    own: BisectionRun | None,
    summaries: Mapping[str, Summary],
    others: Others | None,
    tell: Callable[[str, EventKind, str], object],
) -> None:
    """Mark bisections to be opened again whose testbeds have changed, even if they failed on the old ones.

    own: keeps the testbeds that it began with; summaries: of those that are to be executed, by id; tell:
    takes id, kind and text of an event.
    """
    for run in [run for run in runs if run is not own and run.id in summaries]:
        now = run.given if run.outdated or others is None else others.testbeds(summaries[run.id])
        if run.given != frozenset(now):
            run.outdated, run.error = True, None
            where = f"goes on with {', '.join(sorted(now))}"
            if not now:
                where = "is not executed here until the inventory has one of its testbeds"
            tell(run.id, "trouble", f"the bisection '{run.id}' {where}: the inventory has changed")
