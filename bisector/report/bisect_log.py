"""A bisection in the form of `git bisect log`, which git can replay. Trials are in the comments.

Where a fix is looked for, the words are git's 'old' and 'new': its 'good' is always the older end.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from bisector.model.commit_graph import CommitGraph, short_name
from bisector.model.decisions import Ending
from bisector.report import phrases
from bisector.report.report_model import Material
from bisector.report.trials import levels, values, verdict


@dataclass(frozen=True, slots=True)
class _Step:
    """What git replays of one commit. word: git's for the verdict."""

    word: str
    commit: int


def render(material: Material) -> str:
    """Return the log. A commit whose trials contradict the culprit appears only in a comment."""
    paths = [str(p) for p in material.request.get("paths") or ()]
    out = [f"# perfbisect {material.id}: {material.goal.metric.name}, {material.status}"]
    replays = material.goal.unit == "commit"
    if replays:
        out.append("git bisect start" + (f" -- {shlex.join(paths)}" if paths else ""))
    for entry in _entries(material):
        if isinstance(entry, str):
            out.append(f"# {entry}")
        else:
            sha = material.graph.shas[entry.commit]
            out.append(f"# {entry.word}: [{sha}] {material.commit(entry.commit).subject}")
            if replays:  # git knows no kernels of a list
                out.append(f"git bisect {entry.word} {sha}")
    return phrases.page(out)  # a name of two lines must not become a line that git replays


def steps(material: Material) -> list[dict[str, str]]:
    """Return what git would replay: verdict and full id of each commit, in order."""
    return [
        {"verdict": entry.word, "commit": material.graph.shas[entry.commit]}
        for entry in _entries(material)
        if isinstance(entry, _Step)
    ]


def _entries(material: Material) -> Iterator[_Step | str]:
    """Yield the steps, and the comments around them, in the order of the log."""
    graph, words, after = material.graph, _words(material), _after_culprit(material)
    yield _Step(words["bad"], graph.bad)
    yield _Step(words["good"], graph.good)
    judged = {graph.good, graph.bad}
    for number, trial in enumerate(material.trials, start=1):
        commit = trial.booted.commit
        yield f"trial {number}: [{short_name(graph.shas[commit])}] {trial.reason or 'no reason kept'}"
        if trial.values:
            yield f"  {material.goal.metric.name}: {values(trial)} {material.goal.metric.unit}"
        yield f"  {verdict(material, trial)}"
        if commit in judged or commit in material.state.untestable:
            continue
        if not graph.candidate[commit] and commit not in graph.merge_bases:
            yield "  below the range, for the offset of a branch; not part of the replay"
            continue
        side = _side(material, commit)
        if side is None:
            continue
        judged.add(commit)
        if after is None or (commit in after) is (side == "bad"):
            yield _Step(words[side], commit)
        else:
            yield f"  measured '{words[side]}', which the final proof contradicts; not part of the replay"
    for commit, why in sorted(material.state.untestable.items()):
        if commit not in judged:
            yield why.splitlines()[0]
            yield _Step("skip", commit)
    yield from _findings(material)


def _after_culprit(material: Material) -> frozenset[int] | None:
    """Return the proven culprit and all commits that contain it; None if there is not exactly one."""
    conclusion = material.conclusion
    if conclusion is None or conclusion.ending not in (Ending.CULPRIT, Ending.FIX):
        return None
    return descendants(material.graph, conclusion.findings[0].commits[0])


def _findings(material: Material) -> Iterator[str]:
    """Yield a comment for each commit of the conclusion."""
    first = f"first {_words(material)['bad']} {material.goal.unit}"
    for finding in material.conclusion.findings if material.conclusion is not None else ():
        kind = first if len(finding.commits) == 1 and finding.certified else f"possible {first}"
        if finding.small:
            kind = "smaller than the threshold"
        for commit in finding.commits:
            effect = phrases.effect(finding.effect, material.goal.metric.better)
            yield f"{kind}: [{material.graph.shas[commit]}] {material.commit(commit).subject} ({effect})"


def descendants(graph: CommitGraph, commit: int) -> frozenset[int]:
    """Return the commit and all that contain it. Parents come before children in the graph's order."""
    found = {commit}
    for index in range(commit + 1, len(graph.shas)):
        if any(parent in found for parent in graph.parents[index]):
            found.add(index)
    return frozenset(found)


def _words(material: Material) -> dict[str, str]:
    """Return git's words for the search's."""
    if material.goal.find == "regression":
        return {"good": "good", "bad": "bad"}
    return {"good": "old", "bad": "new"}


def _side(material: Material, commit: int) -> str | None:
    mark = material.state.marks.get(commit)
    if mark is not None:
        return mark
    found = levels(material, (material.graph.good, material.graph.bad, commit))
    if found is None or found[0] == found[1]:
        return None
    good, bad, here = found
    return "bad" if (here - fmean((good, bad))) * (bad - good) > 0 else "good"
