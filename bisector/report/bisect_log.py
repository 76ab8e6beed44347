"""A bisection in the form of `git bisect log`, which git can replay. Trials are in the comments.

Where a fix is looked for, the words are git's 'old' and 'new': its 'good' is always the older end.
"""

from __future__ import annotations

import shlex
from statistics import fmean

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Ending
from bisector.report import phrases
from bisector.report.report_model import Material
from bisector.report.trials import level, values, verdict


def render(material: Material) -> str:
    """Return the log. A commit whose trials contradict the culprit appears only in a comment."""
    graph, conclusion, words = material.graph, material.conclusion, _words(material)
    paths = [str(p) for p in material.request.get("paths") or ()]
    out = [f"# perfbisect {material.id}: {material.goal.metric.name}, {material.status}"]
    out.append("git bisect start" + (f" -- {shlex.join(paths)}" if paths else ""))
    out += _line(material, graph.bad, words["bad"]) + _line(material, graph.good, words["good"])
    after: frozenset[int] | None = None
    if conclusion is not None and conclusion.ending in (Ending.CULPRIT, Ending.FIX):
        after = descendants(graph, conclusion.findings[0].commits[0])
    printed = {graph.good, graph.bad}
    for number, trial in enumerate(material.trials, start=1):
        commit = trial.booted.commit
        out.append(
            f"# trial {number}: [{material.graph.shas[commit][:12]}] {trial.reason or 'no reason kept'}"
        )
        if trial.values:
            out.append(f"#   {material.goal.metric.name}: {values(trial)} {material.goal.metric.unit}")
        out.append(f"#   {verdict(material, trial)}")
        if commit in printed or commit in material.state.untestable:
            continue
        if not graph.candidate[commit] and commit not in graph.merge_bases:
            out.append("#   below the range, for the offset of a branch; not part of the replay")
            continue
        side = _side(material, commit)
        if side is None:
            continue
        printed.add(commit)
        expected = side if after is None else "bad" if commit in after else "good"
        if side == expected:
            out += _line(material, commit, words[side])
        else:
            out.append(
                f"#   measured '{words[side]}', which the final proof contradicts; not part of the replay"
            )
    for commit, why in sorted(material.state.untestable.items()):
        if commit not in printed:
            out.append(f"# {why}".splitlines()[0])
            out += _line(material, commit, "skip")
    if conclusion is not None:
        for finding in conclusion.findings:
            kind = f"first {words['bad']} commit"
            kind = kind if len(finding.commits) == 1 else f"possible {kind}"
            if finding.small:
                kind = "smaller than the threshold"
            for commit in finding.commits:
                out.append(
                    f"# {kind}: [{graph.shas[commit]}] {material.commit(commit).subject} "
                    f"({phrases.effect(finding.effect, material.goal.metric.better)})"
                )
    return phrases.page(out)  # a name of two lines must not become a line that git replays


def steps(material: Material) -> list[dict[str, str]]:
    """Return what git would replay: verdict and full id of each commit, in order."""
    words = (line.split() for line in render(material).splitlines() if line.startswith("git bisect "))
    return [{"verdict": said[2], "commit": said[3]} for said in words if said[2] != "start"]


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
    here = level(material, commit)
    good, bad = level(material, material.graph.good), level(material, material.graph.bad)
    if here is None or good is None or bad is None or good == bad:
        return None
    return "bad" if (here - fmean((good, bad))) * (bad - good) > 0 else "good"


def _line(material: Material, commit: int, word: str) -> list[str]:
    sha = material.graph.shas[commit]
    return [f"# {word}: [{sha}] {material.commit(commit).subject}", f"git bisect {word} {sha}"]
