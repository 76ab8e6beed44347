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

_LAST_SHARE, _GROWTH = 0.25, 1.4
"""Seconds of the last build between the ends, as a share of an end's, and the factor from each build to the
one before it: the nearer two commits, the fewer files differ. In two cold searches of the demo builds took
0.8, 0.35, 0.9, 0.29 and 0.8, 0.22, 0.34, 0.06 of an end's."""

_PACE = 1.5
"""Assumed until some were seen: seconds of boots and runs with all that is around them (warm-up, pauses,
deployment, the planner), as a multiple of their own."""

_LONGER_SHARE = 0.25
"""The rest of a build that takes longer than expected, as a share of the time it took: chosen."""

_SHARE_SEEN_MIN = 0.03
"""Least share of a build's files that shows its pace: before that configuring has taken most of the time."""


@dataclass(frozen=True, slots=True)
class WorkCounts:
    """Numbers of builds, boots and runs; of runs those that count, without warm-ups."""

    builds: float = 0.0
    boots: float = 0.0
    runs: float = 0.0


@dataclass(frozen=True, slots=True)
class ExpectedWork:
    """The expected rest of the search, from a simulation of it; seconds are guesses until measured."""

    work: Mapping[Purpose, WorkCounts]
    build_seconds: float
    boot_seconds: float
    run_seconds: float

    def total(self) -> WorkCounts:
        """Return the work of all purposes."""
        every = self.work.values()
        return WorkCounts(
            sum(w.builds for w in every), sum(w.boots for w in every), sum(w.runs for w in every)
        )


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


def _share_between(left: float) -> float:
    """Return a build between the ends as a share of an end's. left: how many there are, with this one."""
    return float(min(_LAST_SHARE * _GROWTH ** max(left - 1, 0.0), 1.0))


class TimeLeft:
    """The time left of one search. Times are seconds of one clock, whichever it is."""

    def __init__(self, expected: ExpectedWork, now: float) -> None:
        """now: when the search begins."""
        self._expected = expected
        self._purpose: Purpose = "verify"
        self._done: dict[Purpose, WorkCounts] = {purpose: WorkCounts() for purpose in _PURPOSES}
        self._end = _Mean(expected.build_seconds)
        # Of builds between the ends: seconds, and what was expected of them in shares of an end's.
        self._between_seconds, self._between_shares = 0.0, 0.0
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
        if event.kind == "build" and self._purpose == "verify":
            self._end.add(took)
        elif event.kind == "build":
            self._between_seconds += took
            self._between_shares += _share_between(self._builds_between())
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
        left = [self._left(purpose) for purpose in _PURPOSES]
        end, scale, between = self._end_seconds(now), self._scale(now), self._builds_between()
        whole, last = int(between), between % 1
        shares = sum(map(_share_between, range(1, whole + 1))) + last * _share_between(whole + 1)
        total = self._left("verify").builds * end + scale * shares
        if self._waits_for_kernel:
            verify = self._purpose == "verify"
            mean = end if verify else scale * _share_between(between)
            elapsed = now - self._last
            total -= mean * min(self._left(self._purpose).builds, 1.0)
            total += max(mean - elapsed, _LONGER_SHARE * elapsed)
        visits = self._pace() * sum(map(self._own_seconds, left))
        if not self._waits_for_kernel:
            visits = max(visits - (now - self._last), _SMALLEST_SHARE_LEFT * visits)
        return total + visits

    def _left(self, purpose: Purpose) -> WorkCounts:
        """Return what is left of one purpose's work."""
        here, asked = _PURPOSES.index(self._purpose), _PURPOSES.index(purpose)
        all_of, done = self._expected.work[purpose], self._done[purpose]
        if asked < here:
            return WorkCounts()
        pairs = ((all_of.builds, done.builds), (all_of.boots, done.boots), (all_of.runs, done.runs))
        return WorkCounts(*(max(whole - part, _SMALLEST_SHARE_LEFT * whole) for whole, part in pairs))

    def _builds_between(self) -> float:
        """Return how many builds between the ends are left."""
        return sum(self._left(purpose).builds for purpose in _PURPOSES if purpose != "verify")

    def _end_seconds(self, now: float) -> float:
        """Return the expected seconds of a build of an end."""
        end, elapsed = self._end.value, now - self._last
        if self._waits_for_kernel and self._purpose == "verify":
            if self._share is not None and self._share >= _SHARE_SEEN_MIN:
                return elapsed / self._share
            if not self._end.number:
                return max(end, (1 + _LONGER_SHARE) * elapsed)
        return end

    def _scale(self, now: float) -> float:
        """Return the factor on shares: an end's seconds, as far as the builds since then fit to them.

        What the ends suggest counts as much as one of the larger builds between them.
        """
        end, one = self._end_seconds(now), _share_between(4)
        return (one * end + self._between_seconds) / (one + self._between_shares)

    def _own_seconds(self, work: WorkCounts) -> float:
        return work.boots * self._boot.value + work.runs * self._run.value

    def _pace(self) -> float:
        """Return the factor on boots' and runs' own seconds; what was expected counts as one visit."""
        total = self._expected.total()
        weight = self._own_seconds(total) / max(total.boots, 1.0)
        done = sum(map(self._own_seconds, self._done.values()))
        return (_PACE * weight + self._visits) / max(weight + done, 1e-9)
