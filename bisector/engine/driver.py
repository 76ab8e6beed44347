"""Carries out decisions: builds, boots and runs, and records each unit of work as soon as it has ended.

The records are the truth. A driver that starts after a kill closes the boots that died with its predecessor
and lets the planner decide anew; finished builds come from the cache and finished runs stay samples.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from bisector.core.model import (
    Booted,
    Built,
    Conclusion,
    Decision,
    Left,
    Measure,
    Ran,
    Record,
    RunFailed,
)
from bisector.core.state import State, extend, fold
from bisector.engine.events import Event, EventKind, OnEvent
from bisector.engine.services import Services
from bisector.errors import (
    BuildFailed,
    InfrastructureError,
    Interrupted,
    KernelError,
    TestbedLost,
    WorkloadFailed,
)
from bisector.ports import BuildOrder, Job, Kernel, Session, Stored
from bisector.spec.request import Accepted

_TRIES = 3
"""Of something that infrastructure broke: one fault passes, two can be chance, three are a cause."""
_PAUSE_SECONDS = 2.0
"""Before the second try; doubled before each further one."""
_KERNEL_TRIES = 2
"""A kernel failure is believed when it happens in two boots: one can be the testbed's."""


T = TypeVar("T")


class Driver:
    """One bisection's hands. `decide` and `carry_out` may be called from several threads."""

    def __init__(self, stored: Stored, services: Services, on_event: OnEvent, stop: threading.Event) -> None:
        """Take up a bisection where its records end; boots that are still open there are lost."""
        self.id = stored.id
        self.accepted = Accepted.model_validate_json(stored.request)
        self._graph = stored.graph
        self._services = services
        self._on_event = on_event
        self._stop = stop
        self._lock = threading.RLock()
        self._sessions: dict[str, tuple[str, Session]] = {}
        self._pending: dict[str, Measure] = {}
        self._job: Job | None = None
        self._seen = 0
        self._state: State = fold(self._graph, self.accepted.the_goal(), ())
        self._refresh()
        for visit in self._state.visits:
            if visit.live:
                self._record(Left(visit.boot, lost=True))
        decisions = services.store.decisions(self.id)
        self._stale = max((self._seen, *(number for number, _ in decisions)))

    # --- decide -----------------------------------------------------------------------------------------

    def decide(self, testbed: str) -> tuple[int, Decision]:
        """Ask the planner what the idle testbed should do; return the decision with its number."""
        with self._lock:
            self._refresh()
            pending = tuple(m for name, m in self._pending.items() if name != testbed)
            state = extend(self._state, (), pending=pending, idle=testbed)
            decision = self._services.planner.next(state)
            number = self._services.store.decide(self.id, decision)
            if isinstance(decision, Measure):
                self._pending[testbed] = decision
                self._tell("decision", self._words(decision), decision.commit, testbed, decision.reason)
            return number, decision

    def conclude(self, conclusion: Conclusion) -> None:
        """Free the testbeds and write the end down."""
        self.close()
        self._services.store.set_status(self.id, "done", conclusion)
        self._tell("done", conclusion.summary)

    # --- carry out --------------------------------------------------------------------------------------

    def carry_out(self, number: int, measure: Measure, testbed: str) -> None:
        """Do what was decided, unless it was decided before this driver took over.

        Raises InfrastructureError when trying again did not help, Interrupted when told to stop.
        """
        try:
            if number > self._stale:
                self._measure(measure, testbed)
        finally:
            with self._lock:
                self._pending.pop(testbed, None)

    def close(self) -> None:
        """End every live boot and record that."""
        for testbed in list(self._sessions):
            self._leave(testbed)

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
            try:
                if session is None:
                    kernel = self._build(measure, testbed)
                    if kernel is None:
                        return
                    boot, session = self._boot(measure, kernel, testbed)
                self._run(boot, session, measure, testbed)
                wanted -= 1
            except TestbedLost as error:
                losses += 1
                self._leave(testbed, lost=True)
                session = None
                self._tell("trouble", error.message, measure.commit, testbed)
                if losses >= _TRIES:
                    raise
                self._pause(losses)
            except KernelError as error:
                failures += 1
                if failures >= _KERNEL_TRIES:
                    self._failed(error, measure, testbed)
                    return
                self._leave(testbed)
                session = None
                self._tell("trouble", f"{error.message}; once more", measure.commit, testbed)

    def _failed(self, error: KernelError, measure: Measure, testbed: str) -> None:
        """Record what a kernel did twice."""
        live = self._sessions.pop(testbed, None)
        note = {"details": error.details}
        if live is not None:
            live[1].leave()
            self._record(RunFailed(live[0], error.message), note)
        elif isinstance(error, WorkloadFailed):
            boot = self._new_boot()
            self._record(Booted(boot, measure.commit, testbed, True, 0.0, self._now(), measure.layout), note)
            self._record(RunFailed(boot, error.message), note)
        else:
            failed = Booted(
                boot=self._new_boot(),
                commit=measure.commit,
                testbed=testbed,
                ok=False,
                seconds=0.0,
                at=self._now(),
                layout=measure.layout,
                purpose=measure.purpose,
                failure=error.message,
            )
            self._record(failed, note)
        self._tell("trouble", error.message, measure.commit, testbed)

    # --- build, boot, run -------------------------------------------------------------------------------

    def _build(self, measure: Measure, testbed: str) -> Kernel | None:
        """Return the kernel, or None when the commit does not build (which is then recorded)."""
        sha = self._graph.shas[measure.commit]
        order = BuildOrder(sha, self.accepted.request.recipe, measure.layout, self._services.patches)
        known = (measure.commit, measure.layout) in self._state.binaries
        started = time.monotonic()
        try:
            kernel = self._again(
                lambda: self._services.builder.build(order, self._progress(measure, testbed))
            )
        except BuildFailed as error:
            seconds = time.monotonic() - started
            failed = Built(
                measure.commit, False, seconds, layout=measure.layout, failure=error.message.strip()
            )
            self._record(failed, {"details": error.details})
            self._tell("trouble", error.message, measure.commit, testbed, seconds=seconds)
            return None
        if not known:
            built = Built(
                commit=measure.commit,
                ok=True,
                seconds=kernel.seconds,
                binary=kernel.binary,
                layout=measure.layout,
                cached=kernel.cached,
            )
            self._record(built, {"kernel": _kernel_note(kernel)})
            words = "is in the cache" if kernel.cached else "is built"
            self._tell("build", f"the kernel {words}", measure.commit, testbed, seconds=kernel.seconds)
        return kernel

    def _boot(self, measure: Measure, kernel: Kernel, testbed: str) -> tuple[str, Session]:
        boot = self._new_boot()
        folder = self._services.folder(self.id) / "boots" / boot
        folder.mkdir(parents=True, exist_ok=True)
        started, at = time.monotonic(), self._now()
        job = self._the_job()
        progress = self._progress(measure, testbed)
        session = self._again(lambda: self._services.testbeds[testbed].boot(kernel, job, folder, progress))
        seconds = time.monotonic() - started
        self._sessions[testbed] = (boot, session)
        facts = session.facts
        note = {
            "facts": json.dumps(dict(facts.facts)),
            "overhead": f"{facts.overhead_seconds:.3f}",
            "workload": job.checksum,
            "console": str(facts.console or ""),
            **self._services.boot_notes,
        }
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
        self._record(booted, note)
        self._tell("boot", f"booted {facts.release}", measure.commit, testbed, seconds=seconds)
        for _ in range(job.warmup):
            self._run(boot, session, measure, testbed, warmup=True)
        return boot, session

    def _run(
        self, boot: str, session: Session, measure: Measure, testbed: str, *, warmup: bool = False
    ) -> None:
        if self._stop.is_set():
            raise Interrupted("interrupted")
        index = sum(1 for r in self._state.records if isinstance(r, Ran) and r.boot == boot)
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
        self._record(ran, {"raw": str(result.raw), "guest_seconds": f"{result.guest_seconds:.6f}"})
        metric = self._state.goal.metric
        value = result.values.get(metric.name)
        suspicious = f" (not counted: {', '.join(result.flags)})" if result.flags else ""
        words = f"{metric.name} {value:.6g} {metric.unit}" if value is not None else "no value"
        kind = "warm-up" if warmup else "run"
        text = f"{kind} {index}: {words}{suspicious}"
        self._tell("run", text, measure.commit, testbed, seconds=result.seconds, value=value)

    # --- small parts ------------------------------------------------------------------------------------

    def _again(self, action: Callable[[], T]) -> T:
        """Do it; when infrastructure breaks it, pause and try again, _TRIES times in all."""
        for attempt in range(1, _TRIES + 1):
            if self._stop.is_set():
                raise Interrupted("interrupted")
            try:
                return action()
            except InfrastructureError as error:
                if attempt == _TRIES or self._stop.is_set():
                    raise
                self._tell("trouble", f"{error.message}; trying again")
                self._pause(attempt)
        raise AssertionError("unreachable")

    def _pause(self, attempt: int) -> None:
        self._stop.wait(_PAUSE_SECONDS * 2 ** (attempt - 1))

    def _leave(self, testbed: str, *, lost: bool = False) -> None:
        live = self._sessions.pop(testbed, None)
        if live is not None:
            live[1].leave()
            self._record(Left(live[0], lost=lost))

    def _the_job(self) -> Job:
        with self._lock:
            if self._job is None:
                self._job = self._services.make_job(self._services.folder(self.id) / "workload")
            return self._job

    def _new_boot(self) -> str:
        """Return an id that no boot of this bisection had: its number, counted in the records."""
        with self._lock:
            used = sum(isinstance(r, Booted) for r in self._state.records)
            folder = self._services.folder(self.id) / "boots"
            while (folder / f"boot-{used + 1:03d}").exists():
                used += 1
            (folder / f"boot-{used + 1:03d}").mkdir(parents=True)
            return f"boot-{used + 1:03d}"

    def _record(self, record: Record, note: Mapping[str, str] | None = None) -> None:
        with self._lock:
            self._services.store.append(self.id, record, note=note)
            self._refresh()

    def _refresh(self) -> None:
        """Take in what was recorded since the last look, by us or by `mark` and `discard` elsewhere."""
        new = self._services.store.records(self.id, after=self._seen)
        if new:
            self._seen = new[-1][0]
            self._state = extend(self._state, [record for _, record, _ in new])

    def _progress(self, measure: Measure, testbed: str) -> Callable[[str], None]:
        return lambda text: self._tell("note", text, measure.commit, testbed)

    def _words(self, measure: Measure) -> str:
        where = "in the running boot" if measure.boot is not None else "in a new boot"
        runs = "1 run" if measure.runs == 1 else f"{measure.runs} runs"
        layout = f" of code layout {measure.layout}" if measure.layout else ""
        return f"{runs} {where}{layout}"

    def _now(self) -> float:
        return self._services.clock.now()

    def _tell(
        self,
        kind: EventKind,
        text: str,
        commit: int | None = None,
        testbed: str = "",
        reason: str = "",
        *,
        seconds: float | None = None,
        value: float | None = None,
    ) -> None:
        costs = self._state.costs
        self._on_event(
            Event(
                kind=kind,
                text=text,
                commit=commit,
                reason=reason,
                testbed=testbed,
                seconds=seconds,
                value=value,
                runs=len(costs.runs),
                boots=len(costs.boots),
                builds=len(costs.builds),
            )
        )


def _kernel_note(kernel: Kernel) -> str:
    """Return what the report wants to know of a kernel, as JSON."""
    return json.dumps(
        {
            "release": kernel.release,
            "build_id": kernel.build_id,
            "image": str(kernel.image),
            "config": str(kernel.config),
            "log": str(kernel.log),
            "sizes": dict(kernel.sizes),
            "options": dict(kernel.options),
            "lost": list(kernel.lost),
            "toolchain": kernel.toolchain,
            "key": kernel.key,
        }
    )
