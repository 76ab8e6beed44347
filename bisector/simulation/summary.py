"""Summaries of simulated bisections, as `perfbisect simulate` reports them: models of the JSON schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.special import betaincinv

from bisector.model.decisions import Purpose
from bisector.simulation.judge import Judged, Verdict
from bisector.simulation.simulated_bisection import SimulatedCost
from bisector.simulation.stated_claims import IntervalKind

_PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Share(_Model):
    """A share of the simulated bisections with its exact (Clopper-Pearson) 95% interval."""

    count: int
    of: int
    share: float = Field(description="count / of; 0 where of is 0")
    low: float
    high: float


class Distribution(_Model):
    """The distribution of a quantity over all simulated bisections."""

    mean: float
    p50: float
    p90: float
    p99: float


class Sets(_Model):
    """Answers that are sets: commits that no test can tell apart, with the culprit among them."""

    count: int
    mean_size: float
    largest: int


class PurposeUse(_Model):
    """What one purpose used on average."""

    runs: float
    boots: float
    builds: float
    cost: float


class SimulationSummary(_Model):
    """All simulated bisections. Costs are in the caller's unit.

    correct + wrong + inconclusive + not_reproduced + sets + incomplete + spread + fixed is trials.
    """

    trials: int = Field(description="how many bisections were simulated")
    correct: int = Field(description="exactly the culprit, or all culprits of at least the threshold")
    wrong: int = Field(
        description="a commit, or a set, that is not the culprit or could have been split, or a false claim"
    )
    inconclusive: int
    not_reproduced: int = Field(description="says that the ends do not differ by the threshold")
    sets: Sets
    incomplete: int = Field(description="true culprits, but not all of them")
    spread: int = Field(description="says that no single commit reaches the threshold")
    fixed: int = Field(description="says that the change was fixed on good's side")
    success: Share = Field(
        description="right answers: correct, and not_reproduced where there is no culprit; sets are not in it"
    )
    success_with_sets: Share = Field(description="the same with sets counted as right")
    wrong_claims: Share = Field(description="false claims among all endings but inconclusive; goal: alpha")
    total_within_interval: Share = Field(description="the stated interval of the total holds the truth")
    intervals: dict[IntervalKind, Share] = Field(
        default_factory=dict,
        description="how many intervals of each kind hold the truth: of the total, of proven changes "
        "(effect), of the rest, of measured levels, and the suspects that are named together",
    )
    runs: Distribution
    boots: Distribution
    builds: Distribution
    cost: Distribution = Field(description="sum of all builds, boots and runs")
    wall_time: Distribution = Field(description="virtual time to the answer with the given testbeds")
    by_purpose: dict[Purpose, PurposeUse] = Field(
        description="means for: verify the ends, search, certify the culprit, attribute the total"
    )
    mean_confidence: float = Field(description="mean stated confidence of the answers that claim something")
    decisions: Distribution
    planner_cpu_seconds_per_decision: float
    warnings: dict[str, int] = Field(default_factory=dict, description="how many of them gave each warning")


class Report(SimulationSummary):
    """The summary with every setting of the scenario, defaults included."""

    schema_version: int = 1
    seed: int
    scenario: dict[str, object]


def summarise(judged: Sequence[Judged]) -> SimulationSummary:
    """Summarise judged judged, at least one."""
    n = len(judged)

    def count(verdict: Verdict) -> int:
        return sum(t.verdict == verdict for t in judged)

    sizes = [t.set_size for t in judged if t.verdict == "set"]
    right = sum(t.right for t in judged)
    confident = [t for t in judged if t.confident]
    held = {kind: _held(judged, kind) for kind in get_args(IntervalKind)}
    warnings: dict[str, int] = {}
    for one in judged:
        for text in set(one.warnings):
            warnings[text] = warnings.get(text, 0) + 1
    return SimulationSummary(
        trials=n,
        correct=count("correct"),
        wrong=count("wrong"),
        inconclusive=count("inconclusive"),
        not_reproduced=count("not_reproduced"),
        sets=Sets(count=len(sizes), mean_size=float(np.mean(sizes or [0])), largest=max(sizes, default=0)),
        incomplete=count("incomplete"),
        spread=count("spread"),
        fixed=count("fixed"),
        success=share(right - len(sizes), n),
        success_with_sets=share(right, n),
        wrong_claims=share(sum(t.claim_wrong for t in confident), len(confident)),
        total_within_interval=held["total"],
        intervals={kind: of for kind, of in held.items() if of.of},
        runs=_distribution([t.spent.runs for t in judged]),
        boots=_distribution([t.spent.boots for t in judged]),
        builds=_distribution([t.spent.builds for t in judged]),
        cost=_distribution([t.spent.cost for t in judged]),
        wall_time=_distribution([t.wall for t in judged]),
        by_purpose={
            purpose: _purpose_use([t.parts.get(purpose, SimulatedCost()) for t in judged])
            for purpose in _PURPOSES
        },
        mean_confidence=float(np.mean([t.confidence for t in confident])) if confident else 0.0,
        decisions=_distribution([t.decisions for t in judged]),
        planner_cpu_seconds_per_decision=sum(t.cpu for t in judged) / sum(t.decisions for t in judged),
        warnings=warnings,
    )


def _held(judged: Sequence[Judged], kind: IntervalKind) -> Share:
    """Return how many of the intervals of a kind hold the truth."""
    counts = [one.held.get(kind, (0, 0)) for one in judged]
    return share(sum(held for held, _ in counts), sum(of for _, of in counts))


def _purpose_use(parts: Sequence[SimulatedCost]) -> PurposeUse:
    n = len(parts)
    return PurposeUse(
        runs=sum(p.runs for p in parts) / n,
        boots=sum(p.boots for p in parts) / n,
        builds=sum(p.builds for p in parts) / n,
        cost=sum(p.cost for p in parts) / n,
    )


def share(count: int, of: int) -> Share:
    """Return count / of with the Clopper-Pearson interval (Biometrika 26, 1934)."""
    low = float(betaincinv(count, of - count + 1, 0.025)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 0.975)) if count < of else 1.0
    return Share(count=count, of=of, share=count / of if of else 0.0, low=low, high=high)


def _distribution(values: Sequence[float]) -> Distribution:
    p50, p90, p99 = np.percentile(values, (50, 90, 99))
    return Distribution(mean=float(np.mean(values)), p50=float(p50), p90=float(p90), p99=float(p99))
