"""Interleaved comparisons with fresh boots: which side is next, how many runs, in which code layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bisector.model.decisions import Measure, Purpose
from bisector.model.format import count
from bisector.model.state import Visit
from bisector.search.context import SearchContext
from bisector.stats.variance_components import runs_per_boot

FIRST_BOOT_RUNS = 3
"""Runs in the first boots. Those of both ends give four degrees of freedom for the run noise."""
EXACT_CLOCK_RUNS = 2
"""Runs in a boot under an exact clock: one to measure, one to see that it repeats."""
PARTS_PER_BOOT = 3
"""The runs of a boot are asked for in this many parts, so that a boot can end early."""
BOOTS_BEFORE_MORE_LAYOUTS = 16
"""Boots of one side after which an undecided comparison goes over more code layouts. An effect of half of the
run standard deviation needs fewer."""
CERTIFICATE_LAYOUTS, SCATTER_LAYOUTS, LARGE_SCATTER_LAYOUTS = 2, 3, 6
"""Code layouts of each side of a certificate: two where binaries scatter by a quarter of the effect, six at
half. 'Not reproduced' needs three of each end, because it rests on two commits alone."""
MAX_BOOTS_PER_PURPOSE = 2000
"""Boots for one purpose after which the search gives up. Where boots scatter by twice the effect a whole
search took 350 to 1,900 boots, and 12 of 12 were right; with 800 for a purpose 3 of 10 ended without an
answer."""


def min_boots_per_side(context: SearchContext, purpose: Purpose) -> int:
    """Return the fewest boots of a side: one cannot tell its own offset from the commit's."""
    return 1 if context.exact_clock and purpose == "verify" else 2


def next_interleaved(
    context: SearchContext,
    commits: Sequence[int],
    purpose: Purpose,
    target: int,
    layouts: Sequence[int],
    why: str,
    names: Mapping[int, str],
) -> Measure:
    """Return the next trial of a comparison: more runs in the live boot, or a boot of the side whose turn it
    is.

    Boots follow the order ABBA, so that a linear drift cancels. Each testbed follows it by itself, so that
    several begin with the same commit: levels differ between testbeds, and only one that has measured both
    sides can compare them. target: runs wanted in a boot; layouts: code layouts to go over; names: what the
    reason calls each commit.
    """
    most = context.goal.max_runs_per_boot
    target = max(1, min(target, most))
    done = [v for v in context.state.visits if v.purpose == purpose and v.commit in commits]
    left = _remaining_seconds(context, done, commits, purpose, target)
    live = context.live_visit(purpose)
    if live is not None and live.commit in commits and len(live.samples) < target:
        runs = min(max(1, math.ceil(target / PARTS_PER_BOOT)), target - len(live.samples))
        reason = f"{why}: {count(runs, 'more run')} in this boot of {names[live.commit]}"
        return Measure(live.commit, runs, purpose, reason, live.boot, left=left)
    here = [v for v in done if context.state.idle is None or v.testbed == context.state.idle]
    counts = [sum(v.commit == s for v in here) for s in commits]
    fewest = min(counts)
    order = list(range(len(commits)))
    if fewest % 2 and len(commits) > 1:
        order.reverse()
    commit = commits[next(i for i in order if counts[i] == fewest)]
    own_layouts = [v.layout for v in done if v.commit == commit]
    total = len(own_layouts)
    if total >= BOOTS_BEFORE_MORE_LAYOUTS:
        growth = SCATTER_LAYOUTS + (total - BOOTS_BEFORE_MORE_LAYOUTS) // 2
        layouts = range(layouts[0], layouts[0] + max(len(layouts), min(growth, 2 * LARGE_SCATTER_LAYOUTS)))
    if context.exact_clock:
        first = min(target, EXACT_CLOCK_RUNS)
    elif total >= min_boots_per_side(context, purpose):
        first = max(1, math.ceil(target / PARTS_PER_BOOT))
    else:
        first = min(FIRST_BOOT_RUNS, target)
    reason = f"{why}: boot {total + 1} of {names[commit]}, {count(first, 'run')}"
    # The layout with the fewest boots, the first of these.
    layout = min(layouts if context.can_vary_layout else (0,), key=own_layouts.count)
    return Measure(commit, first, purpose, reason, layout=layout, left=left)


def _remaining_seconds(
    context: SearchContext, done: Sequence[Visit], commits: Sequence[int], purpose: Purpose, target: int
) -> float:
    """Return the lab seconds until each side has its minimum of boots; the time of one boot at least."""
    fewest = min_boots_per_side(context, purpose)
    missing = sum(max(0, fewest - sum(v.commit == s for v in done)) for s in commits)
    return max(1, missing) * (context.boot_cost + target * context.run_cost)


def cheapest_runs_per_boot(context: SearchContext, boot_spreads: Sequence[tuple[float, float]]) -> int:
    """Return the runs per boot that are expected to give the most precision per cost.

    boot_spreads: the possible spreads between boots, with weights that sum to one.
    """
    r = context.readings
    if r is None:
        return FIRST_BOOT_RUNS
    if context.exact_clock:
        return EXACT_CLOCK_RUNS
    here = context.testbed
    spreads = [(sd * r.boot_ratio_on(here), weight) for sd, weight in boot_spreads]
    return runs_per_boot(
        context.boot_cost, context.run_cost, spreads, r.run_sd_on(here), context.goal.max_runs_per_boot
    )


def sufficient_runs_per_boot(context: SearchContext, effect: float) -> int:
    """Return the runs per boot with which two boots of each side settle a comparison of such an effect.

    Two boots of m runs on each side give a log e-value of at most m (effect / run sd)^2 / 2. Five is wanted.
    """
    r = context.readings
    if r is None or effect <= 0:
        return context.goal.max_runs_per_boot
    return math.ceil(min(10 * (r.run_sd_on(context.testbed) / effect) ** 2, 1e6)) + 1
