"""The workload in the report of a stored bisection, from the workload's folder as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bisector.errors import PerfbisectError
from bisector.schemas.request import Accepted

if TYPE_CHECKING:
    from bisector.model.goal import Metric


@dataclass(frozen=True, slots=True)
class ReportedWorkload:
    """metrics: what a run gives, by name; work: what a run does, and how often, if that is told; unable:
    metrics that cannot decide under the bisection's clock.
    """

    metrics: Mapping[str, Metric]
    work: tuple[str, int] | None
    unable: frozenset[str] = frozenset()


def reported_workload(accepted: Accepted) -> ReportedWorkload:
    """Return what is known of a bisection's workload: the deciding metric alone where it is gone.

    A workload that has changed since may do more or less in a run than it did: its work is not told.
    """
    from bisector.adapters.agent.workload_sources import source_checksum
    from bisector.app.accept import workload_of

    goal = accepted.the_goal()
    deciding = goal.metric
    try:
        workload = workload_of(accepted.request)
        manifest = workload.manifest
        metrics = {one.name: one.metric() for one in manifest.all_metrics()}
        same = manifest.work is not None and source_checksum(workload) == accepted.workload_sum
    except (PerfbisectError, OSError):
        return ReportedWorkload({deciding.name: deciding}, None)
    work = manifest.work.in_a_run(manifest.parameters) if manifest.work is not None and same else None
    return ReportedWorkload({**metrics, deciding.name: deciding}, work, workload.unable(goal.clock))
