"""Comparisons with fresh boots, side by side: whose turn it is, how many runs, which code layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bisector.model.format import count
from bisector.model.records import Measure, Purpose
from bisector.model.state import Visit
from bisector.search import sequential_test
from bisector.search.context import SearchContext

FIRST_BOOT_RUNS = 3
"""Runs in the first boots: with both ends they give four degrees of freedom for the run noise."""
PARTS_PER_BOOT = 3
"""A boot's runs are asked for in so many parts, so that it can be left early."""
BOOTS_BEFORE_MORE_LAYOUTS = 16
"""Boots a side after which an undecided comparison tries other code layouts: more than d = .5 takes."""
CERTIFICATE_LAYOUTS, SCATTER_LAYOUTS, LARGE_SCATTER_LAYOUTS = 2, 3, 6
"""Code layouts on each side of a certificate: two at a quarter of the effect and six at half.
'Not reproduced' needs three on each side, for it rests on two binaries that nothing else vouches for."""
MAX_BOOTS_PER_PURPOSE = 2000
"""Boots for one purpose after which it is given up. Where boots scatter by twice the effect a whole search
took 350 to 1,900, and 12 of 12 were right; with 800 for a purpose 3 of 10 ended without an answer."""


def min_boots_per_side(context: SearchContext, purpose: Purpose) -> int:
    """Return how many boots each side needs at least: one cannot tell a boot's offset from a commit's."""
    return 1 if context.exact_clock and purpose == "verify" else 2


def next_interleaved(
    context: SearchContext,
    sides: Sequence[int],
    purpose: Purpose,
    target: int,
    layouts: Sequence[int],
    why: str,
    names: Mapping[int, str],
) -> Measure:
    """Return the next step of a comparison: go on in the live boot, or boot the side whose turn it is.

    The order is ABBA, so that a steady drift cancels. target: runs wanted in a boot; layouts: code layouts to
    go through; names: what the reason calls each side.
    """
    most = context.goal.max_runs_per_boot
    target = max(1, min(target, most))
    done = [v for v in context.state.visits if v.purpose == purpose and v.commit in sides]
    left = _remaining_seconds(context, done, sides, purpose, target)
    live = context.live_visit((purpose,))
    if live is not None and live.commit in sides and len(live.samples) < target:
        runs = min(max(1, math.ceil(target / PARTS_PER_BOOT)), target - len(live.samples))
        return Measure(
            live.commit,
            runs,
            purpose,
            f"{why}: {count(runs, 'more run')} in this boot of {names[live.commit]}",
            live.boot,
            left=left,
        )
    here = [v for v in done if context.state.idle is None or v.testbed == context.state.idle]
    counts = [sum(v.commit == s for v in here) for s in sides]
    fewest = min(counts)
    order = list(range(len(sides)))
    if fewest % 2 and len(sides) > 1:
        order.reverse()
    side = next(i for i in order if counts[i] == fewest)
    total = sum(v.commit == sides[side] for v in done)
    if total >= BOOTS_BEFORE_MORE_LAYOUTS:
        many = max(
            len(layouts),
            min(SCATTER_LAYOUTS + (total - BOOTS_BEFORE_MORE_LAYOUTS) // 2, 2 * LARGE_SCATTER_LAYOUTS),
        )
        layouts = range(layouts[0], layouts[0] + many)
    first = (
        max(1, math.ceil(target / PARTS_PER_BOOT))
        if total >= min_boots_per_side(context, purpose)
        else min(FIRST_BOOT_RUNS, target)
    )
    if context.exact_clock:
        first = min(target, 2)
    return Measure(
        sides[side],
        first,
        purpose,
        f"{why}: boot {total + 1} of {names[sides[side]]}, {count(first, 'run')}",
        layout=_next_layout(done, sides[side], layouts if context.can_vary_layout else (0,)),
        left=left,
    )


def _remaining_seconds(
    context: SearchContext, done: Sequence[Visit], sides: Sequence[int], purpose: Purpose, target: int
) -> float:
    """Return the lab seconds until each side has the boots that mostly suffice; one boot at least."""
    fewest = min_boots_per_side(context, purpose)
    missing = sum(max(0, fewest - sum(v.commit == s for v in done)) for s in sides)
    return max(1, missing) * (context.boot_cost + target * context.run_cost)


def _next_layout(done: Sequence[Visit], commit: int, layouts: Sequence[int]) -> int:
    """Return the layout of a commit with the fewest boots, the first of them."""
    return min(layouts, key=lambda k: sum(v.commit == commit and v.layout == k for v in done))


def cheapest_runs_per_boot(context: SearchContext, boots: Sequence[tuple[float, float]]) -> int:
    """Return how many runs a boot should have. boots: possible spreads between boots, with their weights."""
    r = context.readings
    if r is None or context.exact_clock:
        return FIRST_BOOT_RUNS if r is None else 2
    return sequential_test.runs_per_boot(
        context.boot_cost, context.run_cost, boots, r.run_sd, context.goal.max_runs_per_boot
    )


def sufficient_runs_per_boot(context: SearchContext, effect: float) -> int:
    """Return the runs in a boot that settle a comparison of such an effect with two boots a side.

    Two boots of m runs a side give a log e-value of m (effect / run sd)^2 / 2 at best; five is wanted.
    """
    r = context.readings
    if r is None or effect <= 0:
        return context.goal.max_runs_per_boot
    return math.ceil(min(10 * (r.run_sd / effect) ** 2, 1e6)) + 1
