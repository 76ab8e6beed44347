"""A bisection in the form of `git bisect log`, which git can replay. Trials are in the comments.

Where a fix is looked for, the words are git's 'old' and 'new': its 'good' is always the older end. Git knows
one change. Of several proven ones the replay ends at the largest of what was looked for; commits whose level
is on the other side are comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bisector.model.commit_graph import CommitGraph, short_name
from bisector.model.decisions import Finding
from bisector.report import phrases
from bisector.report.report_model import Material
from bisector.report.trials import levels, values, verdict


@dataclass(frozen=True, slots=True)
class _Step:
    """What git replays of one commit. word: git's for the verdict."""

    word: str
    commit: int


def render(material: Material) -> str:
    """Return the log. A commit whose level contradicts the proof appears only in a comment."""
    out = [f"# perfbisect {material.id}: {material.goal.metric.name}, {material.status}"]
    replays = material.goal.unit == "commit"
    if replays:
        out.append(" ".join(["git bisect start", *map(_quoted, _options(material.request))]))
    for entry in _entries(material):
        if isinstance(entry, str):
            out.append(f"# {entry}")
        else:
            sha = material.graph.shas[entry.commit]
            out.append(f"# {entry.word}: [{sha}] {material.commit(entry.commit).subject}")
            if replays:  # git knows no kernels of a list
                out.append(f"git bisect {entry.word} {sha}")
    return phrases.page(out)  # a name of two lines must not become a line that git replays


def _options(request: Mapping[str, Any]) -> list[str]:
    """Return what tells git which commits the search has taken for candidates."""
    paths = [str(path) for path in request.get("paths") or ()]
    first_parent = ["--first-parent"] if request.get("first_parent") else []
    return [*first_parent, *(["--", *paths] if paths else [])]


def _quoted(word: str) -> str:
    """Quote a word as git does: its replay passes over the options and paths of a line with bare ones."""
    return "'" + word.replace("'", "'\\''") + "'"


def steps(material: Material) -> list[dict[str, str]]:
    """Return what git would replay: verdict and full id of each commit, in order."""
    return [
        {"verdict": entry.word, "commit": material.graph.shas[entry.commit]}
        for entry in _entries(material)
        if isinstance(entry, _Step)
    ]


def _entries(material: Material) -> Iterator[_Step | str]:
    """Yield the steps, and the comments around them, in the order of the log."""
    graph, words = material.graph, _words(material)
    replay = _Replay(material)
    yield _Step(words["bad"], graph.bad)
    yield _Step(words["good"], graph.good)
    for commit, said in sorted(material.state.marks.items()):
        if commit not in replay.judged:
            yield f"marked by hand: [{short_name(graph.shas[commit])}] is {words[said]}"
            yield from replay.judge(commit, "by its mark")
    for number, trial in enumerate(material.trials, start=1):
        commit = trial.booted.commit
        yield f"trial {number}: [{short_name(graph.shas[commit])}] {trial.reason or 'no reason kept'}"
        if trial.values:
            yield f"  {material.goal.metric.name}: {values(trial)} {material.goal.metric.unit}"
        yield f"  {verdict(material, trial)}"
        if commit in replay.judged or commit in material.state.untestable:
            continue
        if not graph.candidate[commit] and commit not in graph.merge_bases:
            yield "  below the range, for the offset of a branch; not part of the replay"
            continue
        yield from replay.judge(commit, "by its level")
    for commit, why in sorted(material.state.untestable.items()):
        if commit not in replay.judged:
            yield why.splitlines()[0]
            yield _Step("skip", commit)
    yield from _findings(material)


class _Replay:
    """The steps that git replays so far. No step follows that it would refuse or misunderstand."""

    def __init__(self, material: Material) -> None:
        graph = material.graph
        self._material, self._words, self._proven = material, _words(material), _replayed(material)
        self._after = (
            descendants(graph, self._proven.commits[-1]) if self._proven is not None else frozenset()
        )
        self.judged = {graph.good: "good", graph.bad: "bad"}
        # Git keeps the last bad commit that it is given: no newer one may follow.
        self._oldest_bad = graph.bad
        self._since_bad = frozenset({graph.bad})

    def judge(self, commit: int, by: str) -> Iterator[_Step | str]:
        """Yield a commit's step, or why it has none; nothing where it is on no side. by: why, in words."""
        material, proven, judged = self._material, self._proven, self.judged
        side = _side(material, commit) if proven is None else _side_beside(material, proven, commit)
        if side is None:
            return
        word = self._words[side]
        since = descendants(material.graph, commit) if side == "bad" else frozenset()
        if proven is not None:
            fits = (commit in self._after) is (side == "bad")
        else:  # nothing good may contain anything bad
            goods = (other for other, known in judged.items() if known == "good")
            fits = since.isdisjoint(goods) if side == "bad" else commit not in self._since_bad
        if not fits:
            beside = "the proof" if proven is not None else "what stands above"
            yield f"  '{word}' {by}, which does not go with {beside}; not part of the replay"
            return
        judged[commit] = side
        if side == "bad":
            if self._oldest_bad not in since:
                yield f"  '{word}', as an older one above is; not part of the replay"
                return
            self._oldest_bad, self._since_bad = commit, since
        yield _Step(word, commit)


def _replayed(material: Material) -> Finding | None:
    """Return the proven change at which the replay ends; None where nothing is proven."""
    conclusion = material.conclusion
    proven = [f for f in conclusion.large if f.certified] if conclusion is not None else []
    return max(proven, key=lambda f: (not f.opposite, abs(f.effect.estimate)), default=None)


def _side_beside(material: Material, proven: Finding, commit: int) -> str | None:
    """Return the side of a commit by the proof, if that is about it, else by its level."""
    if commit in proven.commits:  # of a set only the newest was proven; the others cannot be told apart
        return "bad" if commit == proven.commits[-1] else None
    return "good" if commit in proven.parents else _side(material, commit)


def _findings(material: Material) -> Iterator[str]:
    """Yield a comment for each commit of the conclusion."""
    first = f"first {_words(material)['bad']} {material.goal.unit}"
    for finding in material.conclusion.findings if material.conclusion is not None else ():
        kind = first if len(finding.commits) == 1 and finding.certified else f"possible {first}"
        if finding.small:
            kind = "smaller than the threshold"
        elif finding.opposite:
            kind = f"changes it the other way, a {material.goal.terms.other_change}"
        for commit in finding.commits:
            effect = phrases.effect(finding.effect, material.goal.metric)
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
    if material.ends_alike:
        return None
    found = levels(material, (material.graph.good, material.graph.bad, commit))
    if found is None or found[0] == found[1]:
        return None
    good, bad, here = found
    return "bad" if (here - fmean((good, bad))) * (bad - good) > 0 else "good"
