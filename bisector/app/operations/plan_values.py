"""The output of `plan` and `try --dry-run`: JSON values, and rows of text (docs/json.md)."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from bisector.app.wiring import Wiring
from bisector.model.commit_graph import short_name
from bisector.model.decisions import Measure
from bisector.model.format import count
from bisector.report import phrases
from bisector.report.phrases import duration, recipe

if TYPE_CHECKING:
    from bisector.app.operations.operations import Values
    from bisector.app.plan import Plan
    from bisector.model.commit_graph import CommitGraph
    from bisector.ports import Progress
    from bisector.schemas.request import Accepted, Attempt, Request

_MAX_REASONS = 3
"""Reasons that are named why commits cannot be tested; there are hardly ever more kinds."""


def plan_of(wiring: Wiring, request: Request, progress: Progress) -> Values:
    """Return the plan of a request: 'plan' as JSON values, 'rows' as text.

    Raises RequestError where it would be refused.
    """
    from bisector.app.accept import missing_monitors
    from bisector.app.packages.accept_kernels import accept_request
    from bisector.app.packages.listed_sources import source_of
    from bisector.app.plan import make_plan

    old, new = request.oldest_first(request.good, request.bad)
    progress(f"reading the history from {old} to {new} ...")
    accepted, graph = accept_request(wiring, request)
    progress(f"simulating searches among {count(sum(graph.candidate), 'candidate')} ...")
    made = make_plan(wiring, accepted, graph)
    rows = {**_ends(wiring, request, made), **_as_rows(made), "writes": _places(wiring)}
    notes = (*missing_monitors(accepted), *source_of(wiring, accepted).notes())
    rows |= {"note": "\n".join(notes)} if notes else {}
    return {"plan": _as_json(made), "rows": rows}


def attempt_plan(wiring: Wiring, accepted: Accepted, graph: CommitGraph) -> Values:
    """Return what a try would measure, as `plan_of` does."""
    attempt, goal = accepted.attempt, accepted.the_goal()
    assert attempt is not None, "it was accepted as one"
    known: dict[str, Any] = {
        "of": attempt.of,
        "parent": accepted.good,
        "culprit": attempt.culprit,
        "unpatched": attempt.unpatched,
        "patches": list(attempt.patches),
        "tried": None if attempt.patches else attempt.tried,
        "metric": goal.metric.name,
        "threshold": goal.metric.threshold.value,
        "testbeds": list(accepted.testbeds),
        "recipe": accepted.request.recipe,
    }
    return {"plan": known, "rows": _attempt_rows(wiring, accepted, attempt, graph)}


def _attempt_rows(wiring: Wiring, accepted: Accepted, attempt: Attempt, graph: CommitGraph) -> dict[str, str]:
    shas = graph.shas[: 2 if attempt.patches else 3]
    infos = wiring.source_of(accepted.request).infos(shas)
    names = [f'{short_name(one.sha)} ("{one.subject}")' for one in infos]
    if attempt.patches:
        names.append(attempt.tried_name())
    goal = accepted.the_goal()
    kinds = ("parent", "culprit" if attempt.unpatched == attempt.culprit else "unpatched", "tried")
    return {
        **dict(zip(kinds, names, strict=True)),
        "of": attempt.of,
        "measures": f"{goal.metric.name} of {accepted.workload}, on {', '.join(accepted.testbeds)} "
        f"(clock: {accepted.clock})",
        "threshold": phrases.threshold(goal),
        "recipe": accepted.request.recipe,
    }


def _ends(wiring: Wiring, request: Request, plan: Plan) -> dict[str, str]:
    """Return both ends as they were asked for, and as the kernel's people name commits."""
    shas = (plan.graph.shas[plan.graph.good], plan.graph.shas[plan.graph.bad])
    from bisector.app.packages.listed_sources import source_of

    found = source_of(wiring, plan.accepted).infos(shas)
    names = (request.terms.old, request.terms.new)
    asked = request.oldest_first(request.good, request.bad)
    return {
        name: f'{rev}: {short_name(commit.sha)} ("{commit.subject}")'
        for name, rev, commit in zip(names, asked, found, strict=True)
    }


def _places(wiring: Wiring) -> str:
    """Say where `start` would write."""
    settings = wiring.settings
    return f"records below {settings.state_dir}, kernels and their builds below {settings.cache_dir}"


def _as_json(plan: Plan) -> dict[str, Any]:
    accepted, graph, metric = plan.accepted, plan.graph, plan.accepted.the_goal().metric
    return {
        "good": accepted.good,
        "bad": accepted.bad,
        "find": accepted.request.find,
        "candidates": plan.candidates,
        "relevant": plan.relevant if plan.irrelevant else None,
        "kept": dict(plan.irrelevant.kept) if plan.irrelevant else None,
        "halvings": math.ceil(math.log2(max(plan.relevant, 1))),
        "untestable": len(graph.untestable),
        "merge_bases": [graph.shas[i] for i in graph.merge_bases],
        "workload": accepted.workload,
        "metric": metric.name,
        "threshold": metric.threshold.value,
        "clock": accepted.clock,
        "recipe": accepted.request.recipe,
        "recipe_chosen": accepted.recipe_chosen,
        "testbeds": list(accepted.testbeds),
        "first": _first_step(plan),
        "expected": {
            name: getattr(plan.estimate, name).model_dump()
            for name in ("builds", "boots", "runs", "seconds", "wall")
        },
        "seconds_each": dataclasses.asdict(plan.seconds),
        "assumptions": list(plan.estimate.assumptions),
    }


def _as_rows(plan: Plan) -> dict[str, str]:
    accepted, estimate, seconds = plan.accepted, plan.estimate, plan.seconds
    goal = accepted.the_goal()
    metric, made = goal.metric, "unpacking" if accepted.kernels else "build"
    return {
        **({"looks for": f"what made {metric.name} better"} if goal.find == "fix" else {}),
        "range": f"{count(plan.candidates, 'candidate')}{_untestable(plan)}",
        **({} if accepted.kernels else {"relevant": _relevant(plan)}),
        "measures": f"{metric.name} of {accepted.workload}, "
        f"on {', '.join(accepted.testbeds)} (clock: {accepted.clock})",
        "threshold": f"{phrases.threshold(goal)}: a smaller change is nobody's "
        + ("fault" if goal.find == "regression" else "merit"),
        **_recipe_row(accepted),
        "first step": _first_step(plan),
        **{
            name: _about(f"{spread.p50:.0f}", f"{spread.p90:.0f}")
            for name in ("builds", "boots", "runs")
            for spread in (getattr(estimate, name),)
        },
        "time": _about(duration(estimate.wall.p50), duration(estimate.wall.p90)),
        "seconds each": f"{made} {seconds.build:.0f}, boot {seconds.boot:.1f}, run {seconds.run:.1f} "
        f"({seconds.source})",
        "assumed": "\n".join(estimate.assumptions),
    }


def _recipe_row(accepted: Accepted) -> dict[str, str]:
    """Return the recipe, where kernels are built."""
    chosen = recipe(accepted.request.recipe, accepted.recipe_chosen)
    return {} if accepted.kernels else {"recipe": chosen}


def _about(half: str, most: str) -> str:
    """Put a median and a 90th percentile into words for people who know neither term."""
    return f"about {half}" if half == most else f"about {half}; in nine searches of ten at most {most}"


def _untestable(plan: Plan) -> str:
    """Say how many commits are known to be untestable, and why."""
    reasons = Counter(plan.graph.untestable.values())
    if not reasons:
        return ""
    texts = [f"{number:,} ({why})" for why, number in reasons.most_common(_MAX_REASONS)]
    left = len(reasons) - _MAX_REASONS
    more = f" and {count(left, 'more reason')}" if left > 0 else ""
    return f"; untestable: {', '.join(texts)}{more}"


def _first_step(plan: Plan) -> str:
    first = plan.first
    if isinstance(first, Measure):
        return f"{short_name(plan.graph.shas[first.commit])}: {first.reason}"
    return first.summary


def _relevant(plan: Plan) -> str:
    """Say how many commits may change the kernel, and why."""
    found = plan.irrelevant
    if found is None:
        return "not known yet: once both ends are built, commits that none of their files see are set aside"
    kept = ", ".join(f"{reason} {number:,}" for reason, number in found.kept.items())
    text = f"{plan.relevant:,} ({kept})" if kept else f"{plan.relevant:,}"
    if not found.commits:
        return text
    others = count(len(found.commits), "other")
    change = "changes" if len(found.commits) == 1 else "change"
    return f"{text}; {others} {change} nothing that the {count(found.builds, 'build')} in this range read"
