"""Results of other programs, read for a comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bisector.errors import PerfbisectError
from bisector.model.commit_graph import short_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisector.app.wiring import Wiring
    from bisector.linux.annotated_code import AnnotatedFunction
    from bisector.linux.profile import Profile
    from bisector.report.html.profile_section import TwoProfiles
    from bisector.report.report_model import Material
    from bisector.stats.samples import SampleSet


def read_results(place: str) -> list[SampleSet]:
    """Read what another program measured: a file, a folder, or '-'. Raises RequestError."""
    from bisector.adapters.parsers.results import read

    return read(place)


def read_profile(place: str) -> Profile:
    """Read a profile: a perf recording, a profiler's output, or '-'. Raises RequestError."""
    from bisector.adapters.parsers.profiles import read

    return read(place)


def annotated_functions(profile: Profile, names: Sequence[str]) -> list[AnnotatedFunction]:
    """Return functions of a counted profile instruction by instruction.

    Raises RequestError: no counts of blocks, or the kernel is gone; InfrastructureError.
    """
    from bisector.adapters.guest.counting.disassembly import annotated_functions as annotated

    return annotated(profile, names)


def touched_functions(wiring: Wiring, rev: str) -> frozenset[str]:
    """Return the functions of C sources that a commit changes. Raises RequestError for an unknown commit."""
    from bisector.adapters.git.changed_functions import touched_functions as changed

    return changed(wiring.repo, wiring.source().resolve(rev))


def recorded_profiles(material: Material) -> TwoProfiles | None:
    """Return what monitors recorded of two kernels of a bisection; None without any that can be read."""
    from bisector.report import monitor_results
    from bisector.report.html.profile_section import TwoProfiles

    pair = monitor_results.profiled_pair(material)
    if pair is None:
        return None
    folders = monitor_results.profiles(material)
    try:
        a, b = (
            replace(read_profile(folders[index]), name=short_name(material.commit(index).sha))
            for index in pair
        )
    except PerfbisectError:
        return None
    one_kind = (a.own and b.own) or (a.calls and b.calls)
    return TwoProfiles(a, b) if one_kind else None
