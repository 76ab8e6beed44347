"""What other programs left behind, read for a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.linux.profile import Profile
    from bisector.stats.samples import SampleSet


def read_results(place: str) -> list[SampleSet]:
    """Read what another program measured: a file, a folder, or '-'. Raises RequestError."""
    from bisector.adapters.parsers.results import read

    return read(place)


def read_profile(place: str) -> Profile:
    """Read a profile: a perf recording, a profiler's output, or '-'. Raises RequestError."""
    from bisector.adapters.parsers.profiles import read

    return read(place)


def touched_functions(wiring: Wiring, rev: str) -> frozenset[str]:
    """Return the functions of C sources that a commit changes. Raises RequestError for an unknown commit."""
    from bisector.adapters.git.changed_functions import touched_functions as changed

    return changed(wiring.repo, wiring.source().resolve(rev))
