"""Warnings of a conclusion: data that did not count, steps of the metric, noise as large as the effect."""

from __future__ import annotations

from bisector.model.format import count
from bisector.search.context import SearchContext
from bisector.search.metric.metric_steps import in_words
from bisector.search.metric.scale import LEAST_THRESHOLD_PER_VALUE
from bisector.search.posterior import Posterior

DRIFT_WARNING, BINARY_SPREAD_WARNING, BACKGROUND_WARNING = 0.3, 0.2, 0.5
"""Standard deviations, in effects, from which the report warns of this noise."""

MAX_FAILURE_CHARACTERS = 200
"""Of how a boot failed: the line that shows it."""


def warnings(context: SearchContext, posterior: Posterior | None) -> tuple[str, ...]:
    """Return warnings about the data, in words."""
    found, unit = [], context.goal.unit
    r = context.readings
    flagged = sum(len(v.flagged) for v in context.state.visits)
    if flagged:
        were = "was flagged as suspicious and does" if flagged == 1 else "were flagged as suspicious and do"
        found.append(f"{count(flagged, 'run')} {were} not count.")
    if broken := _broken_boots(context):
        found.append(broken)
    if r is not None and not context.exact_clock and r.nu <= 3:
        found.append("Runs have heavy tails: outliers were given little weight, none was deleted.")
    if context.runs_scatter:
        found.append(
            "Runs of one boot differ by half of the threshold or more, although the clock is exact: from "
            "then on each boot got other random numbers, and those that repeated another count once. "
            "'seed: fresh' in the workload's environment does so from the first boot on."
        )
    if r is not None and r.scale.of_one:
        metric, old = context.goal.metric, context.goal.terms.old
        found.append(
            f"{old.capitalize()} reads 0, of which there are no percentages: each percentage here is of "
            f"1 {metric.unit or metric.name}."
        )
    if r is not None and r.scale.threshold > 2 * r.scale.of_threshold(context.goal.metric.threshold):
        found.append(
            f"The threshold is below {LEAST_THRESHOLD_PER_VALUE:.6%} of the level: "
            "changes count from that on."
        )
    if r is not None and (words := in_words(context.metric_step, r.scale)):
        found.append(f"{words[0].upper()}{words[1:]}.")
    if posterior is not None:
        effect = posterior.design.effect
        if posterior.noise_rms("drift") > DRIFT_WARNING * effect:
            found.append("A testbed drifted by an amount comparable to the effect during the search.")
        if posterior.noise_rms("binary") > BINARY_SPREAD_WARNING * effect:
            found.append(f"Builds differ beyond what their {unit}s explain: code layout matters here.")
        if posterior.noise_rms("background") > BACKGROUND_WARNING * effect:
            found.append(f"Levels wander along history: many {unit}s shift the metric a little.")
    return tuple(found)


def _broken_boots(context: SearchContext) -> str:
    """Return what boots in which the workload failed, and was tried once more, mean; '' without any.

    Such a run gives no sample. Where kernels fail because they are slow, what is left of them is too fast.
    """
    graph, visits = context.graph, context.state.visits
    broken = [v for v in visits if v.retried]
    if not broken:
        return ""
    sides = {
        "bad": [v for v in visits if v.commit == graph.bad],
        "good": [v for v in visits if v.commit == graph.good],
        f"other {context.goal.unit}s": [v for v in visits if v.commit not in (graph.bad, graph.good)],
    }
    parts = [
        f"in {sum(v in broken for v in boots)} of {count(len(boots), 'boot')} of {name}"
        for name, boots in sides.items()
        if boots
    ]
    how = broken[0].retried[:MAX_FAILURE_CHARACTERS]
    return (
        f"The workload failed {', '.join(parts)}, and was tried once more ({how}): runs that fail give no "
        "sample, so a kernel that fails when it is slow looks faster than it is."
    )
