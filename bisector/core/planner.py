"""State -> the next action with its reason, or the conclusion. Pure: the same state, the same answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from bisector.core.model import Conclusion, Decision, Ending, Finding, Interval, Measure, Purpose
from bisector.core.state import State, Visit

FLOOR = 0.02
"""Noise floor as a part of the threshold: smaller differences never matter to the user."""
Z = 3.0
"""A verdict at three standard errors: wrong once in 700 for Gauss, and confirmed afresh at the end."""
MAX_BOOTS = 8


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class Planner:
    """Verify the ends, halve the candidates by ancestor counting, confirm the culprit with fresh boots."""

    def __init__(self) -> None:
        self._ancestors: dict[tuple[int, int], frozenset[int]] = {}

    def next(self, state: State) -> Decision:
        """Return the next action with its reason, or the conclusion."""
        return _Turn(self, state).decide()


class _Turn:
    """One decision."""

    def __init__(self, planner: Planner, state: State) -> None:
        self.s = state
        self.g = state.graph
        metric = state.goal.metric
        self.sign = 1.0 if metric.better == "lower" else -1.0
        values = [v for x in state.visits for _, v in x.samples]
        self.log = bool(values) and min(values) > 0 and metric.threshold.relative
        t = metric.threshold.value
        self.threshold = math.log1p(t) if metric.threshold.relative else t
        if metric.threshold.relative and not self.log and values:
            self.threshold = t * abs(_mean(values))
        self.runs = 3 if state.goal.clock == "instructions" else 6
        self.runs = min(self.runs, state.goal.max_runs_per_boot)

    # --- statistics ---

    def level(self, x: Visit) -> float:
        return _mean([self.sign * (math.log(v) if self.log else v) for _, v in x.samples])

    def boots(self, commit: int, purpose: Iterable[Purpose] | None = None) -> list[float]:
        twins = {
            c
            for (c, layout), b in self.s.binaries.items()
            if b and layout == 0 and b == self.s.binaries.get((commit, 0))
        } | {commit}
        return [
            self.level(x)
            for x in self.s.visits
            if x.samples
            and x.layout == 0
            and (x.commit == commit if purpose else x.commit in twins)
            and (purpose is None or x.purpose in purpose)
        ]

    def spread(self) -> float:
        """Return the pooled standard deviation between boots of one commit, never below the floor."""
        ss, df = 0.0, 0
        for c in {x.commit for x in self.s.visits}:
            b = self.boots(c)
            if len(b) > 1:
                ss += sum((v - _mean(b)) ** 2 for v in b)
                df += len(b) - 1
        pooled = math.sqrt(ss / df) * (1 + 2 / df) if df else 0.0
        return max(pooled, FLOOR * self.threshold)

    def compare(self, a: int, b: int, purpose: tuple[Purpose, ...]) -> Interval | None:
        """Return b - a with its interval, None while a side has fewer than two boots."""
        left, right = self.boots(a, purpose), self.boots(b, purpose)
        if len(left) < 2 or len(right) < 2:
            return None
        half = Z * self.spread() * math.sqrt(1 / len(left) + 1 / len(right))
        d = _mean(right) - _mean(left)
        return Interval(d - half, d, d + half)

    def relative(self, i: Interval) -> Interval:
        """Return the interval as a relative change of the number that the user reads."""
        if self.log:
            ends = sorted(math.expm1(self.sign * v) for v in (i.low, i.high))
            return Interval(ends[0], math.expm1(self.sign * i.estimate), ends[1])
        base = abs(_mean(self.boots(self.g.good)) or 1.0)
        ends = sorted(self.sign * v / base for v in (i.low, i.high))
        return Interval(ends[0], self.sign * i.estimate / base, ends[1])

    # --- the graph ---

    def ancestors(self, c: int) -> set[int]:
        seen, todo = {c}, [c]
        while todo:
            for p in self.g.parents[todo.pop()]:
                if p not in seen:
                    seen.add(p)
                    todo.append(p)
        return seen

    # --- the turn ---

    def measure(self, commit: int, purpose: Purpose, reason: str) -> Decision:
        budget = self.s.goal.budget
        spent = sum(self.s.costs.builds) + sum(self.s.costs.boots) + sum(self.s.costs.runs)
        if (
            (budget.seconds is not None and spent >= budget.seconds)
            or (budget.runs is not None and len(self.s.costs.runs) >= budget.runs)
            or (
                budget.builds is not None
                and len(self.s.costs.builds) >= budget.builds
                and (commit, 0) not in self.s.binaries
            )
        ):
            return Conclusion(Ending.INCONCLUSIVE, "The budget is spent before the culprit was proven.")
        return Measure(commit, self.runs, purpose, reason)

    def interleave(self, sides: Sequence[int], purpose: Purpose, boots: int, why: str) -> Decision | None:
        """Return the next boot of a comparison in the order ABBA, None when all sides have enough."""
        counts = {c: len(self.boots(c, (purpose,))) for c in sides}
        fewest = min(counts.values())
        if fewest >= boots:
            return None
        order = list(sides) if fewest % 2 == 0 else list(reversed(sides))
        commit = next(c for c in order if counts[c] == fewest)
        return self.measure(commit, purpose, f"{why}: fresh boot {fewest + 1} of this side")

    def decide(self) -> Decision:
        g = self.g
        for end, name in ((g.good, "good"), (g.bad, "bad")):
            if end in self.s.untestable:
                return Conclusion(
                    Ending.INCONCLUSIVE, f"The {name} end cannot be tested: {self.s.untestable[end]}."
                )
        ends = self.interleave((g.good, g.bad), "verify", 2, "verify that the ends differ")
        total = self.compare(g.good, g.bad, ("verify",))
        if ends is not None or total is None:
            assert ends is not None
            return ends
        if total.high < self.threshold and not self.s.goal.scan:
            return Conclusion(
                Ending.NOT_REPRODUCED,
                "The ends do not differ by the threshold.",
                total=self.relative(total),
                confidence=1 - self.s.goal.alpha,
            )
        if total.low <= 0:
            more = self.interleave((g.good, g.bad), "verify", MAX_BOOTS, "the ends are not clear yet")
            return more or Conclusion(
                Ending.INCONCLUSIVE, "The ends cannot be told apart.", total=self.relative(total)
            )
        for base in g.merge_bases:
            if not self.boots(base):
                return self.measure(base, "verify", "test the merge base: it may itself be bad")
            if _mean(self.boots(base)) - _mean(self.boots(g.good)) > total.estimate / 2:
                return Conclusion(
                    Ending.FIXED_ON_GOOD_SIDE,
                    "The merge base is as slow as bad: the loss was fixed on good's side.",
                    total=self.relative(total),
                )
        return self.search(total)

    def search(self, total: Interval) -> Decision:
        g = self.g
        candidates = {c for c in self.ancestors(g.bad) if g.candidate[c]}
        middle = _mean(self.boots(g.good)) + total.estimate / 2
        unclear: set[int] = set()
        marks = dict(self.s.marks)
        for c in {x.commit for x in self.s.visits if x.samples} | set(marks):
            if c in (g.good, g.bad) or c not in candidates and not g.candidate[c]:
                continue
            b = self.boots(c)
            slow = marks.get(c) == "bad" if c in marks else _mean(b) > middle
            half = 0.0 if c in marks else Z * self.spread() / math.sqrt(len(b))
            if c not in marks and abs(_mean(b) - middle) < half and len(b) < MAX_BOOTS:
                unclear.add(c)
                continue
            above = self.ancestors(c)
            candidates = candidates & above if slow else candidates - above
        for c in sorted(unclear & candidates):
            return self.measure(c, "search", "this commit is not clear yet: one more boot")
        if not candidates:
            return Conclusion(
                Ending.INCONCLUSIVE, "The verdicts contradict each other.", total=self.relative(total)
            )
        best, score = None, 0
        for c in sorted(candidates):
            if c in self.s.untestable or c in unclear or self.boots(c):
                continue
            k = len(self.ancestors(c) & candidates)
            if min(k, len(candidates) - k) > score:
                best, score = c, min(k, len(candidates) - k)
        if best is not None:
            return self.measure(
                best,
                "search",
                f"splits the remaining {len(candidates)} commits {score} to {len(candidates) - score}",
            )
        return self.certify(tuple(sorted(candidates)), total)

    def certify(self, culprits: tuple[int, ...], total: Interval) -> Decision:
        if len(culprits) > 1:
            return Conclusion(
                Ending.CULPRIT_SET,
                f"One of {len(culprits)} commits that cannot be told apart.",
                (Finding(culprits, self.relative(total), 1 - self.s.goal.alpha),),
                self.relative(total),
                confidence=1 - self.s.goal.alpha,
            )
        culprit = culprits[0]
        parents = tuple(p for p in self.g.parents[culprit] if p not in self.s.untestable)
        more = self.interleave((*parents, culprit), "certify", 3, "prove it against its parents")
        if more is not None:
            return more
        effects = [e for p in parents if (e := self.compare(p, culprit, ("certify",)))]
        effect = min(effects, key=lambda e: e.estimate, default=total)
        proven = bool(effects) and all(e.low > 0 for e in effects)
        finding = Finding(
            (culprit,), self.relative(effect), 1 - self.s.goal.alpha if proven else 0.5, parents, proven
        )
        left = total.estimate - effect.estimate
        slack = max(total.high - total.estimate, effect.high - effect.estimate) * math.sqrt(2)
        return Conclusion(
            Ending.CULPRIT if proven else Ending.INCONCLUSIVE,
            "The culprit differs from every parent in fresh boots."
            if proven
            else "The fresh comparison did not confirm the suspected commit.",
            (finding,),
            self.relative(total),
            self.relative(Interval(left - slack, left, left + slack)),
            finding.confidence,
        )
