"""The planner of a night: several boots of the tip, and one of the reference in the middle of them.

A night measures and judges nothing: what its numbers mean is seen beside those of other nights
(`stats.change_points`). A tip that does not build or boot ends it, and no commit is blamed.
"""

from __future__ import annotations

from collections.abc import Sequence

from bisector.model.decisions import Conclusion, Decision, Ending, Measure
from bisector.model.format import count
from bisector.model.state import State, Visit
from bisector.search.interleaving import FIRST_BOOT_RUNS
from bisector.search.seeds.copied_boots import without_copies

RUNS_PER_BOOT = FIRST_BOOT_RUNS
"""The boot, not the run, is what scatters from night to night; tests/bench/series was measured with three."""
_MOST_BOOTS_FACTOR = 3
"""Boots of a night at most, as a multiple of those that are wanted: runs that are flagged do not count."""


class NightPlanner:
    """Decides what a night boots next. In its graph the reference is good and the tip is bad."""

    def __init__(self, boots: int) -> None:
        """boots: of the tip that are wanted."""
        self._boots = boots

    def next(self, state: State) -> Decision:
        """Return the next trial, or the conclusion."""
        tip, reference = state.graph.bad, state.graph.good
        order = [tip] * ((self._boots + 1) // 2) + [reference] + [tip] * (self._boots // 2)
        if reference in state.untestable:
            order.remove(reference)
        live = _live_visit(state)
        done = 0 if live is None else sum(not run.warmup for run in live.runs)
        if live is not None and live.commit not in state.untestable and done < RUNS_PER_BOOT:
            runs = RUNS_PER_BOOT - done
            name = "the tip" if live.commit == tip else "the reference"
            return Measure(live.commit, runs, "verify", f"{count(runs, 'more run')} of {name}", live.boot)
        wanted = _without_done(order, state)
        seconds = state.goal.budget.seconds
        spent = seconds is not None and state.costs.total >= seconds
        too_many = len(state.boots) >= _MOST_BOOTS_FACTOR * len(order)
        if tip in state.untestable or not wanted or spent or too_many:
            return _conclude(state, wanted, spent)
        commit, name = wanted[0], "the tip" if wanted[0] == tip else "the reference"
        number = 1 + order.count(commit) - wanted.count(commit)
        why = f"boot {number} of {name}"
        return Measure(commit, RUNS_PER_BOOT, "verify", why, fresh_seed=without_copies(state)[1])

    def so_far(self, state: State) -> Conclusion:
        """Return the conclusion; before there is one, that there is none."""
        decision = self.next(state)
        if isinstance(decision, Conclusion):
            return decision
        return Conclusion(Ending.INCONCLUSIVE, "The night has not ended.")


def _live_visit(state: State) -> Visit | None:
    """Return the boot that goes on on the asking testbed."""
    busy = {trial.boot for trial in state.pending}
    here = [v for v in state.visits if v.live and v.boot not in busy and state.idle in (None, v.testbed)]
    return here[-1] if here else None


def _without_done(order: Sequence[int], state: State) -> list[int]:
    """Return the boots that are left to do: without those that measured something, or are under way."""
    left = list(order)
    under_way = [trial.commit for trial in state.pending if trial.boot is None]
    for commit in [*(v.commit for v in state.visits if v.samples), *under_way]:
        if commit in left:
            left.remove(commit)
    return left


def _conclude(state: State, wanted: Sequence[int], spent: bool) -> Conclusion:
    tip, reference = state.graph.bad, state.graph.good
    boots = {
        commit: sum(v.commit == commit and bool(v.samples) for v in state.visits)
        for commit in (tip, reference)
    }
    why = state.untestable.get(tip, "no run of it counted")
    if not boots[tip]:
        return Conclusion(
            Ending.INCONCLUSIVE,
            "The budget of the night is spent." if spent else f"The tip was not measured: {why}.",
        )
    warnings = []
    if tip in state.untestable:
        warnings.append(f"The tip was not measured further: {why}.")
    elif wanted:
        warnings.append(f"The night ended before {count(len(wanted), 'boot')} of it.")
    if not boots[reference]:
        why = state.untestable.get(reference, "no run of it counted")
        warnings.append(f"The reference was not measured: {why}.")
    return Conclusion(
        Ending.MEASURED,
        f"The tip was measured in {count(boots[tip], 'boot')}, the reference in {boots[reference]}.",
        warnings=tuple(warnings),
    )
