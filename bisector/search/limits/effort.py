"""Limits of a search and of each purpose; commits that read no number and would take all.

Each purpose has a bound of boots. Once a culprit is proven, the search of the rest has a bound of its share
of the lab's time, too: where levels scatter in a way that the model does not know, it follows noise.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from bisector.model.decisions import Measure, Purpose
from bisector.model.format import count
from bisector.model.records import Built
from bisector.model.state import State
from bisector.search.context import SearchContext

MAX_BOOTS_PER_PURPOSE = 2000
"""Boots for one purpose after which the search gives up. Where boots scatter by twice the effect a whole
search took 350 to 1,900 boots, and 12 of 12 were right; with 800 for a purpose 3 of 10 ended without an
answer."""
MAX_REST_SHARE, MAX_SCAN_REST_SHARE = 1.0, 4.0
"""Lab time for the search of the rest since the last proof, by all time before it. The second of two culprits
took 0.84 at most in 31 searches, and seven changes 2.4 together. With --scan the largest unmeasured classes
are divided, about 2 / alpha of them, each with a build; that took up to 1.3."""
MAX_BOOTS_WITHOUT_READING, MAX_RUNS_WITHOUT_READING = 3, 12
"""Boots and runs of a commit without one that reads a number, from which it cannot be tested. A single such
boot may be an accident; without a bound one commit took 293 of 300 runs."""


def why_exhausted(context: SearchContext, purpose: Purpose, proven: Collection[int] = ()) -> str:
    """Return why a purpose may take no more, as a sentence; '' while it may.

    proven: the commits whose fresh boots proved something.
    """
    boots = sum(v.purpose == purpose for v in context.state.visits)
    if boots > MAX_BOOTS_PER_PURPOSE:
        what = {"verify": "verify the ends", "search": "search", "certify": "prove a suspect"}
        name = what.get(purpose, "search the rest")
        return f"{count(MAX_BOOTS_PER_PURPOSE, 'boot')} to {name} are the most, and did not suffice."
    if purpose == "attribute":
        before, since = _seconds_around_the_last_proof(context.state, proven)
        share = MAX_SCAN_REST_SHARE if context.goal.scan else MAX_REST_SHARE
        if since > share * before:
            most = "four times as much" if context.goal.scan else "as much"
            return (
                f"It has taken {since:.0f} s of lab time since the last proof, and all before took "
                f"{before:.0f} s: {most} is the most."
            )
    return ""


def _seconds_around_the_last_proof(state: State, proven: Collection[int]) -> tuple[float, float]:
    """Return the lab seconds up to the last boot of a proof, and those for the search of the rest since.

    Boots since for a suspect that is not proven count in neither: they end nothing, and have a bound of
    their own.
    """
    built: dict[tuple[int, int], float] = defaultdict(float)
    for record in state.records:
        if isinstance(record, Built) and not record.cached:
            built[record.commit, record.layout] += record.seconds
    before = since = unproven = 0.0
    for visit in state.boots:
        seconds = visit.booted.seconds + sum(run.seconds for run in visit.runs)
        seconds += built.pop((visit.commit, visit.layout), 0.0)
        if visit.purpose == "attribute":
            since += seconds
        elif visit.purpose != "certify":
            before += seconds
        elif visit.commit in proven:
            before, since, unproven = before + since + unproven + seconds, 0.0, 0.0
        else:
            unproven += seconds
    return before, since


def budget_shortfall(context: SearchContext, measure: Measure) -> str:
    """Return why a trial does not fit into the budget; '' if it does."""
    budget, costs = context.goal.budget, context.state.costs
    new = (measure.commit, measure.layout) not in context.state.binaries
    more = measure.runs * context.run_cost
    if measure.boot is None:
        more += context.boot_cost + (context.build_cost if new else 0.0)
    spent = costs.total
    if budget.seconds is not None and spent + more > budget.seconds:
        return (
            f"The budget of {budget.seconds:,.0f} s of lab time leaves no room for the next trial, of about "
            f"{more:,.0f} s: {spent:,.0f} s are spent."
        )
    if budget.builds is not None and new and len(costs.builds) >= budget.builds:
        return f"The budget of {count(budget.builds, 'build')} is spent."
    if budget.runs is not None and len(costs.runs) + measure.runs > budget.runs:
        used = len(costs.runs)
        return (
            f"The budget of {count(budget.runs, 'run')} leaves no room for the next trial, of "
            f"{count(measure.runs, 'run')}: {used:,} {'is' if used == 1 else 'are'} spent."
        )
    return ""


def without_silent_commits(state: State) -> State:
    """Return the state in which commits that read no number, however often they ran, cannot be tested."""
    silent: dict[int, list[int]] = {}
    heard = set()
    for v in state.visits:
        if any(math.isfinite(y) for _, y in v.samples):
            heard.add(v.commit)
        elif v.samples:
            silent.setdefault(v.commit, []).append(len(v.samples))
    why = {
        commit: f"none of {count(sum(runs), 'run')} in {count(len(runs), 'boot')} reads a number"
        for commit, runs in silent.items()
        if commit not in heard
        and (len(runs) >= MAX_BOOTS_WITHOUT_READING or sum(runs) >= MAX_RUNS_WITHOUT_READING)
    }
    return replace(state, untestable={**why, **state.untestable}) if why else state
