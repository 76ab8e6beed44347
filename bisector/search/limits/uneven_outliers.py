"""Outlying boots and runs that bad has and good has not: a loss that shows in a part of them only.

The search compares typical boots and runs: those far off get little weight (`measurement`), since they may
come at any commit. But a commit may change how often they come. Typical ones agree then, and 'not reproduced'
would deny a loss that the mean has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from bisector.model.dag import Floats, Ints, Mask
from bisector.model.format import count, percent
from bisector.search.context import SearchContext
from bisector.search.measurement import NORMAL_SD_PER_MEDIAN_DEVIATION, Readings, finite_runs

OUTLYING_SCALES = 5.0
"""Robust standard deviations from which a boot or a run is outlying, a threshold at least. Of normal values
three in ten million are."""


class Outliers(NamedTuple):
    """Outlying values of each end that are worse than typical ones.

    what: 'boot' or 'run'; of_bad, of_good: how many values there are, outlying or not; excess: mean distance
    of bad's outlying ones, in worse units.
    """

    what: str
    bad: int
    of_bad: int
    good: int
    of_good: int
    excess: float

    @property
    def loss(self) -> float:
        """What bad's mean has lost by them, in worse units."""
        return (self.bad / self.of_bad - self.good / self.of_good) * self.excess

    @property
    def log_evidence(self) -> float:
        """The log Bayes factor for two shares of outliers against one, each with a uniform prior."""
        sides = (self.bad, self.of_bad - self.bad), (self.good, self.of_good - self.good)
        apart = sum(float(betaln(1 + far, 1 + near)) for far, near in sides)
        return apart - float(betaln(1 + self.bad + self.good, 1 + sides[0][1] + sides[1][1]))


def worst_outliers(context: SearchContext) -> Outliers:
    """Return the outlying boots or runs, whichever bad's mean loses more by. Both ends have boots."""
    r = context.measured
    good, bad = (r.commit == end for end in (context.graph.good, context.graph.bad))
    found = [_counted("boot", *_boots(r, good | bad), good, bad)]
    if not context.goal.exact:  # its runs follow a profile, and do not scatter
        visit, off, limit = _runs(context)
        found.append(_counted("run", off, limit, good[visit], bad[visit]))
    return max(found, key=lambda outliers: outliers.loss)


def in_words(context: SearchContext, outliers: Outliers) -> str:
    """Return what was found, as sentences."""
    what, terms = outliers.what, context.goal.terms
    far = context.measured.scale.to_relative_change(outliers.excess, outliers.excess, outliers.excess)
    text = (
        f"{outliers.bad} of {count(outliers.of_bad, what)} of {terms.new} and {outliers.good} of "
        f"{outliers.of_good} of {terms.old} lie far from the others, by {percent(far.estimate)}. Typical "
        f"ones are compared, and do not differ; how often such {what}s come is not searched for."
    )
    if what == "run":
        text += " Where a run is the mean of more operations, each has its share of slow ones."
    return text


def missed(context: SearchContext) -> tuple[str, ...]:
    """Return, as sentences, what 'not reproduced' leaves open: a loss in a part of the boots or runs.

    A loss that comes in a share s of boots shows in none of n with the probability (1 - s)^n.
    """
    if context.exact_clock:
        return ()
    outliers, terms = worst_outliers(context), context.goal.terms
    found = (in_words(context, outliers),) if outliers.loss > 0 else ()
    boots = int((context.measured.commit == context.graph.bad).sum())
    share = 1 - context.alpha ** (1 / boots)
    what = "gain" if context.goal.find == "fix" else "loss"
    return (
        *found,
        f"A {what} that shows in fewer than {share:.0%} of boots may be missed by {count(boots, 'boot')} of "
        f"{terms.new}.",
    )


def _boots(r: Readings, ends: Mask) -> tuple[Floats, Floats]:
    """Return by how much the boots (V,) of the ends are worse than the typical one of their testbed, and from
    where on they are outlying."""
    off, sd = np.zeros(len(r.commit)), np.zeros(len(r.commit))
    for testbed in np.unique(r.testbed[ends]):
        mine = ends & (r.testbed == testbed)
        off[mine] = r.location[mine] - np.median(r.location[mine])
        sd[mine] = NORMAL_SD_PER_MEDIAN_DEVIATION * float(np.median(np.abs(off[mine])))
    return off, np.maximum(OUTLYING_SCALES * sd, r.scale.threshold)


def _runs(context: SearchContext) -> tuple[Ints, Floats, Floats]:
    """Return of all runs (R,) the visit, by how much it is worse than its boot, and from where on it is
    outlying."""
    r = context.measured
    _, sizes, _, value = finite_runs(context.state)
    visit = np.repeat(np.arange(len(sizes)), sizes)
    off = r.scale.to_worse_units(value) - r.location[visit]
    sd = r.run_sd * r.noise.run[r.testbed[visit]]
    return visit, off, np.maximum(OUTLYING_SCALES * sd, r.scale.threshold)


def _counted(what: str, off: Floats, limit: Floats, good: Mask, bad: Mask) -> Outliers:
    """Count outliers. off, limit, good, bad: of each value."""
    far = off > limit
    excess = float(off[far & bad].mean()) if (far & bad).any() else 0.0
    at_bad, of_bad, at_good, of_good = (int(x.sum()) for x in (far & bad, bad, far & good, good))
    return Outliers(what, at_bad, of_bad, at_good, of_good, excess)
