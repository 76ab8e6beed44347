"""What the use cases of alerts work with, put together from the wiring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from bisector.errors import InfrastructureError, RequestError
from bisector.model.alerts import MAX_NAME_CHARACTERS, Alert, cut

if TYPE_CHECKING:
    from bisector.alert_ports import AlertStore
    from bisector.app.wiring import Wiring
    from bisector.model.commit_graph import CommitGraph
    from bisector.model.series import Series
    from bisector.schemas.request import Accepted
    from bisector.store_ports import Coordinator, Store

_RANGES_KEPT = 64
"""Ranges whose commits are remembered: those of the open alerts of some workloads, a few hundred ids each."""


@dataclass(frozen=True, slots=True)
class AlertContext:
    """store, coordinator: of the database of the alerts. now: seconds since the epoch, for a bisection's age.

    series: by its name, raises NotFound; accept: makes a request of an alert and accepts it, raises
    PerfbisectError; commits: (repo, good, bad) -> ids of those after good up to bad, none where the
    repository does not have them; subject: (repo, id) -> of a commit, '' where nobody knows.
    """

    alerts: AlertStore
    store: Store
    coordinator: Coordinator
    now: Callable[[], float]
    series: Callable[[str], Series]
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
                source.resolve(end)  # raises RequestError where git no longer has it: then nothing is broken
            raise
        return frozenset(sha for sha, mine in zip(graph.shas, graph.candidate, strict=True) if mine)

    def commits(repo: str, good: str, bad: str) -> frozenset[str]:
        try:
            return read(repo, good, bad)
        except RequestError:  # not kept: a commit of a force-pushed branch may be fetched again
            return frozenset()

    def subject(repo: str, sha: str) -> str:
        try:
            (info,) = wiring.source(repo).infos([sha])
        except RequestError:
            return ""
        return cut(info.subject, MAX_NAME_CHARACTERS)

    def accept_alert(alert: Alert, series: Series) -> tuple[Accepted, CommitGraph]:
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

    return AlertContext(
        open_alerts(wiring),
        wiring.store,
        wiring.coordinator,
        wiring.clock.now,
        SqlSeries(wiring.database).load,
        accept_alert,
        commits,
        subject,
    )
