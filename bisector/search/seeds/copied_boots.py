"""Boots with the same random numbers: where runs differ by chance, such boots of one binary are copies.

An emulated guest boots with one seed, so that boots of a binary repeat to the last digit. If the runs of one
boot differ by chance, the next boot repeats these differences: it is no further sample. So where an exact
clock's runs are not known to agree, boots are to get fresh random numbers, and copies count once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.special import chdtri

from bisector.model.state import State, Visit
from bisector.search.measurement import summarise_visits
from bisector.search.metric.scale import Scale
from bisector.stats.variance_components import VarianceComponents

MAX_REPEAT_DIFFERENCE = 0.1
"""Difference of two boots of one binary, in thresholds, up to which they repeat. Of two commits with one boot
each the difference is then known to within a fifth of the threshold. The emulated machine repeats to less."""
MAX_EXACT_RUN_SD = 0.5
"""Standard deviation of the runs of one boot, in thresholds, from which no clock is exact: two runs then tell
a threshold apart by less than two deviations."""


def boots_repeat(state: State, scale: Scale) -> bool:
    """Return whether repetition k reads the same in all boots of a binary on a testbed."""
    limits: dict[tuple[int, int, str, int], tuple[float, float]] = {}
    for v in state.visits:
        for k, y in v.samples:
            key = (v.commit, v.layout, v.testbed, k)
            low, high = limits.get(key, (y, y))
            limits[key] = (min(low, y), max(high, y))  # what is no number changes neither
    values = np.array(list(limits.values())).reshape(-1, 2)
    finite = values[np.isfinite(values).all(axis=1)]
    return _repeats(finite, scale)


def without_copies(state: State, calibrated_noise: VarianceComponents | None = None) -> tuple[State, bool]:
    """Return the state with the boots that are samples, and whether further boots need fresh random numbers.

    They do from the first runs on that leave it open whether an exact clock's runs scatter by
    MAX_EXACT_RUN_SD, and always after that. Of two or three runs little is known, so an estimate would miss
    it too often; and where boots repeat after all, other random numbers cost nothing. Copies count until
    runs or boots show that they differ: before that, the clock is exact, and needs boots that repeat.
    """
    readings = summarise_visits(state, calibrated_noise) if state.goal.exact else None
    if readings is None:
        return state, False
    scale, bound = readings.scale, MAX_EXACT_RUN_SD * readings.scale.threshold
    samples = replace(state, visits=_first_of_copies(state, scale))
    of_samples = summarise_visits(samples, calibrated_noise)
    assert of_samples is not None
    scatter = max(readings.run_sd, of_samples.run_sd) >= bound
    fresh = (
        scatter
        or any(v.booted.fresh_seed for v in state.visits)
        or _run_sd_limit(samples.visits, scale, state.goal.alpha) >= bound
    )
    differ = scatter or (fresh and not boots_repeat(state, scale))
    return samples if differ else state, fresh


def _first_of_copies(state: State, scale: Scale) -> tuple[Visit, ...]:
    """Return the visits without those that repeat an earlier one of their binary, by the same random numbers.

    The first stays, though a later one may have more runs: a suspect is chosen by it, so that the same
    numbers would be no fresh proof. The testbed does not matter: emulated machines of one kind are alike.
    """
    kept: list[Visit] = []
    earlier: dict[object, list[dict[int, float]]] = defaultdict(list)
    for v in state.visits:
        read = dict(_finite(v))
        if read and not v.booted.fresh_seed:
            known = earlier[state.binaries.get((v.commit, v.layout), (v.commit, v.layout))]
            if any(_is_copy(read, other, scale) for other in known):
                continue
            known.append(read)
        kept.append(v)
    return tuple(kept)


def _is_copy(one: dict[int, float], other: dict[int, float], scale: Scale) -> bool:
    """Return whether two boots read the same; without a common repetition nothing shows that they do."""
    common = one.keys() & other.keys()
    return bool(common) and _repeats(np.array([(one[k], other[k]) for k in common]), scale)


def _repeats(pairs: np.ndarray, scale: Scale) -> bool:
    """Return whether pairs of readings (n, 2) agree."""
    apart = np.abs(np.diff(scale.to_worse_units(pairs), axis=1))
    return bool((apart <= MAX_REPEAT_DIFFERENCE * scale.threshold).all())


def _finite(visit: Visit) -> list[tuple[int, float]]:
    return [(k, y) for k, y in visit.samples if math.isfinite(y)]


def _run_sd_limit(visits: Sequence[Visit], scale: Scale, alpha: float) -> float:
    """Return what the standard deviation of a run exceeds with probability alpha; 0 where nothing is known.

    Differences of neighbouring runs are compared with those of the same repetitions in other boots: what all
    boots share by repetition is no scatter.
    """
    steps: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for v in visits:
        for (k, y), (following, z) in pairwise(_finite(v)):
            steps[k, following].append((y, z))
    freedom, square = 0, 0.0
    for pairs in steps.values():
        step = np.diff(scale.to_worse_units(np.array(pairs)), axis=1)
        freedom += len(pairs) - 1
        square += float(((step - step.mean()) ** 2).sum()) / 2  # a difference has the variance of two runs
    return math.sqrt(square / float(chdtri(freedom, 1 - alpha))) if freedom else 0.0
