"""What the monitor `counters` left: instructions of each function of the kernel in a run, counted."""

from __future__ import annotations

from pathlib import Path

from bisector.linux.profile import Profile, Symbol
from bisector.schemas.counted_functions import CountedFunctions
from bisector.schemas.loading import load_json

_PROGRAMS = "[user programs]"


def read(path: Path) -> Profile:
    """Return the counts as a profile whose weights are instructions of a run. Raises RequestError."""
    found = load_json(path, CountedFunctions)
    own = {Symbol(one.name, "kernel"): one.instructions for one in found.functions}
    own[Symbol(_PROGRAMS, "user")] = found.user
    return Profile(
        path.parent.name,
        own,
        total=sum(own.values()),
        event="instructions",
        exact=True,
        misses={Symbol(one.name, "kernel"): one.misses for one in found.functions if one.misses},
        geometry=found.geometry,
    )
