"""What holds of the records of every bisection, however often it was killed: nothing is done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bisector.model.decisions import Decision, Measure
from bisector.model.records import Booted, Built, Left, Ran, Record


def repeated_work(rows: Sequence[tuple[int, Record | Decision]]) -> list[str]:
    """Return what was recorded twice, or oftener than decided. rows: of one testbed, numbered, in order."""
    return [*repeated_records(rows), *_undecided_runs(rows)]


def repeated_records(rows: Sequence[tuple[int, Record | Decision]]) -> list[str]:
    """Return what was recorded twice, on any number of testbeds. rows: numbered, in order."""
    records = [row for _, row in rows]
    found = []
    built = Counter((r.commit, r.layout) for r in records if isinstance(r, Built))
    found += [f"built {n} times: {what}" for what, n in built.items() if n > 1]
    boots = Counter(r.boot for r in records if isinstance(r, Booted))
    found += [f"booted {n} times: {boot}" for boot, n in boots.items() if n > 1]
    for boot in boots:
        runs = [r.index for r in records if isinstance(r, Ran) and r.boot == boot]
        if runs != list(range(len(runs))):
            found.append(f"runs of {boot} are {runs}")
    failed = {r.boot for r in records if isinstance(r, Booted) and not r.ok}
    left = Counter(r.boot for r in records if isinstance(r, Left))
    found += [
        f"{boot} was left {left[boot]} times" for boot in boots if left[boot] != 1 and boot not in failed
    ]
    return found


def _undecided_runs(rows: Sequence[tuple[int, Record | Decision]]) -> list[str]:
    found = []
    wanted = done = 0
    for _, row in rows:
        if isinstance(row, Measure):
            wanted, done = row.runs, 0
        elif isinstance(row, Ran) and not row.warmup and not row.flags:
            done += 1
            if done == wanted + 1:
                found.append(f"more than {wanted} runs for one decision: {row}")
    return found
