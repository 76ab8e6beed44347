"""What a report is made of: one bisection's records, decisions and conclusion with names for its commits.

The notes that go with records (free facts, see `ports.Store.append`) are read here and in `monitors`, and
nowhere else. Their keys: with `Built`: 'kernel' (JSON: release, build_id, image, config, log, sizes, options,
lost, toolchain, key). With `Booted`: 'facts' (JSON: name -> text), 'console', 'overhead', 'workload',
'image'. With `Ran`: 'raw', 'guest_seconds'. With `Left`: 'monitors' (JSON: a list of
`ports.MonitorResult`). Whatever is missing is left out of the report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bisector.model.records import (
    Booted,
    Built,
    CommitGraph,
    Conclusion,
    Decision,
    Discarded,
    Finding,
    Goal,
    Marked,
    Measure,
    Ran,
    Record,
    RunFailed,
)
from bisector.model.state import State, fold

Note = Mapping[str, str]
NAMED = 20
"""Commits of a set that are named: in a large history each name costs git up to a second."""


def named(finding: Finding) -> tuple[int, ...]:
    """Return the commits of a finding that are named: the first of a crowd, none if it is not proven."""
    crowd = len(finding.commits) > NAMED
    return () if crowd and not finding.certified else finding.commits[:NAMED]


@dataclass(frozen=True)
class Commit:
    """What people recognise a commit by. when: author date, seconds since the epoch."""

    sha: str
    subject: str = ""
    author: str = ""
    when: float = 0.0
    describe: str = ""


@dataclass(frozen=True)
class Trial:
    """One boot as the report shows it. values: (repetition, value, flags, warm-up) of the deciding metric."""

    sequence: int
    booted: Booted
    note: Note
    values: tuple[tuple[int, float, tuple[str, ...], bool], ...] = ()
    seconds: float = 0.0
    failure: str = ""
    discarded: bool = False
    reason: str = ""

    @property
    def samples(self) -> tuple[float, ...]:
        """The values that count."""
        return tuple(v for _, v, flags, warmup in self.values if not flags and not warmup)

    @property
    def overhead(self) -> float | None:
        """Seconds that perfbisect added to build, boot and runs; None if nobody measured them."""
        text = self.note.get("overhead", "")
        try:
            return float(text)
        except ValueError:
            return None


@dataclass(frozen=True)
class Material:
    """All that a report needs. request: what the user asked for, as the store keeps it.

    host: versions and machine, name -> text. files: where things are, name -> path. so_far: the best
    statement before there is a conclusion.
    """

    id: str
    created: float
    status: str
    request: Mapping[str, Any]
    graph: CommitGraph
    goal: Goal
    conclusion: Conclusion | None
    records: Sequence[tuple[int, Record, Note]]
    decisions: Sequence[tuple[int, Decision]]
    commits: Mapping[int, Commit] = field(default_factory=dict)
    host: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    so_far: Conclusion | None = None

    @cached_property
    def state(self) -> State:
        """The records, folded as the planner sees them."""
        return fold(self.graph, self.goal, [record for _, record, _ in self.records])

    def commit(self, index: int) -> Commit:
        """Return the commit with that index; its id alone when nobody looked it up."""
        return self.commits.get(index) or Commit(self.graph.shas[index])

    def label(self, index: int) -> str:
        """Return '1234567890ab ("subject")', the form that the kernel's people use."""
        commit = self.commit(index)
        return f'{commit.sha[:12]} ("{commit.subject}")' if commit.subject else commit.sha[:12]

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """Every boot in the order it was started, with its runs and the planner's reason for it."""
        name = self.goal.metric.name
        runs: dict[str, list[Ran]] = {}
        failures: dict[str, str] = {}
        thrown: set[str] = set()
        for _, record, _ in self.records:
            match record:
                case Ran():
                    runs.setdefault(record.boot, []).append(record)
                case RunFailed():
                    failures[record.boot] = record.failure
                case Discarded():
                    thrown.add(record.name)
                case _:
                    pass
        return tuple(
            Trial(
                sequence=number,
                booted=record,
                note=note,
                values=tuple(
                    (r.index, r.values[name], r.flags, r.warmup)
                    for r in sorted(runs.get(record.boot, ()), key=lambda r: r.index)
                    if name in r.values
                ),
                seconds=sum(r.seconds for r in runs.get(record.boot, ())),
                failure=record.failure or failures.get(record.boot, ""),
                discarded=record.boot in thrown or record.testbed in thrown,
                reason=self._reason(number, record),
            )
            for number, record, note in self.records
            if isinstance(record, Booted)
        )

    def _reason(self, number: int, booted: Booted) -> str:
        """Return why the planner wanted this boot: its last decision about the commit before it."""
        found = ""
        for at, decision in self.decisions:
            if at >= number:
                break
            if (
                isinstance(decision, Measure)
                and decision.commit == booted.commit
                and decision.layout == booted.layout
            ):
                found = decision.reason
        return found

    def kernel(self, index: int) -> Mapping[str, Any]:
        """Return what is known of the commit's kernel (see the module's head), empty if it was not built."""
        return self.kernels.get(index, {})

    @cached_property
    def kernels(self) -> Mapping[int, Mapping[str, Any]]:
        """What is known of every kernel that was built, by commit."""
        return self._noted(Built, "kernel")

    def facts(self, index: int) -> Mapping[str, str]:
        """Return what the last boot of the commit said of itself, empty if it never booted."""
        return {str(k): str(v) for k, v in self._facts.get(index, {}).items()}

    @cached_property
    def _facts(self) -> Mapping[int, Mapping[str, Any]]:
        return self._noted(Booted, "facts")

    def _noted(self, kind: type[Built] | type[Booted], key: str) -> Mapping[int, Mapping[str, Any]]:
        """Return what was last noted of each commit that was built or booted well."""
        last = {
            record.commit: note[key]
            for _, record, note in self.records
            if isinstance(record, kind) and record.ok and note.get(key)
        }
        values = {commit: json.loads(text) for commit, text in last.items()}
        return {commit: value if isinstance(value, dict) else {} for commit, value in values.items()}

    @cached_property
    def builds(self) -> tuple[Built, ...]:
        """Every build, in order."""
        return tuple(record for _, record, _ in self.records if isinstance(record, Built))

    @cached_property
    def words_of_user(self) -> tuple[Marked | Discarded, ...]:
        """Every mark and discard, in order."""
        return tuple(r for _, r, _ in self.records if isinstance(r, Marked | Discarded))
