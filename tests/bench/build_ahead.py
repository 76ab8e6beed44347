"""Wall time of a bisection beside the same one with every kernel built before: what waiting for builds costs.

The real engine and planner on fakes that take real time: a build as long as a visit (boot and runs), which is
where building ahead matters most. python -m tests.bench.build_ahead [SEEDS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from bisector.app import bisections
from bisector.ports import BuildOrder
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fakes import FakeBuilder, Pace
from tests.support import fake_bisection as fake

COMMITS = 64
PACE = Pace(build=2.5, boot=1.5, run=0.5)
"""Seconds: long enough that the engine's own 0.2 s a trial hardly count, short enough for a coffee."""
MODEL = LabModel(
    run_noise=0.0, background=0.1, clock="instructions", build_seconds=2.5, boot_seconds=1.5, run_seconds=0.5
)


def one(seed: int, builders: int, ahead: int, *, prebuilt: bool = False) -> float:
    """Return the seconds of one bisection."""
    culprit = 1 + (seed * 37) % (COMMITS - 1)
    lab = SyntheticLab(linear(COMMITS), MODEL, {culprit: 10.0}, seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if prebuilt:
            builder = FakeBuilder(lab, folder / "kernels")
            for sha in lab.graph.shas:
                builder.build(BuildOrder(sha, "x86_64-guest"), lambda _: None)
        services = fake.services(lab, folder, builders=builders, pace=PACE)
        accepted = fake.accepted(lab)
        request = accepted.request.model_copy(update={"build_ahead": ahead})
        accepted = accepted.model_copy(update={"request": request})
        stored, _ = bisections.begin(services.store, accepted, lab.graph, 0.0)
        began = time.monotonic()
        conclusion = bisections.run(stored, services, lambda _: None, threading.Event())
        seconds = time.monotonic() - began
    assert conclusion.findings[0].commits == (culprit,), conclusion.summary
    return seconds


def main(seeds: int) -> None:
    """Print a line for each number of builders."""
    everything = range(1, seeds + 1)
    alone = [one(seed, 1, 0, prebuilt=True) for seed in everything]
    print(f"measuring alone: {statistics.fmean(alone):.1f} s (mean of {seeds})")
    for builders, ahead in ((1, 0), (1, 1), (2, 2), (4, 4), (8, 8), (16, 16)):
        taken = [one(seed, builders, ahead) for seed in everything]
        ratios = [t / a for t, a in zip(taken, alone, strict=True)]
        print(
            f"{builders:2d} builders, {ahead:2d} ahead: {statistics.fmean(taken):5.1f} s, "
            f"{statistics.fmean(ratios):.2f} times measuring alone (worst {max(ratios):.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
