"""One bisection as one process executes it: visits to testbeds, until it has ended or must stop.

A visit is the unit of a testbed's time: boots and trials for one bisection. It ends with the search, or
when another bisection wants the testbed: between two boots, and while a kernel is built.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bisector.engine.decider import Decider
from bisector.engine.events import Event, EventKind, EventSender, OnEvent
from bisector.engine.journal import Journal
from bisector.engine.machines.giving_back import give_back, quarantine, set_aside
from bisector.engine.membership import testbed_resource
from bisector.engine.services import Services
from bisector.engine.trial_kernels import TrialKernels, check_stop
from bisector.engine.trial_runner import TrialRunner
from bisector.errors import InfrastructureError, Interrupted, PerfbisectError
from bisector.model.decisions import Conclusion, Measure, Released
from bisector.model.leases import Lease
from bisector.model.stored_bisection import OPEN, TO_EXECUTE, Action, Stored, failure
from bisector.schemas.request import read_accepted

Wanted = Callable[[], bool]
"""Returns whether another bisection should have the testbed, at the next moment when it can be left."""

_WAIT_SECONDS = 0.2
"""How soon an idle testbed notices that another one's trial has ended; a boot takes longer."""
_LOOKS_ELSEWHERE = 5
"""Waits between two looks for trials of other workers: 200 idle testbeds ask the database 200 times a
second."""


@dataclass(frozen=True, slots=True)
class OpenBisection:
    """The state of a bisection in the process that executes it. The live boots are those of `trials`."""

    stored: Stored
    services: Services
    journal: Journal
    events: EventSender
    decider: Decider
    kernels: TrialKernels
    trials: TrialRunner

    @classmethod
    def take_up(
        cls, stored: Stored, services: Services, on_event: OnEvent, stop: threading.Event
    ) -> OpenBisection:
        """Go on where the records end."""
        accepted, folder = read_accepted(stored.request), services.folder(stored.id)
        journal = Journal(services.store, stored.id, stored.graph, accepted.the_goal(), folder)
        if services.coordinator is None:  # nobody else executes it: boots that are still open are lost
            journal.lose_boots(lambda testbed: True)
        events = EventSender(on_event, lambda: journal.state.costs)
        kernels = TrialKernels(accepted, stored.graph, services, journal, events, stop)
        trials = TrialRunner(journal, kernels, services, events, stop)
        decider = Decider(services.planner, journal, events)
        return cls(stored, services, journal, events, decider, kernels, trials)

    def carry_out(
        self, measure: Measure, testbed: str, wanted: Wanted | None = None
    ) -> InfrastructureError | None:
        """Do what was decided. Returns how the testbed failed; raises as `TrialRunner.carry_out`."""
        try:
            self.kernels.ahead([trial for _, trial in sorted(self.decider.under_way())])
            return self.trials.carry_out(measure, testbed, wanted)
        finally:
            self.decider.end(testbed, put_off=self.kernels.is_awaited(testbed))

    def conclude(self, conclusion: Conclusion) -> None:
        """Free the testbeds and write the end down."""
        self.trials.close()
        if self.services.coordinator is not None:  # of executors that died; others leave theirs themselves
            leased = {lease.resource for lease in self.services.coordinator.leases()}
            self.journal.lose_boots(lambda testbed: testbed_resource(testbed) not in leased)
        self.services.store.set_status(self.stored.id, "done", conclusion, expected=OPEN)
        self.events.send("done", conclusion.summary)


class BisectionRun:
    """Executes one bisection. `visit` is called in a thread for each testbed; the rest from one thread."""

    def __init__(
        self,
        bisection: str,
        open_: Callable[[], tuple[Stored, Services]],
        on_event: OnEvent,
        stop: threading.Event,
        testbeds: Sequence[str],
        lease: Lease | None = None,
    ) -> None:
        """Nothing is opened before the first visit: that takes seconds, and memory for the graph.

        stop: set to end all visits; testbeds: those that it may use here; lease: of the bisection, without
        which nothing can be written to a database server.
        """
        self.id = bisection
        self.lease = lease
        self.stop = stop
        self.testbeds = list(testbeds)
        """Those that have not failed."""
        self.given = frozenset(testbeds)
        self.visited: set[str] = set()
        """Testbeds that it uses now; another thread may look."""
        self.outdated = False
        """Whether the inventory gives it other testbeds now: its visits end, and it is opened again."""
        self.error: PerfbisectError | None = None
        self._machines: set[str] = set()  # in use; each must be given back
        self._abandoned = False
        self._make = open_
        self._on_event = on_event
        self._opening = threading.Lock()
        self._opened: OpenBisection | None = None
        self._several = len(self.testbeds) > 1

    @property
    def ended(self) -> bool:
        """Whether no further visit makes sense: it has concluded, failed, or was asked to stop."""
        return self.concluded or self.error is not None or self.stop.is_set()

    @property
    def concluded(self) -> bool:
        """Whether the search has its answer."""
        return self._opened is not None and self._opened.decider.conclusion is not None

    def awaits_kernel(self, testbed: str) -> bool:
        """Return whether it needs a kernel that is being built before it can do anything on a testbed."""
        return self._opened is not None and self._opened.kernels.is_awaited(testbed)

    @property
    def failure(self) -> Action | None:
        """What is kept with it where it has failed."""
        return None if self.error is None else failure(self.error.message)

    @property
    def to_give_back(self) -> frozenset[str]:
        """Machines that do not run their own kernel yet; giving them back takes time even after a stop."""
        return frozenset() if self._abandoned else frozenset(self._machines)

    @property
    def leaves(self) -> bool:
        """Whether it needs no testbed any more, or must be taken up anew first."""
        return self.ended or self.outdated

    def note(self, text: str, kind: EventKind = "note") -> None:
        """Report what happens around the bisection to whoever watches it."""
        self._on_event(Event(kind, text))

    def visit(self, testbed: str, wanted: Wanted) -> None:
        """Use a testbed until the search ends or others want it. Raises nothing: see `error`."""
        self.visited.add(testbed)
        try:
            opened = self._open()
            with opened.services.claim(testbed, self.note, self.stop.is_set) as wanted_elsewhere:
                lives_on = opened.services.testbeds[testbed].has_own_kernel
                if lives_on:
                    self._machines.add(testbed)
                failed = None
                try:
                    failed = self._visit(opened, testbed, lambda: wanted() or wanted_elsewhere())
                except Exception as error:
                    self._fail(error)  # now, so that other visits end: giving a machine back takes a boot
                finally:
                    if lives_on:
                        self._give_back(opened, testbed)
            if failed is not None:
                self._set_aside(opened, testbed, failed)
        except Exception as error:
            self._fail(error)
        finally:
            self.visited.discard(testbed)

    def _fail(self, error: Exception) -> None:
        """Take note of what ended a visit."""
        if isinstance(error, Interrupted):
            if self.stop.is_set():
                return
            # It was not asked to stop: somebody killed what it had started.
            error = InfrastructureError(error.message, details=error.details)
        elif not isinstance(error, PerfbisectError):
            error = InfrastructureError(
                f"internal error: {type(error).__name__}: {error}",
                details="".join(traceback.format_exception(error)),
                cure="this is a defect of perfbisect: please report it; 'perfbisect resume' tries again",
            )
        self.error = self.error or error

    def close(self) -> None:
        """End every live boot and build; whoever waits for them returns soon. Raises nothing."""
        if self._opened is not None:
            self._opened.trials.close()

    def abandon(self) -> None:
        """End every live boot and write nothing: whoever resumes the bisection records them as lost."""
        self._abandoned = True
        self.stop.set()
        if self._opened is not None:
            self._opened.trials.abandon()

    def _open(self) -> OpenBisection:
        with self._opening:
            if self._opened is None:
                check_stop(self.stop)
                stored, services = self._make()
                if self.lease is not None:
                    services.executes_as(self.lease.executor)
                    services = replace(services, store=services.store.fenced(self.lease))
                services.tidy(services.folder(self.id))
                self._opened = OpenBisection.take_up(stored, services, self._on_event, self.stop)
                if not services.store.set_status(self.id, "running", expected=TO_EXECUTE):
                    self.stop.set()  # cancelled or paused meanwhile
                check_stop(self.stop)
            return self._opened

    def _visit(self, opened: OpenBisection, testbed: str, wanted: Wanted) -> InfrastructureError | None:
        """Carry out trials; return how the testbed failed, None while it is well."""
        decider, trials = opened.decider, opened.trials
        opened.journal.lose_boots(lambda name: name == testbed)
        booted = False
        try:
            while not self.ended:
                ended = decider.ended_trials
                passed_on = booted and wanted()
                decision = decider.decide(testbed, may_boot=not passed_on)
                if isinstance(decision, Conclusion):
                    opened.conclude(decision)
                elif isinstance(decision, Released):
                    self._release(opened, testbed, decision)
                    break
                elif decision is not None:
                    booted = True
                    failed = opened.carry_out(decision, testbed, wanted)
                    if failed is not None:
                        return failed
                elif passed_on or wanted():  # who wanted it may be gone by now; nothing is under way then
                    break
                else:
                    self._wait(opened, ended, wanted)
            check_stop(self.stop)
            trials.leave(testbed)
            return None
        finally:
            with contextlib.suppress(InfrastructureError):  # it must not hide why the visit ended
                trials.leave(testbed, lost=not self.stop.is_set())

    def _wait(self, opened: OpenBisection, ended: int, wanted: Wanted) -> None:
        """Wait until a trial ends on another testbed, or the testbed is wanted.

        ended: how many had ended in this process before it was decided to wait.
        """
        decider, looks = opened.decider, 0
        under_way = decider.under_way()
        # Nothing under way: it has ended meanwhile, or another process has to write the conclusion.
        while decider.ended_trials == ended and not (self.ended or wanted()):
            self.stop.wait(_WAIT_SECONDS)
            looks += 1
            if looks % _LOOKS_ELSEWHERE == 0 and not (under_way and decider.under_way() >= under_way):
                return

    def _release(self, opened: OpenBisection, testbed: str, released: Released) -> None:
        """Stop using a testbed for good. Others may go on with the bisection elsewhere."""
        self.note(f"the testbed '{testbed}' is not needed any more. {released.reason}")
        with self._opening:
            self.testbeds.remove(testbed)
            if not self.testbeds and opened.services.coordinator is None:
                self.error = self.error or InfrastructureError(
                    f"no testbed is left that the search goes on with. {released.reason}",
                    cure=f"have {' or '.join(released.testbeds)} used again, then 'perfbisect resume'",
                )

    def _give_back(self, opened: OpenBisection, testbed: str) -> None:
        """Give back a machine that the visit has left, unless another process may have it already."""
        try:
            if not self._abandoned:
                give_back(opened.services, opened.events, testbed, lambda: self._abandoned)
        finally:
            self._machines.discard(testbed)

    def _set_aside(self, opened: OpenBisection, testbed: str, error: InfrastructureError) -> None:
        quarantine(opened.services, testbed, error)
        with self._opening:
            self.testbeds.remove(testbed)
            if self.testbeds:
                services, left = opened.services, self.testbeds
                set_aside(services, opened.journal, opened.events, testbed, error.message, left)
                return
        if self._several:
            text = f"no testbed is left; the last one, '{testbed}': {error.message}"
            error = InfrastructureError(text, details=error.details, cure=error.cure)
        self.error = self.error or error
