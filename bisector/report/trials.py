"""The report's section on trials: what each measured, what that means, why the planner wanted it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from bisector.model.decisions import Finding
from bisector.model.records import Built
from bisector.report import phrases
from bisector.report.report_model import Material, Trial

MAX_PRINTED_RUNS = 12
"""Runs of a boot that are printed; report.json and the raw files have all of them."""


def mean_of_boots(boots: Sequence[Sequence[float]]) -> float:
    """Return the mean of the means of boots, each of its samples: the boot is the independent unit.

    A mean over all runs would weigh a boot by how often was run in it.
    """
    return fmean(map(fmean, boots))


def level(material: Material, commit: int, testbed: str) -> float | None:
    """Return the mean of a commit's boots on a testbed, without discarded ones; None if there are none.

    Under the instruction clock it is what the same repetition of all boots reads (`repetition_pattern`).
    """
    boots = [
        t.levelled
        for t in material.trials
        if (t.booted.commit, t.booted.testbed) == (commit, testbed) and not t.discarded and t.samples
    ]
    return mean_of_boots(boots) if boots else None


def levels(material: Material, commits: Sequence[int]) -> tuple[float, ...] | None:
    """Return the levels of commits side by side: the mean over the testbeds that have measured all of them.

    None if there is no such testbed. A mean of whatever each was measured on would compare the testbeds.
    """
    found = levels_by_testbed(material, commits)
    return tuple(map(fmean, zip(*found.values(), strict=True))) if found else None


def levels_by_testbed(material: Material, commits: Sequence[int]) -> dict[str, list[float]]:
    """Return the levels of commits on each testbed that has measured all of them, by its name."""
    found = {
        testbed: [one for commit in commits if (one := level(material, commit, testbed)) is not None]
        for testbed in sorted({t.booted.testbed for t in material.trials})
    }
    return {testbed: one for testbed, one in found.items() if len(one) == len(commits)}


def scales(material: Material) -> Mapping[str, float]:
    """Return the factors that give the older end one level on all testbeds; all 1 where one lacks it."""
    beds = dict.fromkeys(t.booted.testbed for t in material.trials if t.samples)
    good = material.graph.good
    levels = {bed: found for bed in beds if (found := level(material, good, bed)) is not None}
    if len(beds) < 2 or len(levels) < len(beds) or 0 in levels.values():
        return dict.fromkeys(beds, 1.0)
    common = fmean(levels.values())
    return {bed: common / level for bed, level in levels.items()}


def fresh_boots(material: Material, finding: Finding) -> int:
    """Return how many boots that count were made to prove a finding: of its commits and their parents."""
    return sum(
        trial.booted.purpose == "certify"
        and trial.booted.commit in (*finding.commits, *finding.parents)
        and bool(trial.samples)
        and not (trial.discarded or trial.failure)
        for trial in material.trials
    )


def verdict(material: Material, trial: Trial) -> str:
    """Return the trial's result in words: a failure, or where its mean lies between its testbed's ends."""
    samples, retried = _of_samples(material, trial), trial.visit.retried
    return f"{samples}; then it failed, and was tried once more ({retried})" if retried else samples


def _of_samples(material: Material, trial: Trial) -> str:
    if not trial.booted.ok:
        return f"skip: does not boot ({trial.failure})"
    if trial.failure:
        return f"skip: the workload fails ({trial.failure})"
    if trial.discarded:
        return "discarded by the user"
    if not trial.samples:
        return "no samples"
    here = fmean(trial.levelled)
    ends = material.graph.good, material.graph.bad
    good, bad = (level(material, end, trial.booted.testbed) for end in ends)
    if good is None or good == 0:
        return ""
    terms, metric = material.goal.terms, material.goal.metric
    change = phrases.change(good, here, metric)
    text = f"{change} {'as' if change.endswith('the same') else 'than'} {terms.old}"
    if trial.booted.commit == material.graph.good:
        return f"the {terms.old} end"
    if trial.booted.commit == material.graph.bad:
        return f"{text}: the {terms.new} end"
    if bad is None or bad == good or material.ends_alike:
        return text
    part = (here - good) / (bad - good)
    side = f"{terms.old if part < 0.5 else terms.new}'s side"
    way = round(100 * part) or 0  # never "-0%"
    return f"{text}: {side}, {way}% of the way"


def lines(material: Material) -> list[str]:
    """Return the section on all trials, one paragraph each, in the order they were started."""
    out = phrases.heading(f"Every trial ({len(material.trials)})")
    unit = material.goal.metric.unit
    for number, trial in enumerate(material.trials, start=1):
        booted = trial.booted
        where = f"{booted.purpose}, {booted.testbed}" + (f", layout {booted.layout}" if booted.layout else "")
        out += phrases.wrap(
            f"{number:>3}. {material.label(booted.commit)}  [{where}; boot {booted.boot}]", "", "     "
        )
        if trial.reason:
            out += phrases.wrap(f"why: {trial.reason}", "     ", "          ")
        if trial.values:
            out += phrases.wrap(f"{material.goal.metric.name}: {values(trial)} {unit}", "     ", "       ")
        result = verdict(material, trial)
        if result:
            out += phrases.wrap(f"says: {result}", "     ", "           ")
        if trial.console_cut:
            kept = f"console: it printed more than is kept; beginning and end are in {booted.console}"
            out += phrases.wrap(kept, "     ", "              ")
    failed = [b for b in material.builds if not b.ok]
    if failed:
        kernels = material.goal.unit == "kernel"
        title = "Packages that cannot be unpacked" if kernels else "Commits that do not build"
        out += ["", f"{title} ({len(failed)}):"]
        out += phrases.bullets(f"{material.label(b.commit)}: {b.failure}" for b in failed)
    return out


def values(trial: Trial) -> str:
    """Return the values of the runs, the first of many."""
    shown = [
        phrases.run_value(phrases.number(value), flags, warmup=warmup)
        for _, value, flags, warmup in trial.values[:MAX_PRINTED_RUNS]
    ]
    more = len(trial.values) - MAX_PRINTED_RUNS
    return " ".join(shown) + (f" and {more} more" if more > 0 else "")


def costs(material: Material) -> dict[str, str]:
    """Return what was spent: builds, boots, runs, and what perfbisect itself added."""
    made = [b for b in material.builds if not b.cached]
    ready = len(material.builds) - len(made)
    boots = material.trials
    runs = sum(len(t.values) for t in boots)
    out = {
        "builds": _build_times(made) + (f", {ready} more came from the cache" if ready else ""),
        "boots": f"{len(boots)}, {phrases.duration(sum(t.booted.seconds for t in boots))} in all",
        "runs": f"{runs}, {phrases.duration(sum(t.seconds for t in boots))} in all",
    }
    added = [t.booted.overhead for t in boots if t.booted.overhead is not None]
    if added:
        out["overhead"] = (
            f"perfbisect adds {phrases.duration(fmean(added))} to a trial on average, "
            f"{phrases.duration(max(added))} at most, beyond build, boot and runs"
        )
    return out


def _build_times(made: list[Built]) -> str:
    if not made:
        return "none"
    seconds = [b.seconds for b in made]
    if len(made) == 1:
        return f"1, {phrases.duration(seconds[0])}"
    each = dict.fromkeys(phrases.duration(x) for x in (min(seconds), max(seconds)))
    return f"{len(made)}, {phrases.duration(sum(seconds))} in all, {' to '.join(each)} each"
