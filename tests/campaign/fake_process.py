"""The process of a bisection on fakes: the real command line over `fake_lab`, and faults that strike."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import scipy.stats  # noqa: F401

from bisector.adapters.agent import session as agent_session
from bisector.adapters.guest import libvirt_testbed, liveness
from bisector.adapters.guest.channel_fifo import FifoLine
from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed
from bisector.adapters.system import files
from bisector.adapters.system.channel import LineClosed, LineSilent
from bisector.app import find_culprit
from bisector.app.execution import bisection_services
from bisector.app.wiring import Wiring
from bisector.engine import build_queue, executor, trial_runner
from bisector.engine.services import Services
from bisector.model.commit_graph import CommitGraph
from bisector.resources import resource
from bisector.schemas.connection import Connection
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.machine.testbed_variables import TestbedVariables
from bisector.schemas.request import Accepted, Request
from bisector.search.planner import Planner
from bisector.testing.fakes import FakeSource
from tests.campaign import fake_lab
from tests.campaign.faults import Fault
from tests.campaign.hurt_process import HurtProcess, WatchedTestbed, replace_all
from tests.campaign.striking import Helper, Striker
from tests.support import fake_bisection

TESTBED = "guest"

_SHORTER: tuple[tuple[Any, str, float], ...] = (
    (trial_runner, "_PAUSE_SECONDS", 0.01),
    (executor, "_POLL_SECONDS", 0.05),
    (build_queue, "_WAIT_SECONDS", 0.01),
    (files, "_LOCK_POLL_SECONDS", 0.01),
    (agent_session, "_CONSOLE_DELAY_SECONDS", 0.05),
    (agent_session, "_CONSOLE_POLL_SECONDS", 0.02),
    (agent_session, "_ANSWER_SECONDS", 1.0),
    (liveness, "_PROBE_SECONDS", 0.02),
)
"""Waits that are made shorter, for on fakes everything takes milliseconds."""


class _Line(FifoLine):
    """A line to a guest that says 'running' once a run was asked for; it can be cut while the guest lives."""

    def __init__(self, path: Path, striker: Striker) -> None:
        super().__init__(path)
        self._striker = striker
        self.cut: Exception | None = None

    def send(self, text: str) -> None:
        super().send(text)
        if text == "run":
            self._striker.moment("running")

    def receive(self, timeout: float) -> str:
        text = super().receive(timeout)
        if self.cut is not None:
            raise self.cut
        return text


class FakeProcess(HurtProcess):
    """See `HurtProcess`."""

    def __init__(self, folder: Path, variant: int, faults: Sequence[Fault], helper: Helper) -> None:
        super().__init__(folder, variant, faults, helper)
        self.cache = self.disk / "cache"
        self.lab = fake_lab.make_lab(variant)
        self.libvirt = fake_lab.FakeLibvirt(self.lab, folder / "runs.log", self.striker.moment)
        self._line: _Line | None = None

    def patch(self) -> None:
        os.environ["PERFBISECT_CACHE_DIR"] = str(self.cache)
        replace_all(_SHORTER)
        replace_all(
            (
                (libvirt_testbed, "Hypervisor", self.libvirt),
                (libvirt_testbed, "first_process", lambda cache, machine: b"init"),
                (libvirt_testbed, "FifoLine", self._open_line),
                (find_culprit, "accept_request", self._accept),
                (find_culprit, "bisection_services", self._services),
                (find_culprit, "require_ready", lambda *_: None),  # fakes need no compiler
                (find_culprit, "_expected", lambda *_: None),  # an estimate by simulation: half a second
                (Wiring, "source", lambda wiring, repo=None: FakeSource(self.lab.graph)),
            )
        )
        fake_lab.FakeAnsible.lab, fake_lab.FakeAnsible.log = self.lab, self.folder / "builds.log"
        fake_lab.FakeBuilder.moment = staticmethod(self._build_moment)

    def kill_libvirtd(self, fault: Fault) -> None:
        self.libvirt.dead = True

    def cut(self, fault: Fault) -> None:
        """The connection is closed, or says nothing any more."""
        if self._line is not None:
            closed = fault.choice < 0.7
            self._line.cut = LineClosed("the connection was cut") if closed else LineSilent("no answer")

    def boot_another(self) -> None:
        self.libvirt.wrong_kernel = True

    def _accept(self, wiring: object, request: Request) -> tuple[Accepted, CommitGraph]:
        accepted = fake_bisection.accepted(self.lab, (TESTBED,))
        chosen = request.model_copy(update={"recipe": fake_lab.RECIPE})  # never 'auto' once accepted
        return accepted.model_copy(update={"request": chosen}), self.lab.graph

    def _services(self, wiring: Wiring, accepted: Accepted, stop: Any) -> Services:
        spec = TestbedSpec(
            TESTBED,
            TestbedVariables(kind="libvirt", clock="wall"),
            Connection(TESTBED, 22, "root", None, False),
        )
        ansible = fake_lab.FakeAnsible(resource("playbooks"), self.folder / "inventory", stop.is_set)
        testbed = LibvirtTestbed(spec, ansible, self.cache, self.state)

        def builder(stop: Any) -> fake_lab.FakeBuilder:
            own = fake_lab.FakeAnsible(resource("playbooks"), self.folder / "inventory", stop)
            return fake_lab.FakeBuilder(self.folder, self.cache, own)

        return Services(
            source=FakeSource(self.lab.graph),
            builders=[builder],
            testbeds={TESTBED: WatchedTestbed(testbed, self.striker, lambda kernel: kernel)},
            store=self.store,
            planner=Planner(),
            clock=self.clock,
            make_job=fake_lab.make_job,
            state_dir=self.state,
            tidy=partial(bisection_services._tidy, self.cache),
        )

    def _build_moment(self, name: str, image: Path | None = None) -> None:
        self.cached_image = image
        self.striker.moment(name)

    def _open_line(self, path: Path) -> _Line:
        self._line = _Line(path, self.striker)
        return self._line


def main(
    folder: Path, variant: int, faults: Sequence[Fault], arguments: Sequence[str], helper: Helper
) -> None:
    """Run one command line in this (forked) process and end it with the command's code."""
    FakeProcess(folder, variant, faults, helper).run(arguments)
