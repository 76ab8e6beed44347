"""What is done now and why, how far, how long still: a live line on a terminal, plain lines elsewhere.

All of it goes to stderr, so that stdout holds the result alone.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from bisector.interfaces.cli import output
from bisector.model.format import count
from bisector.report.phrases import cut, duration

if TYPE_CHECKING:
    from bisector.engine.events import Event

_NOTE_SECONDS = 15.0
"""Between two notes of a long action where the output is not a terminal: a log, not a film."""

_NOW_WIDTH = 32
"""Leaves room for the time in a terminal of 80 columns; what was done so far is cut first."""

_SILENT = 0.05
"""Share of the expected work that is said to be left when the estimate is used up."""


@dataclass(frozen=True)
class ExpectedWork:
    """What the search will probably take, from a simulation of it; seconds are guesses until measured."""

    builds: float
    boots: float
    runs: float
    build_seconds: float
    boot_seconds: float
    run_seconds: float


class _Line(Protocol):
    """Where the live line is shown."""

    def update(self, text: str) -> None: ...

    def above(self, text: str) -> None: ...

    def end(self) -> None: ...


@dataclass
class _Tally:
    """Seconds that each kind of action took so far."""

    number: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.number += 1
        self.seconds += seconds

    def mean(self, guess: float) -> float:
        return self.seconds / self.number if self.number else guess


@dataclass
class ProgressDisplay:
    """Called with every event of a bisection, from any thread. label: names a commit of the graph."""

    label: Callable[[int], str]
    expected: ExpectedWork | None = None
    terminal: bool = field(default_factory=lambda: output.coloured(sys.stderr))

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._noted = self._started
        self._tallies = {"build": _Tally(), "boot": _Tally(), "run": _Tally()}
        self._line: _Line = _Terminal() if self.terminal else _Plain(self._started)
        self._totals = (0, 0, 0)
        self._next: float | None = None

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.end()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        with self._lock:
            self._show(event)

    def _show(self, event: Event) -> None:
        self._totals = (event.builds, event.boots, event.runs)
        now = time.monotonic()
        where = self.label(event.commit) if event.commit is not None else ""
        if event.seconds is not None and event.kind in self._tallies:
            self._tallies[event.kind].add(event.seconds)
        match event.kind:
            case "decision":
                self._next = None if event.left is None else now + event.left
                self._line.above(f"{where}: {event.text}{self._to_go()}")
                if event.reason:
                    self._line.above(f"    because {event.reason}")
                self._line.update(self._now(where, event.text))
            case "note":
                self._line.update(self._now(where, event.text))
                if not self.terminal and now - self._noted >= _NOTE_SECONDS:
                    self._noted = now
                    self._line.above(f"    {event.text}")
            case "trouble":
                self._line.above(f"    trouble: {event.text}")
            case "done":
                self._line.above(event.text)
            case _:
                took = f" ({duration(event.seconds)})" if event.seconds is not None else ""
                self._line.above(f"    {event.text}{took}")
                self._line.update(self._now(where, event.text))

    def _now(self, where: str, text: str) -> str:
        builds, boots, runs = self._totals
        done = f"{count(builds, 'build')}, {count(boots, 'boot')}, {count(runs, 'run')}"
        spent = duration(time.monotonic() - self._started)
        return f"{where[:12]} {cut(text, _NOW_WIDTH)} | {spent}{self._to_go()}, {done}"

    def _to_go(self) -> str:
        """Return ', about 12 min to go': expected work that is not yet done, at the pace measured so far."""
        if self.expected is None:
            return ""
        e = self.expected
        builds, boots, _ = self._totals
        if builds > e.builds and boots > e.boots:  # one culprit was expected, and there may be more
            if self._next is None:
                return ", longer than expected"
            return f", about {duration(max(self._next - time.monotonic(), 0.0))} to the next culprit"
        parts = zip(
            self._totals,
            (e.builds, e.boots, e.runs),
            (
                self._tallies["build"].mean(e.build_seconds),
                self._tallies["boot"].mean(e.boot_seconds),
                self._tallies["run"].mean(e.run_seconds),
            ),
            strict=True,
        )
        left = sum(max(wanted - done, _SILENT * wanted) * seconds for done, wanted, seconds in parts)
        return f", about {duration(left)} to go"


class _Plain:
    """Lines with the time since the start; the live line is not shown."""

    def __init__(self, started: float) -> None:
        self._started = started

    def update(self, text: str) -> None:
        """Do nothing: what is worth a line gets one through `above`."""

    def above(self, text: str) -> None:
        seconds = int(time.monotonic() - self._started)
        print(f"[{seconds // 60:3d}:{seconds % 60:02d}] {text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Nothing to take away."""


class _Terminal:
    """A spinner with one line at the bottom; what has ended scrolls above it."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._status: Any = self._console.status("starting")
        self._status.start()

    def update(self, text: str) -> None:
        from rich.text import Text

        self._status.update(Text(cut(text, self._console.width - 3)))

    def above(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(text))

    def end(self) -> None:
        self._status.stop()
