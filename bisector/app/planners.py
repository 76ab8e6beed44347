"""The planner of an accepted request, with the noise that was calibrated on its testbeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.schemas.request import Accepted
    from bisector.search.attempt.mending import MendingPlanner
    from bisector.search.planner import Planner
    from bisector.stats.aa_analysis import Known


def calibrated(wiring: Wiring, accepted: Accepted) -> Known | None:
    """Return what 'perfbisect calibrate' measured of a workload on the first testbed where it did."""
    from bisector.adapters.store.calibrations import load_known

    metric = accepted.the_goal().metric.name
    return load_known(wiring.settings.state_dir, accepted.workload, accepted.testbeds, metric)


def planner_of(wiring: Wiring, accepted: Accepted) -> Planner | MendingPlanner:
    """Return the planner, with the noise of the first testbed that was calibrated as its prior."""
    from bisector.search.attempt.mending import MendingPlanner
    from bisector.search.planner import Planner

    known = calibrated(wiring, accepted)
    kind = Planner if accepted.attempt is None else MendingPlanner
    return kind(calibrated_noise=known.noise if known is not None else None)
