"""The operations on nightly series in the database of the settings; `local_operations` has all others."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from bisector.app.operations.foreign_requests import require_repository
from bisector.app.operations.operations import Values

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.series import Series
    from bisector.schemas.series_request import RemoteSeries


class LocalSeries:
    """What `series` asks for. Modules are imported where they are used: other commands need none of them."""

    _wiring: Wiring

    def series_list(self) -> list[Values]:
        """Return the rows of `series list`."""
        from bisector.app.series.show_series import list_series

        return list_series(self._wiring)

    def series(self, name: str) -> Values:
        """Return what `series show` prints."""
        from bisector.app.series.show_series import show_series

        return show_series(self._wiring, name)

    def add_series(self, asked: Series, *, dry_run: bool) -> Values:
        """Add a series, or only say what it would be. Raises RequestError, InfrastructureError."""
        from bisector.app.series.manage_series import add_series, plan_series
        from bisector.model.series import owner_of

        planned = plan_series(self._wiring, asked)
        added = planned.series if dry_run else add_series(self._wiring, planned)
        allowed = self._wiring.settings.hours_allowed(owner_of(added.name), added.budget)
        return {
            **asdict(added),
            "tip": planned.tip,
            "times": list(planned.times),
            "hours_allowed": allowed,
        }

    def add_foreign_series(self, asked: RemoteSeries) -> Values:
        """Do the same for a request from elsewhere, which names what the settings list."""
        from bisector.model.series import Series
        from bisector.schemas.web_settings import WebSettings
        from bisector.schemas.workload.workload import workload_names

        settings = self._wiring.settings
        testbeds = [spec.name for spec in self._wiring.lab.testbeds]
        values = asked.resolve(settings.web or WebSettings(), workload_names(), testbeds)
        require_repository(self._wiring, values["repo"])
        series = Series(**{"recipe": settings.recipe, **values}, created_by=settings.owner)
        return self.add_series(series, dry_run=asked.dry_run)

    def run_night(self, name: str) -> Values:
        """Make a night of a series due now."""
        from bisector.app.series.manage_series import run_now

        night = run_now(self._wiring, name)
        return {"name": name, "number": night.number}

    def backfill(self, name: str, since: str | None, every: int) -> list[Values]:
        """Make nights of older commits due; return them, the oldest commit first."""
        from bisector.app.series.manage_series import backfill

        made = backfill(self._wiring, name, since, every)
        return [{"number": night.number, "commit": night.commit} for night in made]

    def pause_series(self, name: str, reason: str) -> Values:
        """Let a series rest."""
        from bisector.app.series.manage_series import pause_series

        return {"name": name, "state": pause_series(self._wiring, name, reason).state}

    def resume_series(self, name: str) -> Values:
        """Let a series go on."""
        from bisector.app.series.manage_series import resume_series

        return {"name": name, "state": resume_series(self._wiring, name).state}

    def remove_series(self, name: str) -> Values:
        """Forget a series."""
        from bisector.app.series.manage_series import remove_series

        return {"name": name, "cancelled": remove_series(self._wiring, name)}
