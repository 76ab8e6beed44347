"""The chore of alerts: bisections that have ended, budgets that have room again, levels that are back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app.alerts.alert_bisections import begin_or_wait, end_of_bisection
from bisector.app.alerts.level_return import look_for_return
from bisector.model.alerts import AlertFilter

if TYPE_CHECKING:
    from bisector.app.alerts.alert_context import AlertContext

FOLLOW_SECONDS = 20.0
"""Between two looks: bisections take hours, and a look that finds nothing a few milliseconds."""
_LOOKED_BACK_SECONDS = 7 * 86_400.0
"""Improvements that changed since then are looked at: a worker was away for a week at most."""


def follow(context: AlertContext) -> None:
    """Do what is due for all alerts; each thing happens once, however many processes do this at once."""
    for alert in context.alerts.find(AlertFilter(findings=("bisecting",))):
        end_of_bisection(context, alert)
    waiting = context.alerts.find(AlertFilter(findings=("confirmed",), open=True))
    for alert in reversed(waiting):  # the oldest first
        begin_or_wait(context, alert)
    since = context.coordinator.now() - _LOOKED_BACK_SECONDS
    for alert in context.alerts.find(AlertFilter(changed_since=since)):
        look_for_return(context, alert)
