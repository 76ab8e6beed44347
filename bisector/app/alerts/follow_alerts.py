"""The chore of alerts: bisections that have ended, budgets that have room again, levels that are back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bisector.app.alerts.alert_bisections import begin_or_wait, end_of_bisection, wait, why_nothing_begins
from bisector.app.alerts.alert_context import AlertContext
from bisector.app.alerts.level_return import look_for_return
from bisector.errors import InfrastructureError, Interrupted, PerfbisectError
from bisector.model.alerts import Alert, AlertFilter

FOLLOW_SECONDS = 20.0
"""Pause between two looks: bisections take hours, and a look that finds nothing takes a few milliseconds."""
_LOOKED_BACK_SECONDS = 7 * 86_400.0
"""How far back changed improvements are looked at. Assumes that workers are never away for over a week."""

Do = Callable[[AlertContext, Alert], object]


def _begin(opened: Sequence[Alert]) -> Do:
    """Return what begins the bisections of one look. opened: all open alerts as they are, newest first.

    Alerts of a series for which nothing may begin now are compared with no others: thousands may wait.
    """
    of_workload: dict[str, dict[str, Alert]] = {}
    for one in opened:
        of_workload.setdefault(one.workload, {})[one.id] = one
    why_not: dict[str, str] = {}

    def begin(context: AlertContext, alert: Alert) -> None:
        if alert.series not in why_not:
            why_not[alert.series] = why_nothing_begins(context, alert.series)
        known = of_workload[alert.workload]
        if why := why_not[alert.series]:
            kept = wait(context, alert, (), why)
        else:
            kept = begin_or_wait(context, alert, among=list(known.values()))
        if kept is not None:
            known[alert.id] = kept

    return begin


def follow(context: AlertContext) -> None:
    """Do what is due for all alerts; each thing happens once, however many processes do this at once.

    What goes wrong with one alert does not stop the others. Raises InfrastructureError with all of it.
    """
    wrong: list[str] = []

    def each(alerts: Iterable[Alert], do: Do) -> None:
        for alert in alerts:
            try:
                do(context, alert)
            except Interrupted:
                raise
            except PerfbisectError as error:
                details = f": {error.details}" if error.details else ""
                wrong.append(f"alert {alert.id}, series '{alert.series}': {error.message}{details}")

    each(context.alerts.find(AlertFilter(findings=("bisecting",))), end_of_bisection)
    opened = context.alerts.find(AlertFilter(open=True))
    each([one for one in reversed(opened) if one.finding == "confirmed"], _begin(opened))  # the oldest first
    since = context.coordinator.now() - _LOOKED_BACK_SECONDS
    each(context.alerts.find(AlertFilter(changed_since=since)), look_for_return)
    if wrong:
        raise InfrastructureError("\n".join(wrong))
