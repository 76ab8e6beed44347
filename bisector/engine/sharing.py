"""Sharing of testbeds: the bisections that a process executes take turns, visit by visit.

With a database server, leases keep executors on other hosts from the same testbed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from bisector.engine.availability import NoChecks
from bisector.engine.bisection_run import BisectionRun
from bisector.engine.events import Event, EventKind
from bisector.engine.journal import lose_boots_on
from bisector.engine.machines.giving_back import naming_what_is_left
from bisector.engine.membership import Membership
from bisector.engine.others import Others, follow_inventory
from bisector.engine.services import Services
from bisector.engine.shares.hour_counter import HourCounter
from bisector.engine.shares.schedule import Claimant, choose, should_yield
from bisector.engine.shares.use_elsewhere import UseElsewhere
from bisector.engine.testbed_leases import TestbedLeases
from bisector.errors import Fenced, PerfbisectError, RequestError
from bisector.model.stored_bisection import NORMAL_PRIORITY, TO_EXECUTE, Stored, Summary, failure
from bisector.store_ports import Store

_SHUTDOWN_POLL_SECONDS = 0.2
"""How soon the end of a visit is noticed that was asked to stop."""


class TestbedSharing:
    """The bisections that this process executes, and who has which testbed. Used by one thread."""

    def __init__(
        self,
        store: Store,
        others: Others | None,
        own: BisectionRun | None = None,
        membership: Membership | None = None,
        why_not: Callable[[str], str | None] = lambda testbed: None,
        hours: HourCounter | None = None,
    ) -> None:
        """own: the one that this process began with; membership: with a database server; why_not: says why a
        testbed must not be used, None where it may; hours: counts who has testbeds."""
        self._hours = hours
        self._why_not = why_not
        self._told: dict[str, str] = {}  # testbed -> why it is not used
        self._capped: dict[str, str | None] = {}  # bisection -> why it waits, if it does
        self._own = own
        self._membership = membership
        self._store = store
        self._others = others
        self._checks = NoChecks() if others is None else others.checks
        self._runs = {} if own is None else {own.id: own}
        self.let_go = 0
        """How many bisections of others have ended here, or went on elsewhere."""
        self._visits: dict[str, tuple[BisectionRun, threading.Thread]] = {}  # by testbed
        self._leases = TestbedLeases(membership, self._tell_those_of)  # of those that are visited
        self._summaries: dict[str, Summary] = {}  # of what is to be executed, the newest first
        self._elsewhere = UseElsewhere(store)
        self._building: set[str] = set()  # bisections that have left a testbed while a kernel is built
        self._given_up: set[str] = set()  # bisections that failed here; other workers go on with them
        self._served: dict[str, dict[str, float]] = {}  # bisection -> testbed -> when its last visit ended
        self._changed = threading.Event()
        if membership is not None:
            membership.when_lost = self._abandon

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to execute."""
        return not self._runs

    @property
    def is_lost(self) -> bool:
        """Whether this process counts as dead on the database server."""
        return self._membership is not None and self._membership.is_lost

    def share(self) -> None:
        """Take up what was queued, let go of what was cancelled, give each free testbed its next visit."""
        self._follow_statuses()
        if self._hours is not None:
            # Nobody is charged for health checks: one that fails again and again would use up a budget.
            self._hours.count(self._owner(r) for name, (r, _) in self._visits.items() if name in r.visited)
            self._tell_caps()
        if self._leases.poll() and self._membership is not None:
            self._elsewhere.poll(self._membership)
            # Retry here what failed here and no other worker executes; if it fails again, it has failed.
            self._given_up = {one for one in self._given_up if not self._membership.executes_alone(one)}
        for testbed, (run, thread) in list(self._visits.items()):
            if not thread.is_alive():
                self._served.setdefault(run.id, {})[testbed] = time.monotonic()
                del self._visits[testbed]
                self._leases.release(testbed)
        self._tell_builds()
        follow_inventory(self._runs.values(), self._own, self._summaries, self._others, self._tell)
        for run in [run for run in self._runs.values() if run.leaves and run is not self._own]:
            if not any(visitor is run for visitor, _ in self._visits.values()):
                self._let_go(run)
        for testbed in sorted({name for run in self._runs.values() for name in run.testbeds}):
            if testbed not in self._visits and not self.is_lost and self._may_be_used(testbed):
                chosen = choose(testbed, self._claimants())
                if chosen is not None and self._leases.acquire(testbed):
                    self._begin_visit(self._runs[chosen], testbed)

    def wait(self, seconds: float) -> None:
        """Wait until a visit has ended, so long at most."""
        self._changed.wait(seconds)
        self._changed.clear()

    def end(self, seconds: float) -> bool:
        """End all visits and wait for them, at most so long, but always until each machine is given back.

        Queues others' again; returns whether all visits have ended. Raises Interrupted at a second Ctrl-C.
        """
        deadline = time.monotonic() + seconds
        for run in self._runs.values():
            if run is not self._own or not run.concluded:  # one that failed may still run on other testbeds
                run.stop.set()
        own = "" if self._own is None else self._own.id
        with naming_what_is_left(self.to_give_back, own):
            while any(thread.is_alive() for _, thread in self._visits.values()) and (
                time.monotonic() < deadline or self.to_give_back()
            ):
                for run in self._runs.values():
                    run.close()  # repeatedly: a guest may still start during shutdown
                self.wait(_SHUTDOWN_POLL_SECONDS)
        if self._hours is not None:
            with contextlib.suppress(PerfbisectError):
                self._hours.write()
        for run in list(self._runs.values()):
            run.close()
            if run is not self._own:
                with contextlib.suppress(PerfbisectError):
                    self._let_go(run)
        return not any(thread.is_alive() for _, thread in self._visits.values())

    def to_give_back(self) -> list[str]:
        """Return the machines that `end` waits for."""
        return sorted({name for run in self._runs.values() for name in run.to_give_back})

    def _abandon(self) -> None:
        """End what runs on machines at once: others may soon use them. Called in a thread of its own."""
        for run in list(self._runs.values()):
            run.abandon()

    def _begin_visit(self, run: BisectionRun, testbed: str) -> None:
        lease = self._leases.get(testbed)
        left = [s.id for s in self._summaries.values() if testbed in s.progress.live and s.id != run.id]

        def visit() -> None:
            if lease is not None:
                for name in left:  # of executors that died: their boots are lost
                    with contextlib.suppress(PerfbisectError):  # it was removed, or the visit fails likewise
                        lose_boots_on(self._store.fenced(lease), name, testbed)
            if self._checks.passes(testbed, run.id, run.note, run.stop.is_set):
                run.visit(testbed, lambda: self._is_wanted(run, testbed))
                self._checks.used(testbed)
            self._changed.set()

        thread = threading.Thread(target=visit, daemon=True, name=f"visit-{testbed}")
        self._visits[testbed] = run, thread
        thread.start()

    def _may_be_used(self, testbed: str) -> bool:
        """Return whether a testbed may be used; report why not to those that wait, once for each reason."""
        reason = self._why_not(testbed)
        if (reason or "") != self._told.get(testbed, ""):
            self._told[testbed] = reason or ""
            how = f"not used: {reason}" if reason else "used again"
            self._tell_those_of(testbed, f"the testbed '{testbed}' is {how}", "trouble" if reason else "note")
        return reason is None or self._checks.is_recheck_due(testbed)

    def _tell_those_of(self, testbed: str, text: str, kind: EventKind = "note") -> None:
        for run in [run for run in self._runs.values() if testbed in run.testbeds]:
            run.note(text, kind)

    def _claimants(self) -> list[Claimant]:
        has: dict[str, set[str]] = {}
        for testbed, (visitor, _) in list(self._visits.items()):
            has.setdefault(visitor.id, set()).add(testbed)
        runs, summaries, found = dict(self._runs), self._summaries, []
        for name in {**runs, **summaries}:
            run, summary = runs.get(name), summaries.get(name)  # no summary: it has just ended
            known = frozenset() if summary is None else frozenset(summary.progress.measured)
            uses = self._elsewhere.testbeds_of(name)
            claimant = Claimant(
                name,
                "" if summary is None else summary.owner,
                NORMAL_PRIORITY if summary is None else summary.priority,
                0.0 if summary is None else summary.created,
                frozenset(),
                uses | has.get(name, set()),
                dict(self._served.get(name, {})),
                measured=known,
                waits=run is None or run.leaves or self._why_capped(run) is not None,
            )
            if run is not None:
                testbeds = frozenset(run.testbeds)
                all_ = testbeds if summary is None else frozenset(summary.testbeds)
                builds = frozenset(filter(run.awaits_kernel, testbeds))
                claimant = replace(claimant, testbeds=testbeds, builds=builds, elsewhere=all_ - run.given)
            if run is not None or uses:
                found.append(claimant)
        return found

    def _tell_builds(self) -> None:
        """Write down which bisections have left their testbeds while a kernel is built, for `queue`."""
        visiting = {run.id for run, _ in self._visits.values()}
        builds = {
            run.id for run in self._runs.values() if any(map(run.awaits_kernel, run.testbeds))
        } - visiting
        for name in builds ^ self._building:
            self._store.note_building(name, name in builds)
        self._building = builds

    def _owner(self, run: BisectionRun) -> str:
        summary = self._summaries.get(run.id)
        return "" if summary is None else summary.owner

    def _why_capped(self, run: BisectionRun) -> str | None:
        return None if self._hours is None else self._hours.why_not(self._owner(run))

    def _tell_caps(self) -> None:
        """Notify bisections whose owner has used what is allowed, and those that may go on, once each."""
        for run in self._runs.values():
            reason = self._why_capped(run)
            if reason != self._capped.get(run.id):
                self._capped[run.id] = reason
                run.note(f"the bisection '{run.id}' {reason or 'may use testbeds again'}")

    def _is_wanted(self, run: BisectionRun, testbed: str) -> bool:
        if run.leaves or self._leases.is_wanted(testbed) or self._why_not(testbed):
            return True
        if self._checks.is_due(testbed) and not run.awaits_kernel(testbed):
            return True
        return should_yield(testbed, run.id, self._claimants(), time.monotonic())

    def _follow_statuses(self) -> None:
        self._summaries = {one.id: one for one in self._store.list(statuses=TO_EXECUTE)}
        for run in self._runs.values():
            if run.id not in self._summaries and not run.ended:
                run.stop.set()
                run.close()
        self._given_up &= set(self._summaries)  # a resumed bisection is tried here again
        for name, summary in reversed(self._summaries.items()):  # the oldest first
            if self._others is not None and name not in self._runs and name not in self._given_up:
                with contextlib.suppress(RequestError):  # it was removed meanwhile
                    self._take_up(summary, self._others)

    def _take_up(self, summary: Summary, others: Others) -> None:
        name, stop, lease = summary.id, threading.Event(), None
        if not summary.testbeds:  # a newer version wrote its request, or it is damaged
            self._tell(name, "trouble", f"the bisection '{name}' cannot be executed: it names no testbed")
            self._store.set_status(name, "failed", expected=TO_EXECUTE, action=failure("it names no testbed"))
            return
        if not (testbeds := others.testbeds(summary)):
            return
        if self._membership is not None:
            lease = self._membership.acquire_bisection(name)
            if lease is None:
                return  # we count as dead
        self._tell(name, "note", f"the bisection '{name}' shares the testbeds from now on")

        def open_() -> tuple[Stored, Services]:
            stored = self._store.load(name)
            return stored, others.open(stored, stop)

        self._runs[name] = BisectionRun(name, open_, partial(others.tell, name), stop, testbeds, lease)

    def _let_go(self, run: BisectionRun) -> None:
        """Forget a bisection of others: it is over, or waits for another executor."""
        self._runs.pop(run.id, None)
        self.let_go += 1
        run.close()  # a kernel may still be built for it
        if self.is_lost:
            return  # it is another executor's already, or will be
        store = self._store if run.lease is None else self._store.fenced(run.lease)
        alone = self._membership is None or self._membership.executes_alone(run.id)
        with contextlib.suppress(Fenced, RequestError):  # we count as dead, or it was removed
            if alone:
                status = "queued" if run.error is None else "failed"
                store.set_status(run.id, status, expected=TO_EXECUTE, action=run.failure)
        if run.error is not None:
            self._given_up.add(run.id)
            how = "failed" if alone else "goes on with other workers, not with this one"
            text = f"the bisection '{run.id}' {how}: {run.error.message}"
            self._tell(run.id, "trouble", "\n".join(filter(None, (text, run.error.details))))
        if self._membership is not None and run.lease is not None:
            self._membership.release(run.lease)
        if self._others is not None:
            self._others.ended(run.id)

    def _tell(self, bisection: str, kind: EventKind, text: str) -> None:
        if self._own is not None:
            self._own.note(text)
        elif self._others is not None:
            self._others.tell(bisection, Event(kind, text))
