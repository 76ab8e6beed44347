"""Wall time of the same trials on three testbeds beside one: on hosts of their own, and all on one host.

The real engine on fakes that take real time and take turns on their hosts by the wall clock. The builder is
on a host of its own, or on that of the testbeds. python -m tests.bench.side_by_side [TRIALS]
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bisector.adapters.machine.host_turns import TestbedOnHost
from bisector.adapters.system.machine_locks import MachineLock
from bisector.app import bisections
from bisector.model.decisions import Conclusion, Decision, Ending, Measure
from bisector.model.state import State
from bisector.ports import BuildOrder, Kernel, Progress
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fake_testbed import FakeTestbed
from bisector.testing.fakes import FakeBuilder, Pace
from tests.support import fake_bisection as fake

RUNS = 3
PACE = Pace(build=0.2, boot=4.0, run=4.0)
"""Seconds: a trial takes 16, of which the engine's own 0.2 are little; the builder keeps up with three."""
MODEL = LabModel(run_noise=0.2, clock="wall", build_seconds=0.2, boot_seconds=4.0, run_seconds=4.0)


class Each:
    """A planner that wants a visit to each of the first commits, whoever makes it."""

    def __init__(self, trials: int) -> None:
        self._trials = trials

    def next(self, state: State) -> Decision:
        taken = {visit.commit for visit in state.visits} | {m.commit for m in state.pending}
        for commit in range(1, self._trials + 1):
            if commit not in taken:
                return Measure(commit, RUNS, "search", "each once")
        return Conclusion(Ending.INCONCLUSIVE, "each was measured")


class BuilderInTurn(FakeBuilder):
    """A builder that takes turns on its host as the real one does."""

    def __init__(self, lab: SyntheticLab, folder: Path, host: MachineLock) -> None:
        super().__init__(lab, folder, pace=PACE)
        self._host = host

    def build(self, order: BuildOrder, progress: Progress) -> Kernel:
        with self._host.shared(progress):
            return super().build(order, progress)


def elapsed(hosts: Sequence[str], trials: int, builder: str) -> float:
    """Return the seconds of so many trials on testbeds of these hosts, one each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lab = SyntheticLab(linear(trials + 2), MODEL, {1: 10.0}, 1)
        locks = folder / "locks"
        turns = {host: MachineLock(locks, (host,), "its turn", "bench") for host in (*hosts, builder)}
        testbeds = {
            f"bed-{number}": TestbedOnHost(FakeTestbed(f"bed-{number}", lab, pace=PACE), turns[host])
            for number, host in enumerate(hosts)
        }
        services = replace(
            fake.services(lab, folder, testbeds=tuple(testbeds)),
            testbeds=testbeds,
            builders=[lambda stop: BuilderInTurn(lab, folder / "kernels", turns[builder])],
            planner=Each(trials),
        )
        stored = fake.begin(services.store, lab, tuple(testbeds))
        began = time.monotonic()
        bisections.run(stored, services, lambda _: None, threading.Event())
        return time.monotonic() - began


def main(trials: int) -> None:
    """Print a line for each placement."""
    one = elapsed(["a"], trials, "builder")
    print(f"one testbed: {one:.1f} s for {trials} trials of {RUNS} runs", flush=True)
    for what, hosts, builder in (
        ("three on three hosts, the builder on another", "abc", "builder"),
        ("three on three hosts, the builder on the first's", "abc", "a"),
        ("three on one host, the builder on another", "aaa", "builder"),
        ("three on one host, the builder there too", "aaa", "a"),
    ):
        taken = elapsed(hosts, trials, builder)
        print(f"{what}: {taken:.1f} s, {3 * taken / one:.2f} times a third of it", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
