"""The planner of an accepted request, with the noise that was calibrated on its testbeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.schemas.request import Accepted, NightSpec
    from bisector.search.attempt.mending import MendingPlanner
    from bisector.search.planner import Planner
    from bisector.search.series.confirmation_planner import ConfirmationPlanner
    from bisector.search.series.night_planner import NightPlanner
    from bisector.stats.aa_analysis import Known


def calibrated(wiring: Wiring, accepted: Accepted) -> Known | None:
    """Return what 'perfbisect calibrate' measured of a workload on the first testbed where it did."""
    from bisector.adapters.store.calibrations import load_known

    metric = accepted.the_goal().metric.name
    return load_known(wiring.settings.state_dir, accepted.workload, accepted.testbeds, metric)


def planner_of(
    wiring: Wiring, accepted: Accepted
) -> Planner | MendingPlanner | NightPlanner | ConfirmationPlanner:
    """Return the planner, with the noise of the first testbed that was calibrated as its prior.

    A confirmation knows that of the nights of its series.
    """
    if accepted.night is not None:
        return _planner_of_series(wiring, accepted, accepted.night)
    from bisector.search.attempt.mending import MendingPlanner
    from bisector.search.planner import Planner

    known = calibrated(wiring, accepted)
    kind = Planner if accepted.attempt is None else MendingPlanner
    return kind(calibrated_noise=known.noise if known is not None else None)


def _planner_of_series(
    wiring: Wiring, accepted: Accepted, night: NightSpec
) -> NightPlanner | ConfirmationPlanner:
    from bisector.search.series.confirmation_planner import ConfirmationPlanner
    from bisector.search.series.night_planner import NightPlanner

    if night.kind != "confirmation":
        return NightPlanner(night.boots)
    from bisector.app.series.levels import noise_of_nights
    from bisector.app.series.series_store import series_store

    points = series_store(wiring).points(night.series)
    earlier = [point for point in points if point.night <= night.number]
    return ConfirmationPlanner(noise_of_nights(earlier))
