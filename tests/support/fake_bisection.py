"""A bisection on fakes: the real planner, engine and (if wanted) store, a synthetic lab for the rest.

As a program it runs or resumes one, so that tests can kill it: python fake_bisection.py FOLDER SEED PACE
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path

from bisector import bootstrap
from bisector.adapters.fakes import (
    METRIC,
    FakeBuilder,
    FakeSource,
    Faults,
    Pace,
)
from bisector.adapters.fakes_lab import LabModel, SyntheticLab
from bisector.adapters.fakes_testbed import FakeTestbed, job
from bisector.adapters.memory_store import MemoryStore
from bisector.adapters.store import SqlStore
from bisector.core.model import Budget, CommitGraph, Goal, Metric, Threshold
from bisector.core.planner import Planner
from bisector.engine import api
from bisector.engine.events import Event
from bisector.engine.services import Services
from bisector.errors import PerfbisectError
from bisector.interfaces.cli import leave
from bisector.ports import Store, Stored
from bisector.simulation.histories import linear
from bisector.spec import serial
from bisector.spec.request import Accepted, Request

COMMITS, CULPRIT = 24, 15
QUIET = LabModel(run_noise=0.2, untestable=0.0, build_seconds=60, boot_seconds=10, run_seconds=2)


def a_lab(graph: CommitGraph | None = None, model: LabModel = QUIET, seed: int = 1) -> SyntheticLab:
    return SyntheticLab(graph or linear(COMMITS), model, {CULPRIT: 10.0}, seed)


def accepted(
    lab: SyntheticLab, testbeds: tuple[str, ...] = ("fake",), budget: Budget | None = None
) -> Accepted:
    goal = Goal(
        Metric(METRIC, "s", "lower", Threshold(0.05)), budget=budget or Budget(), clock=lab.model.clock
    )
    shas, graph = lab.graph.shas, lab.graph
    return Accepted(
        request=Request(repo="/fake", good="good", bad="bad", workload="fake"),
        good=shas[graph.good],
        bad=shas[graph.bad],
        goal=serial.goal_to_json(goal),
        testbeds=testbeds,
        clock=lab.model.clock,
        workload="fake",
        workload_sum="fake",
    )


def services(
    lab: SyntheticLab,
    folder: Path,
    *,
    testbeds: tuple[str, ...] = ("fake",),
    store: Store | None = None,
    faults: Faults | None = None,
    pace: Pace | None = None,
    warmup: int = 0,
    builders: int = 1,
) -> Services:
    faults = faults or Faults()
    return Services(
        source=FakeSource(lab.graph),
        builders=[lambda stop: FakeBuilder(lab, folder / "kernels", faults=faults, pace=pace, stop=stop)]
        * builders,
        testbeds={name: FakeTestbed(name, lab, faults=faults, pace=pace) for name in testbeds},
        store=store or MemoryStore(),
        planner=Planner(),
        clock=bootstrap.SystemClock(),
        make_job=lambda path: job(path, warmup=warmup),
        state_dir=folder,
    )


def begin(store: Store, lab: SyntheticLab, testbeds: tuple[str, ...] = ("fake",)) -> Stored:
    return api.begin(store, accepted(lab, testbeds), lab.graph, time.time())[0]


def main() -> int:
    folder, seed, pace = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    lab = a_lab(seed=seed)
    store = SqlStore(folder / "perfbisect.sqlite")
    stored = begin(store, lab)

    def tell(event: Event) -> None:
        print(f"{event.kind} {event.commit} {event.text}", flush=True)

    try:
        conclusion = api.run(
            stored, services(lab, folder, store=store, pace=Pace(pace, pace, pace)), tell, stop
        )
    except PerfbisectError as error:
        print(f"{type(error).__name__}: {error.message} {error.details}", file=sys.stderr)
        return error.exit_code
    return api.exit_code(conclusion)


if __name__ == "__main__":
    leave(main())
