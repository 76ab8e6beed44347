"""A known kernel between two failing boots separates a commit's failure from a machine's.

A machine lives on between boots: what broke one boot may break the next one too, and so may what broke a
workload, such as a second disk. So before a second failure is held against a commit, the kernel that last
ran well on the machine is booted there, and runs the workload. If that fails, it is the machine. Where none
ran there yet, one that runs elsewhere shows whether the machine takes kernels at all. A guest has fresh disks
in each boot. The rule is Beaker's, turned round: there, a machine is broken after two jobs that failed one
after the other.
"""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from dataclasses import dataclass

from bisector.engine.events import EventSender
from bisector.engine.journal import FLAGGED_RUNS, Journal
from bisector.engine.services import Services
from bisector.engine.trial_kernels import TrialKernels, check_stop
from bisector.errors import InfrastructureError, KernelError, KernelRefused, NoKernelRan, WorkloadFailed
from bisector.model.commit_graph import short_name
from bisector.model.decisions import Measure
from bisector.ports import Job, Kernel, Session


@dataclass(frozen=True, slots=True)
class KnownKernel:
    """The kernel of a trial that ran well. ran_on: the testbed where it did."""

    measure: Measure
    kernel: Kernel
    ran_on: str


class KnownKernels:
    """Boots known kernels on machines, for one bisection."""

    def __init__(
        self,
        journal: Journal,
        kernels: TrialKernels,
        services: Services,
        live: MutableMapping[str, tuple[str, Session]],
        stop: threading.Event,
    ) -> None:
        """live: the live boots by testbed, with their names; a stop ends those that are listed there."""
        self._journal, self._kernels, self._services = journal, kernels, services
        self._live, self._stop = live, stop
        self.ran_well: dict[str, Measure] = {}
        """Machines on which a known kernel ran between two failures, and the last such kernel."""

    def prepare(
        self, failed: Measure, failure: KernelError, testbed: str
    ) -> KnownKernel | NoKernelRan | None:
        """Return a known kernel, built, for `check`; None where there is none or nothing to check.

        NoKernelRan: the machine refused this kernel, and nothing shows that it boots any. Raises what builds
        raise, which is no fault of the testbed.
        """
        machine = self._services.testbeds[testbed]
        known, ran_on = self._find(failed.commit, testbed) if machine.has_own_kernel else (None, testbed)
        kernel = None if known is None else self._kernels.build(known, testbed)
        if known is not None and kernel is not None:
            return KnownKernel(known, kernel, ran_on)
        if not isinstance(failure, KernelRefused):
            return None
        why = f"the kernel that ran last on '{ran_on}' cannot be built now, to try whether it still does"
        return _no_kernel_ran(failure, testbed, failure.message, "" if known is None else why)

    def check(
        self, known: KnownKernel, testbed: str, job: Job, events: EventSender
    ) -> InfrastructureError | None:
        """Return the testbed's failure if it is to blame; None where nothing shows that.

        Where a kernel that runs elsewhere fails too, the machine proves nothing about the commit. The known
        kernel runs the workload until one run counts; that run is no sample. Raises InfrastructureError
        where that broke in another way, Interrupted.
        """
        machine, ran_on = self._services.testbeds[testbed], known.ran_on
        sha = short_name(self._journal.state.graph.shas[known.measure.commit])
        tell = events.progress(known.measure, testbed)
        tell(f"a known kernel ({sha}) shows whether the machine is well")
        boot = self._journal.new_boot()
        try:
            session = machine.boot(known.kernel, job, self._journal.boot_folder(boot), tell)
            self._live[testbed] = boot, session
            try:
                check_stop(self._stop)  # told to stop while it booted: nobody has seen this session
                _run_once(session)
            finally:
                self._live.pop(testbed, None)
                session.leave()
        except KernelError as error:
            if ran_on != testbed:
                text = f"the kernel of {sha} runs on '{ran_on}', and does not on '{testbed}': {error.message}"
                return _no_kernel_ran(error, testbed, text)
            used = ", or what the workload uses there" if isinstance(error, WorkloadFailed) else ""
            return InfrastructureError(
                f"the kernel of {sha} ran well on '{testbed}' before, and does not now: {error.message}",
                details=error.details,
                cure=f"mend the testbed '{testbed}'{used}: 'perfbisect lab check' looks at it",
            )
        self.ran_well[testbed] = known.measure
        tell("the known kernel is well there, so the machine is")
        return None

    def _find(self, failed: int, testbed: str) -> tuple[Measure | None, str]:
        """Return the last commit that ran on a testbed, or else elsewhere, and where that was.

        Never the one that failed.
        """
        visits = [v for v in self._journal.state.visits if v.samples and v.commit != failed]
        here = [v for v in visits if v.testbed == testbed]
        known = self.ran_well.get(testbed)
        if not here and known is not None and known.commit != failed:
            return known, testbed
        for visit in reversed(here or visits):
            why = "a known kernel, after one that failed"
            return Measure(visit.commit, 0, "verify", why, layout=visit.layout), visit.testbed
        return None, testbed


def _run_once(session: Session) -> None:
    """Run the workload until a run counts. Raises what runs raise, and WorkloadFailed if none counts."""
    flags: dict[str, None] = {}
    for index in range(FLAGGED_RUNS):
        result = session.run(index)
        if not result.flags:
            return
        flags.update(dict.fromkeys(result.flags))
    raise WorkloadFailed(f"none of {FLAGGED_RUNS} runs can be counted: {', '.join(flags)}")


def _no_kernel_ran(failure: KernelError, testbed: str, text: str, why: str = "") -> NoKernelRan:
    """Return that nothing shows whether the machine takes kernels. why: by default, that none ran there."""
    why = why or f"no kernel ran on '{testbed}' in this bisection"
    return NoKernelRan(
        text,
        details=failure.details,
        cure=f"{why}, so nothing was held against the commit: 'perfbisect lab check --deep {testbed}' tries "
        "the machine with its own",
    )
