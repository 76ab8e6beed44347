"""One bisection as one process executes it: visits to testbeds, until it has ended or must stop.

A visit is the unit of a testbed's time: boots and trials for one bisection. It ends with the search, or
between two boots when another bisection wants the testbed.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bisector.engine.decider import Decider
from bisector.engine.events import Event, EventSender, OnEvent
from bisector.engine.journal import Journal
from bisector.engine.services import Services
from bisector.engine.trial_kernels import TrialKernels, check_stop
from bisector.engine.trial_runner import TrialRunner
from bisector.errors import InfrastructureError, Interrupted, PerfbisectError
from bisector.model.decisions import Conclusion, Measure
from bisector.model.leases import Lease
from bisector.model.stored_bisection import OPEN, TO_EXECUTE, Stored
from bisector.schemas.request import read_accepted

Wanted = Callable[[], bool]
"""Tells whether another bisection should have the testbed, at the next moment when it can be left."""

_WAIT_SECONDS = 0.2
"""How soon an idle testbed notices that another one's trial has ended; a boot takes longer."""


@dataclass(frozen=True, slots=True)
class OpenBisection:
    """What a process holds of a bisection that it executes. The live boots are those of `trials`."""

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
        """Go on where the records end; boots that are still open there are lost."""
        accepted, folder = read_accepted(stored.request), services.folder(stored.id)
        journal = Journal(services.store, stored.id, stored.graph, accepted.the_goal(), folder)
        events = EventSender(on_event, lambda: journal.state.costs)
        kernels = TrialKernels(accepted, stored.graph, services, journal, events, stop)
        trials = TrialRunner(journal, kernels, services, events, stop)
        decider = Decider(services.planner, journal, events)
        return cls(stored, services, journal, events, decider, kernels, trials)

    def carry_out(self, measure: Measure, testbed: str) -> InfrastructureError | None:
        """Do what was decided. Returns how the testbed failed; raises as `TrialRunner.carry_out`."""
        try:
            self.kernels.ahead(self.decider.under_way())
            return self.trials.carry_out(measure, testbed)
        finally:
            self.decider.end(testbed)

    def conclude(self, conclusion: Conclusion) -> None:
        """Free the testbeds and write the end down."""
        self.trials.close()
        self.services.store.set_status(self.stored.id, "done", conclusion, expected=OPEN)
        self.events.send("done", conclusion.summary)


class BisectionRun:
    """Executes one bisection. `visit` is called in a thread for each testbed; the rest from one thread."""

    def __init__(
        self,
        stored: Stored,
        open_services: Callable[[], Services],
        on_event: OnEvent,
        stop: threading.Event,
        testbeds: Sequence[str] = (),
        lease: Lease | None = None,
    ) -> None:
        """Nothing is opened before the first visit: that takes seconds.

        stop: set to end all visits; testbeds: by default all of the bisection; lease: of the bisection,
        without which nothing can be written to a database server.
        """
        self.id = stored.id
        self.lease = lease
        self.created = stored.created
        self.stop = stop
        self.testbeds = list(testbeds or read_accepted(stored.request).testbeds)
        """Those that have not failed."""
        self.error: PerfbisectError | None = None
        self._stored = stored
        self._open_services = open_services
        self._on_event = on_event
        self._opening = threading.Lock()
        self._opened: OpenBisection | None = None
        self._several = len(self.testbeds) > 1

    @property
    def ended(self) -> bool:
        """Whether no further visit makes sense: it has concluded, failed, or was told to stop."""
        concluded = self._opened is not None and self._opened.decider.conclusion is not None
        return concluded or self.error is not None or self.stop.is_set()

    def note(self, text: str) -> None:
        """Tell whoever watches the bisection what happens around it."""
        self._on_event(Event("note", text))

    def visit(self, testbed: str, wanted: Wanted) -> None:
        """Use a testbed until the search ends or others want it. Raises nothing: see `error`."""
        try:
            opened = self._open()
            with opened.services.claim(testbed, self.note, self.stop.is_set) as wanted_elsewhere:
                failed = self._visit(opened, testbed, lambda: wanted() or wanted_elsewhere())
            if failed is not None:
                self._set_aside(opened, testbed, failed)
        except Interrupted as error:
            if not self.stop.is_set():  # nobody told it to stop: somebody killed what it had started
                self.error = self.error or InfrastructureError(error.message, details=error.details)
        except PerfbisectError as error:
            self.error = self.error or error
        except Exception as error:
            self.error = self.error or InfrastructureError(
                f"internal error: {type(error).__name__}: {error}",
                details="".join(traceback.format_exception(error)),
                cure="this is a defect of perfbisect: please report it; 'perfbisect resume' tries again",
            )

    def close(self) -> None:
        """End every live boot and build; whoever waits for them returns soon. Raises nothing."""
        if self._opened is not None:
            self._opened.trials.close()

    def _open(self) -> OpenBisection:
        with self._opening:
            if self._opened is None:
                check_stop(self.stop)
                services = self._open_services()
                if self.lease is not None:
                    services.executes_as(self.lease.executor)
                    services = replace(services, store=services.store.fenced(self.lease))
                services.tidy(services.folder(self.id))
                self._opened = OpenBisection.take_up(self._stored, services, self._on_event, self.stop)
                if not services.store.set_status(self.id, "running", expected=TO_EXECUTE):
                    self.stop.set()  # cancelled or paused meanwhile
                check_stop(self.stop)
            return self._opened

    def _visit(self, opened: OpenBisection, testbed: str, wanted: Wanted) -> InfrastructureError | None:
        """Carry out trials; return how the testbed failed, None while it is well."""
        decider, trials = opened.decider, opened.trials
        booted = False
        try:
            while not self.ended:
                ended_trials = decider.ended_trials
                decision = decider.decide(testbed, may_boot=not (booted and wanted()))
                if isinstance(decision, Conclusion):
                    opened.conclude(decision)
                elif decision is not None:
                    booted = True
                    failed = opened.carry_out(decision, testbed)
                    if failed is not None:
                        return failed
                elif wanted():
                    break
                else:
                    while decider.ended_trials == ended_trials and not (self.ended or wanted()):
                        self.stop.wait(_WAIT_SECONDS)
            check_stop(self.stop)
            trials.leave(testbed)
            return None
        finally:
            with contextlib.suppress(InfrastructureError):  # it must not hide why the visit ended
                trials.leave(testbed, lost=not self.stop.is_set())

    def _set_aside(self, opened: OpenBisection, testbed: str, error: InfrastructureError) -> None:
        with self._opening:
            self.testbeds.remove(testbed)
            if self.testbeds:
                opened.trials.set_aside(testbed, error.message, self.testbeds)
                return
        if self._several:
            text = f"no testbed is left; the last one, '{testbed}': {error.message}"
            error = InfrastructureError(text, details=error.details, cure=error.cure)
        self.error = self.error or error
