"""Alerts on fakes: a history of some commits, series on it, and what happens to them at a test's wish."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bisector.adapters.store.alerts.memory_alerts import MemoryAlerts
from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.alert_ports import AlertStore
from bisector.app.alerts.alert_context import AlertContext
from bisector.errors import NotFound, RequestError
from bisector.model.alerts import ALL, Alert, AlertFilter, Direction, HistoryEntry
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.series import Series
from bisector.model.stored_bisection import Stored
from bisector.schemas.request import Accepted
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.store_ports import Coordinator, Store
from tests.support import fake_bisection as fake

T = TypeVar("T")
COMMITS = 40
HISTORY = linear(COMMITS)
SHAS = HISTORY.shas
"""The commits of the one history, in order."""
REPO = "/fake"
TEN_PERCENT = Interval(0.08, 0.10, 0.12)


def a_series(name: str = "nightly", budget: float = 100.0) -> Series:
    return Series(
        name=name,
        repo=REPO,
        branch="master",
        workload="fake",
        recipe="fake",
        testbed="fake",
        cron="0 3 * * *",
        time_zone="UTC",
        budget=budget,
        boots=3,
        reference=SHAS[0],
    )


def found(
    good: int,
    bad: int,
    series: str = "nightly",
    direction: Direction = "regression",
    effect: Interval = TEN_PERCENT,
    **more: object,
) -> Alert:
    """A suspect as a series tells of it, between two commits of the history."""
    plain = Alert(
        id="",
        series=series,
        workload="fake",
        metric="simulated",
        testbed="fake",
        repo=REPO,
        last_good=SHAS[good],
        first_bad=SHAS[bad],
        direction=direction,
        effect=effect,
    )
    return replace(plain, **more)  # type: ignore[arg-type]


class Killed(BaseException):
    """The process ended here."""


class Mortal:
    """An AlertStore whose process is killed around its n-th write, once."""

    def __init__(self, alerts: AlertStore, write: int, *, before: bool) -> None:
        self._alerts, self.left, self._before = alerts, write, before

    def _write(self, do: Callable[[], T]) -> T:
        self.left -= 1
        if self.left == 0 and self._before:
            raise Killed
        done = do()
        if self.left == 0:
            raise Killed
        return done

    def add(self, alert: Alert, entry: HistoryEntry) -> Alert:
        return self._write(lambda: self._alerts.add(alert, entry))

    def change(
        self,
        alert: Alert,
        entries: Sequence[HistoryEntry],
        *,
        begin: Stored | None = None,
        seen: Collection[Alert] = (),
    ) -> Alert | None:
        return self._write(lambda: self._alerts.change(alert, entries, begin=begin, seen=seen))

    def load(self, identity: str) -> Alert:
        return self._alerts.load(identity)

    def find(
        self, wanted: AlertFilter = ALL, *, after: str = "", limit: int | None = None
    ) -> Sequence[Alert]:
        return self._alerts.find(wanted, after=after, limit=limit)

    def count(self, wanted: AlertFilter = ALL) -> int:
        return self._alerts.count(wanted)

    def history(self, identity: str) -> Sequence[HistoryEntry]:
        return self._alerts.history(identity)


@dataclass
class AlertLab:
    """One database of alerts and bisections. refused: why requests are not accepted."""

    series: dict[str, Series] = field(default_factory=lambda: {"nightly": a_series()})
    refused: str = ""
    clock: float = field(default_factory=time.time)
    coordinator: Coordinator = field(init=False)
    store: Store = field(init=False)
    alerts: AlertStore = field(init=False)

    def __post_init__(self) -> None:
        self.coordinator = MemoryCoordinator(self.now)
        self.store = MemoryStore(self.coordinator)
        self.alerts = MemoryAlerts(self.store, self.now)

    def now(self) -> float:
        self.clock += 0.001
        return self.clock

    def context(self, alerts: AlertStore | None = None) -> AlertContext:
        return AlertContext(
            alerts or self.alerts,
            self.store,
            self.coordinator,
            self.now,
            self._series,
            lambda series: series.budget,
            self._accept,
            commits,
            lambda repo, sha: f"fake: change number {SHAS.index(sha)}",
        )

    def _series(self, name: str) -> Series:
        if name not in self.series:
            raise NotFound(f"there is no series '{name}'")
        return self.series[name]

    def _accept(self, alert: Alert, series: Series) -> tuple[Accepted, CommitGraph]:
        if self.refused:
            raise RequestError(self.refused)
        good, bad = SHAS.index(alert.last_good), SHAS.index(alert.tip or alert.first_bad)
        graph = part_of_history(good, bad)
        accepted = fake.accepted(SyntheticLab(graph, LabModel(), {}, seed=1), (series.testbed,))
        return accepted.model_copy(update={"workload_sum": series.testbed + series.name}), graph

    def end(self, bisection: str, *culprits: int, ending: Ending = Ending.CULPRIT) -> None:
        """Let a bisection conclude. culprits: commits of the history."""
        shas = self.store.load(bisection).graph.shas
        findings = tuple(
            Finding((shas.index(SHAS[commit]),), TEN_PERCENT, 0.99, certified=True) for commit in culprits
        )
        conclusion = Conclusion(ending, "how it ended", findings)
        assert self.store.set_status(bisection, "done", conclusion)


def part_of_history(good: int, bad: int) -> CommitGraph:
    """Return the history between two commits, with the ids that it has as a whole."""
    part = linear(bad - good)
    return replace(part, shas=SHAS[good : bad + 1])


def commits(repo: str, good: str, bad: str) -> frozenset[str]:
    if good not in SHAS or bad not in SHAS:
        return frozenset()
    return frozenset(SHAS[SHAS.index(good) + 1 : SHAS.index(bad) + 1])
