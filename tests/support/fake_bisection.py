"""A bisection on fakes: the real planner, engine and (if wanted) store, a synthetic lab for the rest.

As a program it runs or resumes one, so that tests can kill it: python fake_bisection.py FOLDER SEED PACE
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.adapters.store.memory_store import MemoryStore
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.adapters.system.machine_locks import MachineLock
from bisector.app import bisections
from bisector.app.wiring import SystemClock, Wiring
from bisector.engine.events import Event
from bisector.engine.services import Services
from bisector.errors import PerfbisectError
from bisector.interfaces.cli import leave
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import EXIT_CODES, Measure
from bisector.model.goal import Budget, Goal, Metric, Threshold
from bisector.model.records import Booted, Built, Left, Ran
from bisector.model.stored_bisection import Stored
from bisector.ports import Progress
from bisector.schemas import serialization
from bisector.schemas.request import Accepted, Request
from bisector.search.planner import Planner
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.store_ports import Store
from bisector.testing.fake_testbed import FakeTestbed, job
from bisector.testing.fakes import METRIC, FakeBuilder, FakeSource, Faults, Pace

if TYPE_CHECKING:
    import pytest

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
        goal=serialization.goal_to_json(goal),
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
        clock=SystemClock(),
        make_job=lambda path: job(path, warmup=warmup),
        state_dir=folder,
    )


def begin(store: Store, lab: SyntheticLab, testbeds: tuple[str, ...] = ("fake",)) -> Stored:
    return bisections.begin(store, accepted(lab, testbeds), lab.graph, time.time())[0]


def store_bisections(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SqlStore:
    """Store 'fake-old', cancelled, and 'fake-new', with one boot of its good end; return the store."""
    lab = a_lab()
    store = SqlStore(open_state_file(folder / "state" / "perfbisect.sqlite"))
    request = accepted(lab).model_dump_json()
    store.create(Stored("fake-old", 1.0, request, "cancelled", lab.graph))
    store.create(Stored("fake-new", 2.0, request, "running", lab.graph))
    good = lab.graph.good
    store.decide("fake-new", Measure(good, 2, "verify", "the good end comes first"))
    for record in (
        Built(good, True, 60.0, binary="a"),
        Booted("boot-001", good, "fake", True, 10.0, 100.0, purpose="verify"),
        Ran("boot-001", 0, {METRIC: 100.0}, 2.0, 102.0),
        Ran("boot-001", 1, {METRIC: 101.0}, 2.0, 104.0),
        Left("boot-001"),
    ):
        store.append("fake-new", record)
    monkeypatch.setattr(Wiring, "source", lambda wiring, repo=None: FakeSource(lab.graph))
    return store


def claiming(services: Services, bisection: str) -> Services:
    """Return services whose testbed is that of all fake bisections in folders beside this one's."""
    user = f"process {os.getpid()} (bisection '{bisection}', state folder {services.state_dir})"
    locks = services.state_dir.parent / "locks"

    @contextmanager
    def claim(name: str, progress: Progress, stop: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
        lock = MachineLock(locks, (f"testbed-{name}",), f"the testbed '{name}'", user, stop)
        with lock.exclusive(progress):
            yield lock.is_wanted

    return replace(services, claim=claim)


def main() -> int:
    folder, seed, pace = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    lab = a_lab(seed=seed)
    store = SqlStore(open_state_file(folder / "perfbisect.sqlite"))
    stored = begin(store, lab)

    def tell(event: Event) -> None:
        print(f"{event.kind} {event.commit} {event.text}", flush=True)

    try:
        adapters = services(lab, folder, store=store, pace=Pace(pace, pace, pace))
        conclusion = bisections.run(stored, claiming(adapters, stored.id), tell, stop)
    except PerfbisectError as error:
        print(f"{type(error).__name__}: {error.message} {error.details}", file=sys.stderr)
        return error.exit_code
    return EXIT_CODES[conclusion.ending]


if __name__ == "__main__":
    leave(main())
