"""The testbeds that a search goes on with, where the ends differ on some of several and not on others.

All testbeds are compared together first (endpoints.py). A mean of machines of which one shows a loss and the
others none says little, so each testbed's own comparison is looked at, too: before it is said that the loss
is not reproduced, and before testbeds that do not show it are searched on. Each of w testbeds may spend
alpha / w on the claim that it shows the change (Bonferroni), so all of them together are wrong with
probability alpha at most. That none shows it needs no such share: each has to exclude it (an intersection
union test, Berger 1982).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bisector.model.decisions import Conclusion, Interval, Released
from bisector.model.format import change
from bisector.search.cache import PlannerCache
from bisector.search.context import SearchContext
from bisector.search.interleaving import BOOTS_BEFORE_MORE_LAYOUTS, REPEATED_BOOTS, min_boots_per_side
from bisector.search.sequential_test import Evidence, broad_effect_prior

MAX_ALWAYS_COMPARED = 16
"""Up to so many testbeds each is compared at every decision; more of them only once all together have a
verdict: a comparison takes a millisecond."""
DOUBT_PER_PROOF = 0.5
"""Log evidence that a testbed does not show the change, in shares of what proves it, from which it is looked
at further before the search uses it. Few that show twice the threshold are ever doubted."""

SMALL_CHANGE = 0.25
"""Smallest change, in thresholds, whose direction on a testbed is looked for where others move otherwise."""

Shows = Literal["shown", "absent", "doubtful", "open"]
"""What the ends show on one testbed: the change; that none reaches the threshold; that probably none does;
too little to tell."""


@dataclass(frozen=True, slots=True)
class EndsOnTestbed:
    """The ends on one testbed. change: relative; settled: more boots are not asked for, because it is known,
    or was not found out with many; way: 1 where bad is proven to be worse, -1 better, else 0; looked for only
    where testbeds contradict each other."""

    testbed: str
    change: Interval
    shows: Shows
    way: int
    settled: bool


@dataclass(frozen=True, slots=True)
class TestbedChoice:
    """What each testbed shows of the ends. differ: whether bad is worse by the threshold, None while open;
    used: the testbeds to go on with, empty for all of them."""

    __test__ = False  # not a pytest class

    differ: bool | None
    each: tuple[EndsOnTestbed, ...] = ()
    used: tuple[str, ...] = ()

    def release(self, testbed: str | None) -> Released | None:
        """Return the decision for a testbed that the search does not use; None for the others."""
        if not self.used or testbed is None or testbed in self.used:
            return None
        return Released(self.used, self._where())

    def add_to(self, conclusion: Conclusion) -> Conclusion:
        """Return the conclusion with what the testbeds show where they differ: opposite directions first."""
        text = conclusion.summary
        if {one.way for one in self.each} >= {1, -1}:
            told = [
                f"{change(e.change)} on {e.testbed}" for e in sorted(self.each, key=lambda e: -e.way) if e.way
            ]
            text = f"The testbeds differ in direction: {', '.join(told)}. {text}"
        if self.used:
            text += f" {self._where()}"
        return replace(conclusion, summary=text, searched_on=self.used)

    def _where(self) -> str:
        """Return where the change is shown, where not, and where it is searched, as a sentence."""
        others = [e for e in self.each if e.testbed not in self.used]
        absent = [e.testbed for e in others if e.shows == "absent"]
        unknown = [e.testbed for e in others if e.shows != "absent"]
        shown = any(e.shows == "shown" for e in self.each)
        text = f"The change {'is shown' if shown else 'may be'} on {_names(self.used)}"
        text += f", not on {_names(absent)}" if absent else ""
        text += f", not known on {_names(unknown)}" if unknown else ""
        return f"{text}: searched on {_names(self.used)}."


def choose_testbeds(context: SearchContext, cache: PlannerCache, differ: bool | None) -> TestbedChoice:
    """Return where the search goes on. differ: the verdict of all testbeds together."""
    ends = (context.graph.good, context.graph.bad)
    on = [{v.testbed for v in context.boots(end, "verify")} for end in ends]
    names = sorted(on[0] & on[1])
    if len(names) < 2 or (differ is None and len(names) > MAX_ALWAYS_COMPARED):
        return TestbedChoice(differ)
    part = cache.restrict(context, tuple(v for v in context.state.visits if v.purpose == "verify"))
    each = cache.get_or_compute(
        ("ends by testbed", part.readings_key), lambda: _compare_on_each(part, names, len(on[0] | on[1]))
    )
    shown = tuple(e.testbed for e in each if e.shows == "shown")
    several = any(e.shows == "absent" for e in each)
    settled = all(e.settled for e in each)
    if differ is True and not any(e.shows in ("absent", "doubtful") for e in each):
        return TestbedChoice(True, each)
    if not settled or (differ is None and not (shown and several)):
        return TestbedChoice(None, each)
    if not shown and differ:  # all together showed it
        shown = tuple(e.testbed for e in each if e.shows != "absent")
    return TestbedChoice(bool(shown), each, shown if len(shown) < len(each) else ())


def _compare_on_each(context: SearchContext, names: Sequence[str], tries: int) -> tuple[EndsOnTestbed, ...]:
    """Return the comparison of the ends on each testbed, with the noise that all of them show.

    tries: the testbeds that share alpha.
    """
    r, graph = context.measured, context.graph
    spreads, share = context.spread_hypotheses(None), math.log(tries / context.alpha)
    sides, found = [], []
    for name in names:
        both = context.comparison_sides(graph.good, graph.bad, r.testbed == r.testbeds.index(name))
        assert both is not None, "the testbed has measured both ends"
        sides.append(both)
        found.append(context.compare(*both, spreads, broad_effect_prior(context.threshold)))
    ways = [(e.low > 0) - (e.high < 0) for e in found]
    if not {1, -1} <= set(ways):
        ways = [0] * len(found)
    prior = broad_effect_prior(SMALL_CHANGE * context.threshold)
    for i, way in enumerate(ways):
        one, other = sides[i][::way] if way else sides[i]
        if way and context.compare(one, other, spreads, prior).log_e_change < share:
            ways[i] = 0
    boots = [min(len(side.location) for side in both) for both in sides]
    given_up = max(boots) >= BOOTS_BEFORE_MORE_LAYOUTS  # a testbed may have failed, or be another's meanwhile
    # Also under an exact clock a verdict on a testbed waits until its boots are seen to repeat.
    enough, enough_absent = (
        max(REPEATED_BOOTS, min_boots_per_side(context, "verify", alpha))
        for alpha in (context.alpha / tries, context.alpha)
    )
    result = []
    for name, number, evidence, way in zip(names, boots, found, ways, strict=True):
        shows = _shows(evidence, context, share)
        if shows == "shown" and number < enough:
            shows = "open"
        if shows == "absent" and number < enough_absent:
            shows = "doubtful"
        early = bool(way) and number < enough
        settled = given_up or (shows in ("shown", "absent") and not early)
        relative = r.scale.to_relative_change(evidence.low, evidence.estimate, evidence.high)
        result.append(EndsOnTestbed(name, relative, shows, 0 if early else way, settled))
    return tuple(result)


def _shows(found: Evidence, context: SearchContext, share: float) -> Shows:
    """Return what a comparison shows. share: the log e-value that proves a change on one of the testbeds."""
    need = math.log(1 / context.alpha)
    changed = found.log_e_change >= share and found.estimate > 0
    if found.log_e_below >= need or (changed and found.p_reaches_threshold <= context.alpha):
        return "absent"
    if changed:
        return "shown"
    return "doubtful" if found.log_e_below >= DOUBT_PER_PROOF * need else "open"


def _names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
