"""A horizontal axis of commits in the order of history, what was found marked by bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bisector.model.commit_graph import short_name
from bisector.report.bisect_log import descendants
from bisector.report.html import svg
from bisector.report.html.escaping import element
from bisector.report.report_model import Material

AXIS_HEIGHT = 92
"""Room for the slanted names below."""


@dataclass(frozen=True)
class CommitAxis:
    """Where commits are drawn: `commits` side by side, the same distance between any two."""

    material: Material
    commits: tuple[int, ...]
    left: float = svg.LEFT

    @property
    def step(self) -> float:
        """The distance of two commits."""
        return (svg.DRAWING_WIDTH - svg.RIGHT - self.left) / max(len(self.commits), 1)

    def __call__(self, commit: int) -> float:
        """Return the middle of a commit's place."""
        return self.left + (self.commits.index(commit) + 0.5) * self.step

    def names(self, y: float) -> list[Markup]:
        """Return the names below the axis; ends and what was found are always named."""
        found = marks(self.material)
        named = [(self(one), *name(self.material, one, found.get(one))) for one in self.commits]
        return svg.slanted(named, y)

    def bands(self, top: float, bottom: float) -> list[Markup]:
        """Return a band behind each commit that was found, with what it is above."""
        out = []
        for commit, mark in sorted(marks(self.material).items()):
            if commit not in self.commits:
                continue
            x, width = self(commit), min(self.step, 26.0)
            out.append(
                element("rect", x=x - width / 2, y=top, width=width, height=bottom - top, class_=mark.band)
            )
            anchor = "end" if x > svg.DRAWING_WIDTH - 160 else "start" if x < self.left + 60 else "middle"
            out.append(svg.label(x, top - 6, mark.word, mark.text, anchor))
        return out


@dataclass(frozen=True, slots=True)
class CommitMark:
    """How drawings mark a commit that was found. word: what it is; band, text: the classes of both."""

    word: str
    band: str
    text: str


def axis(material: Material, commits: Sequence[int]) -> CommitAxis:
    """Return the axis of these commits, in the order of history."""
    return CommitAxis(material, tuple(sorted(set(commits))))


def marks(material: Material) -> dict[int, CommitMark]:
    """Return the marks of the single commits that were found, also of those that change it the other way."""
    known, terms = material.known, material.goal.terms
    culprit, other = (
        CommitMark(terms.one, "band", "culprit"),
        CommitMark(terms.other_change, "band other", "old"),
    )
    found = [one for one in known.large if len(one.commits) == 1] if known else []
    return {one.commits[0]: other if one.opposite else culprit for one in found}


def name(material: Material, commit: int, mark: CommitMark | None) -> tuple[str, str]:
    """Return what is written below a commit, and its class: '' for one that is neither an end nor found.

    mark: its own of `marks`, None for one that was not found.
    """
    graph, terms = material.graph, material.goal.terms
    ends = {graph.good: terms.old, graph.bad: terms.new}
    sha = short_name(graph.shas[commit], 10)
    words = f"{ends[commit]} {sha}" if commit in ends else sha
    return words, mark.text if mark is not None else "end" if commit in ends else ""


def sides(material: Material) -> dict[int, str]:
    """Return for each commit 'old', or 'new' if it contains a culprit; of the ends alone without one."""
    found, graph = material.single_culprits, material.graph
    if not found:
        return {graph.good: "old", graph.bad: "new"}
    newer = frozenset[int]().union(*(descendants(graph, one.commits[0]) for one in found))
    return {commit: "new" if commit in newer else "old" for commit in range(len(graph.shas))}
