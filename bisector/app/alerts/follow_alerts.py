"""The chore of alerts: bisections that have ended, budgets that have room again, levels that are back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app.alerts.alert_bisections import begin_or_wait, end_of_bisection
from bisector.app.alerts.level_return import look_for_return
from bisector.errors import InfrastructureError, Interrupted, PerfbisectError
from bisector.model.alerts import Alert, AlertFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bisector.app.alerts.alert_context import AlertContext

FOLLOW_SECONDS = 20.0
"""Between two looks: bisections take hours, and a look that finds nothing a few milliseconds."""
_LOOKED_BACK_SECONDS = 7 * 86_400.0
"""Improvements that changed since then are looked at: a worker was away for a week at most."""


def follow(context: AlertContext) -> None:
    """Do what is due for all alerts; each thing happens once, however many processes do this at once.

    What goes wrong with one alert does not stop the others. Raises InfrastructureError with all of it.
    """
    wrong: list[str] = []

    def each(alerts: Iterable[Alert], do: Callable[[AlertContext, Alert], object]) -> None:
        for alert in alerts:
            try:
                do(context, alert)
            except Interrupted:
                raise
            except PerfbisectError as error:
                details = f": {error.details}" if error.details else ""
                wrong.append(f"alert {alert.id}, series '{alert.series}': {error.message}{details}")

    each(context.alerts.find(AlertFilter(findings=("bisecting",))), end_of_bisection)
    waiting = context.alerts.find(AlertFilter(findings=("confirmed",), open=True))
    each(reversed(waiting), begin_or_wait)  # the oldest first
    since = context.coordinator.now() - _LOOKED_BACK_SECONDS
    each(context.alerts.find(AlertFilter(changed_since=since)), look_for_return)
    if wrong:
        raise InfrastructureError("\n".join(wrong))
