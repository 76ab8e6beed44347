"""The operations on alerts in the database of the settings; `local_operations` has all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app.operations.operations import Values
from bisector.errors import NotFound

if TYPE_CHECKING:
    from bisector.alert_ports import AlertStore
    from bisector.app.alerts.alert_changes import AlertChange
    from bisector.app.wiring import Wiring
    from bisector.model.alerts import AlertFilter


class LocalAlerts:
    """What `alert` asks for. Modules are imported where they are used: other commands need none of them."""

    _wiring: Wiring
    _person: str

    def alerts(self, wanted: AlertFilter, *, after: str, limit: int | None) -> Values:
        """Return the rows of `alert list`, and how many there are."""
        from bisector.app.operations.alert_values import alert_row

        if not self._wiring.has_store:
            return {"alerts": [], "count": 0}
        alerts = self._alerts
        found = alerts.find(wanted, after=after, limit=limit)
        return {"alerts": [alert_row(alert) for alert in found], "count": alerts.count(wanted)}

    def alert(self, identity: str) -> Values:
        """Return what `alert show` prints."""
        from bisector.app.alerts.alert_changes import find_alert
        from bisector.app.alerts.alert_range import describe_range
        from bisector.app.operations.alert_values import alert_values
        from bisector.model.alerts import AlertFilter

        alerts = self._alerts
        alert = find_alert(alerts, identity)
        group = alerts.find(AlertFilter(group=alert.group))
        return alert_values(alert, alerts.history(alert.id), group, describe_range(self._wiring, alert))

    def set_alert(self, identity: str, change: AlertChange) -> Values:
        """Change an alert."""
        from bisector.app.alerts.alert_changes import set_alert
        from bisector.app.operations.alert_values import alert_row

        return alert_row(set_alert(self._alerts, identity, change, self._person))

    @property
    def _alerts(self) -> AlertStore:
        from bisector.app.alerts.alert_context import open_alerts

        if not self._wiring.has_store:
            raise NotFound("there are no alerts yet", cure="nightly series make them: perfbisect series list")
        return open_alerts(self._wiring)
