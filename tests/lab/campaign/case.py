"""One case: a search on two emulated machines is hurt, resumed until it ends, and looked at."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bisector.model.records import Booted, Ran
from tests.campaign import invariants
from tests.lab.campaign.faults import ENDS, MAY_GO_ON, Fault
from tests.lab.campaign.given_back import not_given_back
from tests.lab.campaign.strikes import Striker
from tests.lab.canary import CommandLineWatch, files_with
from tests.lab.listed_kernels import KernelList
from tests.lab.machine import Machine
from tests.lab.machines import write_inventory
from tests.support import demo_history
from tests.support.installed_command import PERFBISECT, perfbisect

_LOOK_SECONDS = 0.5
"""Between two looks at machines and records: a kernel takes seconds from its first line to SSH."""

_HANG_SECONDS = 3000.0
"""A process that takes longer hangs; undisturbed a search takes ten minutes on a busy host."""

_TURNS = 3
"""After so many moments on another machine alone, a fault's own has been set aside, for an earlier fault."""


@dataclass
class Result:
    """How a case went. struck: faults, with the second of the case; codes: of its processes."""

    case: int
    faults: list[str]
    struck: list[str] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    seconds: float = 0.0
    boots: int = 0
    violations: list[str] = field(default_factory=list)

    def json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self))


class HurtSearch:
    """One case. folder: its own; machines: as many as faults name, well and on; culprit: in the list."""

    def __init__(
        self, number: int, folder: Path, machines: Sequence[Machine], search: KernelList, culprit: int
    ) -> None:
        self._folder, self._machines, self._search, self._culprit = folder, machines, search, culprit
        self._state = invariants.state_of(folder)
        self._state.mkdir(parents=True)
        (folder / "disk" / "tmp").mkdir()
        self._lab = write_inventory(machines, folder / "lab.yml")
        self._environment = {
            **demo_history.environment(self._state),
            "PERFBISECT_LOCK_DIR": str(folder / "disk" / "locks"),
            "TMPDIR": str(folder / "disk" / "tmp"),
            "FAULT_CAMPAIGN": str(folder),
        }
        self._striker = Striker()
        self._number = number

    def run(self, faults: Sequence[Fault]) -> Result:
        """Run it to its end; what does not hold is in the result."""
        result = Result(self._number, [str(fault) for fault in faults])
        passwords = [machine.password for machine in self._machines]
        started = time.monotonic()
        watch = _Watch(faults, self._machines, self._folder, self._striker, result, self._search.releases)
        with CommandLineWatch(passwords) as lines:
            self._until_it_ends(watch, result, most=3 + 2 * len(faults))
            self._striker.wait()
        ended = invariants.read_end(self._folder)
        truth = invariants.Truth(ended.stored.shas[self._culprit] if ended.stored.shas else "")
        result.seconds = round(time.monotonic() - started)
        result.boots = sum(isinstance(record, Booted) for record in ended.stored.records)
        result.violations += [
            *self._striker.violations,
            *invariants.right_culprit(ended, truth),
            *invariants.nobody_blamed(ended.stored, truth),
            *(f"a process is left: {pid}" for pid in invariants.processes_of(self._folder)),
            *(f"a password is in the command line {line!r}" for line in lines.found),
            *(f"a password is in {path}" for path in files_with(passwords, self._folder)),
            *(text for machine in self._machines for text in not_given_back(machine)),
        ]
        return result

    def _until_it_ends(self, watch: _Watch, result: Result, most: int) -> None:
        before = invariants.read_records(self._folder)
        while len(result.codes) < most:
            code, said = self._process(watch, before.id)
            result.codes.append(code)
            now = invariants.read_records(self._folder)
            result.violations += invariants.nothing_lost(before, now) + invariants.well_said(code, said)
            if kind := watch.what_ends():
                result.violations += ended_well(kind, code, self._machines)
            before = now
            if code not in (3, -9, 130):
                return
            self._mend()
        result.violations.append(f"no end after {most} processes")

    def _process(self, watch: _Watch, known: str) -> tuple[int, str]:
        said = self._folder / "said.txt"
        with said.open("a") as errors, (self._folder / "printed.txt").open("a") as output:
            begin = errors.tell()
            process = subprocess.Popen(
                [PERFBISECT, *(["resume", known, "--lab", str(self._lab)] if known else self._start())],
                cwd=self._state,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
            deadline = time.monotonic() + _HANG_SECONDS
            try:
                while process.poll() is None:
                    watch.look(process.pid)
                    if time.monotonic() > deadline:
                        watch.result.violations.append(f"a process hangs: {invariants.stacks(process.pid)}")
                        break
                    time.sleep(_LOOK_SECONDS)
            finally:  # Ctrl-C of the campaign, or a defect of its own: the machines end, too
                if process.poll() is None:
                    process.kill()
                process.wait()
        return process.returncode, said.read_text()[begin:]

    def _start(self) -> list[str]:
        return [
            *("start", "--lab", str(self._lab), *self._search.options),
            *(word for machine in self._machines for word in ("--testbed", machine.name)),
        ]

    def _mend(self) -> None:
        """Do what the owner of the lab does before the search is resumed: look, and release."""
        self._striker.wait()
        for machine in self._machines:
            words = ("testbed", "release", machine.name, "--lab", str(self._lab))
            released = perfbisect(*words, environment=self._environment)
            assert released.returncode == 0, released.stderr


class _Watch:
    """Sees moments from outside, and strikes."""

    def __init__(
        self,
        faults: Sequence[Fault],
        machines: Sequence[Machine],
        folder: Path,
        striker: Striker,
        result: Result,
        releases: Sequence[str],
    ) -> None:
        self._left, self._machines, self._folder = list(faults), machines, folder
        self._striker, self.result, self._releases = striker, result, releases
        self._started = time.monotonic()
        self._base: list[int] | None = None
        self._waits_for: int | None = None
        self._ends = ""

    def what_ends(self) -> str:
        """Return the fault by which the process is to have ended, '' for none; it counts once."""
        kind, self._ends = self._ends, ""
        return kind

    def look(self, perfbisect: int) -> None:
        """Strike if the moment of the next fault has come."""
        if not self._left:
            return
        fault, runs = self._left[0], self._passed("ran")
        if self._waits_for is not None:  # the fault before must be over, and a run made since
            if not self._striker.is_over() or runs <= self._waits_for:
                return
            self._waits_for = None
        passed = [self._passed(fault.moment, place) for place in range(len(self._machines))]
        if self._base is None:
            self._base = passed
        since = [now - before for now, before in zip(passed, self._base, strict=True)]
        place = fault.machine if since[fault.machine] else since.index(max(since))
        if since[place] < (1 if place == fault.machine else _TURNS):
            return
        state = invariants.state_of(self._folder) / "perfbisect.sqlite"
        self._striker.strike(fault, self._machines[place], perfbisect, state)
        if self._ends and self._ends not in MAY_GO_ON:
            self.result.violations.append(f"'{self._ends}' did not end perfbisect")
        self._ends = fault.kind if fault.kind in ENDS else ""
        self.result.struck.append(f"{time.monotonic() - self._started:.0f} s: {fault}")
        if place != fault.machine:
            self.result.struck[-1] += f" (on machine {place}: {fault.machine} is set aside)"
        print(f"    {self.result.struck[-1]}", flush=True)
        self._left.pop(0)
        self._base, self._waits_for = None, runs

    def _passed(self, moment: str, machine: int | None = None) -> int:
        """Return how often a moment has come, on one machine or all."""
        names = {one.name for place, one in enumerate(self._machines) if machine in (None, place)}
        if moment == "starts":
            logs = (one.folder / "serial.log" for one in self._machines if one.name in names)
            said = [log.read_bytes() for log in logs if log.exists()]
            banners = [f"Linux version {release} ".encode() for release in self._releases]
            return sum(text.count(banner) for text in said for banner in banners)
        stored = invariants.read_records(self._folder)
        if moment == "concluded":
            return int(stored.status == "done")
        records = stored.records
        boots = {r.boot for r in records if isinstance(r, Booted) and r.ok and r.testbed in names}
        if moment == "booted":
            return len(boots)
        return sum(isinstance(record, Ran) and record.boot in boots for record in records)


def ended_well(kind: str, code: int, machines: Sequence[Machine]) -> list[str]:
    """Return what does not hold after a fault that ends perfbisect: its code, and each machine given back.

    Before anything resumes it: nobody else has brought the machines back.
    """
    if code == 0 and kind in MAY_GO_ON:
        return []
    wrong = [] if code == ENDS[kind] else [f"exit code {code} after '{kind}', not {ENDS[kind]}"]
    return wrong + [f"after '{kind}': {text}" for one in machines for text in not_given_back(one)]
