"""What a bisection measured of one commit, for `compare` and `profile`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bisector.app import load_report
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError, RequestError

if TYPE_CHECKING:
    from bisector.linux.profile import Profile
    from bisector.model.goal import Metric
    from bisector.stats.samples import SampleSet


def samples(wiring: Wiring, identity: str | None, rev: str) -> list[SampleSet]:
    """Return the samples of a commit, one set a testbed. Raises RequestError if it was not measured."""
    from bisector.report import stored_samples

    material = load_report.load_material(wiring, identity)
    index = load_report.commit_index(wiring, material, rev)
    found = stored_samples.sets(material, index, rev, _metrics(material.request, material.goal.metric))
    if not found:
        raise RequestError(
            f"{rev} has not been measured in the bisection {material.id}",
            cure=f"'perfbisect show {material.id}' lists the commits that were",
        )
    return found


def _metrics(request: Mapping[str, Any], deciding: Metric) -> dict[str, Metric]:
    from bisector.app.accept import workload_of
    from bisector.schemas.request import Request

    try:
        workload = workload_of(Request.model_validate(request))
        found = {m.name: m.metric() for m in workload.manifest.all_metrics()}
    except PerfbisectError:  # without the workload's folder the deciding metric is still known
        found = {}
    return {**found, deciding.name: deciding}


def recording(wiring: Wiring, identity: str | None, rev: str) -> Profile:
    """Return what a monitor recorded of a commit. Raises RequestError if none did, or it cannot be read."""
    from bisector.app.import_results import read_profile
    from bisector.report import monitor_results

    material = load_report.load_material(wiring, identity)
    index = load_report.commit_index(wiring, material, rev)
    for visit in monitor_results.monitored_boots(material):
        if visit.commit == index and (folder := monitor_results.profile_of(visit.monitors)):
            return read_profile(folder)
    raise RequestError(
        f"nothing has profiled {rev} in the bisection {material.id}",
        cure="start it with --monitor perf-record, or --monitor ftrace for counts of calls",
    )
