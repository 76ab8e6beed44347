"""Metrics of the same runs that differ between the ends where the deciding one does not."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bisector.model.decisions import Ending, Interval
from bisector.model.format import effect_size
from bisector.model.goal import Metric, TestbedClock
from bisector.report import phrases, stored_samples
from bisector.report.columns import align
from bisector.report.report_model import Material
from bisector.schemas.request import command_line
from bisector.schemas.workload.counted_metrics import is_modelled, modelled_spread
from bisector.stats.samples import SampleSet

if TYPE_CHECKING:
    from bisector.stats.comparison_result import Comparison

_OF_ANOTHER_CLOCK: Mapping[TestbedClock, str] = {
    "instructions": "is of the wall clock: measure on a machine or with KVM",
    "wall": "is of the clock that counts instructions: measure in an emulated guest",
}
"""The remark on a metric that cannot decide, by the clock of the bisection."""

_OF_THE_METRIC = {"threshold", "higher_is_better"}
"""Of a request: what was said of the deciding metric alone. What differs beside a command's is counted."""


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """One metric that differs by its own threshold.

    values: means of the ends, in the metric's unit; effect: relative, infinite where the older end is at 0;
    sought: it changed the way that is searched for, to the worse or, with `--find fix`, to the better.
    """

    metric: Metric
    testbed: str
    values: tuple[float, float]
    effect: Interval
    worse: bool
    sought: bool


def find(material: Material) -> list[MetricDifference]:
    """Return the other metrics that differ, those to search by first; empty for another ending."""
    conclusion, graph = material.conclusion, material.graph
    if conclusion is None or conclusion.ending is not Ending.NOT_REPRODUCED:
        return []
    # It brings numpy, and most reports need no comparison.
    from bisector.stats.comparison_result import beyond_chance

    before, after = (
        {one.testbed: one for one in stored_samples.sets(material, end, str(end), material.metrics)}
        for end in (graph.good, graph.bad)
    )
    compared = [
        (testbed, metric, seen)
        for testbed in before.keys() & after.keys()
        for metric in material.metrics.values()
        if metric.name != material.goal.metric.name
        and (seen := _compare(material, metric, before[testbed], after[testbed])) is not None
    ]
    shown = beyond_chance([seen for _, _, seen in compared], material.goal.alpha)
    found = [
        one
        for testbed, metric, seen in compared
        if (one := _differing(material, testbed, metric, seen, seen in shown))
    ]
    return sorted(
        found, key=lambda one: (not one.sought, -abs(one.effect.estimate), one.metric.name, one.testbed)
    )


def _compare(material: Material, metric: Metric, a: SampleSet, b: SampleSet) -> Comparison | None:
    """Return the comparison of a metric; None where a side lacks it."""
    from bisector.stats.comparison import compare

    if metric.name not in a.series or metric.name not in b.series:
        return None
    try:
        return compare(metric.name, a.series[metric.name], b.series[metric.name], alpha=material.goal.alpha)
    except ValueError:  # a side has no finite number
        return None


def _differing(
    material: Material, testbed: str, metric: Metric, seen: Comparison, shown: bool
) -> MetricDifference | None:
    """Return the metric if it differs by its threshold; from one run a side only where the clock is exact.

    shown: whether it differs by more than chance among so many metrics. A modelled number must differ by more
    than boots of one kernel do, whatever its runs say.
    """
    untested = seen.verdict == "untested"
    effect, size = seen.mean if untested else seen.effect, metric.threshold
    change = abs(effect.estimate)
    if size.relative and math.isinf(change):  # of nothing there is no fraction
        return None
    if not size.relative:
        change = abs(seen.b.mean - seen.a.mean if untested else seen.plain.estimate)
    exact = material.goal.clock == "instructions"
    if change < size.value or not (exact if untested else shown):
        return None
    if is_modelled(metric.name) and abs(effect.estimate) < modelled_spread(metric.name):
        return None
    worse = effect.estimate * metric.worse_sign > 0
    sought = worse == (material.goal.find == "regression")
    return MetricDifference(metric, testbed, (seen.a.mean, seen.b.mean), effect, worse, sought)


def lines(material: Material) -> list[str]:
    """Return the report's section; empty where nothing else differs."""
    found = find(material)
    if not found:
        return []
    out = [*phrases.heading("What else differs between the ends"), *align(head(material), rows(found))]
    out += ["", *phrases.wrap(sentence(material))]
    out += [text for one in commands(material, found) for text in ("", f"  {one}")]
    return out + [text for one in without_command(material, found) for text in ("", *phrases.wrap(one))]


def head(material: Material) -> tuple[str, ...]:
    """Return the names of the columns of `rows`."""
    terms = material.goal.terms
    return "METRIC", terms.old.upper(), terms.new.upper(), "", "CHANGE"


def rows(found: list[MetricDifference]) -> list[tuple[str, ...]]:
    """Return a line for each metric."""
    return [
        (
            one.metric.name + (f" on {one.testbed}" if one.testbed else ""),
            *map(phrases.amount, one.values),
            one.metric.unit,
            f"{_change(one)} {phrases.judged(one.effect.estimate, one.metric)}",
        )
        for one in found
    ]


def _change(one: MetricDifference) -> str:
    """Return the change in percent, in the metric's unit where the older end is at 0."""
    if math.isfinite(one.effect.estimate):
        return effect_size(one.effect, 2)
    before, after = one.values
    return f"{'+' if after > before else ''}{phrases.amount(after - before)} {one.metric.unit}".rstrip()


def sentence(material: Material) -> str:
    """Return what the table means, in words."""
    found, deciding = find(material), material.goal.metric.name
    names = {one.metric.name for one in found}
    word = "worse" if material.goal.find == "regression" else "better"
    if commands(material, found):
        then = f"to search by what is {word}:"
    elif any(one.sought for one in found):
        then = f"what is {word} cannot decide here."
    else:
        then = f"none of them is {word}." if len(names) > 1 else f"it is not {word}."
    differ = "These metrics of the same runs differ by their own"
    if len(names) == 1:
        differ = "This metric of the same runs differs by its own"
    text = f"{deciding} decided and is not {word} by its threshold. {differ}, and by more than chance; {then}"
    if material.modelled and any(is_modelled(one.metric.name) for one in found):
        text = f"Misses and cycles are a model's: {material.modelled}. {text}"
    return text


def commands(material: Material, found: list[MetricDifference]) -> list[str]:
    """Return the commands that search by what changed as was looked for, the largest change first."""
    return list(_commands(material, found).values())


def _commands(material: Material, found: list[MetricDifference]) -> dict[str, str]:
    """Return them by the name of their metric, which may differ on several testbeds."""
    return {name: search_by(material, name) for name in _sought(found) if name not in material.unable}


def search_by(material: Material, metric: str) -> str:
    """Return the command that searches by another metric. It has a threshold and a direction of its own."""
    asked = {name: value for name, value in material.request.items() if name not in _OF_THE_METRIC}
    return shlex.join(command_line({**asked, "metric": metric}))


def _sought(found: list[MetricDifference]) -> dict[str, None]:
    """Return the names of metrics that changed as was looked for, the largest change first."""
    return dict.fromkeys(one.metric.name for one in found if one.sought)


def without_command(material: Material, found: list[MetricDifference]) -> list[str]:
    """Return, for each metric that changed as was looked for and cannot decide under the clock, why."""
    return [
        f"({name} {_OF_ANOTHER_CLOCK[material.goal.clock]} to search by it)"
        for name in _sought(found)
        if name in material.unable
    ]


def render(material: Material) -> list[dict[str, Any]]:
    """Return the same for machines."""
    found = find(material)
    by_name = _commands(material, found)
    return [
        {
            "metric": {"name": one.metric.name, "unit": one.metric.unit, "better": one.metric.better},
            "testbed": one.testbed,
            "values": list(one.values),
            "effect": dataclasses.asdict(one.effect),
            "worse": one.worse,
            "command": by_name.get(one.metric.name, "") if one.sought else "",
        }
        for one in found
    ]
