"""Conclusions: the ways in which a search can end, with their numbers and their summaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from bisector.model.commit_graph import short_name
from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.format import change, count
from bisector.search.attribution import add_up_changes, unexplained_rest
from bisector.search.cache import PlannerCache
from bisector.search.candidates import Suspect
from bisector.search.certainty.culprit_probability import proof_probability
from bisector.search.certainty.suspect_probability import set_probability, suspect_probability
from bisector.search.certainty.unsplit_sets import note_on_set, why_unsplit
from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext
from bisector.search.levels.data_warnings import warnings
from bisector.search.levels.doubtful_marks import mark_warnings
from bisector.search.levels.level_profile import (
    expected_steps_reaching_threshold,
    largest_steps,
    relative_levels,
)
from bisector.search.levels.misfit import misfit_warnings
from bisector.search.limits import uneven_outliers
from bisector.search.posterior import Posterior
from bisector.search.sequential_test import Evidence

MIN_SHOWN_COMMITS = 64
"""An unfinished search names the most probable commits if these are so many, or a quarter of the range."""


def conclude_untestable(context: SearchContext) -> Conclusion | None:
    """Return the conclusion if the search cannot begin."""
    graph = context.graph
    terms = context.goal.terms
    if not any(graph.candidate):
        return Conclusion(Ending.INCONCLUSIVE, f"There is no {terms.unit} between good and bad.")
    for end, name in ((graph.good, terms.old), (graph.bad, terms.new)):
        if not context.testable(end):
            why = context.state.untestable[end]
            how = f"Name another {terms.unit} with --{name}"
            if terms.unit == "commit":
                how += ", or make it testable with --with-fix, --apply or another --recipe"
            return Conclusion(Ending.INCONCLUSIVE, f"The {name} end cannot be tested: {why}. {how}.")
    return None


def _with_rounding(context: SearchContext, p: Evidence) -> Evidence:
    """Return a comparison whose interval holds what rounding of the metric hides, too."""
    hidden = math.sqrt(2) * context.hidden_by_rounding
    if not hidden:
        return p
    middle, half = (p.low + p.high) / 2, (p.high - p.low) / 2
    half = math.hypot(half, float(ndtri(context.alpha / 2)) * hidden)
    return replace(p, interval=lambda: (middle - half, middle + half), sd=math.hypot(p.sd, hidden))


def _interval(context: SearchContext, p: Evidence) -> Interval:
    p = _with_rounding(context, p)
    return context.measured.scale.to_relative_change(p.low, p.estimate, p.high)


def conclude_not_reproduced(context: SearchContext, ends: Evidence) -> Conclusion:
    """Return the conclusion for ends that do not differ by the threshold, or by what the metric resolves."""
    total, terms = _interval(context, ends), context.goal.terms
    if ends.high < context.threshold <= _with_rounding(context, ends).high:
        return Conclusion(
            Ending.INCONCLUSIVE,
            f"{terms.new.capitalize()} differs from {terms.old} by {change(total)}: the metric is read too "
            "coarsely to tell whether that is less than the threshold. Raise the threshold above a step of "
            "the metric, or take a metric with smaller steps.",
            total=total,
            warnings=warnings(context, None),
        )
    if ends.high < 0:
        way, hidden = ("better", "losses behind gains")
        if context.goal.find == "fix":
            way, hidden = ("worse", "gains behind losses")
        text = f"{terms.new.capitalize()} is {way} than {terms.old}: {change(total)}. Are the ends swapped?"
    else:
        text = (
            f"{terms.new.capitalize()} differs from {terms.old} by {change(total)}, less than the threshold."
        )
        hidden = "changes that cancel between the ends"
    if not context.goal.scan and sum(context.graph.candidate) > 1:
        text += f" --scan looks for {hidden}."
    return Conclusion(
        Ending.NOT_REPRODUCED,
        text,
        total=total,
        confidence=1 - context.alpha,
        warnings=(*warnings(context, None), *uneven_outliers.missed(context)),
    )


def conclude_fixed_on_good_side(context: SearchContext, base: int, ends: Evidence) -> Conclusion:
    """Return the conclusion for a merge base that is itself bad."""
    merged, old = (short_name(context.graph.shas[end]) for end in (base, context.graph.good))
    if context.goal.find == "regression":
        kind = Ending.FIXED_ON_GOOD_SIDE
        text = "The merge base is as bad as the bad end: the loss was fixed on good's side."
        asked, what = f"--find fix --bad {merged} --good {old}", "the fix"
    else:
        kind = Ending.BROKEN_ON_BAD_SIDE
        text = "The merge base is as good as the good end: nothing was fixed, the loss is on bad's side."
        asked, what = f"--good {merged} --bad {old}", "its culprit"
    text += f" 'perfbisect start {asked}', with the other options as here, looks for {what}."
    return Conclusion(
        kind,
        text,
        (Finding((base,), _interval(context, ends), 1 - context.alpha, note="the merge base"),),
        _interval(context, ends),
        confidence=1 - context.alpha,
        warnings=warnings(context, None),
    )


def conclude_culprits(
    context: SearchContext,
    cache: PlannerCache,
    posterior: Posterior,
    proofs: Sequence[Proof],
    ends: Evidence,
    stopped: str = "",
) -> Conclusion:
    """Return the conclusion with everything proven and the rest. At least one proof is of a culprit.

    stopped: why the rest was not searched to its end, in words; '' where it was.
    """
    findings, added, total, rest = _added_up(context, cache, proofs, ends)
    large = [p for p in proofs if not p.small]
    sets = any(len(p.commits) > 1 for p in large)
    one, several, unsplit = (
        (Ending.CULPRIT, Ending.CULPRITS, Ending.CULPRIT_SET)
        if context.goal.find == "regression"
        else (Ending.FIX, Ending.FIXES, Ending.FIX_SET)
    )
    kind = unsplit if sets else one if len(large) == 1 else several
    text = (
        f"Proven with fresh boots. In percent of {context.goal.terms.old}'s level: total {change(total)} = "
        f"{' + '.join(change(p) for p in added)} + rest {change(rest)}."
        if len(findings) > 1
        else f"Proven with fresh boots: it explains {change(findings[0].effect)} of {change(total)}; "
        f"the rest is {change(rest)}."
    )
    if sets:
        text += f" {why_unsplit(context, large)}"
    if stopped:
        text += f" The rest was not searched to its end. {stopped}"
    return Conclusion(
        kind,
        text,
        findings,
        total,
        rest,
        confidence=1 - max(p.alpha_spent for p in proofs),
        warnings=_warnings(context, cache, posterior) + misfit_warnings(context, posterior, proofs, ends),
        levels=relative_levels(context, posterior),
    )


def _added_up(
    context: SearchContext, cache: PlannerCache, proofs: Sequence[Proof], ends: Evidence
) -> tuple[tuple[Finding, ...], tuple[Interval, ...], Interval, Interval]:
    """Return (findings, what each adds as a fraction of good's level, total, rest), culprits first."""
    total = _interval(context, ends)
    if not proofs:
        return (), (), total, total
    by_age = sorted(proofs, key=lambda p: p.after)
    evidence = [_with_rounding(context, p.evidence) for p in by_age]
    unexplained = unexplained_rest(_with_rounding(context, ends), evidence, context.alpha)
    *added, rest = add_up_changes(context.measured.scale, [*evidence, unexplained])
    shown = sorted(zip(by_age, added, strict=True), key=lambda x: x[0].small)  # stable: each kind by age
    findings = []
    for proof, _ in shown:
        likely = None if proof.small else proof_probability(context, cache, proofs, proof, ends)
        findings.append(_finding(context, proof, likely))
    return tuple(findings), tuple(more for _, more in shown), total, rest


def _finding(context: SearchContext, proven: Proof, probability: float | None) -> Finding:
    return Finding(
        proven.commits,
        _interval(context, proven.evidence),
        1 - proven.alpha_spent,
        proven.parents,
        certified=True,
        note=_note(context, proven),
        small=proven.small,
        opposite=proven.evidence.estimate < 0,
        probability=probability,
    )


def _note(context: SearchContext, proven: Proof) -> str:
    """Return a note on the commits that the change was compared with."""
    parents = len(context.graph.parents[proven.after])
    some = "each" if len(proven.parents) >= parents else f"{len(proven.parents)}"
    merge = f"a merge, proven against {some} of its {parents} parents"
    notes = ["smaller than the threshold"] if proven.small else []
    if len(proven.commits) > 1:
        notes.append(note_on_set(context, proven))
    elif parents > 1:
        notes.append(merge)
    return "; ".join(notes)


def conclude_spread(
    context: SearchContext,
    cache: PlannerCache,
    posterior: Posterior,
    proofs: Sequence[Proof],
    ends: Evidence,
) -> Conclusion:
    """Return the conclusion for a loss that no commit explains. proofs: of changes that are too small."""
    findings, _, total, rest = _added_up(context, cache, proofs, ends)
    terms = context.goal.terms
    steps = [
        f"{change(step)} over {count(many, terms.unit)}" for many, step in largest_steps(context, posterior)
    ]
    fewest = math.ceil(_with_rounding(context, ends).low / context.threshold)
    # Where the total may be below the threshold, a single smaller change may be all of it.
    parts = f": at least {count(fewest, terms.unit)} have a part in it" if fewest >= 2 else ""
    return Conclusion(
        Ending.SPREAD,
        f"{terms.new.capitalize()} differs from {terms.old} by {change(total)}, but no {terms.unit} reaches "
        f"the threshold{parts}. "
        f"The largest steps from one measured {terms.unit} to the next: {'; '.join(steps)}. With a lower "
        "--threshold smaller parts are searched for, which takes more boots.",
        findings,
        total,
        rest,
        confidence=max(posterior.none, 1 - min(1.0, expected_steps_reaching_threshold(context, posterior))),
        warnings=_warnings(context, cache, posterior),
        levels=relative_levels(context, posterior),
    )


def _warnings(context: SearchContext, cache: PlannerCache, posterior: Posterior | None) -> tuple[str, ...]:
    marks = () if posterior is None else mark_warnings(context, cache, posterior.design.effect)
    return warnings(context, posterior) + marks


def conclude_unfinished(
    context: SearchContext,
    cache: PlannerCache,
    posterior: Posterior | None,
    found: Suspect | None,
    proofs: Sequence[Proof],
    ends: Evidence | None,
    why: str,
) -> Conclusion:
    """Return the conclusion of a search that ends without an answer. why: the reason, in words."""
    findings: tuple[Finding, ...] = ()
    total = rest = None
    if ends is not None:
        findings, _, total, rest = _added_up(context, cache, proofs, ends)
    confidence = 0.0
    if posterior is not None and found is not None:
        weight = posterior.commit_probabilities(context.dag.weights)
        order = np.argsort(-weight, kind="stable")
        total_weight = max(weight.sum(), 1e-12)
        many = int(np.searchsorted(np.cumsum(weight[order]) / total_weight, 1 - context.alpha)) + 1
        commits = tuple(sorted(int(c) for c in order[: min(many, len(order))]))
        proven, effect = tuple(p.commits for p in proofs), posterior.design.effect
        of = suspect_probability if found.atomic else set_probability
        confidence = of(context, cache, found.commits, proven, effect)
        if len(commits) <= max(MIN_SHOWN_COMMITS, context.dag.n // 4):
            same = commits == found.commits
            likely = confidence if same else set_probability(context, cache, commits, proven, effect)
            mean, sd = posterior.effect(found.index)
            interval = context.measured.scale.around(mean, sd)
            unit = context.goal.unit
            note = f"the most probable {unit if len(commits) == 1 else f'{unit}s'} so far; not proven"
            suspects = Finding(commits, interval, likely, note=note, probability=likely, opposite=mean < 0)
            findings = (*findings, suspects)
    return Conclusion(
        Ending.INCONCLUSIVE,
        why,
        findings,
        total,
        rest,
        confidence,
        _warnings(context, cache, posterior),
        relative_levels(context, posterior) if posterior is not None else (),
    )
