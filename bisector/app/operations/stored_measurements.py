"""Measurements of one commit in a bisection, for `compare` and `profile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app import load_report
from bisector.app.wiring import Wiring
from bisector.errors import RequestError

if TYPE_CHECKING:
    from bisector.linux.profile import Profile
    from bisector.report.report_model import Material
    from bisector.stats.samples import SampleSet


def samples(wiring: Wiring, identity: str | None, rev: str) -> list[SampleSet]:
    """Return the samples of a commit, one set a testbed. Raises RequestError if it was not measured."""
    material = load_report.load_material(wiring, identity)
    return samples_of(material, load_report.commit_index(wiring, material, rev), rev)


def samples_of(material: Material, index: int, rev: str) -> list[SampleSet]:
    """Return the samples of a commit by its index, one set a testbed. Raises RequestError: not measured."""
    from bisector.report import stored_samples

    found = stored_samples.sets(material, index, rev, material.metrics)
    if not found:
        raise RequestError(
            f"{rev} has not been measured in the bisection {material.id}",
            cure=f"'perfbisect show {material.id}' lists the commits that were",
        )
    return found


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
        cure="start it with --monitor counters in emulated x86_64 guests, else with perf-record, "
        "or with ftrace for counts of calls",
    )
