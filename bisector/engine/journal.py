"""A bisection's records and the state folded from them, kept up with what other processes write."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path

from bisector.errors import InfrastructureError, RequestError
from bisector.model.records import Booted, CommitGraph, Decision, Goal, Left, Measure, Ran, Record
from bisector.model.state import State, extend, fold
from bisector.ports import Kernel, Store

_REPEATS = 3
"""So many times the same decision without anything recorded in between: the planner is stuck."""
_WORLD = {"workload": "the workload's files", "image": "the guest image"}
"""Boot notes that must stay what they were: samples of another binary or image cannot be compared."""


class Ledger:
    """Reads and writes the records of one bisection. Safe to use from several threads."""

    def __init__(self, store: Store, bisection: str, graph: CommitGraph, goal: Goal, folder: Path) -> None:
        """Take up a bisection where its records end; boots that are still open there are lost."""
        self.store, self.id, self.folder = store, bisection, folder
        self.lock = threading.RLock()
        self._seen = 0
        self._world: dict[tuple[str, str], str] = {}
        self._repeated: dict[str, tuple[int, Measure, int]] = {}
        self.observed: set[tuple[int, str]] = set()
        """(commit, testbed) whose monitors have had their runs."""
        self._state: State = fold(graph, goal, ())
        self.refresh()
        for visit in self._state.visits:
            if visit.live:
                self.record(Left(visit.boot, lost=True))
        self.stale = max((self._seen, *(number for number, _ in store.decisions(bisection))))
        """Decisions up to this number were made before this ledger took over."""

    @property
    def state(self) -> State:
        """The state after all that was seen so far."""
        return self._state

    def refresh(self) -> None:
        """Take in what was recorded since the last look, by us or by `mark` and `discard` elsewhere."""
        with self.lock:
            new = self.store.records(self.id, after=self._seen)
            if not new:
                return
            self._seen = new[-1][0]
            self._state = extend(self._state, [record for _, record, _ in new])
            for _, record, note in new:
                if isinstance(record, Booted):
                    for key in _WORLD:
                        if note.get(key):
                            self._world.setdefault((record.testbed, key), note[key])
                elif isinstance(record, Left) and note.get("monitors"):
                    visit = next(v for v in self._state.visits if v.boot == record.boot)
                    self.observed.add((visit.commit, visit.testbed))

    def record(self, record: Record, note: Mapping[str, str] | None = None) -> None:
        """Write a record down and take it in."""
        with self.lock:
            self.store.append(self.id, record, note=note)
            self.refresh()

    def decide(self, testbed: str, decision: Decision) -> int:
        """Write a decision down; return its number. Raises InfrastructureError: the planner is stuck."""
        with self.lock:
            number = self.store.decide(self.id, decision)
            if isinstance(decision, Measure):
                seen, last, times = self._repeated.get(testbed, (-1, None, 0))
                times = times + 1 if (seen, last) == (self._seen, decision) else 1
                self._repeated[testbed] = (self._seen, decision, times)
                if times > _REPEATS:
                    raise InfrastructureError(
                        f"the search does not move: {decision.reason}",
                        details=repr(decision),
                        cure="this is a defect of perfbisect: please report it",
                    )
            return number

    def new_boot(self) -> str:
        """Return an id that no boot of this bisection had, and make its folder."""
        with self.lock:
            used = sum(isinstance(r, Booted) for r in self._state.records)
            while self.boot_folder(f"boot-{used + 1:03d}").exists():
                used += 1
            boot = f"boot-{used + 1:03d}"
            self.boot_folder(boot).mkdir(parents=True)
            return boot

    def boot_folder(self, boot: str) -> Path:
        """Return where a boot keeps its raw output."""
        return self.folder / "boots" / boot

    def next_run(self, boot: str) -> int:
        """Return how many runs a boot has had."""
        return sum(1 for r in self._state.records if isinstance(r, Ran) and r.boot == boot)

    def measured_already(self, binary: str, commit: int) -> bool:
        """Say whether another commit with the same kernel gave samples: the planner shares them."""
        binaries = self._state.binaries
        return any(
            v.commit != commit and v.samples and binaries.get((v.commit, v.layout)) == binary
            for v in self._state.visits
        )

    def check_world(self, testbed: str, note: Mapping[str, str]) -> None:
        """Raise RequestError where the workload or the image is not what earlier boots of the testbed had."""
        for key, what in _WORLD.items():
            now = note.get(key, "")
            then = self._world.setdefault((testbed, key), now) if now else ""
            if now != then:
                raise RequestError(
                    f"{what} changed since the bisection '{self.id}' began: old and new samples cannot be "
                    "compared",
                    details=f"then {then}\nnow  {now}",
                    cure="put it back, or cancel this bisection and start a new one",
                )


def kernel_note(kernel: Kernel) -> str:
    """Return what the report wants to know of a kernel, as JSON."""
    return json.dumps(
        {
            "release": kernel.release,
            "build_id": kernel.build_id,
            "image": str(kernel.image),
            "config": str(kernel.config),
            "log": str(kernel.log),
            "sizes": dict(kernel.sizes),
            "options": dict(kernel.options),
            "lost": list(kernel.lost),
            "toolchain": kernel.toolchain,
            "key": kernel.key,
        }
    )
