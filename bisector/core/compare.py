"""Two or more sets of samples side by side: what differs, by how much, and how far it can be believed.

Every set is a list of boots, each a list of runs; runs of one boot are not independent, so boots are what is
resampled. The effect is the Hodges-Lehmann shift (Hodges and Lehmann 1963) of log ratios where values are
positive, of plain differences otherwise; its interval is a bootstrap over boots and the runs within them.
Nothing raises for thin data: the result carries warnings in words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisector.core.model import Direction, Interval

Floats = NDArray[np.float64]
Boots = Sequence[Sequence[float]]

DRAWS = 2000
"""Bootstrap draws: the 95% ends are then known to about a hundredth of the standard error's scale."""
FEW_RUNS, FEW_BOOTS = 6, 3
"""Below six values no rank interval at 95% exists (benchstat says the same); below three boots a side their
spread is a guess."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One set in numbers. boots, runs: how many; sd: of single runs; cv: sd / |mean|, 0 where mean is 0."""

    name: str
    boots: int
    runs: int
    mean: float
    median: float
    sd: float
    cv: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What b is, compared with a.

    effect: relative change of the number (0.35 = it rises by 35%) with its interval; plain: the same in the
    metric's unit; verdict: 'worse', 'better', 'same' (the interval excludes the threshold) or 'unclear';
    significant: the interval excludes zero; text: one line, with `~` where nothing was shown;
    probability: share of bootstrap draws in which b is worse.
    """

    name: str
    unit: str
    a: Summary
    b: Summary
    effect: Interval
    plain: Interval
    verdict: str
    significant: bool
    probability: float
    text: str
    warnings: tuple[str, ...] = ()


def summarise(name: str, boots: Boots) -> Summary:
    """Return a set in numbers. Raises ValueError where there is no finite value."""
    values = _flat(boots)
    if not len(values):
        raise ValueError(f"{name}: there is no finite value to compare")
    mean = float(values.mean())
    sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Summary(
        name,
        sum(1 for b in boots if len(b)),
        len(values),
        mean,
        float(np.median(values)),
        sd,
        sd / abs(mean) if mean else 0.0,
        float(values.min()),
        float(values.max()),
    )


def hodges_lehmann(a: Floats, b: Floats) -> float:
    """Return the median of all differences b - a."""
    return float(np.median(b[:, None] - a))


def compare(
    name: str,
    a: Boots,
    b: Boots,
    *,
    unit: str = "",
    better: Direction = "lower",
    threshold: float = 0.0,
    alpha: float = 0.05,
    seed: int = 0,
    labels: tuple[str, str] = ("a", "b"),
) -> Comparison:
    """Compare two sets of boots, each a list of runs.

    threshold: the smallest relative change that matters, 0 for any; seed: of the bootstrap. Raises ValueError
    where a side has no finite value.
    """
    sides = summarise(labels[0], a), summarise(labels[1], b)
    log = min(sides[0].low, sides[1].low) > 0
    boots = [_clean(a), _clean(b)]
    moved = [[np.log(x) if log else x for x in side] for side in boots]
    base = 1.0 if log else (abs(sides[0].median) or 1.0)
    shift = hodges_lehmann(np.concatenate(moved[0]), np.concatenate(moved[1]))
    draws = _bootstrap(moved[0], moved[1], np.random.default_rng(seed))
    low, high = np.quantile(draws, [alpha / 2, 1 - alpha / 2])
    low, high = min(float(low), shift), max(float(high), shift)

    def relative(v: float) -> float:
        return math.expm1(v) if log else v / base

    effect = Interval(relative(low), relative(shift), relative(high))
    scale = sides[0].median
    plain = Interval(low, shift, high)
    if log:
        ends = sorted((scale * effect.low, scale * effect.high))
        plain = Interval(ends[0], scale * effect.estimate, ends[1])
    worse = 1.0 if better == "lower" else -1.0
    significant = low > 0 or high < 0
    probability = float(np.mean(worse * draws > 0) + 0.5 * np.mean(draws == 0))
    limits = sorted((worse * effect.low, worse * effect.high))
    if significant and limits[1] >= threshold and limits[0] > 0:
        verdict = "worse"
    elif significant and limits[0] <= -threshold and limits[1] < 0:
        verdict = "better"
    elif max(abs(limits[0]), abs(limits[1])) < threshold or (low == high == 0.0):
        verdict = "same"
    else:
        verdict = "unclear"
    word = {"worse": "slower" if better == "lower" else "lower", "better": "better"}.get(verdict, verdict)
    change = f"{100 * effect.estimate:+.2f}%" if significant else "~"
    text = f"{name}: {change} ({100 * effect.low:+.2f}% to {100 * effect.high:+.2f}%), {word}"
    return Comparison(
        name,
        unit,
        *sides,
        effect,
        plain,
        verdict,
        significant,
        probability,
        text,
        _warnings(sides, boots, alpha),
    )


def _clean(boots: Boots) -> list[Floats]:
    arrays = [np.array([v for v in runs if math.isfinite(v)], dtype=float) for runs in boots]
    return [x for x in arrays if len(x)]


def _flat(boots: Boots) -> Floats:
    clean = _clean(boots)
    return np.concatenate(clean) if clean else np.zeros(0)


def _bootstrap(a: list[Floats], b: list[Floats], random: np.random.Generator) -> Floats:
    """Return shifts (DRAWS,) with boots redrawn, and runs within them."""
    result: Floats = _centres(b, random) - _centres(a, random)
    return result


def _centres(boots: list[Floats], random: np.random.Generator) -> Floats:
    """Return redrawn locations (DRAWS,): medians of runs are averaged over redrawn boots.

    With one boot its runs are all there is to redraw. With few, the mean of k redrawn boots scatters by
    (k-1)/k too little; the draws are widened by sqrt(k / (k - 1)) about their centre.
    """
    means = np.empty((len(boots), DRAWS))
    for i, runs in enumerate(boots):
        picks = random.integers(len(runs), size=(DRAWS, len(runs)))
        means[i] = np.median(runs[picks], axis=1) if len(runs) > 2 else runs[picks].mean(axis=1)
    k = len(boots)
    chosen = random.integers(k, size=(k, DRAWS))
    drawn = means[chosen, np.arange(DRAWS)].mean(axis=0)
    if k > 1:
        centre = drawn.mean()
        drawn = centre + (drawn - centre) * math.sqrt(k / (k - 1))
    return np.asarray(drawn, dtype=np.float64)


def _warnings(sides: tuple[Summary, Summary], boots: list[list[Floats]], alpha: float) -> tuple[str, ...]:
    found = []
    for side, clean in zip(sides, boots, strict=True):
        if side.runs < FEW_RUNS:
            found.append(f"{side.name}: {side.runs} runs; an interval at {1 - alpha:.0%} needs {FEW_RUNS}")
        if side.boots < FEW_BOOTS:
            found.append(
                f"{side.name}: {side.boots} boots; {FEW_BOOTS} or more tell what boots scatter from what "
                "the kernel does"
            )
        values = np.concatenate(clean)
        spread = float(np.median(np.abs(values - np.median(values)))) * 1.4826
        far = int((np.abs(values - np.median(values)) > 6 * spread).sum()) if spread > 0 else 0
        if far:
            found.append(f"{side.name}: {far} outliers, kept (the median is what is compared)")
    if all(s.sd == 0 for s in sides):
        found.append("all values of a side are equal: exact repetition, or a clock too coarse to tell")
    return tuple(found)
