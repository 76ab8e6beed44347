"""The series of the settings' database, and their budgets, which the caps of a lab bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.model.series import owner_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bisector.app.wiring import Wiring
    from bisector.series_ports import SeriesStore


def series_store(wiring: Wiring) -> SeriesStore:
    """Return the series in the database of the bisections."""
    from bisector.adapters.store.series.sql_series import SqlSeries

    return SqlSeries(wiring.database)


def hour_caps(wiring: Wiring) -> Mapping[str, float]:
    """Return owner -> machine hours a week: the caps of the settings, and what series may have."""
    budgets = {owner_of(series.name): series.budget for series in series_store(wiring).all()}
    allowed = {owner: wiring.settings.hours_allowed(owner, hours) for owner, hours in budgets.items()}
    return {**wiring.settings.caps, **allowed}
