"""The detector of nightly series beside Perfherder's rule and e-divisive, on simulated series.

    python -m tests.bench.series.run [--series N] [--years N] [--seed N] [--processes N] [--only KIND,...]

It prints one table; the same options give the same table. --series: of each step; --years: series without a
step, of a year each, of each kind.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bisector.search.series.suspect_test import Outcome
from bisector.stats.change_points import NightLevels, scan
from tests.bench.series.rivals import RIVALS
from tests.bench.series.simulated import BOOTS, KINDS, Simulated, confirm, draw

STEPS = (0.0, 0.5, 1.0, 2.0, 5.0)
YEAR, STEP_AT, AFTER = 365, 60, 30
LEAST = 1.0
"""Percent: the threshold of the workload."""
COLUMNS = (
    "kind",
    "step %",
    "detector",
    "found %",
    "nights",
    "confirmed %",
    "nights",
    "suspects/y",
    "alerts/y",
)


@dataclass
class Row:
    """What one detector did in one cell. Nights are counted from 1, the first with the step."""

    series: int = 0
    nights: list[int] = field(default_factory=list)
    confirmed: list[int] = field(default_factory=list)
    false_suspects: int = 0
    false_alerts: int = 0
    testbed: int = 0
    extra_boots: int = 0
    usual_boots: int = 0


Confirmation = Callable[[float, int, int], tuple[Outcome, int]]
"""What confirms a suspect: from the effect in percent, the night and a seed to the outcome and its boots."""


def ours(row: Row, one: Simulated, at: int, seed: int, confirm: Confirmation) -> None:
    """Play the two stages night by night; count what they say and do."""
    nights = [
        NightLevels(*(tuple(x) if np.isfinite(x).all() else () for x in (b, r)))
        for b, r in zip(one.boots.tolist(), one.reference.tolist(), strict=True)
    ]
    settled: list[int] = []
    done, told = 0, False
    while done < len(nights):
        verdicts = scan(nights, settled, LEAST)
        for n in range(done, len(nights)):
            verdict = verdicts[n]
            if verdict.status == "testbed suspect" and not told:
                row.testbed, told = row.testbed + 1, True
            if verdict.status == "suspect":
                break
        else:
            return
        change = verdict.change
        assert change is not None
        sign = 1.0 if change.effect.estimate > 0 else -1.0
        truth = float(one.level[n] - one.level[change.last_good])
        outcome, boots = confirm(sign * truth, n, seed * 1000 + n)
        row.extra_boots += boots
        if truth == 0:
            row.false_suspects += 1
            row.false_alerts += outcome == "confirmed"
        elif not row.confirmed:
            if not row.nights:
                row.nights.append(n - at + 1)
            if outcome == "confirmed":
                row.confirmed.append(n - at + 2)  # its boots take the day after
        settled.append(change.first_bad)
        done = n + 1


def cell(job: tuple[str, float, int, int]) -> list[list[str]]:
    """Return the rows of one kind and step, one for each detector."""
    kind, step, series, seed = job
    length, at = (STEP_AT + AFTER, STEP_AT) if step else (YEAR, YEAR // 2)
    drawn = [draw(kind, length, step, at, seed + k) for k in range(series)]
    return compare(kind, step, drawn, at, seed, lambda e, n, s: confirm(kind, e, n >= at - 20, s))


def compare(
    kind: str, step: float, drawn: Sequence[Simulated], at: int, seed: int, confirm: Confirmation
) -> list[list[str]]:
    """Return the rows of series of one kind and step, one for each detector. at: the night of the step."""
    rows: dict[str, Row] = defaultdict(Row)
    for k, one in enumerate(drawn):
        mine = Row()
        ours(mine, one, at, seed + k, confirm)
        total = rows["perfbisect"]
        for name in ("nights", "confirmed"):
            getattr(total, name).extend(getattr(mine, name))
        for name in ("false_suspects", "false_alerts", "testbed", "extra_boots"):
            setattr(total, name, getattr(total, name) + getattr(mine, name))
        there = np.isfinite(one.boots[:, 0])
        total.usual_boots += int(there.sum()) * (BOOTS + 1)
        place = np.flatnonzero(there)
        for name, rival in RIVALS.items():
            theirs = rows[name]
            theirs.usual_boots += int(there.sum()) * BOOTS
            first: list[int] = []
            for n, first_bad in rival(one.boots[there]):
                # A change that is blamed on nights around the step counts as the step.
                if step and place[n] >= at and place[first_bad] >= at - 10:
                    first.append(int(place[n]) - at + 1)
                else:
                    theirs.false_suspects += 1
            theirs.nights.extend(first[:1])
        for row in rows.values():
            row.series += 1
    years = sum(len(one.level) for one in drawn) / YEAR
    return [_line(kind, step, name, row, years, name == "perfbisect") for name, row in rows.items()]


def _line(kind: str, step: float, name: str, row: Row, years: float, two_stages: bool) -> list[str]:
    def found(nights: list[int]) -> list[str]:
        if not step:
            return ["", ""]
        return [f"{100 * len(nights) / row.series:.0f}", f"{np.median(nights):.0f}" if nights else "-"]

    return [
        kind,
        f"{step:g}",
        name,
        *found(row.nights),
        *(found(row.confirmed) if two_stages else ["", ""]),
        f"{row.false_suspects / years:.1f}",
        f"{row.false_alerts / years:.2f}" if two_stages else f"{row.false_suspects / years:.2f}",
        f"{row.testbed / row.series:.2f}" if two_stages else "",
        f"{row.usual_boots / years:.0f}",
        f"{row.extra_boots / years:.0f}",
    ]


def print_head() -> None:
    """Print the head of the table."""
    columns = (*COLUMNS, "testbed suspect", "boots/y", "extra/y")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)


def print_rows(lines: Iterable[Sequence[str]]) -> None:
    """Print rows of the table."""
    for line in lines:
        print("| " + " | ".join(line) + " |", flush=True)


def main() -> None:
    """Print the table as its cells complete, in a fixed order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--years", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", default=",".join(KINDS))
    options = parser.parse_args()
    jobs = [
        (kind, step, options.series if step else options.years, options.seed)
        for kind in options.only.split(",")
        for step in STEPS
        if not (kind == "testbed moves" and step)
    ]
    print_head()
    with multiprocessing.Pool(options.processes) as pool:
        for lines in pool.imap(cell, jobs):
            print_rows(lines)


if __name__ == "__main__":
    main()
