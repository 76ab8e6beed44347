"""Has a bisection executed by whoever executes what is queued here, or on the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app.execution.current_status import is_executed
from bisector.app.execution.queue_state import read_queue
from bisector.engine.waiting import forget_killed_waiter
from bisector.model.stored_bisection import RESTING

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.stored_bisection import Action, Stored
    from bisector.ports import Progress


def queue_bisection(
    wiring: Wiring,
    stored: Stored,
    action: Action | None = None,
    note: Progress = lambda text: None,
) -> None:
    """Queue a bisection that rests, or that a killed process has left; others stay as they are.

    note: told which of its testbeds are not used now, and why: nobody watches it wait. Raises
    InfrastructureError. The next executor would not go on with one that a killed 'start' has left: its own
    'resume' does.
    """
    expected: tuple[str, ...] = RESTING
    if stored.status == "running" and not is_executed(wiring, stored):
        expected = (*RESTING, "running")
        forget_killed_waiter(wiring.settings.state_dir, stored.id)
    wiring.store.set_status(stored.id, "queued", expected=expected, action=action)
    entries = {entry.summary.id: entry for entry in read_queue(wiring).entries}
    if stored.id in entries:
        for testbed, why in entries[stored.id].unusable.items():
            note(f"note: the testbed '{testbed}' is not used now: {why}")
