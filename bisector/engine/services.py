"""The services of a bisection: one adapter for every port, put together by `bisector.app.wiring`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from bisector.engine.build_queue import MakeBuilder, Stop
from bisector.engine.shares.hour_counter import HourCounter
from bisector.model.commit_graph import CommitGraph
from bisector.model.records import FunctionEvidence, Irrelevant, Weighed
from bisector.model.state import State
from bisector.ports import Clock, Fix, Job, Progress, Source, Testbed
from bisector.search.loop import PlannerPort
from bisector.store_ports import Coordinator, Store

MakeJob = Callable[[Path], Job]
"""Builds the workload below a folder, once; raises RequestError when its own build fails."""


@dataclass(frozen=True, slots=True)
class Services:
    """testbeds: name -> testbed, the ones this bisection uses. builders: one or more.

    patches: on top of every commit tested; patched: id in the graph -> the commit that is meant and patches
    of its own, on top of the others; fixes: on top of those that need them, before the patches.
    state_dir holds `bisections/<id>/` with everything a bisection keeps. guest_image: checksum of the root
    file system of guests, '' where nobody knows it before the boot. measuring_builders: those of
    `builders`, by number, whose host also measures with a wall clock: they build nothing ahead. claim: holds
    a testbed against other perfbisects of this machine, and tells whether one of them waits for it; told when
    it waits itself. tidy: ends and removes what a killed executor left, given the bisection's folder; called
    before work is taken up. irrelevant: the commits that cannot change the kernel, as far as the builds of
    both ends show; None as long as they do not. weigh: prior weights of the others. functions: what
    functions that the ends execute differently tell of the commits; None as long as no testbed has counted
    both. coordinator: of a database server, None with a state file. why_not: says why a testbed must not be
    used now, None where it may. hours: counts who has testbeds. keep_boot: told the folder of each boot that
    has ended; executes_as: told under which executor's leases this process works. suspect: told a machine
    that has failed and why; nobody uses it then before somebody, or a health check, has looked. left:
    whether a process that was killed has used a machine and not given it back. served_by: whether a worker
    of a name has testbeds of it. stop: ends whatever the adapters do.
    """

    source: Source
    builders: Sequence[MakeBuilder]
    testbeds: Mapping[str, Testbed]
    store: Store
    planner: PlannerPort
    clock: Clock
    make_job: MakeJob
    state_dir: Path
    patches: tuple[Path, ...] = ()
    patched: Mapping[str, tuple[str, tuple[Path, ...]]] = field(default_factory=dict)
    fixes: tuple[Fix, ...] = ()
    guest_image: str = ""
    measuring_builders: frozenset[int] = frozenset()
    claim: Callable[[str, Progress, Stop], AbstractContextManager[Callable[[], bool]]] = lambda *_: (
        nullcontext(lambda: False)
    )
    tidy: Callable[[Path], object] = lambda bisection: None
    irrelevant: Callable[[CommitGraph], Irrelevant | None] = lambda graph: None
    weigh: Callable[[CommitGraph, Collection[int], FunctionEvidence | None], Weighed | None] = lambda *_: None
    functions: Callable[[State, Progress], FunctionEvidence | None] = lambda *_: None
    coordinator: Coordinator | None = None
    why_not: Callable[[str], str | None] = lambda testbed: None
    hours: HourCounter | None = None
    keep_boot: Callable[[Path], object] = lambda folder: None
    executes_as: Callable[[str], object] = lambda executor: None
    suspect: Callable[[str, str], object] = lambda testbed, reason: None
    left: Callable[[str], bool] = lambda testbed: False
    served_by: Callable[[str], bool] = lambda worker: True
    stop: threading.Event = field(default_factory=threading.Event)

    def folder(self, bisection: str) -> Path:
        """Return the folder of a bisection."""
        return self.state_dir / "bisections" / bisection
