"""Results that a planner keeps between decisions. Each belongs to a part of the state, so nothing depends on
how the state was reached: a resumed search decides exactly as one that was never stopped."""

from __future__ import annotations

from bisector.core import posterior
from bisector.core.history import History
from bisector.core.model import CommitGraph
from bisector.core.noise import Library
from bisector.core.posterior import Belief, Noise
from bisector.core.state import State, Visit
from bisector.core.view import View

GROWTH = 1.3
"""Noise hypotheses are screened anew each time the visits have grown by this factor."""
KEEP = 128

Proven = tuple[tuple[int, ...], ...]


class Memory:
    """Beliefs about parts of one graph's visits."""

    def __init__(self, graph: CommitGraph, library: Library | None) -> None:
        self.graph = graph
        self.history = History(graph)
        self.library = library
        self._noises: dict[object, tuple[Noise, ...]] = {}
        self._beliefs: dict[object, Belief] = {}

    def view(self, state: State) -> View:
        """Return the state ready to decide from."""
        return View(state, self.history, self.library)

    def part(self, view: View, visits: tuple[Visit, ...]) -> View:
        """Return the same state with only some of its visits."""
        s = view.state
        return self.view(
            State(
                s.graph,
                s.goal,
                visits=visits,
                binaries=s.binaries,
                untestable=s.untestable,
                marks=s.marks,
                costs=s.costs,
            )
        )

    def belief(self, view: View, proven: Proven, effect: float) -> Belief:
        """Return the posterior given all visits of the view. effect: scale of effects in worse units."""
        key = (_key(view.state.visits), proven, effect, len(view.same), len(view.state.marks))
        known = self._beliefs.get(key)
        if known is None:
            noises = self._screened(view, proven, effect)
            blocks = _blocks(view) if any(n.drift for n in noises) else 1
            known = posterior.believe(_problem(view, proven, effect, blocks), noises)
            if len(self._beliefs) > KEEP:
                self._beliefs.clear()
            self._beliefs[key] = known
        return known

    def _screened(self, view: View, proven: Proven, effect: float) -> tuple[Noise, ...]:
        """Return the noise hypotheses worth carrying, screened on the visits up to the last checkpoint."""
        visits = [v for v in view.state.visits if v.samples]
        checkpoint = 2
        while (following := max(checkpoint + 1, int(checkpoint * GROWTH))) <= len(visits):
            checkpoint = following
        first = tuple(visits[:checkpoint])
        key = (_key(first), proven, effect, len(view.same), len(view.state.marks))
        known = self._noises.get(key)
        if known is None:
            part = self.part(view, first)
            known = posterior.screen(
                _problem(part, proven, effect, _blocks(part)), len({v.testbed for v in first})
            )
            if len(self._noises) > KEEP:
                self._noises.clear()
            self._noises[key] = known
        return known


def _key(visits: tuple[Visit, ...]) -> tuple[tuple[str, int], ...]:
    return tuple((v.boot, len(v.samples)) for v in visits if v.samples)


def _blocks(view: View) -> int:
    """Return into how many stretches of time cells are cut where drift is considered."""
    return max(1, min(16, len(view.state.visits) // 3))


def _problem(view: View, proven: Proven, effect: float, blocks: int) -> posterior.Problem:
    assert view.readings is not None
    return posterior.problem(
        view.history,
        view.readings,
        same=view.same,
        marks=view.state.marks,
        proven=proven,
        effect=effect,
        blocks=blocks,
        counts=posterior.MORE if proven else posterior.FIRST,
    )
