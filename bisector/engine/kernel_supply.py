"""Kernels for trials: what a trial waits for, what is built ahead, and what builds tell of history."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

from bisector.engine.build_queue import Builders
from bisector.engine.event_sender import Teller
from bisector.engine.journal import Ledger, kernel_note
from bisector.engine.services import Services
from bisector.errors import BuildFailed, Interrupted
from bisector.model.records import Built, CommitGraph, Irrelevant, Measure
from bisector.model.state import extend
from bisector.ports import BuildOrder, Kernel
from bisector.schemas.request import Accepted


def check_stop(stop: threading.Event) -> None:
    """Raise Interrupted when told to stop."""
    if stop.is_set():
        raise Interrupted("interrupted")


class Building:
    """The builders of one bisection, and what is recorded of their work. Several threads may ask."""

    def __init__(
        self,
        accepted: Accepted,
        graph: CommitGraph,
        services: Services,
        ledger: Ledger,
        teller: Teller,
        bench: AbstractContextManager[object],
        stop: threading.Event,
    ) -> None:
        """bench: held while a kernel is built that a trial waits for."""
        self._accepted = accepted
        self._graph = graph
        self._services = services
        self._ledger = ledger
        self._teller = teller
        self._bench = bench
        self._stop = stop
        self._builders = Builders(services.builders, stop.is_set)

    def close(self) -> None:
        """Drop what is being built."""
        self._builders.close()

    def build(self, measure: Measure, testbed: str) -> Kernel | None:
        """Return the kernel, or None when the commit does not build (which is then recorded)."""
        order = self._order(measure)
        known = (measure.commit, measure.layout) in self._ledger.state.binaries
        started = time.monotonic()
        try:
            with self._bench:
                kernel = self._builders.build(order, self._teller.progress(measure, testbed))
        except BuildFailed as error:
            check_stop(self._stop)
            seconds = time.monotonic() - started
            failed = Built(
                measure.commit, False, seconds, layout=measure.layout, failure=error.message.strip()
            )
            self._ledger.record(failed, {"details": error.details})
            self._teller.tell("trouble", error.message, measure.commit, testbed, seconds=seconds)
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
            self._ledger.record(built, {"kernel": kernel_note(kernel)})
            words = "is in the cache" if kernel.cached else "is built"
            self._teller.tell("build", f"the kernel {words}", measure.commit, testbed, seconds=kernel.seconds)
            self._prune(measure.commit)
            if self._ledger.measured_already(kernel.binary, measure.commit):
                self._teller.tell(
                    "note", "the same kernel as one that was measured: no boot needed", measure.commit
                )
                return None
        return kernel

    def ahead(self, pending: Sequence[Measure]) -> None:
        """Have built what the planner would measure next if it had more testbeds.

        Not where a build would disturb a clock that counts time. In a thread: on a large history each of
        these decisions takes a second, which the trial need not wait for.
        """
        limit = self._accepted.request.build_ahead
        if limit and (self._accepted.clock == "instructions" or not self._services.one_host):
            threading.Thread(
                target=self._look_ahead, args=(limit, list(pending)), daemon=True, name="look-ahead"
            ).start()

    def _look_ahead(self, limit: int, pending: list[Measure]) -> None:
        orders: list[BuildOrder] = []
        with self._ledger.lock, contextlib.suppress(Exception):  # a trial will meet it again, and tell it
            state = self._ledger.state
            for _ in range(2 * limit):  # some of what it would do needs no new kernel
                decision = self._services.planner.next(extend(state, (), pending=tuple(pending), idle=""))
                if not isinstance(decision, Measure) or len(orders) == limit:
                    break
                pending.append(decision)
                if (decision.commit, decision.layout) not in state.binaries:
                    orders.append(self._order(decision))
        self._builders.ahead(list(dict.fromkeys(orders)))

    def _prune(self, commit: int) -> None:
        """Take out what cannot change the kernel, by what the builds up to this one have read."""
        found = self._services.irrelevant(self._graph)
        records = self._ledger.state.records
        before = next((r for r in reversed(records) if isinstance(r, Irrelevant)), None)
        if found is not None and (before is None or found.commits != before.commits):
            self._ledger.record(found)
            count = len(found.commits)
            self._teller.tell("note", f"{count:,} commits cannot change this kernel: nearly no prior", commit)

    def _order(self, measure: Measure) -> BuildOrder:
        sha = self._graph.shas[measure.commit]
        services, recipe = self._services, self._accepted.request.recipe
        return BuildOrder(sha, recipe, measure.layout, services.patches, services.fixes)
