"""A series on a real repository and a real database; what nights measure is drawn from known levels."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.app.planners import planner_of
from bisector.app.series import accept_night, series_store
from bisector.app.series.night_chore import NightChore
from bisector.app.wiring import Wiring
from bisector.model.alerts import Alert, Finding, Triage
from bisector.model.decisions import Interval
from bisector.model.goal import Direction, Goal, Metric, Threshold
from bisector.model.machine_hours import HOUR_SECONDS
from bisector.model.series import Confirmed, Night, NightVerdict, Point, Series
from bisector.model.stored_bisection import TO_EXECUTE
from bisector.schemas import serialization
from bisector.schemas.request import Accepted, Request
from bisector.schemas.settings import Settings
from tests.support.searching import drive
from tests.support.small_git import SmallGit

DAY = 24 * HOUR_SECONDS
COMMITS = 40


@dataclass
class SeenAlerts:
    """follow_night.AlertSink that remembers what it was told. finding, triage: of what it returns."""

    suspects: list[tuple[Alert, str]] = field(default_factory=list)
    ended: list[tuple[str, str, Interval | None, str]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    finding: Finding = "suspect"
    triage: Triage | None = None

    def suspect_found(self, found: Alert, why: str) -> Alert:
        self.suspects.append((found, why))
        identity = f"alert-{len(self.suspects)}"
        return replace(found, id=identity, finding=self.finding, triage=self.triage)

    def confirmation_ended(
        self, identity: str, outcome: Confirmed, effect: Interval | None, tip: str, why: str
    ) -> None:
        self.ended.append((identity, outcome, effect, tip))

    def confirmation_lost(self, series: str, why: str) -> None:
        self.lost.append((series, why))


class SeriesLab:
    """`origin` has commits c0, c1, ...; its branch `night` is what the series measures each day at noon."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "c0\n" + "".join(f"c{n}: c{n - 1}\n" for n in range(1, COMMITS)) + "other: c0\n"
        self.origin = SmallGit(root / "origin").make(text)
        self.origin.git("branch", "night", "c0")
        self.origin.git("clone", "--quiet", str(self.origin.path), str(root / "linux"))
        self.repo = root / "linux"
        self.wiring = Wiring(Settings(cache_dir=root / "cache", state_dir=root / "state", repo=self.repo))
        self.store = series_store.series_store(self.wiring)
        self.alerts = SeenAlerts()
        self.chore = self.another_chore()
        self.noise, self.effect, self.testbed_effect = 0.005, 0.0, 0.0
        self.threshold = Threshold(0.01)
        self.better: Direction = "lower"
        self.culprit = COMMITS  # the number of the commit whose effect that is
        self.unbuildable: Container[int] = ()  # places in a night's graph: 0 the reference, 1 the tip
        self._random, self._offset = np.random.default_rng(1), 0.0
        self.now = self.wiring.coordinator.now()
        monkeypatch.setattr(SqlCoordinator, "now", lambda _: self.now)
        monkeypatch.setattr(accept_night, "accept_ends", self._accept)

    def another_chore(self) -> NightChore:
        """Return the chore of another worker."""
        return NightChore(self.wiring, self.alerts)

    def add(self, **more: object) -> Series:
        """Add the series 'pipe', due once a day."""
        series = Series(
            name="pipe",
            repo=str(self.repo),
            branch="origin/night",
            workload="pipe-test",
            recipe="x86_64-small",
            testbed="bed",
            cron="0 12 * * *",
            time_zone="UTC",
            budget=10.0,
            boots=4,
            reference=self.origin.ids["c0"],
        )
        return self.store.add(replace(series, **more))  # type: ignore[arg-type]

    def push(self, name: str) -> None:
        """Let the branch be at a commit."""
        self.origin.git("branch", "--force", "night", name)

    def night(self, name: str | None = None) -> Night:
        """Let a day pass, with all that is to be done on it; return its night. name: of what was pushed."""
        if name is not None:
            self.push(name)
        self.now += DAY
        self.work()
        return self.nights()[-1]

    def keep_night(self, name: str) -> None:
        """Keep a night of a day as if it had been measured and had shown nothing: quickly."""
        self.now += DAY
        number, sha, shas = len(self.nights()) + 1, self.origin.ids[name], [self.origin.ids["c0"]]
        night = Night("pipe", number, self.now, self.now, state="running", commit=sha)
        self.store.add_night(night)
        points = [
            Point(
                number,
                f"boot-{boot:03}",
                [*shas, sha][boot != 2],
                "bed",
                boot == 2,
                tuple(self._value([*shas, sha], int(boot != 2), run) for run in range(3)),
                self.now,
            )
            for boot in range(5)
        ]
        self.store.end_night(replace(night, state="measured"), points)
        self.store.set_verdict(replace(night, state="measured", verdict=NightVerdict("learning")))

    def work(self) -> None:
        """Do chores and bisections until nothing is left to do."""
        for _ in range(10):
            self.chore.do()
            if not self.execute() and not any(night.is_open for night in self.nights()):
                return

    def execute(self) -> int:
        """Carry out the bisections that are queued; return how many."""
        queued = self.wiring.store.list(statuses=TO_EXECUTE)
        for summary in queued:
            stored = self.wiring.store.load(summary.id)
            accepted = Accepted.model_validate_json(stored.request)
            planner = planner_of(self.wiring, accepted)
            end, records, _ = drive(
                stored.graph,
                accepted.the_goal(),
                partial(self._value, stored.graph.shas),
                planner=planner,
                unbuildable=self.unbuildable,
            )
            for record in records:
                self.wiring.store.append(stored.id, record)
            self.wiring.store.set_status(stored.id, "done", end)
        return len(queued)

    def _value(self, shas: Sequence[str], commit: int, run: int) -> float:
        """Return what a run reads; each boot has a level of its own."""
        if run == 0:
            self._offset = self.noise * self._random.standard_normal()
        level = 100 * (1 + self.testbed_effect)
        if self._number(shas[commit]) >= self.culprit:
            level *= 1 + self.effect
        return float(level * (1 + self._offset + self.noise / 5 * self._random.standard_normal()))

    def nights(self) -> list[Night]:
        """Return the nights of the series."""
        return list(self.store.nights("pipe"))

    def _number(self, sha: str) -> int:
        name = self.origin.name(sha)
        return 0 if name == "other" else int(name[1:])

    def _accept(self, wiring: Wiring, request: Request, good: str, bad: str) -> Accepted:
        goal = Goal(
            Metric("real", "s", self.better, self.threshold), budget=request.budget, find=request.find
        )
        return Accepted(
            request=request,
            good=good,
            bad=bad,
            goal=serialization.goal_to_json(goal),
            testbeds=request.testbeds,
            clock="wall",
            workload=request.workload,
            workload_sum="x",
        )
