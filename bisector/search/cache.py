"""Results that a planner keeps between decisions. Each belongs to a part of the state, so nothing depends on
how the state was reached: a resumed search decides exactly as one that was never stopped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from bisector.model.dag import History
from bisector.model.records import CommitGraph
from bisector.model.state import State, Visit
from bisector.search import posterior
from bisector.search.context import View
from bisector.search.design_matrix import Problem, problem
from bisector.search.noise_screening import screen
from bisector.search.posterior import Belief, Noise
from bisector.stats.variance_components import VarianceComponents

GROWTH = 1.3
"""Noise hypotheses are screened anew each time the visits have grown by this factor."""
KEEP, BELIEFS = 256, 8
"""Results kept, the ones used last. Few beliefs, for each holds large matrices: needed at the same time are
the current one and one for each suspect that has a certificate."""

T = TypeVar("T")
Proven = tuple[tuple[int, ...], ...]


class Memory:
    """Beliefs about parts of one graph's visits."""

    def __init__(self, graph: CommitGraph, library: VarianceComponents | None) -> None:
        self.graph = graph
        self.history = History(graph)
        self.library = library
        self._known: OrderedDict[object, Any] = OrderedDict()
        self._beliefs: OrderedDict[object, Any] = OrderedDict()

    def view(self, state: State) -> View:
        """Return the state ready to decide from."""
        return View(state, self.history, self.library)

    def part(self, view: View, visits: tuple[Visit, ...]) -> View:
        """Return the same state with only some of its visits, in their order."""
        s = view.state
        if len(visits) == len(s.visits):
            return view
        return self.view(
            State(
                s.graph,
                s.goal,
                records=s.records,
                visits=visits,
                binaries=s.binaries,
                untestable=s.untestable,
                marks=s.marks,
                costs=s.costs,
                no_layouts=s.no_layouts,
            )
        )

    def remember(self, key: object, work: Callable[[], T]) -> T:
        """Return the result of work for this key, done once. key: says everything that work looks at."""
        return _remembered(self._known, KEEP, key, work)

    def belief(self, view: View, proven: Proven, effect: float) -> Belief:
        """Return the posterior given all visits of the view. effect: scale of effects in worse units."""
        key = (view.key, proven, effect)
        return _remembered(self._beliefs, BELIEFS, key, lambda: self._belief(view, proven, effect))

    def _belief(self, view: View, proven: Proven, effect: float) -> Belief:
        noises = self._screened(view, proven, effect)
        blocks = _blocks(view) if any(n.drift for n in noises) else 1
        return posterior.believe(_problem(view, proven, effect, blocks), noises)

    def _screened(self, view: View, proven: Proven, effect: float) -> tuple[Noise, ...]:
        """Return the noise hypotheses worth carrying, screened on the visits up to the last checkpoint."""
        visits = [v for v in view.state.visits if v.samples]
        checkpoint = 2
        while (following := max(checkpoint + 1, int(checkpoint * GROWTH))) <= len(visits):
            checkpoint = following
        # Without what was built since, which says nothing about noise: else every build would screen anew.
        whole = view.state
        part = self.view(
            State(
                whole.graph,
                whole.goal,
                visits=tuple(visits[:checkpoint]),
                marks=whole.marks,
                costs=whole.costs,
            )
        )
        return self.remember(
            ("noises", part.key, proven, effect),
            # Instructions of one binary are the same number at any time of the day.
            lambda: screen(_problem(part, proven, effect, _blocks(part)), drifts=not view.exact),
        )


def _remembered(known: OrderedDict[object, Any], most: int, key: object, work: Callable[[], T]) -> T:
    if key not in known:
        known[key] = work()
        if len(known) > most:
            known.popitem(last=False)
    known.move_to_end(key)
    result: T = known[key]
    return result


def _blocks(view: View) -> int:
    """Return into how many stretches of time cells are cut where drift is considered."""
    return max(1, min(16, len(view.state.visits) // 3))


def _problem(view: View, proven: Proven, effect: float, blocks: int) -> Problem:
    assert view.readings is not None
    counts = posterior.SCAN if view.goal.scan else posterior.FIRST
    if proven:
        counts = posterior.MORE
    return problem(
        view.history,
        view.readings,
        same=view.same,
        marks=view.state.marks,
        proven=proven,
        effect=effect,
        blocks=blocks,
        counts=counts,
    )
