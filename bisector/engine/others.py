"""How a process executes bisections that somebody else began: what `sharing` is given for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bisector.engine.events import Event
from bisector.engine.services import Services
from bisector.model.stored_bisection import Stored, Summary


@dataclass(frozen=True, slots=True)
class Others:
    """How bisections are executed that somebody else began.

    testbeds: those of a bisection that are ours, none where we cannot execute it; open: makes its adapters,
    or raises PerfbisectError; tell: is given its events, with the id; ended: called when one is let go of.
    """

    testbeds: Callable[[Summary], Sequence[str]]
    open: Callable[[Stored, threading.Event], Services]
    tell: Callable[[str, Event], None]
    ended: Callable[[str], object]
