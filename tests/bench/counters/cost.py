"""What counting costs, and that the guest does not see it: boots without, with counting, and with the model.

Boots take turns, so that a busy machine disturbs all alike. Prints the CPU time of QEMU for a run as a
ratio, what the guest's own clock says of run k in each boot, and the spread of each number over boots.
python -m tests.bench.counters.cost REPO REV [BOOTS] [RECIPE]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bisector.adapters.agent.payload import workload_job
from bisector.adapters.guest.guest_session import GuestSession
from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed
from bisector.app import kernels
from bisector.interfaces.cli import options
from bisector.ports import Counting
from bisector.schemas.workload.counted_metrics import COUNTERS
from bisector.schemas.workload.workload import load_workload

RUNS = 3
BASIC = tuple(name for name, one in COUNTERS.items() if not one.needs)
ARMS = {
    "nothing": None,
    "instructions": Counting(BASIC),
    "profile": Counting(BASIC, profile=True),
    "loads": Counting((*BASIC, "loads", "stores")),
    "branches": Counting((*BASIC, "branches", "branch-misses")),
    "model": Counting(tuple(COUNTERS)),
}

Values = dict[str, list[list[float]]]
"""Metric -> boots -> runs."""


def main(repo: str, rev: str, boots: int = 2, recipe: str = "x86_64-small") -> None:
    """Boot each arm so many times in turn, and print the table."""
    wiring = options.make_wiring(repo=Path(repo), trust_repo=True)
    settings, ansible = wiring.settings, wiring.ansible(lambda: False)
    machine = LibvirtTestbed(wiring.lab.testbeds[0], ansible, settings.cache_dir, settings.state_dir)
    kernel = wiring.builder().build(kernels.order(wiring, rev, recipe), print)
    found: dict[str, Values] = {arm: {} for arm in ARMS}
    with tempfile.TemporaryDirectory() as scratch:
        job = workload_job(load_workload("pipe-test"), Path(scratch) / "workload")
        for boot in range(boots):
            for arm, counting in ARMS.items():
                folder = Path(scratch) / f"{arm}-{boot}"
                folder.mkdir()
                session = machine.boot(kernel, replace(job, counting=counting), folder, lambda _: None)
                assert isinstance(session, GuestSession)
                try:
                    _measure(session, job.warmup, found[arm])
                finally:
                    session.leave()
                print(f"boot {boot} {arm}: {_last(found[arm])}", flush=True)
    _print(found)


def _measure(session: GuestSession, warmup: int, values: Values) -> None:
    boot: dict[str, list[float]] = {}
    for index in range(warmup + RUNS):
        before = session.domain.cpu_seconds() or 0.0
        run = session.run(index)
        taken = {**run.values, "CPU seconds": (session.domain.cpu_seconds() or 0.0) - before}
        for name, value in taken.items() if index >= warmup else ():
            boot.setdefault(name, []).append(value)
    for name, runs in boot.items():
        values.setdefault(name, []).append(runs)


def _last(values: Values) -> str:
    """Return the numbers of the latest boot, those of its runs side by side."""
    return ", ".join(
        f"{name} {' '.join(f'{run:.9g}' for run in boots[-1])}" for name, boots in values.items()
    )


def _print(found: dict[str, Values]) -> None:
    base = statistics.median(value for boot in found["nothing"]["CPU seconds"] for value in boot)
    for arm, values in found.items():
        cost = statistics.median(value for boot in values["CPU seconds"] for value in boot)
        clock = "; ".join(" ".join(f"{value:.6f}" for value in boot) for boot in values["real"])
        print(
            f"{arm:<13} CPU time of a run {cost:7.2f} s, {cost / base:5.2f} of that without;  real: {clock}"
        )
    for name, boots in found["model"].items():
        if name in COUNTERS:
            same_run = [max(run) / min(run) - 1 if min(run) else 0.0 for run in zip(*boots, strict=True)]
            all_runs = [value for boot in boots for value in boot]
            spread = max(all_runs) / min(all_runs) - 1 if min(all_runs) else 0.0
            print(
                f"{name:<20} {statistics.mean(all_runs):>16,.0f}  run k over boots {max(same_run):.4%}, "
                f"all runs {spread:.4%}"
            )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int((sys.argv[3:4] or ["2"])[0]), (sys.argv[4:5] or ["x86_64-small"])[0])
