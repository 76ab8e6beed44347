"""The dependencies of the use cases of alerts, put together from the wiring."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.alerts.alert_range import subject_of
from bisector.errors import InfrastructureError, PerfbisectError, RequestError
from bisector.model.alerts import Alert
from bisector.model.series import owner_of

if TYPE_CHECKING:
    from bisector.alert_ports import AlertStore
    from bisector.app.wiring import Wiring
    from bisector.model.commit_graph import CommitGraph
    from bisector.model.series import Series
    from bisector.schemas.request import Accepted
    from bisector.store_ports import Coordinator, Store

_RANGES_KEPT = 64
"""Ranges whose commits are kept in memory: enough for the open alerts of some workloads, a few hundred ids
each."""
_FETCH_SECONDS = 3600.0
"""Pause between two tries to fetch a range: after a force-push no remote may have its commits any more."""


@dataclass(frozen=True, slots=True)
class AlertContext:
    """store, coordinator: of the database of the alerts. now: seconds since the epoch, for a bisection's age.

    series: by its name, raises NotFound; hours: machine hours a week that one may have; accept: makes a
    request of an alert and accepts it, raises PerfbisectError; commits: (repo, good, bad) -> ids of those
    after good up to bad, none where the repository does not have them; subject: (repo, id) -> of a commit, ''
    where nobody knows.
    """

    alerts: AlertStore
    store: Store
    coordinator: Coordinator
    now: Callable[[], float]
    series: Callable[[str], Series]
    hours: Callable[[Series], float]
    accept: Callable[[Alert, Series], tuple[Accepted, CommitGraph]]
    commits: Callable[[str, str, str], frozenset[str]]
    subject: Callable[[str, str], str]


def open_alerts(wiring: Wiring) -> AlertStore:
    """Return the alerts in the database of the bisections."""
    from bisector.adapters.store.alerts.sql_alerts import SqlAlerts

    return SqlAlerts(wiring.database)


def alert_context(wiring: Wiring) -> AlertContext:
    """Return the context of this process."""
    from bisector.adapters.store.series.sql_series import SqlSeries

    @lru_cache(maxsize=_RANGES_KEPT)
    def read(repo: str, good: str, bad: str) -> frozenset[str]:
        source = wiring.source(repo)
        try:
            graph = source.graph(good, bad)
        except InfrastructureError:
            for end in (good, bad):
                source.resolve(end)  # RequestError where git no longer has it, which is no failure of git
            raise
        return frozenset(sha for sha, mine in zip(graph.shas, graph.candidate, strict=True) if mine)

    next_fetch: dict[tuple[str, str, str], float] = {}

    def fetch(repo: str, good: str, bad: str) -> bool:
        """Fetch commits that another worker has; False where that fails, or was tried lately."""
        from bisector.adapters.git.fetching import fetch_commits

        if time.monotonic() < next_fetch.get((repo, good, bad), 0.0):
            return False
        next_fetch[repo, good, bad] = time.monotonic() + _FETCH_SECONDS
        with contextlib.suppress(PerfbisectError):  # reported where the commits are needed
            fetch_commits(Path(repo), (bad, good))
            return True
        return False

    def commits(repo: str, good: str, bad: str) -> frozenset[str]:
        try:
            return read(repo, good, bad)
        except RequestError:  # not kept: a commit of a force-pushed branch may be fetched again
            with contextlib.suppress(RequestError):  # good may no longer be an ancestor of bad
                return read(repo, good, bad) if fetch(repo, good, bad) else frozenset()
            return frozenset()

    def subject(repo: str, sha: str) -> str:
        try:
            return subject_of(wiring.source(repo), sha)
        except RequestError:
            return ""

    def accept(alert: Alert, series: Series) -> tuple[Accepted, CommitGraph]:
        fetch(series.repo, alert.last_good, alert.tip or alert.first_bad)
        return _accept(wiring, alert, series)

    return AlertContext(
        open_alerts(wiring),
        wiring.store,
        wiring.coordinator,
        wiring.clock.now,
        SqlSeries(wiring.database).load,
        lambda series: wiring.settings.hours_allowed(owner_of(series.name), series.budget),
        accept,
        commits,
        subject,
    )


def _accept(wiring: Wiring, alert: Alert, series: Series) -> tuple[Accepted, CommitGraph]:
    """Accept the request for a confirmed alert's bisection. Raises PerfbisectError."""
    from bisector.app.accept import accept
    from bisector.schemas.request import Request

    asked = Request(
        good=alert.last_good,
        bad=alert.tip or alert.first_bad,
        workload=series.workload,
        repo=series.repo,
        threshold=series.threshold,
        alpha=wiring.settings.alpha,
        recipe=series.recipe,
        testbeds=(series.testbed,),
    )
    return accept(wiring, asked)
