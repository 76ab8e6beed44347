"""How long a search will still take: the work that is expected of it, at the pace that was seen so far.

It is told of each event with its time and can be asked at any time. `python -m tests.bench.progress` replays
searches that were recorded, and prints how often it was right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from bisector.model.decisions import Purpose

if TYPE_CHECKING:
    from bisector.engine.events import Event

_PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
"""In the order in which a search has them."""

_SMALLEST_SHARE_LEFT = 0.05
"""Share of a purpose's work that still counts once all of it is done: most searches need a little more than
the mean, so the time left never falls to zero."""

_BETWEEN_SHARE = 0.4
"""Seconds of a build between the ends, as a share of those of an end, until some were seen. In the demo,
cold, the ends took 145 and 129 s and those between them 110, 48, 123 and 40 s."""

_PACE = 1.5
"""Seconds of boots and runs with all that is around them (warm-up, pauses, deployment, the planner), as a
multiple of their own, until some were seen."""

_LONGER_SHARE = 0.25
"""What is left of a build that takes longer than expected, as a share of what it took."""

_SHARE_SEEN_MIN = 0.03
"""Share of a build's files from which its pace follows: with fewer, configuring would count for compiling."""


@dataclass(frozen=True, slots=True)
class Work:
    """Numbers of builds, boots and runs; of runs those that count, without warm-ups."""

    builds: float = 0.0
    boots: float = 0.0
    runs: float = 0.0


@dataclass(frozen=True, slots=True)
class ExpectedWork:
    """What the search will probably take, from a simulation of it; seconds are guesses until measured."""

    work: Mapping[Purpose, Work]
    build_seconds: float
    boot_seconds: float
    run_seconds: float

    def total(self) -> Work:
        """Return the work of all purposes."""
        every = self.work.values()
        return Work(sum(w.builds for w in every), sum(w.boots for w in every), sum(w.runs for w in every))


class _Mean:
    """The mean of what was seen; until then, what was expected."""

    def __init__(self, expected: float) -> None:
        self._expected, self.number, self.total = expected, 0, 0.0

    def add(self, seconds: float) -> None:
        self.number += 1
        self.total += seconds

    @property
    def value(self) -> float:
        return self.total / self.number if self.number else self._expected


class TimeLeft:
    """The time left of one search. Times are seconds of one clock, whichever it is."""

    def __init__(self, expected: ExpectedWork, now: float) -> None:
        """now: when the search begins."""
        self._expected = expected
        self._purpose: Purpose = "verify"
        self._done: dict[Purpose, Work] = {purpose: Work() for purpose in _PURPOSES}
        self._end, self._between = _Mean(expected.build_seconds), _Mean(0.0)
        self._boot, self._run = _Mean(expected.boot_seconds), _Mean(expected.run_seconds)
        self._visits = 0.0  # seconds of all that was no build
        self._last = now  # when the last action ended
        self._built: set[int | None] = set()  # commits
        self._waits_for_kernel = True
        self._share: float | None = None  # of the build that runs

    def take(self, event: Event, now: float) -> None:
        """Take in what has happened."""
        if event.kind == "note":
            self._share = self._share if event.share is None else event.share
            return
        took, self._last = now - self._last, now
        self._share = None
        if event.kind == "trouble":
            return  # what broke was no pace, and is tried again
        if event.kind == "build":
            (self._end if self._purpose == "verify" else self._between).add(took)
        else:
            self._visits += took
        if event.kind == "decision":
            self._waits_for_kernel = event.new_boot and event.commit not in self._built
            self._purpose = event.purpose or self._purpose
            return
        self._waits_for_kernel = False
        done = self._done[self._purpose]
        match event.kind:
            case "build":
                self._built.add(event.commit)
                self._done[self._purpose] = replace(done, builds=done.builds + 1)
            case "boot":
                self._boot.add(event.seconds or 0.0)
                self._done[self._purpose] = replace(done, boots=done.boots + 1)
            case "run":
                self._run.add(event.seconds or 0.0)
                self._done[self._purpose] = replace(done, runs=done.runs + 1)

    def seconds(self, now: float) -> float:
        """Return the expected seconds from now to the end of the search."""
        left = {purpose: self._left(purpose) for purpose in _PURPOSES}
        end, between = self._build_seconds(now)
        total = left["verify"].builds * end + sum(
            left[purpose].builds * between for purpose in _PURPOSES if purpose != "verify"
        )
        if self._waits_for_kernel:
            mean = end if self._purpose == "verify" else between
            elapsed = now - self._last
            total -= mean * min(left[self._purpose].builds, 1.0)
            total += max(mean - elapsed, _LONGER_SHARE * elapsed)
        visits = self._pace() * sum(map(self._own_seconds, left.values()))
        if not self._waits_for_kernel:
            visits = max(visits - (now - self._last), _SMALLEST_SHARE_LEFT * visits)
        return total + visits

    def _left(self, purpose: Purpose) -> Work:
        """Return what is left of one purpose's work."""
        here, asked = _PURPOSES.index(self._purpose), _PURPOSES.index(purpose)
        all_of, done = self._expected.work[purpose], self._done[purpose]
        if asked < here:
            return Work()
        pairs = ((all_of.builds, done.builds), (all_of.boots, done.boots), (all_of.runs, done.runs))
        return Work(*(max(whole - part, _SMALLEST_SHARE_LEFT * whole) for whole, part in pairs))

    def _build_seconds(self, now: float) -> tuple[float, float]:
        """Return the expected seconds of a build of an end, and of one between them."""
        end, elapsed = self._end.value, now - self._last
        if self._waits_for_kernel and self._purpose == "verify":
            if self._share is not None and self._share >= _SHARE_SEEN_MIN:
                end = elapsed / self._share
            elif not self._end.number:
                end = max(end, (1 + _LONGER_SHARE) * elapsed)
        # One seen between the ends says as much as what those suggest.
        between = (_BETWEEN_SHARE * end + self._between.total) / (1 + self._between.number)
        return end, between

    def _own_seconds(self, work: Work) -> float:
        return work.boots * self._boot.value + work.runs * self._run.value

    def _pace(self) -> float:
        """Return the factor on boots' and runs' own seconds; what was expected counts as one visit."""
        total = self._expected.total()
        weight = self._own_seconds(total) / max(total.boots, 1.0)
        done = sum(map(self._own_seconds, self._done.values()))
        return (_PACE * weight + self._visits) / max(weight + done, 1e-9)
