"""The JSON values of alerts in `alert list` and `alert show` (docs/json.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from bisector.app.operations.operations import Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisector.model.alerts import Alert, HistoryEntry


def alert_row(alert: Alert) -> Values:
    """Return a row of `alert list`."""
    values = asdict(alert)
    return {
        "id": values.pop("id"),
        "state": alert.state,
        "open": alert.is_open,
        **values,
        "culprits": list(alert.culprits),
    }


def alert_values(
    alert: Alert, history: Sequence[HistoryEntry], group: Sequence[Alert], range_: Values
) -> Values:
    """Return what `alert show` prints.

    group: all alerts that share their cause, the newest first; range_: as `alerts.alert_range` describes it.
    """
    return {
        **alert_row(alert),
        **range_,
        "history": [asdict(entry) for entry in history],
        "same_cause": [one.id for one in group if one.id != alert.id],
    }
