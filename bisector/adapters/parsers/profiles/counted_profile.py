"""Output of the monitor `counters`: instructions of each function in a run."""

from __future__ import annotations

from pathlib import Path

from bisector.errors import RequestError
from bisector.linux.profile import Profile, Stack, Symbol, folded
from bisector.schemas.counted_functions import (
    BLOCKS,
    NAME,
    USER,
    CountedFunction,
    CountedFunctionsFile,
    callers_of,
)
from bisector.schemas.loading import load_json

_MIN_RUNS = 2
"""One run alone differs from none."""
_OLD = "an earlier version counted it, which followed no calls"


def read(path: Path) -> Profile:
    """Return the counts as a profile whose weights are instructions of a run. Raises RequestError."""
    found = load_json(path, CountedFunctionsFile)
    counted = _counted(found)
    own = {symbol: one.instructions for symbol, one in counted.items()}
    if not found.programs:
        own[_PROGRAMS] = found.user
    stacks = _stacks(found)
    return Profile(
        path.parent.name,
        own,
        whole=folded(stacks)[1],
        stacks=stacks,
        total=sum(own.values()),
        event="instructions",
        exact=True,
        misses={symbol: one.misses for symbol, one in counted.items() if one.misses},
        geometry=found.geometry,
        calls={symbol: one.calls for symbol, one in counted.items() if one.calls},
        callers=callers_of(found.paths),
        spreads=_spreads(found),
        blocks=str(blocks) if (blocks := path.with_name(BLOCKS)).is_file() else "",
        no_stacks="" if stacks else found.no_paths or _OLD,
    )


_PROGRAMS = Symbol(USER, "user")


def _counted(found: CountedFunctionsFile) -> dict[Symbol, CountedFunction]:
    kernel = {Symbol(one.name, "kernel"): one for one in found.functions}
    return kernel | {Symbol(one.name, "user"): one for one in found.programs}


def _spreads(found: CountedFunctionsFile) -> dict[Symbol, float]:
    """Return what runs of the boot differ by; earlier versions did not record it for programs."""
    if found.runs < _MIN_RUNS:
        return {}
    spreads = {symbol: one.spread for symbol, one in _counted(found).items()}
    if found.user_spread is not None and not found.programs:
        spreads[_PROGRAMS] = found.user_spread
    return spreads


def _stacks(found: CountedFunctionsFile) -> dict[Stack, float]:
    """Return the paths of calls with what each executes itself. Raises RequestError."""
    chains: list[Stack] = []
    weights: dict[Stack, float] = {}
    for number, (parent, name, instructions, _) in enumerate(found.paths, start=1):
        if parent >= number:
            raise RequestError(
                f"path {number} of {NAME} is called from path {parent}, which is not before it",
                cure="count it again",
            )
        chains.append((*(chains[parent - 1] if parent else ()), Symbol(name, "kernel")))
        if instructions:
            weights[chains[-1]] = weights.get(chains[-1], 0.0) + instructions
    return weights | _user_stacks(found) if weights else {}


def _user_stacks(found: CountedFunctionsFile) -> dict[Stack, float]:
    """Return functions of programs, whose calls are not followed, each upon all user code."""
    told = [one for one in found.programs if one.name != USER]
    if not told:
        return {(_PROGRAMS,): found.user} if found.user else {}
    return {(_PROGRAMS, Symbol(one.name, "user")): one.instructions for one in told if one.instructions}
