"""Carries out decisions: builds, boots and runs, and records each unit of work as soon as it has ended.

The records are the truth. A driver that starts after a kill closes the boots that died with its predecessor
and lets the planner decide anew; finished builds come from the cache and finished runs stay samples.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time

from bisector.engine.event_sender import Teller, words
from bisector.engine.events import EventKind, OnEvent
from bisector.engine.journal import Ledger
from bisector.engine.kernel_supply import Building, check_stop
from bisector.engine.monitor_runs import watched
from bisector.engine.services import Services
from bisector.errors import InfrastructureError, KernelError, WorkloadFailed
from bisector.linux.settings_report import unset
from bisector.model.records import Booted, Conclusion, Decision, Left, Measure, Ran, RunFailed
from bisector.model.state import extend
from bisector.ports import Job, Kernel, Session, Stored
from bisector.schemas.request import Accepted

_TRIES = 3
"""Of something that infrastructure broke: one fault passes, two can be chance, three are a cause."""
_PAUSE_SECONDS = 2.0
"""Before the second try; doubled before each further one."""
_KERNEL_TRIES = 2
"""A kernel failure is believed when it happens in two boots: one can be the testbed's, or a rare race, and a
skip costs more than a boot: it blurs the answer for good."""

_VAIN_RUNS = 5
"""Of a boot, when not one can be counted: a clock that is wrong or a warning in each run will not pass."""


class Driver:
    """One bisection's hands. `decide` and `carry_out` may be called from several threads."""

    def __init__(self, stored: Stored, services: Services, on_event: OnEvent, stop: threading.Event) -> None:
        """Take up a bisection where its records end; boots that are still open there are lost."""
        self.id = stored.id
        self.accepted = Accepted.model_validate_json(stored.request)
        self._graph = stored.graph
        self._services = services
        self._stop = stop
        self._sessions: dict[str, tuple[str, Session]] = {}
        self._pending: dict[str, Measure] = {}
        self._job: Job | None = None
        self._unset: set[tuple[str, str]] = set()
        # One machine that compiles and measures with a wall clock does one of them at a time.
        alone = services.one_host and len(services.testbeds) > 1 and self.accepted.clock == "wall"
        self._bench = threading.Lock() if alone else contextlib.nullcontext()
        self._ledger = Ledger(
            services.store, stored.id, stored.graph, self.accepted.the_goal(), services.folder(stored.id)
        )
        self._teller = Teller(on_event, self._ledger)
        self._building = Building(
            self.accepted, stored.graph, services, self._ledger, self._teller, self._bench, stop
        )

    # --- decide -----------------------------------------------------------------------------------------

    def decide(self, testbed: str) -> tuple[int, Decision]:
        """Ask the planner what the idle testbed should do; return the decision with its number."""
        ledger = self._ledger
        with ledger.lock:
            ledger.refresh()
            pending = tuple(m for name, m in self._pending.items() if name != testbed)
            state = extend(ledger.state, (), pending=pending, idle=testbed)
            decision = self._services.planner.next(state)
            number = ledger.decide(testbed, decision)
            if isinstance(decision, Measure):
                self._pending[testbed] = decision
                self._teller.tell(
                    "decision", words(decision), decision.commit, testbed, decision.reason, left=decision.left
                )
            return number, decision

    def conclude(self, conclusion: Conclusion) -> None:
        """Free the testbeds and write the end down."""
        self.close()
        self._services.store.set_status(self.id, "done", conclusion)
        self._teller.tell("done", conclusion.summary)

    # --- carry out --------------------------------------------------------------------------------------

    def carry_out(self, number: int, measure: Measure, testbed: str) -> None:
        """Do what was decided, unless it was decided before this driver took over.

        Raises InfrastructureError when trying again did not help, Interrupted when told to stop.
        """
        try:
            if number > self._ledger.stale:
                with self._ledger.lock:
                    pending = tuple(self._pending.values())
                self._building.ahead(pending)
                self._measure(measure, testbed)
        finally:
            with self._ledger.lock:
                self._pending.pop(testbed, None)

    def close(self) -> None:
        """End every live boot and record that. Raises nothing: what cannot be written is found at restart."""
        for testbed in list(self._sessions):
            with contextlib.suppress(InfrastructureError):
                self._leave(testbed)
        self._building.close()

    def _measure(self, measure: Measure, testbed: str) -> None:
        boot, session = self._sessions.get(testbed, ("", None))
        wanted = measure.runs
        if measure.boot is not None and (session is None or boot != measure.boot):
            return  # the boot is gone, which is recorded; the planner decides anew
        if measure.boot is None:
            self._leave(testbed)
            session = None
        failures = losses = 0
        while wanted > 0:
            check_stop(self._stop)
            try:
                if session is None:
                    kernel = self._building.build(measure, testbed)
                    if kernel is None:
                        return
                    boot, session = self._boot(measure, kernel, testbed)
                self._run(boot, session, measure, testbed)
                wanted -= 1
            except InfrastructureError as error:
                check_stop(self._stop)  # our own farewell ends guests, which looks like a fault from here
                losses += 1
                self._leave(testbed, lost=True)
                session = None
                again = losses < _TRIES
                self._teller.tell(
                    "trouble", error.message + ("; trying again" if again else ""), measure.commit, testbed
                )
                if not again:
                    raise
                self._stop.wait(_PAUSE_SECONDS * 2 ** (losses - 1))
            except KernelError as error:
                check_stop(self._stop)
                failures += 1
                if max(failures, len(self._vain(measure.commit))) >= _KERNEL_TRIES:
                    self._failed(error, measure, testbed)
                    return
                self._leave(testbed, broken=True)
                session = None
                self._teller.tell("trouble", f"{error.message}; once more", measure.commit, testbed)

    def _failed(self, error: KernelError, measure: Measure, testbed: str) -> None:
        """Record what a kernel did twice."""
        live = self._sessions.pop(testbed, None)
        note = {"details": error.details}
        if live is not None:
            live[1].leave()
            self._ledger.record(RunFailed(live[0], error.message), note)
        elif isinstance(error, WorkloadFailed):
            boot = self._ledger.new_boot()
            self._ledger.record(
                Booted(boot, measure.commit, testbed, True, 0.0, self._now(), measure.layout), note
            )
            self._ledger.record(RunFailed(boot, error.message), note)
        else:
            failed = Booted(
                boot=self._ledger.new_boot(),
                commit=measure.commit,
                testbed=testbed,
                ok=False,
                seconds=0.0,
                at=self._now(),
                layout=measure.layout,
                purpose=measure.purpose,
                failure=error.message,
            )
            self._ledger.record(failed, note)
        self._teller.tell("trouble", error.message, measure.commit, testbed)

    # --- build, boot, run -------------------------------------------------------------------------------

    def _boot(self, measure: Measure, kernel: Kernel, testbed: str) -> tuple[str, Session]:
        boot = self._ledger.new_boot()
        folder = self._ledger.boot_folder(boot)
        started, at = time.monotonic(), self._now()
        job = self._the_job()
        progress = self._teller.progress(measure, testbed)
        self._ledger.check_world(testbed, {"workload": job.checksum, **self._services.boot_notes})
        session = self._services.testbeds[testbed].boot(kernel, job, folder, progress)
        seconds = time.monotonic() - started
        self._sessions[testbed] = (boot, session)
        check_stop(self._stop)  # told to stop while it booted: whoever said so may not have seen this session
        facts = session.facts
        note = {
            "facts": json.dumps(dict(facts.facts)),
            "overhead": f"{facts.overhead_seconds:.3f}",
            "workload": job.checksum,
            "console": str(facts.console or ""),
            "image": facts.facts.get("image", ""),
            **self._services.boot_notes,
        }
        self._ledger.check_world(testbed, note)
        booted = Booted(
            boot=boot,
            commit=measure.commit,
            testbed=testbed,
            ok=True,
            seconds=seconds,
            at=at,
            layout=measure.layout,
            purpose=measure.purpose,
        )
        self._ledger.record(booted, note)
        self._teller.tell("boot", f"booted {facts.release}", measure.commit, testbed, seconds=seconds)
        for name, why in unset(facts.facts).items():
            if (testbed, name) not in self._unset:  # told once, not with each boot
                self._unset.add((testbed, name))
                self._teller.tell("note", f"{name}: {why}", measure.commit, testbed)
        for _ in range(job.warmup):
            self._run(boot, session, measure, testbed, warmup=True)
        return boot, session

    def _run(
        self, boot: str, session: Session, measure: Measure, testbed: str, *, warmup: bool = False
    ) -> None:
        check_stop(self._stop)
        index = self._ledger.next_run(boot)
        with self._bench:
            result = session.run(index)
        ran = Ran(
            boot=boot,
            index=index,
            values=dict(result.values),
            seconds=result.seconds,
            at=self._now(),
            flags=result.flags,
            warmup=warmup,
        )
        self._ledger.record(ran, {"raw": str(result.raw), "guest_seconds": f"{result.guest_seconds:.6f}"})
        metric = self._ledger.state.goal.metric
        value = result.values.get(metric.name)
        suspicious = f" (not counted: {', '.join(result.flags)})" if result.flags else ""
        words = f"{metric.name} {value:.6g} {metric.unit}" if value is not None else "no value"
        kind = "warm-up" if warmup else "run"
        text = f"{kind} {index}: {words}{suspicious}"
        self._teller.tell("run", text, measure.commit, testbed, seconds=result.seconds, value=value)
        if result.flags and boot in self._vain(measure.commit):
            raise WorkloadFailed(f"none of {_VAIN_RUNS} runs can be counted: {', '.join(result.flags)}")

    def _vain(self, commit: int) -> list[str]:
        """Return the boots of a commit that ran long enough without a single run that counts."""
        visits = [v for v in self._ledger.state.visits if v.commit == commit]
        return [v.boot for v in visits if not v.samples and len(v.flagged) >= _VAIN_RUNS]

    # --- small parts ------------------------------------------------------------------------------------

    def _leave(self, testbed: str, *, lost: bool = False, broken: bool = False) -> None:
        live = self._sessions.get(testbed)
        note = {} if live is None or lost or broken else self._observe(*live, testbed)
        live = self._sessions.pop(testbed, None)  # told to stop, another thread may have left it meanwhile
        if live is not None:
            live[1].leave()
            self._ledger.record(Left(live[0], lost=lost), note)

    def _observe(self, boot: str, session: Session, testbed: str) -> dict[str, str]:
        """Make the runs of all monitors, once a commit and testbed; return what they saw, to be recorded."""
        visit = next((v for v in self._ledger.state.visits if v.boot == boot), None)
        if visit is None or not visit.samples or (visit.commit, testbed) in self._ledger.observed:
            return {}

        def tell(kind: EventKind, text: str) -> None:
            self._teller.tell(kind, text, visit.commit, testbed)

        with self._bench:
            return watched(session, self._the_job().monitors, self._stop, tell)

    def _the_job(self) -> Job:
        with self._ledger.lock:
            if self._job is None:
                self._job = self._services.make_job(self._services.folder(self.id) / "workload")
            return self._job

    def _now(self) -> float:
        return self._services.clock.now()
