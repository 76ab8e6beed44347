"""Statements that every form of the report makes in the same words: rows and sentences without layout."""

from __future__ import annotations

from bisector.model.commit_graph import short_name
from bisector.model.decisions import FOUND, Conclusion, Ending, Finding
from bisector.model.format import count
from bisector.model.records import Discarded
from bisector.report import phrases, trials
from bisector.report.kernel_differences import Change, Differences, compare
from bisector.report.report_model import Material
from bisector.schemas.workload.counted_metrics import is_modelled

MAX_NAMED_ALIKE = 3
"""Commits that are named one by one if they could not be tested for the same reason."""
LEAST_TOLD_DIFFERENCE = 0.001
"""Least difference that is mentioned between the sum of changes and the whole: the last digit shown is
0.1%."""

DOUBTFUL_PROBABILITY = 0.5
"""A proven finding below it contradicts the model, which holds none for more likely: the report explains
that."""


def headline(material: Material) -> str:
    """Return the result in a few capital words; what is known of a bisection without conclusion."""
    conclusion = material.conclusion
    if conclusion is None:
        return f"No conclusion yet: {material.status}."
    return f"Result: {result(material, conclusion)}"


def why_it_rests(material: Material) -> str:
    """Return who ended a search without conclusion, or paused it, when and why; '' where it goes on."""
    action, status = material.action, material.status
    if material.conclusion is not None or action is None or action.what != status:
        return ""
    when = phrases.date(action.at)
    what = f"It failed, {when}" if status == "failed" else f"It was {status} by {action.by}, {when}"
    why = f": {action.why.rstrip('.')}" if action.why else ""
    on = f" 'perfbisect resume {material.id}' goes on with it." if status == "failed" else ""
    return f"{what}{why}.{on}"


def result(material: Material, conclusion: Conclusion) -> str:
    """Return the ending in capital words, and what is proven that its name does not say.

    A search for a loss may prove gains, too: behind which losses hide, and with --scan wherever they are.
    """
    words, terms = phrases.ENDINGS[conclusion.ending], material.goal.terms
    proven = [f for f in conclusion.culprits if f.certified]
    others = sum(f.certified and f.opposite for f in conclusion.large)
    some = f"a {terms.other_change}" if others == 1 else count(others, terms.other_change)
    if conclusion.ending in FOUND and others:
        if not proven:
            return f"{some} proven, no {terms.one}".upper()
        if not any(len(f.commits) > 1 for f in proven):
            words = f"{terms.one} proven" if len(proven) == 1 else f"several {terms.several}"
        return f"{words}, and {some}".upper()
    if conclusion.ending is Ending.INCONCLUSIVE and proven:
        words += f", {len(proven)} {terms.one if len(proven) == 1 else terms.several} proven"
    return words.upper()


def finding_rows(material: Material, finding: Finding) -> dict[str, str]:
    """Return what is known of a finding, name -> text: levels, effect, probability, proof, parent, note."""
    metric, terms = material.goal.metric, material.goal.terms
    parents = finding.parents
    rows = {"effect": phrases.effect(finding.effect, metric)}
    if finding.probability is not None:
        rows["probability"] = phrases.probability(finding.probability)
    else:
        rows["confidence"] = f"{100 * finding.confidence:.1f}%"
    if material.modelled and (material.goal.modelled or is_modelled(metric.name)):
        rows["modelled"] = f"not measured: {material.modelled}"
    if finding.certified:
        against = ", ".join(short_name(material.commit(p).sha) for p in parents)
        boots = trials.fresh_boots(material, finding)
        rows["proof"] = (
            f"compared afresh with its {terms.parent}{'s' if len(parents) > 1 else ''} {against}: "
            f"{count(boots, 'fresh boot')}"
        )
        if finding.probability is not None:  # without one the confidence above already says it
            rows["proof"] += f", alpha {1 - finding.confidence:.2g}"
    elif len(finding.commits) == 1:
        boots = trials.fresh_boots(material, finding)
        rows["proof"] = (
            f"not certified: {count(boots, 'fresh boot')} of it did not decide against its {terms.parent}"
            if boots
            else f"not certified: it was not compared afresh with its {terms.parent}"
        )
    for number, parent in enumerate(parents, start=1):
        rows[terms.parent if len(parents) == 1 else f"{terms.parent} {number}"] = material.label(parent)
    no_culprit = f"a {terms.other_change}, no {terms.one}" if finding.opposite and not finding.small else ""
    doubt = _doubt(finding, terms.parent)
    if notes := [*filter(None, (no_culprit, finding.note, doubt))]:
        rows["note"] = "; ".join(notes)
    levels = _levels(material, finding)
    if not levels:
        return rows
    # A metric may be named as one of the rows: each would take the other's place.
    return {f"metric {metric.name}" if metric.name in rows else metric.name: levels, **rows}


def _levels(material: Material, finding: Finding) -> str:
    """Return the means of a single commit and its first parent; '' where no testbed has measured both.

    Each testbed has its own: the effect weighs them by their noise, so that a mean over them contradicts it.
    """
    metric, terms = material.goal.metric, material.goal.terms
    if len(finding.commits) != 1 or not finding.parents:
        return ""
    found = trials.levels_by_testbed(material, (finding.parents[0], finding.commits[0]))
    if not found:
        return ""
    told = [
        f"{f'{testbed} ' * (len(found) > 1)}{phrases.number(before, after)} -> {phrases.number(after)}"
        for testbed, (before, after) in found.items()
    ]
    newer = terms.unit if finding.small or finding.opposite else terms.one
    return f"{', '.join(told)} {metric.unit}  (mean{material.pattern.words}, {terms.parent} -> {newer})"


def is_doubtful(finding: Finding) -> bool:
    """Return whether a finding is proven that is, by all trials together, less likely than not."""
    likely = finding.probability is None or finding.probability >= DOUBTFUL_PROBABILITY
    return finding.certified and not likely


def _doubt(finding: Finding, parent: str) -> str:
    """Return what a proof beside a low probability means, '' where there is no such contradiction."""
    if not is_doubtful(finding):
        return ""
    return (
        f"its fresh boots differ from those of its {parent}, but by all trials together it is less likely "
        "than not: levels may wander from commit to commit, or with the layout of code; read the change "
        "before you believe it"
    )


def between(material: Material, before: int, after: int) -> Differences:
    """Return what differs besides code between two commits of the bisection."""
    return compare(
        material.kernel(before), material.kernel(after), material.facts(before), material.facts(after)
    )


def changes(found: Differences) -> list[tuple[str, tuple[Change, ...]]]:
    """Return the groups of changes that are not empty, each with its title."""
    options = tuple((f"CONFIG_{name}", before, after) for name, before, after in found.options)
    groups = (
        ("effective .config", options),
        ("guest", found.settings),
        ("mitigations", found.mitigations),
        ("sysctl defaults", found.sysctls),
        ("sizes in bytes", found.sizes),
    )
    return [(title, group) for title, group in groups if group]


def unchanged(found: Differences) -> list[str]:
    """Return the sentences on what is the same in both kernels."""
    same = [
        name
        for name, group in (
            ("effective .config", found.options),
            ("clocksource and command line", found.settings),
            ("mitigations", found.mitigations),
            ("sysctl defaults", found.sysctls),
        )
        if not group
    ]
    out = [f"The same in both: {', '.join(same)}."] if same else []
    if found.preemption is not None:
        out.append(f"Preemption model: {' -> '.join(dict.fromkeys(found.preemption))}.")
    return out


def counted_parts(conclusion: Conclusion) -> list[Finding]:
    """Return the findings that add up: what is not proven is a part of the rest, where a rest is stated."""
    return [f for f in conclusion.findings if f.certified or conclusion.rest is None]


def part_name(material: Material, finding: Finding) -> str:
    """Return the short name of a finding: the id, or how many commits."""
    many = len(finding.commits)
    return short_name(material.commit(finding.commits[0]).sha) if many == 1 else f"set of {many:,}"


def explained(material: Material, conclusion: Conclusion) -> str:
    """Return whether what was proven explains the whole change; '' where no rest is stated, or no proof."""
    rest, terms, parts = conclusion.rest, material.goal.terms, counted_parts(conclusion)
    if rest is None or conclusion.total is None or not parts:
        return ""
    text = f"What was found explains the change from {terms.old} to {terms.new} within the interval."
    if rest.low > 0 or rest.high < 0:
        text = (
            f"Part of the change from {terms.old} to {terms.new} is not explained by what was found: other "
            f"{terms.unit}s of the range contribute, each less than the threshold or not searched for."
        )
    total = sum(part.effect.estimate for part in parts) + rest.estimate
    if len(parts) > 1 and abs(total - conclusion.total.estimate) > LEAST_TOLD_DIFFERENCE:
        text += (
            f" Each {terms.unit}'s change is in percent of its {terms.parent}'s level: they multiply, and "
            f"their sum is not the change from {terms.old} to {terms.new}."
        )
    return text


def words_of_user(material: Material) -> list[str]:
    """Return a sentence for each mark and each discard."""
    out = []
    for entry in material.words_of_user:
        note = f" ({entry.note})" if entry.note else ""
        if isinstance(entry, Discarded):
            out.append(f"discarded the data of {entry.kind} {entry.name}{note}")
        else:
            out.append(f"{material.label(entry.commit)} is {entry.verdict}{note}")
    return out


def title_of_untestable(material: Material) -> str:
    """Return the heading of `untestable`."""
    return f"{material.goal.unit.capitalize()}s that could not be tested"


def untestable(material: Material) -> list[str]:
    """Return why commits could not be tested, in one sentence where it is the same for many."""
    alike: dict[str, list[int]] = {}
    for index, why in sorted(material.state.untestable.items()):
        alike.setdefault(why, []).append(index)
    out: list[str] = []
    for why, commits in sorted(
        alike.items(), key=lambda group: len(group[1])
    ):  # what happened once tells most
        if len(commits) <= MAX_NAMED_ALIKE:
            out += [f"{material.label(i)}: {why}" for i in commits]
        else:
            out.append(f"{len(commits)} {material.goal.unit}s, such as {material.label(commits[0])}: {why}")
    return out
