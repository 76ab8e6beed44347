"""Carries out decisions: builds, boots and runs, and records each unit of work as soon as it has ended.

The records are the truth: after a kill, finished builds come from the cache and finished runs stay samples.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from bisector.engine.events import EventKind, EventSender
from bisector.engine.journal import FLAGGED_RUNS, Journal
from bisector.engine.machines.kernel_failures import KERNEL_TRIES, KernelFailures
from bisector.engine.machines.known_kernel import KnownKernels
from bisector.engine.machines.recent_tries import RecentTries
from bisector.engine.monitor_runs import job_of_boot, run_monitors
from bisector.engine.services import Services
from bisector.engine.trial_kernels import TrialKernels, check_stop
from bisector.errors import (
    BootTooSlow,
    FirmwareChanged,
    InfrastructureError,
    KernelError,
    RecordsUnusable,
    WorkloadFailed,
)
from bisector.linux.boot_remarks import boot_remarks, boot_text
from bisector.model.decisions import Measure
from bisector.model.facts import MonitorResult
from bisector.model.records import Booted, Left, Ran
from bisector.ports import Job, Kernel, Session

_INFRASTRUCTURE_TRIES = 3
"""Tries of a step that infrastructure broke: one failure may pass, two may be chance, three have a cause."""
_PAUSE_SECONDS = 2.0
"""Pause before the second try; doubled before each further one."""


class TrialRunner:
    """Carries out one bisection's trials, in one thread for each testbed. Owns the live boots."""

    def __init__(
        self,
        journal: Journal,
        kernels: TrialKernels,
        services: Services,
        events: EventSender,
        stop: threading.Event,
    ) -> None:
        """Begin without a live boot."""
        self._journal = journal
        self._kernels = kernels
        self._services = services
        self._events = events
        self._stop = stop
        self._sessions: dict[str, tuple[str, Session]] = {}
        self._job: Job | None = None
        self._known = KnownKernels(journal, kernels, services, self._sessions, stop)
        self._failures = KernelFailures(
            journal, services, self._known, self._sessions, self._leave_broken, events
        )
        self._tries = RecentTries()
        self._reported_settings: set[tuple[str, str, str]] = set()

    def carry_out(
        self, measure: Measure, testbed: str, wanted: Callable[[], bool] | None = None
    ) -> InfrastructureError | None:
        """Do what was decided; or nothing, if others want the testbed before its kernel is built.

        Returns how the testbed failed, None while it is well. Raises InfrastructureError where trying again
        did not help with anything else, Interrupted when told to stop.
        """
        boot, session = self._sessions.get(testbed, ("", None))
        missing = measure.runs
        if measure.boot is not None and (session is None or boot != measure.boot):
            return None  # the boot is gone, which is recorded; the planner decides anew
        if measure.boot is None:
            self.leave(testbed)
            if self._kernels.weigh_by_functions(measure, testbed):
                return None  # the weights are new: the planner decides again
            session = None
        failures, late = 0, False
        unsure: KernelError | None = None
        overdue = False
        losses = {"builder": 0, "testbed": 0, "records": 0}
        while missing > 0:
            check_stop(self._stop)
            part = "builder" if session is None else "testbed"
            try:
                if session is None:
                    tried = failures or any(losses.values())  # leaving the testbed would forget these
                    if not (kernel := self._kernels.build(measure, testbed, None if tried else wanted)):
                        return None
                    job = self._prepare_job()
                    known = self._known.prepare(measure, unsure, testbed) if unsure else None
                    part = "testbed"
                    if known and (lost := self._failures.excused_by(known, measure, testbed, job)):
                        return lost
                    if unsure and overdue:
                        return self._failures.judge(unsure, measure, testbed, late, boot)
                    unsure = None
                    boot, session = self._boot(measure, kernel, job, testbed)
                self._run(boot, session, measure, testbed)
                missing -= 1
            except InfrastructureError as error:
                check_stop(self._stop)  # a stop ends guests, which looks like a fault from here
                part = "records" if isinstance(error, RecordsUnusable) else part
                losses[part] += 1
                self.leave(testbed, lost=True)
                session = None
                changed = isinstance(error, FirmwareChanged)
                often = self._tries.broke(testbed, error) if part == "testbed" else None
                again = losses[part] < _INFRASTRUCTURE_TRIES and not (changed or often)
                text = (often or error).message
                text += "; trying again" if again else f"; {error.cure}" if changed else ""
                self._events.send("trouble", text, measure.commit, testbed)
                if not again and part == "testbed":
                    return often or error
                if not again:
                    raise
                self._stop.wait(_PAUSE_SECONDS * 2 ** (losses[part] - 1))
            except KernelError as error:
                check_stop(self._stop)
                self._tries.went_well(testbed)
                failures, late = failures + 1, late or isinstance(error, BootTooSlow)
                if failures >= KERNEL_TRIES:
                    return self._failures.judge(error, measure, testbed, late)
                unsure, overdue = error, self._failures.is_overdue(measure, testbed)
                self._leave_broken(testbed, error)
                session = None
                self._events.send("trouble", f"{error.message}; once more", measure.commit, testbed)
        self._tries.went_well(testbed)
        return None

    def close(self) -> None:
        """End every live boot and record that. Raises nothing: what cannot be written is found at restart."""
        for testbed in list(self._sessions):
            with contextlib.suppress(InfrastructureError):
                self.leave(testbed)
        self._kernels.close()

    def abandon(self) -> None:
        """End every live boot and record nothing."""
        for testbed in list(self._sessions):
            live = self._sessions.pop(testbed, None)
            if live is not None:
                with contextlib.suppress(InfrastructureError):
                    live[1].leave()

    def _leave_broken(self, testbed: str, error: KernelError) -> None:
        self.leave(testbed, failure=error.message.strip())

    def leave(self, testbed: str, *, lost: bool = False, failure: str = "") -> None:
        """End the live boot of a testbed, if it has one, after its monitors' runs; record that.

        lost: it ended by itself; failure: how its kernel failed. Neither is given to monitors.
        """
        live = self._sessions.get(testbed)
        monitors = () if live is None or lost or failure else self._monitor(*live, testbed)
        live = self._sessions.pop(testbed, None)  # at a stop another thread may have left it meanwhile
        if live is not None:
            live[1].leave()
            if self._journal.is_recorded(live[0]):  # it is not if the stop came while it booted
                self._journal.record(Left(live[0], lost, monitors, failure))
                self._services.keep_boot(self._journal.boot_folder(live[0]))

    # --- boot, run --------------------------------------------------------------------------------------

    def _boot(self, measure: Measure, kernel: Kernel, job: Job, testbed: str) -> tuple[str, Session]:
        boot = self._journal.new_boot()
        started, at, image = time.monotonic(), self._now(), self._services.guest_image
        self._journal.check_unchanged(testbed, workload=job.checksum, image=image)
        job = job_of_boot(job, measure, self._journal.monitored(measure.commit, testbed))
        folder, progress = self._journal.boot_folder(boot), self._events.progress(measure, testbed)
        session = self._services.testbeds[testbed].boot(kernel, job, folder, progress)
        seconds = time.monotonic() - started - session.facts.waited_seconds
        self._sessions[testbed] = (boot, session)
        check_stop(self._stop)  # a stop during the boot cannot have ended a session that was not listed yet
        facts = session.facts
        self._journal.check_firmware(testbed, facts.facts)
        image = image or facts.facts.get("image", "")
        self._journal.check_unchanged(testbed, workload=job.checksum, image=image)
        booted = Booted(
            boot=boot,
            commit=measure.commit,
            testbed=testbed,
            ok=True,
            seconds=seconds,
            at=at,
            layout=measure.layout,
            purpose=measure.purpose,
            facts=dict(facts.facts),
            workload=job.checksum,
            image=image,
            console=str(facts.console or ""),
            overhead=round(facts.overhead_seconds, 3),
            fresh_seed=measure.fresh_seed,
        )
        self._journal.record(booted)
        text = boot_text(facts.release, facts.facts)
        self._events.send("boot", text, measure.commit, testbed, seconds=seconds)
        for name, why in boot_remarks(facts.facts, self._journal.first_facts(testbed)).items():
            if (testbed, name, why) not in self._reported_settings:  # once, not with each boot
                self._reported_settings.add((testbed, name, why))
                self._events.send("note", f"{name}: {why}", measure.commit, testbed)
        for _ in range(job.warmup):
            self._run(boot, session, measure, testbed, warmup=True)
        return boot, session

    def _run(
        self, boot: str, session: Session, measure: Measure, testbed: str, *, warmup: bool = False
    ) -> None:
        check_stop(self._stop)
        index = self._journal.next_run(boot)
        result = session.run(index)
        ran = Ran(
            boot=boot,
            index=index,
            values=dict(result.values),
            seconds=result.seconds,
            at=self._now(),
            flags=result.flags,
            warmup=warmup,
            raw=str(result.raw),
            guest_seconds=round(result.guest_seconds, 6),
        )
        self._journal.record(ran)
        self._events.send_run(ran, self._journal.state.goal.metric, measure.commit, testbed)
        if ran.flags and boot in self._journal.uncounted_boots(measure.commit, testbed):
            raise WorkloadFailed(f"none of {FLAGGED_RUNS} runs can be counted: {', '.join(ran.flags)}")

    def _monitor(self, boot: str, session: Session, testbed: str) -> tuple[MonitorResult, ...]:
        """Make the runs of all monitors, once a commit and testbed; return what they saw, to be recorded."""
        visit = next((v for v in self._journal.state.visits if v.boot == boot), None)
        if visit is None or not visit.samples:
            return ()

        def send(kind: EventKind, text: str) -> None:
            self._events.send(kind, text, visit.commit, testbed)

        had = self._journal.monitored(visit.commit, testbed)
        return run_monitors(session, self._prepare_job().monitors, had, self._stop, send)

    def _prepare_job(self) -> Job:
        with self._journal.lock:
            if self._job is None:
                self._job = self._services.make_job(self._journal.folder / "workload")
            return self._job

    def _now(self) -> float:
        return self._services.clock.now()
