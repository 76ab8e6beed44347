"""The input of a report: a bisection's records, decisions and conclusion, with the names of its commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from bisector.model.commit_graph import CommitGraph, described
from bisector.model.decisions import Conclusion, Decision, Finding, Measure
from bisector.model.facts import KernelFacts
from bisector.model.goal import Goal, Metric, Verdict
from bisector.model.records import Booted, Built, Discarded, Marked, Record, SetAside
from bisector.model.state import State, Visit, fold
from bisector.model.stored_bisection import NORMAL_PRIORITY, Action
from bisector.report import repetition_pattern
from bisector.report.repetition_pattern import NO_PATTERN, RepetitionPattern
from bisector.schemas.request import Attempt

MAX_NAMED_COMMITS = 20
"""Commits of a set that are named: in a large history each name costs git up to a second."""


def named(finding: Finding) -> tuple[int, ...]:
    """Return the commits of a finding that are named: the first ones of many, or none if it is not proven."""
    crowd = len(finding.commits) > MAX_NAMED_COMMITS
    return () if crowd and not finding.certified else finding.commits[:MAX_NAMED_COMMITS]


@dataclass(frozen=True)
class Commit:
    """What identifies a commit to people. when: author date, seconds since the epoch."""

    sha: str
    subject: str = ""
    author: str = ""
    when: float = 0.0
    describe: str = ""


@dataclass(frozen=True)
class Trial:
    """One boot as the report shows it. values: (repetition, value, flags, warm-up) of the deciding metric.

    console_cut: whether it printed more than is kept. pattern: what repetitions of any boot differ by.
    """

    visit: Visit
    values: tuple[tuple[int, float, tuple[str, ...], bool], ...] = ()
    discarded: bool = False
    reason: str = ""
    console_cut: bool = False
    pattern: RepetitionPattern = NO_PATTERN

    @property
    def booted(self) -> Booted:
        """The record of the boot."""
        return self.visit.booted

    @property
    def failure(self) -> str:
        """Why the boot or the workload failed, '' if neither did."""
        return "" if self.visit.retried else self.visit.failure

    @property
    def seconds(self) -> float:
        """Host time of all runs."""
        return sum(run.seconds for run in self.visit.runs)

    @property
    def samples(self) -> tuple[float, ...]:
        """The values that count."""
        return tuple(v for _, v, flags, warmup in self.values if not flags and not warmup)

    @property
    def levelled(self) -> tuple[float, ...]:
        """The same, without the part that their repetition explains, so that their means can be compared."""
        return tuple(self.pattern.level(k, v) for k, v, flags, warmup in self.values if not (flags or warmup))


@dataclass(frozen=True)
class Material:
    """All that a report needs. request: what the user asked for, as the store keeps it.

    host: versions and machine, name -> text. files: where things are, name -> path. so_far: the best
    statement before there is a conclusion. recipe_chosen: whether the recipe was chosen, not named.
    cut_consoles: boots that printed more than is kept. attempt: of a try. priority,
    owner, action: as stored. touched: culprit -> functions that it changes, where what functions execute
    was counted. metrics: definitions of what each run gives, by name. modelled: the processor of a model, in
    words, '' without one. work: what a run does (in the singular) and how often, if the workload tells.
    unable: metrics that cannot decide under the goal's clock.
    """

    id: str
    created: float
    status: str
    request: Mapping[str, Any]
    graph: CommitGraph
    goal: Goal
    conclusion: Conclusion | None
    records: Sequence[tuple[int, Record]]
    decisions: Sequence[tuple[int, Decision]]
    commits: Mapping[int, Commit] = field(default_factory=dict)
    host: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    so_far: Conclusion | None = None
    recipe_chosen: bool = False
    cut_consoles: frozenset[str] = frozenset()
    attempt: Attempt | None = None
    priority: int = NORMAL_PRIORITY
    owner: str = ""
    action: Action | None = None
    touched: Mapping[int, frozenset[str]] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    modelled: str = ""
    work: tuple[str, int] | None = None
    unable: frozenset[str] = frozenset()

    @cached_property
    def state(self) -> State:
        """The records, folded as the planner sees them."""
        return fold(self.graph, self.goal, (record for _, record in self.records))

    @property
    def known(self) -> Conclusion | None:
        """The conclusion; before there is one, what is known so far."""
        return self.conclusion or self.so_far

    @property
    def single_culprits(self) -> tuple[Finding, ...]:
        """The culprits that are one commit each, known so far."""
        return tuple(f for f in self.known.culprits if len(f.commits) == 1) if self.known else ()

    @property
    def ends_alike(self) -> bool:
        """Whether the ends were compared and may be equal, so that no level in between is nearer to one."""
        total = self.known.total if self.known is not None else None
        return total is not None and total.low <= 0 <= total.high

    def commit(self, index: int) -> Commit:
        """Return the commit with that index; its id alone when it was not looked up."""
        return self.commits.get(index) or Commit(self.graph.shas[index])

    def label(self, index: int) -> str:
        """Return '1234567890ab ("subject")', the form that the kernel's people use."""
        commit = self.commit(index)
        return described(commit.sha, commit.subject)

    def mark(self, index: int) -> Verdict | None:
        """Return what the user said of a commit."""
        mark = self.state.marks.get(index)
        return self.goal.terms.turned(mark) if mark is not None else None

    @cached_property
    def pattern(self) -> RepetitionPattern:
        """What repetitions differ by in the deciding metric; by the wall clock nothing repeats itself."""
        boots = self.state.visits if self.goal.clock == "instructions" else ()
        return repetition_pattern.find(visit.samples for visit in boots)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """Every boot in the order it was started, with its runs and the planner's reason for it."""
        name, state = self.goal.metric.name, self.state
        numbers = {record.boot: number for number, record in self.records if isinstance(record, Booted)}
        return tuple(
            Trial(
                visit=visit,
                values=tuple(
                    (r.index, r.values[name], r.flags, r.warmup)
                    for r in sorted(visit.runs, key=lambda r: r.index)
                    if name in r.values
                ),
                discarded=state.is_discarded(visit),
                reason=self._reason(numbers[visit.boot], visit.booted),
                console_cut=visit.boot in self.cut_consoles,
                pattern=self.pattern,
            )
            for visit in state.boots
        )

    def _reason(self, number: int, booted: Booted) -> str:
        """Return why the planner wanted this boot: its last decision about the commit before it."""
        found = ""
        for at, decision in self.decisions:
            if at >= number:
                break
            if isinstance(decision, Measure):
                same = (decision.commit, decision.layout) == (booted.commit, booted.layout)
                found = decision.reason if same else found
        return found

    def kernel(self, index: int) -> KernelFacts:
        """Return what is known of the commit's kernel, empty if it was not built."""
        return self.kernels.get(index, KernelFacts())

    @cached_property
    def kernels(self) -> Mapping[int, KernelFacts]:
        """What is known of every kernel that was built, by commit."""
        return {built.commit: built.kernel for built in self.builds if built.ok and built.kernel}

    def facts(self, index: int, testbed: str | None = None) -> Mapping[str, str]:
        """Return what the last boot of the commit, on one testbed or any, said of itself; empty without."""
        boots = [v.booted for v in self.state.boots if v.commit == index and testbed in (None, v.testbed)]
        return next((b.facts for b in reversed(boots) if b.ok and b.facts), {})

    @cached_property
    def builds(self) -> tuple[Built, ...]:
        """Every build, in order."""
        return tuple(record for _, record in self.records if isinstance(record, Built))

    @cached_property
    def set_aside(self) -> tuple[SetAside, ...]:
        """Every testbed that the search went on without, in order."""
        return tuple(record for _, record in self.records if isinstance(record, SetAside))

    @cached_property
    def words_of_user(self) -> tuple[Marked | Discarded, ...]:
        """Every mark, in the user's terms, and every discard, in order."""
        terms = self.goal.terms
        return tuple(
            replace(r, verdict=terms.turned(r.verdict)) if isinstance(r, Marked) else r
            for _, r in self.records
            if isinstance(r, Marked | Discarded)
        )
