"""What `alert` commands cost with many alerts, beside the same with one: CPU seconds, and their ratio.

python -m tests.bench.series.many_alerts [ALERTS]
python -m tests.bench.series.many_alerts --look [ALERTS]    # one look of the chore, where all of them wait
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.adapters.store.sql_store import SqlStore
from bisector.app.alerts.follow_alerts import follow
from bisector.model.alerts import BY_PROGRAM, FINDINGS, HistoryEntry, alert_id
from bisector.model.machine_hours import HOUR_SECONDS
from bisector.model.series import owner_of
from tests.bench.process_cost import measure, perfbisect
from tests.support.series.alert_lab import AlertLab, a_series, found

REPEATS = 3
LINES = (
    "list",
    "alert list",
    "alert list --all --limit 1000000",
    "alert list --all --json",
    "alert list --series nightly-0 --state culprit",
    "alert show {last}",
)


def make_state(folder: Path, count: int) -> str:
    """Write so many alerts, of 20 series; return the id of the last."""
    alerts = SqlAlerts(open_state_file(folder / "perfbisect.sqlite"))
    identity = ""
    for number in range(count):
        good, bad = f"{2 * number:040x}", f"{2 * number + 1:040x}"
        series, finding = f"nightly-{number % 20}", FINDINGS[number % len(FINDINGS)]
        identity = alert_id(series, good, bad, "regression")
        made = found(0, 0, series, id=identity, last_good=good, first_bad=bad, finding=finding)
        culprits = (bad,) if finding == "culprit" else ()
        made = replace(made, why="three nights lie above those before", culprits=culprits, subject="sched: x")
        alerts.add(made, HistoryEntry(BY_PROGRAM, "suspect", made.why))
    return identity


def look(count: int) -> None:
    """Print what a look costs where so many alerts of 20 series wait for their budget; git is not asked."""
    asked: list[str] = []
    series = {f"nightly-{number}": a_series(f"nightly-{number}", budget=1.0) for number in range(20)}

    def commits(repo: str, good: str, bad: str) -> frozenset[str]:
        asked.append(good)
        return frozenset((bad,))

    with tempfile.TemporaryDirectory() as root:
        database = open_state_file(Path(root) / "perfbisect.sqlite")
        alerts, coordinator = SqlAlerts(database), SqlCoordinator(database)
        for name in series:
            coordinator.add_machine_time(owner_of(name), 2 * HOUR_SECONDS)
        for number in range(count):
            good, bad = f"{2 * number:040x}", f"{2 * number + 1:040x}"
            made = found(0, 0, f"nightly-{number % 20}", id=f"{number:010x}", last_good=good, first_bad=bad)
            waits = "waits: the series has had its 1 machine hours of seven days"
            alerts.add(
                replace(made, finding="confirmed", why=waits), HistoryEntry(BY_PROGRAM, "waiting", waits)
            )
        lab = AlertLab(series)
        context = replace(
            lab.context(alerts), store=SqlStore(database), coordinator=coordinator, commits=commits
        )
        for _ in range(2):  # the first look writes down what they wait for, where it is news
            asked.clear()
            start = time.process_time()
            follow(context)
            print(f"{count:,} alerts: {time.process_time() - start:.2f} s CPU, {len(asked):,} ranges asked")


def main(arguments: list[str]) -> None:
    """Print a row for each command."""
    if arguments[:1] == ["--look"]:
        look(int(arguments[1]) if arguments[1:] else 5000)
        return
    counts = (1, int(arguments[0]) if arguments else 5000)
    with tempfile.TemporaryDirectory() as root:
        folders = [Path(root) / str(number) for number in range(len(counts))]
        last = [make_state(folder, count) for folder, count in zip(folders, counts, strict=True)]
        print(f"{'command':48}{counts[0]:>8,}{counts[1]:>8,}   ratio")
        for line in LINES:
            cpu = [
                measure(
                    perfbisect(*line.format(last=identity).split()),
                    {"PERFBISECT_STATE_DIR": str(folder)},
                    REPEATS,
                ).cpu
                for folder, identity in zip(folders, last, strict=True)
            ]
            print(f"{line:48}{cpu[0]:>7.2f}s{cpu[1]:>7.2f}s{cpu[1] / cpu[0]:>8.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
