"""Decides which kernel failures count against a commit: those of two boots, unless evidence clears it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from bisector.engine.events import EventSender
from bisector.engine.journal import Journal
from bisector.engine.machines.known_kernel import KnownKernel, KnownKernels
from bisector.engine.services import Services
from bisector.errors import InfrastructureError, KernelError, NoKernelRan, WorkloadFailed
from bisector.model.commit_graph import short_name
from bisector.model.decisions import Measure
from bisector.model.records import Booted, RunFailed
from bisector.ports import Job, Session

KERNEL_TRIES = 2
"""Boots that must fail before that counts: one may be the testbed's fault, and each skip blurs the answer."""


class KernelFailures:
    """Judges and records the failures of one bisection's kernels."""

    def __init__(
        self,
        journal: Journal,
        services: Services,
        known: KnownKernels,
        live: MutableMapping[str, tuple[str, Session]],
        leave: Callable[[str, KernelError], None],
        events: EventSender,
    ) -> None:
        """live: the live boots by testbed, with their names; leave: ends that of a testbed and records how
        it failed."""
        self._journal, self._services, self._known = journal, services, known
        self._live, self._leave, self._events = live, leave, events
        self._excused: set[str] = set()  # boots in which no run counted, and a known kernel fared no better

    def excused_by(
        self, known: KnownKernel | NoKernelRan, measure: Measure, testbed: str, job: Job
    ) -> InfrastructureError | None:
        """Return the testbed's failure if it is to blame; the commit's uncounted boots there are excused."""
        lost: InfrastructureError | None
        if isinstance(known, NoKernelRan):
            lost = known
        else:
            lost = self._known.check(known, testbed, job, self._events)
        if lost is not None:
            self._excused.update(self._journal.uncounted_boots(measure.commit, testbed))
        return lost

    def is_overdue(self, measure: Measure, testbed: str) -> bool:
        """Return whether enough boots of a commit on a testbed had no run that counts.

        Counted over trials: one of a few runs reaches the end of one such boot, and never of two.
        """
        uncounted = set(self._journal.uncounted_boots(measure.commit, testbed)) - self._excused
        return len(uncounted) >= KERNEL_TRIES

    def judge(
        self, error: KernelError, measure: Measure, testbed: str, late: bool, boot: str = ""
    ) -> InfrastructureError | None:
        """Record what a kernel did twice, or return that it is the testbed's failure, if others say so.

        late: it answered once, after its time was over; boot: the one in which it did it, if that has ended.
        """
        ran = isinstance(error, WorkloadFailed) or testbed in self._live
        well = testbed in self._known.ran_well
        doubt = self._journal.find_doubt(measure.commit, testbed, workload=ran, late=late, shown_well=well)
        if not doubt:
            self._record(error, measure, testbed, boot)
            return None
        self._leave(testbed, error)
        unit = self._journal.state.goal.unit
        text = f"not held against the {unit}: {error.message} ({doubt})"
        self._events.send("trouble", text, measure.commit, testbed)
        here = [visit for visit in self._journal.state.visits if visit.testbed == testbed and visit.samples]
        # Where nothing ran yet, nothing shows that it is the machine: it is not suspect.
        kind = InfrastructureError if well or here else NoKernelRan
        return kind(
            f"{error.message} ({doubt})",
            details=error.details,
            cure=f"mend the testbed '{testbed}'; or leave the {unit} out: perfbisect mark {self._journal.id} "
            f"{short_name(self._journal.state.graph.shas[measure.commit])} skip",
        )

    def _record(self, error: KernelError, measure: Measure, testbed: str, boot: str) -> None:
        live = self._live.pop(testbed, None)
        if live is not None:
            live[1].leave()
            self._journal.record(RunFailed(live[0], error.message, error.details))
            self._services.keep_boot(self._journal.boot_folder(live[0]))
        elif boot:
            self._journal.record(RunFailed(boot, error.message, error.details))
        else:
            ran = isinstance(error, WorkloadFailed)
            booted = Booted(
                boot=self._journal.new_boot(),
                commit=measure.commit,
                testbed=testbed,
                ok=ran,
                seconds=0.0,
                at=self._services.clock.now(),
                layout=measure.layout,
                purpose=measure.purpose,
                failure="" if ran else error.message,
                details=error.details,
            )
            self._journal.record(booted)
            if ran:
                self._journal.record(RunFailed(booted.boot, error.message, error.details))
        self._events.send("trouble", error.message, measure.commit, testbed)
