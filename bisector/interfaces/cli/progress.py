"""The progress of a bisection on stderr: one line that changes on a terminal, plain lines elsewhere.

It shows the current action with its reason, the builds, boots and runs so far, and the expected time left.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from bisector.app.time_left import ExpectedWork, TimeLeft
from bisector.interfaces.cli import output
from bisector.interfaces.cli.terminal import ReaderGone, unguarded
from bisector.model.format import count
from bisector.model.printable import printable, printable_line
from bisector.report import pictures
from bisector.report.phrases import cut, duration

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

    from bisector.engine.events import Event

_SECONDS_BETWEEN_NOTES = 15.0
"""Least time between two notes of one action where stderr is not a terminal: four lines a minute in a log."""

_ACTION_WIDTH = 32
"""Columns of the current action. The commit's 12, this, and the times fit into a terminal of 80 columns."""


@dataclass
class ProgressDisplay:
    """Called with every event of a bisection, from any thread. label: names a commit of the graph.

    gone: called in place of an error where nobody reads what is printed any more, as after `| head`.
    """

    label: Callable[[int], str]
    expected: ExpectedWork | None = None
    terminal: bool = field(default_factory=lambda: output.redrawn(sys.stderr))
    gone: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._last_note = self._started
        self._left = None if self.expected is None else TimeLeft(self.expected, self._started)
        self._output: _Lines | _Terminal = _Terminal() if self.terminal else _Lines(self._started)
        self._totals = (0, 0, 0)
        self._next_culprit: float | None = None  # when it is expected, by time.monotonic()
        self._suspects: list[str] = []
        self._testbeds: set[str] = set()

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        self._output.end()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        with self._lock:
            try:
                self._show(event)
            except ReaderGone:
                if self.gone is None:
                    raise
                self.gone()

    def _show(self, event: Event) -> None:
        self._totals = (event.builds, event.boots, event.runs)
        now = time.monotonic()
        where = self.label(event.commit) if event.commit is not None else ""
        self._testbeds |= {event.testbed} - {""}
        bed = event.testbed if len(self._testbeds) > 1 else ""  # one alone needs no name
        name = f"{bed}: " if bed else ""
        if self._left is not None:
            self._left.take(event, now)
        match event.kind:
            case "decision":
                self._next_culprit = None if event.left is None else now + event.left
                self._suspects = pictures.suspects(event.suspects, self.label)
                self._output.add_line(f"{name}{where}: {event.text}{self._behind_action()}")
                if event.reason:
                    self._output.add_line(f"    because {event.reason}")
                self._output.update(partial(self._current, name, where, event.text), self._suspects)
            case "note":
                self._output.update(partial(self._current, name, where, event.text), self._suspects)
                if self.terminal:
                    return
                if event.commit is None and not event.testbed:  # nobody's progress: it is told once
                    self._output.add_line(f"    {event.text}")
                elif now - self._last_note >= _SECONDS_BETWEEN_NOTES:
                    self._last_note = now
                    left = self._behind_action() if event.share else ""
                    self._output.add_line(f"    {name}{event.text}{left}")
            case "trouble":
                self._output.add_line(f"    {name}trouble: {event.text}")
            case "done":
                self._output.add_line(event.text)
            case _:
                took = f" ({duration(event.seconds)})" if event.seconds is not None else ""
                self._output.add_line(f"    {name}{event.text}{took}")
                self._output.update(partial(self._current, name, where, event.text), self._suspects)

    def _current(self, name: str, where: str, text: str) -> str:
        """Return the line that changes, as of now; without a lock, for the terminal's thread draws it."""
        builds, boots, runs = self._totals
        done = f"{count(builds, 'build')}, {count(boots, 'boot')}, {count(runs, 'run')}"
        spent = duration(time.monotonic() - self._started)
        times = ", ".join(filter(None, (spent, self._time_left(), done)))
        return f"{name}{where[:12]} {cut(text, _ACTION_WIDTH)} | {times}"

    def _behind_action(self) -> str:
        """Return '; in all about 12 min to go': without these words it reads as the time of the action."""
        left = self._time_left()
        return f"; in all {left}" if left else ""

    def _time_left(self) -> str:
        """Return 'about 12 min to go' of the whole search, as `TimeLeft` expects it; '' if unknown."""
        if self.expected is None or self._left is None:
            return ""
        builds, boots, _ = self._totals
        all_of, now = self.expected.total(), time.monotonic()
        if builds > all_of.builds and boots > all_of.boots:
            # The estimate is for one culprit, and there may be more.
            if self._next_culprit is None:
                return "longer than expected"
            return f"about {duration(max(self._next_culprit - now, 0.0))} to the next culprit"
        return f"about {duration(self._left.seconds(now))} to go"


class _Lines:
    """Lines with the time since the start. The line that changes (`update`) is not shown."""

    def __init__(self, started: float) -> None:
        self._started = started

    def update(self, text: Callable[[], str], picture: Sequence[str]) -> None:
        """Do nothing."""

    def add_line(self, text: str) -> None:
        seconds = int(time.monotonic() - self._started)
        print(f"[{seconds // 60:3d}:{seconds % 60:02d}] {text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Do nothing."""


class _Terminal:
    """The suspects, and a spinner with one line, at the bottom of the terminal; other lines scroll above."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        # rich draws with escape sequences, so it gets the terminal itself, and only printable texts. It would
        # take over stdout and stderr as well; what others write there goes through the exit instead.
        self._console = Console(file=unguarded(sys.stderr), highlight=False)
        self._spinner = Spinner("dots")
        self._text: Callable[[], str] = lambda: "starting"
        self._picture: list[Text] = []
        self._live = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=12.5,  # frames of the spinner
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def update(self, text: Callable[[], str], picture: Sequence[str]) -> None:
        """Show another line from now on. text: asked at each refresh, so that its time goes on."""
        from rich.text import Text

        width = self._console.width
        drawn = pictures.in_characters_of(self._console.encoding, picture)
        self._picture = [Text(cut(printable_line(line), width)) for line in drawn]
        self._text = text
        self._live.refresh()

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        self._spinner.update(text=Text(cut(printable_line(self._text()), self._console.width - 3)))
        return Group(*self._picture, self._spinner)

    def add_line(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(printable(text)))

    def end(self) -> None:
        self._live.stop()
