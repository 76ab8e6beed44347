"""The alerts of a worker, which receive suspects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app.alerts import suspects

if TYPE_CHECKING:
    from bisector.app.alerts.alert_context import AlertContext
    from bisector.model.alerts import Alert
    from bisector.model.decisions import Interval
    from bisector.model.series import Confirmed


class AlertsOfSeries:
    """follow_night.AlertSink: keeps alerts in the database."""

    def __init__(self, context: AlertContext) -> None:
        self._context = context

    def suspect_found(self, found: Alert, why: str) -> Alert:
        """Keep a suspect; what is returned as 'suspect' is to be confirmed."""
        return suspects.suspect_found(self._context, found, why)

    def confirmation_ended(
        self, identity: str, outcome: Confirmed, effect: Interval | None, tip: str, why: str
    ) -> Alert:
        """Write down what fresh boots say of a suspect; a confirmed regression begins its bisection."""
        return suspects.confirmation_ended(self._context, identity, outcome, effect, tip, why)

    def confirmation_lost(self, series: str, why: str) -> None:
        """Record that the suspects of a series will not be confirmed any more."""
        suspects.confirmation_lost(self._context, series, why)
