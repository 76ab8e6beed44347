"""`perfbisect plan`: what would be done, and what it would probably cost. Changes nothing."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from bisector.app.wiring import Wiring
from bisector.interfaces.cli import options, output
from bisector.model.decisions import Measure
from bisector.report import phrases
from bisector.report.phrases import duration, recipe
from bisector.schemas.request import Request

if TYPE_CHECKING:
    from bisector.app.plan import Plan


_MAX_REASONS = 3
"""Reasons why commits cannot be tested that are named; there are two or three kinds."""


@options.takes_request
def plan(wiring: Wiring, request: Request, as_json: options.Json = False) -> None:
    """Say what `start` would do: candidates, first steps, expected builds, boots, runs and time.

    Nothing is built, booted or written; the numbers come from a few simulated searches.

    Example:

      perfbisect plan --repo ~/linux --good v6.1 --bad v6.2 --workload pipe-test
    """
    options.refuse_server(wiring.settings)
    print_plan(wiring, request, as_json=as_json)


def print_plan(wiring: Wiring, request: Request, *, as_json: bool) -> None:
    """Print the plan of a request. Raises RequestError where it would be refused."""
    with output.status_line() as show:
        old, new = request.oldest_first(request.good, request.bad)
        show(f"reading the history from {old} to {new} ...")
        from bisector.app.accept import accept
        from bisector.app.plan import make_plan

        accepted, graph = accept(wiring, request)
        show(f"simulating searches among {sum(graph.candidate):,} candidates ...")
        made = make_plan(wiring, accepted, graph)
    if as_json:
        output.print_json(_as_json(made))
    else:
        print(output.pairs({**_ends(wiring, request, made), **_as_rows(made), "writes": _places(wiring)}))


def _ends(wiring: Wiring, request: Request, plan: Plan) -> dict[str, str]:
    """Return both ends as they were asked for, and as the kernel's people name commits."""
    shas = (plan.graph.shas[plan.graph.good], plan.graph.shas[plan.graph.bad])
    found = wiring.source_of(plan.accepted.request).infos(shas)
    names = (request.terms.old, request.terms.new)
    asked = request.oldest_first(request.good, request.bad)
    return {
        name: f'{rev}: {commit.sha[:12]} ("{commit.subject}")'
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
    metric = goal.metric
    return {
        **({"looks for": f"what made {metric.name} better"} if goal.find == "fix" else {}),
        "range": f"{plan.candidates:,} candidates{_untestable(plan)}",
        "relevant": _relevant(plan),
        "measures": f"{metric.name} of {accepted.workload}, "
        f"on {', '.join(accepted.testbeds)} (clock: {accepted.clock})",
        "threshold": f"{phrases.threshold(goal)}: a smaller change is nobody's "
        + ("fault" if goal.find == "regression" else "merit"),
        "recipe": recipe(accepted.request.recipe, accepted.recipe_chosen),
        "first step": _first_step(plan),
        **{
            name: _about(f"{spread.p50:.0f}", f"{spread.p90:.0f}")
            for name in ("builds", "boots", "runs")
            for spread in (getattr(estimate, name),)
        },
        "time": _about(duration(estimate.wall.p50), duration(estimate.wall.p90)),
        "seconds each": f"build {seconds.build:.0f}, boot {seconds.boot:.1f}, run {seconds.run:.1f} "
        f"({seconds.source})",
        "assumed": "\n".join(estimate.assumptions),
    }


def _about(half: str, most: str) -> str:
    """Say a median and a 90th percentile to somebody who knows neither."""
    return f"about {half}" if half == most else f"about {half}; in nine searches of ten at most {most}"


def _untestable(plan: Plan) -> str:
    """Say how many commits are known to be untestable, and why."""
    reasons = Counter(plan.graph.untestable.values())
    if not reasons:
        return ""
    said = [f"{count:,} ({why})" for why, count in reasons.most_common(_MAX_REASONS)]
    more = f" and {len(reasons) - _MAX_REASONS} more reasons" if len(reasons) > _MAX_REASONS else ""
    return f"; untestable: {', '.join(said)}{more}"


def _first_step(plan: Plan) -> str:
    first = plan.first
    if isinstance(first, Measure):
        return f"{plan.graph.shas[first.commit][:12]}: {first.reason}"
    return first.summary


def _relevant(plan: Plan) -> str:
    """Say how many commits may change the kernel, and why."""
    found = plan.irrelevant
    if found is None:
        return "not known yet: once both ends are built, commits that none of their files see are set aside"
    kept = ", ".join(f"{reason} {count:,}" for reason, count in found.kept.items())
    return (
        f"{plan.relevant:,} ({kept}); the other {len(found.commits):,} change nothing that the "
        f"{found.builds} builds in this range have read"
    )
