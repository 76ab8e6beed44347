"""Interleaved comparisons with fresh boots: which side is next, how many runs, in which code layout."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from bisector.model.decisions import Measure, Purpose
from bisector.model.format import count
from bisector.model.state import Visit
from bisector.search.context import SearchContext
from bisector.stats.variance_components import runs_per_boot

FIRST_BOOT_RUNS = 3
"""Runs in the first boots. Those of both ends give four degrees of freedom for the run noise."""
EXACT_CLOCK_RUNS = 2
"""Runs in a boot under an exact clock: one to measure, one to see that it repeats."""
REPEATED_BOOTS = 2
"""Boots of each side, on one testbed, that a claim rests on under an exact clock: one to measure, one to see
that boots repeat."""
PARTS_PER_BOOT = 3
"""The runs of a boot are asked for in this many parts, so that a boot can end early."""
WANTED_LOG_E = 5.0
"""Log e-value that the fewest boots of a comparison should reach: the first suspect's share of alpha asks for
3.5 at 5%, and a prior for the effect costs about one. With 3.5 in all a search cost as much (100 searches
each at d = .5, 1, 2)."""
BOOTS_BEFORE_MORE_LAYOUTS = 16
"""Boots of one side after which an undecided comparison goes over more code layouts. An effect of half of the
run standard deviation needs fewer."""
BOOTS_THAT_COMPARE = 8
"""Boots of a testbed, and one for each parent, from a boot to the nearest of the other side, within which the
two compare. In the order of a proof there are two; search boots may come between."""
MISSED_BOOTS_SHARE = 0.5
"""Share of bad's boots in which a loss comes that 'not reproduced' still excludes: by five boots at 5%. A
choice: by the three that a loss needs, one that comes in half of them is denied one time in eight."""
CERTIFICATE_LAYOUTS, SCATTER_LAYOUTS, LARGE_SCATTER_LAYOUTS = 2, 3, 6
"""Code layouts of each side of a certificate: two where binaries scatter by a quarter of the effect, six at
half. 'Not reproduced' needs three of each end, because it rests on two commits alone."""

MOST_LAYOUTS_WITHOUT_SCATTER = 12
"""Code layouts that an undecided comparison goes over where nothing shows that binaries scatter. Where they
do, half of its boots are of a new one without end: boots of 12 binaries of each side cannot tell an effect of
their size from their offsets, and one search spent 2,000 boots on it."""


def fewest_boots(share: float) -> int:
    """Return the fewest boots of each side with which any claim of a change may be made at an alpha.

    Boots of two equal commits come in each of their C(2n, n) orders with the same probability, whatever they
    scatter like. So two boots a side cannot support a claim beyond 1/6 (the rank test: Wilcoxon 1945).
    """
    boots = 2
    while math.comb(2 * boots, boots) * share < 1 - 1e-9:
        boots += 1
    return boots


def fewest_boots_without_loss(alpha: float) -> int:
    """Return the fewest boots of the bad end by which 'it is no worse' may be said at an alpha.

    No order of boots supports that claim: a loss may show in a part of the boots only. Of n boots none shows
    one that comes in half of them with a probability of 2^-n.
    """
    return math.ceil(math.log(alpha) / math.log(1 - MISSED_BOOTS_SHARE) - 1e-9)


def min_boots_per_side(context: SearchContext, purpose: Purpose, share: float | None = None) -> int:
    """Return the fewest boots of a side for a claim. share: the alpha that it may spend; all by default.

    Under an exact clock one boot tells the ends apart as long as no boot has denied that boots repeat. That
    starts a search. What is claimed at its end rests on two boots of each side (a culprit) or on three
    (`endpoints.boots_before_claim`).
    """
    if context.exact_clock:
        return 1 if purpose == "verify" else REPEATED_BOOTS
    return fewest_boots(context.alpha if share is None else share)


def interleaved_boots(
    context: SearchContext, commits: Collection[int], purpose: Purpose, *, waiting: bool = False
) -> list[Visit]:
    """Return the boots of some commits for a purpose that compare, oldest first.

    Of a proof those compare that are near one of another commit on their testbed. A parent may have been a
    suspect itself, hours before, and what drifted since would look like an effect. Where the goal's clock is
    exact nothing drifts. waiting: with those near the latest boot, whose counterpart is to come.
    """
    made = [v for v in context.state.visits if v.purpose == purpose and v.commit in commits]
    if purpose != "certify" or context.goal.exact or len(commits) < 2:
        return made
    near = BOOTS_THAT_COMPARE + max(len(context.graph.parents[c]) for c in commits)
    wanted = {v.boot for v in made}
    numbers: Counter[str] = Counter()
    on: dict[str, list[tuple[int, Visit]]] = {}
    for v in context.state.visits:
        numbers[v.testbed] += 1
        if v.boot in wanted:
            on.setdefault(v.testbed, []).append((numbers[v.testbed], v))
    compare = {
        v.boot
        for testbed, boots in on.items()
        for i, (number, v) in enumerate(boots)
        if (waiting and number > numbers[testbed] - near)
        or any(
            w.commit != v.commit and abs(other - number) <= near
            for other, w in boots[max(0, i - near) : i + near + 1]
        )
    }
    return [v for v in made if v.boot in compare]


def _boots_by_testbed(
    context: SearchContext, commits: Sequence[int], purpose: Purpose, first_layout: int = 0
) -> list[Counter[str]]:
    boots = interleaved_boots(context, commits, purpose)
    return [
        Counter(v.testbed for v in boots if v.commit == commit and v.samples and v.layout >= first_layout)
        for commit in commits
    ]


def boots_side_by_side(context: SearchContext, commits: Sequence[int], purpose: Purpose) -> int:
    """Return how many boots each of some commits has on one testbed, on the one where they are most."""
    boots = _boots_by_testbed(context, commits, purpose)
    return max((min(of[name] for of in boots) for name in boots[0]), default=0)


def boots_support_claim(
    context: SearchContext, one: int, other: int, purpose: Purpose, share: float, first_layout: int = 0
) -> bool:
    """Return whether two commits have the boots that a claim of a change at this alpha needs at least.

    Boots compare within a testbed, so the orders of each multiply. An exact clock needs two boots at most,
    on one testbed, because only such boots can show that they repeat. first_layout: boots of code layouts
    before this one do not count.
    """
    if context.exact_clock:
        return boots_side_by_side(context, (one, other), purpose) >= min_boots_per_side(context, purpose)
    boots = _boots_by_testbed(context, (one, other), purpose, first_layout)
    orders = (math.comb(count + boots[1][name], count) for name, count in boots[0].items())
    return math.prod(orders) >= (1 - 1e-9) / share  # a float cannot hold the orders of 600 boots


def next_interleaved(
    context: SearchContext,
    commits: Sequence[int],
    purpose: Purpose,
    target: int,
    layouts: Sequence[int],
    why: str,
    names: Mapping[int, str],
    fewest: int,
) -> Measure:
    """Return the next trial of a comparison: more runs in the live boot, or a boot of the side whose turn it
    is.

    Boots follow the order ABBA, so that a linear drift cancels. Each testbed follows it by itself, so that
    several begin with the same commit: levels differ between testbeds, and only one that has measured both
    sides can compare them. target: runs wanted in a boot; layouts: code layouts to go over; names: what the
    reason calls each commit; fewest: boots that each side has at least.
    """
    target = min(target, context.goal.max_runs_per_boot)
    done = interleaved_boots(context, commits, purpose, waiting=True)
    left = _remaining_seconds(context, done, commits, fewest, target)
    live = context.live_visit(purpose)
    if live is not None and live.commit in commits and len(live.samples) < target:
        runs = min(math.ceil(target / PARTS_PER_BOOT), target - len(live.samples))
        reason = f"{why}: {count(runs, 'more run')} in this boot of {names[live.commit]}"
        return Measure(live.commit, runs, purpose, reason, live.boot, left=left)
    here = [v for v in done if context.state.idle is None or v.testbed == context.state.idle]
    counts = [sum(v.commit == s for v in here) for s in commits]
    done_by_all = min(counts)
    order = list(range(len(commits)))
    if done_by_all % 2:
        order.reverse()
    commit = commits[next(i for i in order if counts[i] == done_by_all)]
    own_layouts = [v.layout for v in done if v.commit == commit]
    total = len(own_layouts)
    if total >= BOOTS_BEFORE_MORE_LAYOUTS:
        growth = SCATTER_LAYOUTS + (total - BOOTS_BEFORE_MORE_LAYOUTS) // 2
        if len(layouts) < SCATTER_LAYOUTS:  # nothing says that binaries scatter
            growth = min(growth, MOST_LAYOUTS_WITHOUT_SCATTER)
        layouts = range(layouts[0], layouts[0] + max(len(layouts), growth))
    if context.exact_clock:
        first = min(target, EXACT_CLOCK_RUNS)
    elif total >= fewest:
        first = math.ceil(target / PARTS_PER_BOOT)
    else:
        first = min(FIRST_BOOT_RUNS, target)
    reason = f"{why}: boot {total + 1} of {names[commit]}, {count(first, 'run')}"
    # The layout with the fewest boots, the first of these.
    layout = min(layouts if context.can_vary_layout else (0,), key=own_layouts.count)
    return Measure(commit, first, purpose, reason, layout=layout, left=left)


def _remaining_seconds(
    context: SearchContext, done: Sequence[Visit], commits: Sequence[int], fewest: int, target: int
) -> float:
    """Return the lab seconds until each side has its fewest boots; the time of one boot at least."""
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


def sufficient_runs_per_boot(context: SearchContext, effect: float, boots: int) -> int:
    """Return the runs per boot with which so many boots of each side settle a comparison of such an effect.

    n boots of m runs on each side give a log e-value of at most n m (effect / run sd)^2 / 4.
    """
    r = context.readings
    if r is None or effect <= 0:
        return context.goal.max_runs_per_boot
    wanted = 4 * WANTED_LOG_E / boots
    return math.ceil(wanted * min(r.run_sd_on(context.testbed) / effect, 1e3) ** 2) + 1
