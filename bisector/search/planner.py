"""State -> the next action with its reason, or the conclusion. Pure: the same state, the same answer.

The order of a search: verify that the ends differ; look for the culprit where a trial brings most information
per second; prove it against its parents with fresh boots; then see whether something is left to explain, and
search that. Every step looks only at the state; what is remembered between calls are results for parts of it.
"""

from __future__ import annotations

from bisector.model.records import Conclusion, Decision, Measure, Purpose
from bisector.model.state import State
from bisector.search import candidates, conclusion, confirmation, endpoints, interleaving
from bisector.search.cache import Memory, Proven
from bisector.search.candidates import Suspect
from bisector.search.confirmation import Proof
from bisector.search.context import View
from bisector.search.level_profile import reaching
from bisector.search.posterior import Belief
from bisector.search.sequential_test import Evidence
from bisector.stats.variance_components import VarianceComponents

GOOD_ENOUGH = 0.75
"""A class this probable goes to the certificate: its boots are needed anyway and tell more than a search."""
LOST = 0.4
"""A suspect less probable than this during its certificate is searched for again."""
MORE, HIDDEN = 0.3, 0.075
"""The rest is searched while another culprit in it is at least MORE likely, or its expected part of the
largest one found at least HIDDEN. By the former alone both of two culprits of twice the threshold were found
8 of 12 times; 0.15 in its place costs 2.5 times as much where the threshold is a tenth of the effect."""
WORTH = 0.005
"""The same part for each time that locating it costs what everything so far has cost. A tenth of the effect
hides in any noise: without this a threshold of that size costs 70% more, with it nothing, and of two culprits
of one sign both are found 28 of 30 times where it was 29 (0.01: 27)."""
SPREAD = 0.2
"""The share of alpha that may be spent on calling a loss spread, for it is looked at after every trial."""


class Planner:
    """Decides; never acts. library: noise known from an A/A measurement on this testbed and workload."""

    def __init__(self, library: VarianceComponents | None = None) -> None:
        self.library = library
        self._memory: Memory | None = None

    def next(self, state: State) -> Decision:
        """Return the next action with its reason, or the conclusion."""
        turn = self._turn(state)
        decision = turn.decide()
        if isinstance(decision, Measure):
            spent = conclusion.over_budget(turn.view, decision)
            if spent:
                return turn.give_up(spent)
        return decision

    def so_far(self, state: State) -> Conclusion:
        """Return the conclusion, or before there is one the best statement that can be made now."""
        turn = self._turn(state)
        decision = turn.decide()
        return decision if isinstance(decision, Conclusion) else turn.give_up("The search has not ended.")

    def _turn(self, state: State) -> _Turn:
        if self._memory is None or self._memory.graph is not state.graph:
            self._memory = Memory(state.graph, self.library)
        return _Turn(self._memory, self._memory.view(state))


class _Turn:
    """One decision."""

    def __init__(self, memory: Memory, view: View) -> None:
        self.memory = memory
        self.view = view
        self.ends: Evidence | None = None
        self.proofs: list[Proof] = []
        self.belief: Belief | None = None
        self.found: Suspect | None = None

    def decide(self) -> Decision:
        view = self.view
        refused = conclusion.impossible(view)
        if refused is not None:
            return refused
        self.ends = endpoints.ends(view, self.memory)
        answer = endpoints.decided(view, self.ends)
        if answer == "no" and not view.goal.scan:
            assert self.ends is not None
            return conclusion.not_reproduced(view, self.ends)
        if not answer:
            if self.ends is not None and self._stuck("verify"):
                return self.give_up("The ends cannot be told apart with any reasonable number of boots.")
            return endpoints.verify(view, self.ends)
        base = self._merge_base()
        return base if base is not None else self._search()

    # --- merge bases ---

    def _merge_base(self) -> Decision | None:
        """Test the merge bases where good is no ancestor of bad, as git bisect does."""
        view, ends = self.view, self.ends
        assert ends is not None
        for base in view.graph.merge_bases:
            if base == view.graph.good or not view.testable(base):
                continue
            boots = view.boots((base,), "verify")
            if len(boots) < interleaving.fewest_boots(view, "verify"):
                runs = max(2, interleaving.PILOT)
                return Measure(base, runs, "verify", "test the merge base: it may itself be bad")
            if conclusion.base_is_bad(view, base, ends):
                return conclusion.fixed(view, base, ends)
        return None

    # --- search ---

    def _search(self) -> Decision:
        view = self.view
        assert self.ends is not None
        total = self.ends.estimate
        for _ in range(len(view.state.visits) + 1):
            proven: Proven = tuple(p.commits for p in self.proofs)
            rest = total - sum(p.evidence.estimate for p in self.proofs)
            effect = max(abs(rest), view.threshold)
            new = self._new_proof(proven, effect)
            if new is None:
                return self._step(proven, effect)
            self.proofs.append(new)
        raise AssertionError("more proofs than visits")

    def _new_proof(self, proven: Proven, effect: float) -> Proof | None:
        """Return the first suspect, not settled yet, that its fresh boots settle."""
        view = self.view
        known = {c for p in self.proofs for c in p.commits}
        for after in confirmation.suspects(view):
            if after in known or not view.history.candidate[after]:
                continue
            commits = self._set_of(after)
            if known.intersection(commits):
                continue
            evidence = self._evidence(commits, after, proven, effect)
            new = confirmation.weigh(view, commits, after, evidence)
            if new is not None:
                return new
        return None

    def _set_of(self, after: int) -> tuple[int, ...]:
        """Return the commit with the untestable ones below it that no test can tell from it."""
        view = self.view
        found, todo = {after}, list(view.graph.parents[after])
        while todo:
            commit = todo.pop()
            if commit in found or view.testable(commit) or not view.history.candidate[commit]:
                continue
            found.add(commit)
            todo.extend(view.graph.parents[commit])
        return tuple(sorted(found))

    def _evidence(
        self, commits: tuple[int, ...], after: int, proven: Proven, effect: float
    ) -> list[Evidence]:
        """Return the comparisons with every parent, none while one of them cannot be made."""
        view = self.view
        parents = confirmation.parents_of(view, commits, after)
        if not parents or not confirmation.enough(view, (after, *parents)):
            return []
        made = (confirmation.certificate(view, self.memory, p, after, proven, effect) for p in parents)
        result = [e for e in made if e is not None]
        return result if len(result) == len(parents) else []

    def _step(self, proven: Proven, effect: float) -> Decision:
        """Search on, prove a suspect, or end."""
        view = self.view
        belief = self.belief = self.memory.belief(view, proven, effect)
        culprit = any(not p.small for p in self.proofs)
        if culprit and self._explained(1 - belief.none, effect):
            return conclusion.culprits(view, belief, self.proofs, self._total())
        if belief.none >= 1 - view.alpha and not culprit:
            if view.goal.scan and belief.nothing_hidden() < 1 - view.alpha:
                runs = min(4, interleaving.runs_needed(view, view.threshold), view.goal.max_runs_per_boot)
                look = candidates.explore(belief, view, runs)
                if look is not None:
                    return look
            if self._total().estimate < view.threshold:
                return conclusion.not_reproduced(view, self._total())
            return conclusion.spread(view, belief, self.proofs, self._total())
        # Ends that hardly differ, searched on request, have no loss that could be spread.
        loss = not culprit and self._total().estimate >= view.threshold
        if loss and belief.marginal.max() < LOST and reaching(view, belief) < SPREAD * view.alpha:
            return conclusion.spread(view, belief, self.proofs, self._total())
        if not belief.problem.prior.any():
            return self.give_up("The marks and measurements leave no candidate.")
        found = self.found = candidates.suspect(belief, view)
        if found.atomic and found.after is not None:
            begun = bool(view.boots((found.after,), "certify"))
            if found.probability >= (LOST if begun else GOOD_ENOUGH):
                return self._certify(found, belief)
        purpose: Purpose = "attribute" if proven else "search"
        trial = candidates.next_trial(belief, view, proven, found, purpose)
        worth = not culprit or trial is None or self._worth(1 - belief.none, effect, trial[0].left)
        if trial is None or trial[1].bits < candidates.LEAST_BITS or not worth or self._stuck(purpose):
            if culprit:
                return conclusion.culprits(view, belief, self.proofs, self._total())
            return self.give_up("No trial brings information that is worth its cost.")
        return trial[0]

    def _explained(self, more: float, effect: float) -> bool:
        """Return whether the rest may stay unexplained. more: chance of another culprit of that effect."""
        return more < MORE and self._hidden(more, effect) < HIDDEN

    def _worth(self, more: float, effect: float, left: float | None) -> bool:
        """Return whether another culprit of that effect is worth the seconds that locating it takes."""
        return left is None or self._hidden(more, effect) * self.view.state.costs.total >= WORTH * left

    def _hidden(self, more: float, effect: float) -> float:
        """Return the part of the largest culprit that another one can be expected to hold, 0 to 1."""
        largest = max(abs(p.evidence.estimate) for p in self.proofs if not p.small)
        return more * min(1.0, effect / max(largest, 1e-12))

    def _certify(self, found: Suspect, belief: Belief) -> Decision:
        view = self.view
        assert found.after is not None
        parents = confirmation.parents_of(view, found.commits, found.after)
        if not parents:
            return self.give_up("The suspect has no parent that can be tested.")
        if self._stuck("certify"):
            return self.give_up("The suspect cannot be proven with any reasonable number of boots.")
        boots = [(n.boot, float(w)) for n, w in zip(belief.fits.noises, belief.weights, strict=True)]
        target = interleaving.runs_wanted(view, boots)
        target = min(target, interleaving.runs_needed(view, abs(belief.effect(found.index)[0])))
        one = len(parents) == 1
        names = {p: "its parent" if one else f"its parent {k}" for k, p in enumerate(parents, start=1)}
        names[found.after] = "the suspect"
        side = "its parent" if one else f"its {len(parents)} parents"
        why = f"prove the suspect ({found.probability:.0%}) against {side} with fresh boots"
        layouts = confirmation.layouts_wanted(belief)
        return interleaving.interleave(view, (found.after, *parents), "certify", target, layouts, why, names)

    def _stuck(self, purpose: str) -> bool:
        boots = sum(v.purpose == purpose for v in self.view.state.visits)
        return boots > interleaving.MOST_BOOTS

    def _total(self) -> Evidence:
        assert self.ends is not None
        return self.ends

    def give_up(self, why: str) -> Conclusion:
        """Return the best statement that can be made now."""
        return conclusion.unfinished(self.view, self.belief, self.found, self.proofs, self.ends, why)
