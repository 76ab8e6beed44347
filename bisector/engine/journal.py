"""A bisection's records and the state folded from them, kept up with what other processes write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from bisector.errors import FirmwareChanged, InfrastructureError, RequestError
from bisector.model.artefacts import boot_id
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Measure
from bisector.model.goal import Goal
from bisector.model.live_boots import live_boots
from bisector.model.machines.firmware import firmware_difference
from bisector.model.records import Left, Record
from bisector.model.state import State, apply, extend, fold
from bisector.store_ports import Store

_SAME_DECISIONS = 3
"""After so many equal decisions without a record in between the planner is stuck. One repetition is normal:
a boot may be lost between the decision and its trial."""

FLAGGED_RUNS = 5
"""After so many runs of which none counts a boot is given up: what flags each run, such as a wrong clock,
does not go away. Chosen, not measured."""


class Journal:
    """Reads and writes the records of one bisection. Safe to use from several threads."""

    def __init__(self, store: Store, bisection: str, graph: CommitGraph, goal: Goal, folder: Path) -> None:
        """Take up a bisection where its records end."""
        self.store, self.id, self.folder = store, bisection, folder
        self.lock = threading.RLock()
        self._seen = 0
        self._repeated: dict[str, tuple[int, Measure, int]] = {}
        self._state: State = fold(graph, goal, ())
        self.refresh()

    @property
    def state(self) -> State:
        """The state after all that was seen so far."""
        return self._state

    def refresh(self) -> None:
        """Take in what was recorded since the last look, by us or by `mark` and `discard` elsewhere."""
        with self.lock:
            new = self.store.records(self.id, after=self._seen)
            if new:
                self._seen = new[-1][0]
                self._state = extend(self._state, (record for _, record in new))

    def record(self, record: Record) -> None:
        """Write a record down and take it in."""
        with self.lock:
            number = self.store.append(self.id, record)
            if number == self._seen + 1:  # nobody else wrote in between
                self._seen = number
                self._state = apply(self._state, record)
            else:
                self.refresh()

    def trials(self) -> tuple[int, Mapping[str, Measure]]:
        """Return the number of the last event, and the trials under way in all processes, by testbed."""
        return self.store.trials(self.id)

    def begin_trial(self, testbed: str, trial: Measure, seen: int) -> bool:
        """Write down a decision and that its trial begins, unless others decided something after `seen`.

        Returns whether it was written. Raises InfrastructureError: the planner is stuck.
        """
        with self.lock:
            recorded = len(self._state.records)
            if not self._take_number(self.store.begin_trial(self.id, testbed, trial, seen=seen)):
                return False
            before, last, times = self._repeated.get(testbed, (-1, None, 0))
            times = times + 1 if (before, last) == (recorded, trial) else 1
            self._repeated[testbed] = (recorded, trial, times)
            if times > _SAME_DECISIONS:
                raise InfrastructureError(
                    f"the search does not move: {trial.reason}",
                    details=repr(trial),
                    cure="this is a defect of perfbisect: please report it",
                )
            return True

    def end_trial(self, testbed: str, *, put_off: bool = False) -> None:
        """Take note that the trial of a testbed is over. put_off: it will be decided again."""
        self.store.end_trial(self.id, testbed)
        if put_off:
            with self.lock:
                self._repeated.pop(testbed, None)

    def conclude(self, conclusion: Conclusion, seen: int) -> bool:
        """Write the end of the search down, unless something was recorded after `seen`; return whether."""
        with self.lock:
            return self._take_number(self.store.conclude(self.id, conclusion, seen=seen))

    def _take_number(self, number: int | None) -> bool:
        """Take note of a decision that was written, if it was: it need not be read back."""
        if number == self._seen + 1:
            self._seen = number
        return number is not None

    def lose_boots(self, is_free: Callable[[str], bool]) -> None:
        """Record live boots as lost, and trials as over, on testbeds that are no longer in use.

        is_free: whether that holds for a testbed.
        """
        with self.lock:
            for testbed in self.trials()[1]:
                if is_free(testbed):
                    self.end_trial(testbed)
            self.refresh()
            for boot, testbed in live_boots(self._state.records).items():
                if is_free(testbed):
                    self.record(Left(boot, lost=True))

    def new_boot(self) -> str:
        """Return an id that no boot of this bisection had, and make its folder."""
        with self.lock:
            known = {visit.boot for visit in self._state.boots}
            while True:
                number = self.store.number_boot(self.id, len(known) + 1)
                folder = self.boot_folder(boot_id(number))
                if folder.name not in known and not folder.exists():
                    folder.mkdir(parents=True)
                    return folder.name

    def boot_folder(self, boot: str) -> Path:
        """Return where a boot keeps its raw output."""
        return self.folder / "boots" / boot

    def next_run(self, boot: str) -> int:
        """Return how many runs a boot has had."""
        return sum(len(visit.runs) for visit in self._state.boots if visit.boot == boot)

    def is_recorded(self, boot: str) -> bool:
        """Return whether a boot was recorded."""
        return any(visit.boot == boot for visit in self._state.boots)

    def monitored(self, commit: int, testbed: str) -> frozenset[str]:
        """Return the monitors that have seen a commit on a testbed."""
        boots = [v for v in self._state.boots if (v.commit, v.testbed) == (commit, testbed)]
        return frozenset(result.monitor for visit in boots for result in visit.monitors)

    def is_measured_elsewhere(self, binary: str, commit: int) -> bool:
        """Return whether another commit with the same kernel gave samples: the planner shares them."""
        binaries = self._state.binaries
        return any(
            v.commit != commit and v.samples and binaries.get((v.commit, v.layout)) == binary
            for v in self._state.visits
        )

    def find_doubt(self, commit: int, testbed: str, *, workload: bool, late: bool, shown_well: bool) -> str:
        """Return why a kernel's failure on a testbed may not be the commit's fault; '' if nothing says so.

        workload: the kernel booted, and the workload failed. late: it answered in one boot, but too late.
        shown_well: another kernel ran the workload there between the failures.
        """
        with self.lock:
            self.refresh()  # the evidence may be another worker's
            visits = self._state.visits
            others = sorted(self.trials()[1].keys() - {testbed})
        well = [v for v in visits if v.samples or not workload]
        elsewhere = [v for v in well if v.testbed != testbed]
        what, did = ("the workload", "ran") if workload else ("a kernel", "booted")
        same = next((v.testbed for v in elsewhere if v.commit == commit), None)
        if same is not None:
            return f"with this {self._state.goal.unit} {what} {did} on '{same}'; here it does not"
        if shown_well or any(v.testbed == testbed for v in well):
            return ""
        if late and not any(v.testbed == testbed for v in visits):
            return (
                f"it did boot there, only too late, and nothing shows that '{testbed}' boots any kernel in "
                "time: raise its perfbisect_boot_timeout"
            )
        if elsewhere:
            return f"{what} {did} on '{elsewhere[0].testbed}', and never here in this bisection"
        if others:  # they may still succeed; the failure counts once the last testbed has tried
            return f"{what} never {did} here in this bisection, and '{others[0]}' is still at work"
        return ""

    def uncounted_boots(self, commit: int, testbed: str) -> list[str]:
        """Return the boots of a commit on a testbed with `FLAGGED_RUNS` runs or more and none that counts."""
        visits = [v for v in self._state.visits if (v.commit, v.testbed) == (commit, testbed)]
        return [v.boot for v in visits if not v.samples and len(v.flagged) >= FLAGGED_RUNS]

    def check_unchanged(self, testbed: str, *, workload: str, image: str) -> None:
        """Raise RequestError where the workload or the image is not what earlier boots of the testbed had.

        workload, image: their checksums now; '' where nobody knows yet.
        """
        boots = [v.booted for v in self._state.boots if v.testbed == testbed]
        self._check("the workload's files", workload, [b.workload for b in boots])
        self._check("the guest image", image, [b.image for b in boots])

    def check_firmware(self, testbed: str, facts: Mapping[str, str]) -> None:
        """Raise FirmwareChanged where the machine or its firmware differs from that of the boots that count.

        facts: of the new boot, which is not recorded yet.
        """
        kept = [v.booted for v in self._state.visits if v.testbed == testbed and v.samples]
        changed = firmware_difference([booted.facts for booted in kept], facts, one_testbed=True)
        if changed is not None:
            what = changed.subject(f"the testbed '{testbed}'")
            raise FirmwareChanged(
                f"{what} changed since the bisection '{self.id}' began: old "
                "and new samples cannot be compared",
                details=str(changed),
                cure="put it back and resume; or throw away what was measured before with "
                f"'perfbisect discard {self.id} --boot BOOT', for each of {', '.join(b.boot for b in kept)}",
            )

    def first_facts(self, testbed: str) -> Mapping[str, str]:
        """Return the facts of the first boot on a testbed that reported any; none before."""
        told = (v.booted.facts for v in self._state.visits if v.testbed == testbed and v.booted.facts)
        return next(told, {})

    def _check(self, what: str, now: str, then: list[str]) -> None:
        first = next((checksum for checksum in then if checksum), now)
        if now and now != first:
            raise RequestError(
                f"{what} changed since the bisection '{self.id}' began: old and new samples cannot be "
                "compared",
                details=f"then {first}\nnow  {now}",
                cure="put it back, or cancel this bisection and start a new one",
            )


def lose_boots_on(store: Store, bisection: str, testbed: str) -> None:
    """Record the live boots of a bisection on a testbed as lost. The caller has the testbed now."""
    live = live_boots(record for _, record in store.records(bisection))
    for boot in [boot for boot, where in live.items() if where == testbed]:
        store.append(bisection, Left(boot, lost=True))
