"""What must hold of a bisection that was hurt and resumed. Each check returns its violations.

* It ends as without faults: the same culprit, certified; the same samples give the same report.
* What was recorded stays: the records before a fault are the beginning of those after it.
* No finished run or build is made twice, and none that is done for nothing but a fault's own victim.
* No commit is skipped or blamed except those that are broken.
* Nothing is left: process, guest, held lock, temporary file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bisector.adapters.guest import qemu_processes
from bisector.adapters.guest.libvirt_testbed import domain_prefix
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.adapters.system import processes
from bisector.model.decisions import Conclusion, Decision, Measure
from bisector.model.records import Booted, Built, Left, Ran, Record, RunFailed
from tests.campaign.record_checks import repeated_work
from tests.campaign.striking import lines

_DAEMONS = ("libvirtd", "virtlogd")

_TOLERANCE = 1e-3
"""Of numbers in reports of the same samples: relative changes, so 0.1%; the culprit's effect is 10%."""
_TOLERANCE_FLAGGED = 5e-3
"""Where one sample more or less counted: a few times the noise of a run, 0.1%."""


@dataclass(frozen=True)
class Truth:
    """The culprit of a history, and which commits are broken: full ids."""

    culprit: str
    no_build: frozenset[str] = frozenset()
    no_boot: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Records:
    """What the store holds. rows: (sequence number, record or decision), in order."""

    id: str = ""
    status: str = ""
    rows: tuple[tuple[int, Record | Decision], ...] = ()
    conclusion: Conclusion | None = None
    shas: tuple[str, ...] = ()

    @property
    def records(self) -> list[Record]:
        """The records alone."""
        return [row for _, row in self.rows if not isinstance(row, Measure | Conclusion)]


@dataclass(frozen=True)
class Ended:
    """How a bisection has ended."""

    stored: Records
    report: Mapping[str, Any]


def state_of(folder: Path) -> Path:
    """Return the state folder of a case."""
    return folder / "disk" / "state"


def read_records(folder: Path) -> Records:
    """Return what the store holds; nothing before there is one."""
    path = state_of(folder) / "perfbisect.sqlite"
    if not path.exists():
        return Records()
    store = SqlStore(open_state_file(path))
    found = store.list()
    if not found:
        return Records()
    (summary,) = found
    stored = store.load(summary.id)
    rows = [*store.records(stored.id), *store.decisions(stored.id)]
    ordered = tuple(sorted(rows, key=lambda row: row[0]))
    return Records(stored.id, stored.status, ordered, stored.conclusion, stored.graph.shas)


def read_end(folder: Path) -> Ended:
    """Return how the bisection ended, with the report that was written."""
    stored = read_records(folder)
    path = state_of(folder) / "bisections" / stored.id / "report.json"
    return Ended(stored, json.loads(path.read_text()) if path.exists() else {})


def nothing_lost(before: Records, after: Records) -> list[str]:
    """The rows of before are the first of those after."""
    if after.rows[: len(before.rows)] == before.rows:
        return []
    pairs = zip(before.rows, [*after.rows, *[None] * len(before.rows)], strict=False)
    first = next((old, new) for old, new in pairs if old != new)
    return [f"a record is lost or changed: {first[0]} became {first[1]}"]


def well_said(code: int, said: str) -> list[str]:
    """A process ends with a code of its own, and not in a way that nobody thought of."""
    found = []
    if code not in (0, 3, 130, -9):
        found.append(f"exit code {code}: {said[-1500:]}")
    if code == 3 and "resume" not in said:
        found.append(f"exit code 3 without a word of resuming: {said[-1500:]}")
    for words in ("perfbisect itself failed", "Traceback", "this is a defect of perfbisect"):
        if words in said:
            found.append(f"it said '{words}': {said[-3000:]}")
    return found


def check(folder: Path, truth: Truth, ended: Ended, expected: Ended | None, faults: int) -> list[str]:
    """Return what does not hold at the end.

    expected: how it ends without faults, None where runs do not repeat; faults: how many have struck.
    """
    return [
        *right_culprit(ended, truth),
        *nobody_blamed(ended.stored, truth),
        *repeated_work(ended.stored.rows),
        *_work_done_twice(folder, ended.stored, faults),
        *(as_without_faults(ended, expected) if expected is not None else ()),
        *nothing_left(folder),
    ]


def right_culprit(ended: Ended, truth: Truth) -> list[str]:
    """The culprit is found, proven and reported."""
    conclusion = ended.stored.conclusion
    if conclusion is None or ended.stored.status != "done":
        return [f"no conclusion; status '{ended.stored.status}'"]
    found = [finding.commits for finding in conclusion.findings]
    culprit = ended.stored.shas.index(truth.culprit)
    wrong = (
        [] if found == [(culprit,)] else [f"found {found}, the culprit is {culprit}: {conclusion.summary}"]
    )
    if not all(finding.certified for finding in conclusion.findings):
        wrong.append(f"not certified: {conclusion.summary}")
    if ended.report.get("exit_code") != 0 or len(ended.report.get("findings", ())) != len(found):
        wrong.append("the written report is not that of the conclusion")
    return wrong


def nobody_blamed(stored: Records, truth: Truth) -> list[str]:
    """Only commits that are broken count as failed."""
    commits = {record.boot: record.commit for record in stored.records if isinstance(record, Booted)}
    found = []
    for record in stored.records:
        match record:
            case Built(ok=False) if stored.shas[record.commit] not in truth.no_build:
                found.append(f"blamed: {record}")
            case Booted(ok=False) if stored.shas[record.commit] not in truth.no_boot:
                found.append(f"blamed: {record}")
            case RunFailed():
                found.append(f"blamed: commit {commits.get(record.boot)}: {record}")
    return found


def _work_done_twice(folder: Path, stored: Records, faults: int) -> list[str]:
    """Runs and builds that took place and are in no record: at most one for each fault, its own victim.

    Only fakes tell what took place.
    """
    if not (folder / "runs.log").exists():
        return []
    executed, recorded = len(lines(folder / "runs.log")), sum(isinstance(r, Ran) for r in stored.records)
    found = []
    if not recorded <= executed <= recorded + faults:
        found.append(f"{executed} runs were executed and {recorded} recorded, with {faults} faults")
    builds = Counter(lines(folder / "builds.log"))
    again = sum(builds.values()) - len(builds)
    if again > faults:
        found.append(f"{again} builds were repeated, with {faults} faults: {builds}")
    return found


def as_without_faults(ended: Ended, expected: Ended) -> list[str]:
    """Every run measured what it measures without faults; the same runs give the same report.

    Which run comes next depends on how long builds and boots took: only where the same was measured in the
    same order, and no boot was lost, is the report the same. Its intervals allow for drift, so they depend a
    little on when runs ended. A run that was flagged, because the host was busy, does not count: the report
    says so, and its numbers are those of the others.
    """
    mine, theirs = _measured(ended.stored.records), _measured(expected.stored.records)
    known = dict(theirs)
    found = [
        f"measured {v} at {k}, without faults {known[k]}" for k, v in mine if k in known and v != known[k]
    ]
    if mine == theirs and not any(isinstance(r, Left) and r.lost for r in ended.stored.records):
        flagged = any(isinstance(r, Ran) and r.flags for r in ended.stored.records)
        tolerance = _TOLERANCE_FLAGGED if flagged else _TOLERANCE
        one, other = _compared(ended.report), _compared(expected.report)
        different = [key for key in one if not _alike(one[key], other[key], tolerance)]
        found += [f"the report's '{key}' is {one[key]}, not {other[key]}" for key in different]
    return found


def _compared(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be the same with and without faults."""
    keys = ("ending", "confidence", "total", "rest", "levels", "warnings", "untestable")
    compared = {key: report.get(key) for key in keys}
    said = compared["warnings"] or []
    return {**compared, "warnings": [text for text in said if "flagged as suspicious" not in text]}


def _alike(one: Any, other: Any, tolerance: float) -> bool:
    """Return whether two values of a report are equal, their numbers within the tolerance."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[k], other[k], tolerance) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _alike(*pair, tolerance) for pair in zip(one, other, strict=True)
        )
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= tolerance
    return bool(one == other)


def _measured(records: Sequence[Record]) -> list[tuple[tuple[int, int, int], float]]:
    """Return ((commit, layout, index of the run), value) of every run, in order."""
    boots = {record.boot: record for record in records if isinstance(record, Booted)}
    runs = [record for record in records if isinstance(record, Ran)]
    return [
        ((boots[r.boot].commit, boots[r.boot].layout, r.index), next(iter(r.values.values()))) for r in runs
    ]


# --- what is left -------------------------------------------------------------------------------------------


def nothing_left(folder: Path) -> list[str]:
    """No process, guest, held lock or temporary file is left behind a bisection that has ended."""
    state, disk = state_of(folder), folder / "disk"
    found = [f"a guest is left: {pid}" for pid in qemu_processes.qemu_pids(domain_prefix(state))]
    found += [f"a process is left: {_command(pid)}" for pid in processes_of(folder)]
    for lock in disk.rglob("*.lock"):
        try:
            with FileLock(lock, timeout=0):
                pass
        except Timeout:
            found.append(f"a lock is held: {lock.relative_to(disk)}")
    found += [f"a file is left: {path.relative_to(disk)}" for path in _temporary(disk)]
    return found


def _temporary(disk: Path) -> Iterator[Path]:
    """Yield files that nothing needs once a bisection has ended."""
    yield from (disk / "tmp").iterdir()
    names = re.compile(
        r"\..*|building-.*|reserve|probe|executor\.holder|serial\.(in|out)|initramfs|deploy\.(tar|gate)"
    )
    for path in disk.rglob("*"):
        if names.fullmatch(path.name):
            yield path


def processes_of(folder: Path) -> list[int]:
    """Return the processes that a bisection of this folder started, but for libvirt's daemons, which stay."""
    mark = f"FAULT_CAMPAIGN={folder}\0".encode()
    found = []
    for pid, arguments in processes.command_lines():
        with contextlib.suppress(OSError):
            daemon = Path(os.fsdecode(arguments[0])).name in _DAEMONS
            if not daemon and mark in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found


def mounts_below(folder: Path) -> list[str]:
    """Return what is mounted there."""
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [point for point in mounted if Path(point).is_relative_to(folder)]


def stacks(pid: int) -> str:
    """Return where a process hangs, as far as the system tells."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["py-spy", "dump", "--pid", str(pid)], capture_output=True, text=True, timeout=20, check=False
        )
        return done.stdout
    return f"process {pid} in state {os.path.basename(os.readlink(f'/proc/{pid}/exe'))}"


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes()!r}"
    return str(pid)
