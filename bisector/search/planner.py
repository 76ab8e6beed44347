"""Decide the next trial, or the conclusion, from a state. The same state always gives the same decision.

A search has four stages. It verifies that the ends differ. It looks for the culprit with the trials that
bring the most information per second. It certifies the suspect against its parents with fresh boots. If part
of the loss is then unexplained, it searches that part. Results kept between decisions are a cache: each
depends only on a part of the state.
"""

from __future__ import annotations

from dataclasses import replace

from bisector.model.decisions import Answer, Conclusion, Decision, Measure, Purpose
from bisector.model.state import State
from bisector.search import candidates, conclusion, endpoints
from bisector.search.acquisition import RatedTrial
from bisector.search.attribution import Rest
from bisector.search.cache import PlannerCache, Proven
from bisector.search.candidates import Suspect
from bisector.search.certainty.fresh_boots import next_fresh_boot
from bisector.search.certainty.proven_sets import prove_suspect, suspects_to_judge
from bisector.search.certainty.suspect_probability import stated_suspects
from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext
from bisector.search.levels import merge_base, step_division
from bisector.search.levels.level_profile import expected_steps_reaching_threshold
from bisector.search.limits import effort
from bisector.search.posterior import Posterior
from bisector.search.separation.inseparable import comparison_parents, inseparable_commits
from bisector.search.sequential_test import Evidence
from bisector.search.testbeds.ends_by_testbed import TestbedChoice, choose_testbeds
from bisector.stats.linear.one_thread import on_one_thread
from bisector.stats.variance_components import VarianceComponents

MIN_CERTIFY_PROBABILITY = 0.75
"""A suspect so probable is certified: its fresh boots are needed anyway and tell more than a search."""
MIN_SUSPECT_PROBABILITY = 0.4
"""A suspect whose certificate has begun is certified down to this probability, then the search goes on."""
SPREAD_ALPHA_SHARE = 0.2
"""Share of alpha for the conclusion that a loss is spread. It is small because every trial tests it anew."""


class Planner:
    """Decides and never acts. calibrated_noise: from an A/A measurement of this testbed and workload."""

    def __init__(self, calibrated_noise: VarianceComponents | None = None) -> None:
        self.calibrated_noise = calibrated_noise
        self._cache: PlannerCache | None = None

    @on_one_thread
    def next(self, state: State) -> Answer:
        """Return the next trial with its reason, the conclusion, or that the testbed is not needed."""
        decider = self._decider(state)
        decision = decider.decide()
        if isinstance(decision, Measure):
            shortfall = effort.budget_shortfall(decider.context, decision)
            if shortfall:
                anew = "With a larger limit 'perfbisect start' begins anew, with the kernels that are there."
                return decider.conclude(f"{shortfall} {anew}")
            return replace(decider.context.seeded(decision), suspects=decider.suspects())
        return decision

    @on_one_thread
    def so_far(self, state: State) -> Conclusion:
        """Return the conclusion; before there is one, the best statement that the data allow."""
        decider = self._decider(state)
        decision = decider.decide()
        return decision if isinstance(decision, Conclusion) else decider.conclude_so_far()

    def _decider(self, state: State) -> _Decider:
        if self._cache is None or self._cache.graph is not state.graph:
            self._cache = PlannerCache(state.graph, self.calibrated_noise)
        return _Decider(self._cache, self._cache.context(effort.without_silent_commits(state)))


class _Decider:
    """One decision. ends, choice, proofs, posterior, found: what it has worked out so far; settled: those of
    which fresh boots prove nothing more; refused: the conclusion where an end cannot be tested.
    """

    def __init__(self, cache: PlannerCache, context: SearchContext) -> None:
        self.cache = cache
        self.context = context
        self.ends: Evidence | None = None
        self.choice = TestbedChoice(None)
        self.proofs: list[Proof] = []
        self.settled: set[int] = set()
        self.posterior: Posterior | None = None
        self.found: Suspect | None = None
        self.refused = conclusion.conclude_untestable(context)

    def decide(self) -> Answer:
        decision = self._decide()
        if self.refused is not None and isinstance(decision, Measure):
            decision = self._conclude_now(self.refused.summary)
        return self.choice.add_to(decision) if isinstance(decision, Conclusion) else decision

    def conclude(self, why: str) -> Conclusion:
        """Return the conclusion of a search that must stop here. why: the reason, in words."""
        return self.choice.add_to(self._conclude_now(why))

    def conclude_so_far(self) -> Conclusion:
        """Return the best statement that the data allow while the search goes on."""
        return self.choice.add_to(self._conclude_unfinished("The search has not ended."))

    def _decide(self) -> Answer:
        context = self.context
        self.ends = endpoints.compare_ends(context, self.cache)
        if self.refused is not None and self.ends is None:
            return self.refused
        verdict = endpoints.ends_differ(context, self.ends)
        self.choice = choose_testbeds(context, self.cache, verdict)
        differ = self.choice.differ
        if differ is False and not context.goal.scan:
            assert self.ends is not None
            return conclusion.conclude_not_reproduced(context, self.ends)
        if self.choice.used:
            released = self.choice.release(context.state.idle)
            if released is not None:
                return released
            context = self.context = self.cache.only_on(context, self.choice.used)
            self.ends = endpoints.compare_ends(context, self.cache)
        if differ is None:
            why = endpoints.why_undecided(context, self.ends) or effort.why_exhausted(context, "verify")
            if why:
                return self._conclude_now(f"The ends are not told apart. {why}")
            return endpoints.next_trial(context, self.ends)
        base = self._merge_base()
        return base if base is not None else self._search()

    def suspects(self) -> tuple[tuple[int, float], ...]:
        """Return the most probable commits with their probabilities; empty where no posterior was needed."""
        p = self.posterior
        return () if p is None else stated_suspects(self.context, self.cache, p, *self._explained())

    def _merge_base(self) -> Decision | None:
        """Test the merge bases where good is no ancestor of bad, as git bisect does."""
        context, ends = self.context, self.ends
        assert ends is not None
        for base in context.graph.merge_bases:
            if base == context.graph.good or not context.testable(base):
                continue
            like = merge_base.end_like_base(context, self.cache, base, ends)
            if like is None:
                if exhausted := effort.why_exhausted(context, "verify"):
                    return self._conclude_now(f"The merge base is not told from the ends. {exhausted}")
                return merge_base.next_trial(context, base, ends)
            if like == "bad":
                again = endpoints.boots_before_claim(context, (base,))
                return again or conclusion.conclude_fixed_on_good_side(context, base, ends)
        return None

    def _search(self) -> Decision:
        for _ in range(len(self.context.state.visits) + 1):
            proven, effect = self._explained()
            new = self._new_proof(effect)
            if new is None:
                return self._step(proven, effect)
            self.proofs.append(new)
            self.settled.update(new.commits)
        raise AssertionError("more proofs than visits")

    def _explained(self) -> tuple[Proven, float]:
        """Return the commits of all proofs so far, and the scale of what they leave unexplained."""
        assert self.ends is not None
        rest = self.ends.estimate - sum(p.evidence.estimate for p in self.proofs)
        return tuple(p.commits for p in self.proofs), max(abs(rest), self.context.threshold)

    def _new_proof(self, effect: float) -> Proof | None:
        """Return the first open suspect whose fresh boots now decide about it."""
        known = {c for p in self.proofs for c in p.commits}
        for after in suspects_to_judge(self.context):
            if after in known:
                continue
            new = prove_suspect(self.context, self.cache, after, self.proofs, effect)
            if new is not None and (not new.commits or known.intersection(new.commits)):
                self.settled.add(after)  # what is proven may be all that it shows
            elif new is not None:
                return new
        return None

    def _step(self, proven: Proven, effect: float) -> Decision:
        """Search on, certify a suspect, or conclude."""
        context, ends = self.context, self.ends
        assert ends is not None
        posterior = self.posterior = self.cache.posterior(context, proven, effect)
        culprit = any(not p.small for p in self.proofs)
        purpose: Purpose = "attribute" if proven else "search"
        rest = self._rest(1 - posterior.none, effect) if culprit else None
        explained = rest is not None and rest.is_explained
        absent = not culprit and posterior.none >= 1 - context.alpha
        if explained or absent:
            trial = self._scan(posterior, purpose)
            if trial is not None:
                return trial
            if explained:
                why = self._why_exhausted(purpose) if context.goal.scan else ""
                return conclusion.conclude_culprits(context, self.cache, posterior, self.proofs, ends, why)
            if ends.estimate >= context.threshold:
                return self._spread(posterior, ends)
            again = endpoints.boots_before_claim(context)
            return again or conclusion.conclude_not_reproduced(context, ends)
        # With --scan the ends may hardly differ: then there is no loss that could be spread.
        loss = not culprit and ends.estimate >= context.threshold
        if (
            loss
            and posterior.marginal.max() < MIN_SUSPECT_PROBABILITY
            and expected_steps_reaching_threshold(context, posterior) < SPREAD_ALPHA_SHARE * context.alpha
        ):
            return self._spread(posterior, ends)
        found = self.found = candidates.most_probable_suspect(posterior, context, self.settled)
        provable = found.after is not None and found.after not in self.settled
        begun = found.after is not None and bool(context.boots(found.after, "certify"))
        if provable and found.probability >= (MIN_SUSPECT_PROBABILITY if begun else MIN_CERTIFY_PROBABILITY):
            return self._certify(found, posterior)
        wander = loss and step_division.levels_wander(context, posterior)
        if wander and (divided := self._divide(posterior, purpose)) is not None:
            return divided
        rated = candidates.next_trial(posterior, context, proven, found, purpose)
        if rated is not None:
            trial, rating = rated
            worth = rest is None or rest.is_worth_locating(trial.left, context.state.costs.total)
            if rating.bits >= candidates.MIN_TRIAL_BITS and worth:
                if provable and (proof := self._sooner_proof(found, posterior, rating)) is not None:
                    return proof
                exhausted = self._why_exhausted(purpose)
                return self._conclude_now(exhausted) if exhausted else trial
        if provable and rated is None and found.probability >= MIN_SUSPECT_PROBABILITY:
            return self._certify(found, posterior)  # nothing else tells more
        if culprit:
            further = self._scan(posterior, purpose)
            return further or conclusion.conclude_culprits(context, self.cache, posterior, self.proofs, ends)
        if loss and (divided := self._divide(posterior, purpose)) is not None:
            return divided
        again = endpoints.boots_before_claim(context)
        return again or self._conclude_now("No trial brings information that is worth its cost.")

    def _spread(self, posterior: Posterior, ends: Evidence) -> Decision:
        again = endpoints.boots_before_claim(self.context)
        if again or not endpoints.search_agrees(self.context):
            return again or self._conclude_now("All boots of the ends do not show their difference.")
        if not posterior.design.prior.any():
            unit = self.context.goal.terms.unit
            return self._conclude_now(f"The marks and equal binaries leave no {unit} that may explain it.")
        return conclusion.conclude_spread(self.context, self.cache, posterior, self.proofs, ends)

    def _scan(self, posterior: Posterior, purpose: Purpose) -> Measure | None:
        exhausted = self._why_exhausted(purpose)
        return None if exhausted else step_division.scan_largest_class(posterior, self.context, purpose)

    def _divide(self, posterior: Posterior, purpose: Purpose) -> Decision | None:
        """Divide the loss into steps, or certify a step that nothing divides; None where no step is open."""
        if self._why_exhausted(purpose):
            return None
        step = step_division.next_trial(self.context, posterior, purpose, self.proofs)
        return self._certify(step, posterior) if isinstance(step, Suspect) else step

    def _why_exhausted(self, purpose: Purpose) -> str:
        return effort.why_exhausted(self.context, purpose, {p.after for p in self.proofs})

    def _rest(self, another: float, effect: float) -> Rest:
        """Return what another culprit may hold. another: its probability; effect: its size in worse units."""
        largest = max(abs(p.evidence.estimate) for p in self.proofs if not p.small)
        return Rest(another, another * min(1.0, effect / max(largest, 1e-12)))

    def _certify(self, found: Suspect, posterior: Posterior) -> Decision:
        context = self.context
        assert found.after is not None
        parent, together = context.goal.terms.parent, inseparable_commits(context, found.after)
        parents = comparison_parents(context, together, found.after)
        if not parents:
            return self._conclude_now(f"The suspect has no {parent} that can be tested.")
        if exhausted := effort.why_exhausted(context, "certify"):
            return self._conclude_now(f"The suspect is not proven. {exhausted}")
        return next_fresh_boot(context, self.cache, posterior, found, parents, *self._explained())

    def _sooner_proof(self, found: Suspect, posterior: Posterior, trial: RatedTrial) -> Measure | None:
        """Return the first boot of a proof that tells more per second than a trial which tells little."""
        if trial.bits >= candidates.LITTLE_BITS or found.probability < MIN_SUSPECT_PROBABILITY:
            return None
        proof = self._certify(found, posterior)
        if isinstance(proof, Measure) and candidates.proof_tells_more(found, proof.left, trial):
            return proof
        return None

    def _conclude_now(self, why: str) -> Conclusion:
        """Return what is proven; where nothing is, that the search ended without an answer."""
        found, ends = self.posterior, self.ends
        why = why if self.refused is None else self.refused.summary
        if found is not None and ends is not None and any(not p.small for p in self.proofs):
            return conclusion.conclude_culprits(self.context, self.cache, found, self.proofs, ends, why)
        return self._conclude_unfinished(why)

    def _conclude_unfinished(self, why: str) -> Conclusion:
        return conclusion.conclude_unfinished(
            self.context, self.cache, self.posterior, self.found, self.proofs, self.ends, why
        )
