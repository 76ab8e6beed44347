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

FOOT = 92
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
        return (svg.WIDTH - svg.RIGHT - self.left) / max(len(self.commits), 1)

    def __call__(self, commit: int) -> float:
        """Return the middle of a commit's place."""
        return self.left + (self.commits.index(commit) + 0.5) * self.step

    def names(self, y: float) -> list[Markup]:
        """Return the names below the axis; ends and what was found are always named."""
        graph, terms = self.material.graph, self.material.goal.terms
        ends = {graph.good: terms.old, graph.bad: terms.new}
        found = marks(self.material)
        shown = []
        for commit in self.commits:
            sha = short_name(graph.shas[commit], 10)
            words = f"{ends[commit]} {sha}" if commit in ends else sha
            kind = found[commit].text if commit in found else "end" if commit in ends else ""
            shown.append((self(commit), words, kind))
        return svg.slanted(shown, y)

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
            anchor = "end" if x > svg.WIDTH - 160 else "start" if x < self.left + 60 else "middle"
            out.append(svg.label(x, top - 6, mark.word, mark.text, anchor))
        return out


@dataclass(frozen=True, slots=True)
class Mark:
    """How drawings mark a commit that was found. word: what it is; band, text: the classes of both."""

    word: str
    band: str
    text: str


def axis(material: Material, commits: Sequence[int]) -> CommitAxis:
    """Return the axis of these commits, in the order of history."""
    return CommitAxis(material, tuple(sorted(set(commits))))


def marks(material: Material) -> dict[int, Mark]:
    """Return the marks of the single commits that were found, also of those that change it the other way."""
    known, terms = material.conclusion or material.so_far, material.goal.terms
    culprit, other = Mark(terms.one, "band", "culprit"), Mark(terms.other_change, "band other", "old")
    found = [one for one in known.large if len(one.commits) == 1] if known else []
    return {one.commits[0]: other if one.opposite else culprit for one in found}


def culprits(material: Material) -> frozenset[int]:
    """Return the single commits that were found, so far where there is no conclusion."""
    known = material.conclusion or material.so_far
    return frozenset(f.commits[0] for f in known.culprits if len(f.commits) == 1) if known else frozenset()


def sides(material: Material) -> dict[int, str]:
    """Return for each commit 'old', or 'new' if it contains a culprit; of the ends alone without one."""
    found, graph = culprits(material), material.graph
    if not found:
        return {graph.good: "old", graph.bad: "new"}
    newer = frozenset[int]().union(*(descendants(graph, one) for one in found))
    return {commit: "new" if commit in newer else "old" for commit in range(len(graph.shas))}
