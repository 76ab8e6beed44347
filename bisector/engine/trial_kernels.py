"""Kernels for trials: what a trial waits for, what is built ahead, and what builds show of history."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from bisector.engine.build_queue import Build, BuildQueue
from bisector.engine.events import EventSender
from bisector.engine.journal import Journal
from bisector.engine.services import Services
from bisector.errors import BuildFailed, InfrastructureError, Interrupted, PerfbisectError
from bisector.model.commit_graph import CommitGraph, short_name
from bisector.model.decisions import Measure
from bisector.model.facts import KernelFacts
from bisector.model.goal import Goal
from bisector.model.records import Built, FunctionEvidence, Irrelevant, Record, Weighed
from bisector.ports import BuildOrder, Kernel
from bisector.schemas.request import Accepted
from bisector.search.loop import OpenTrials

_Kind = TypeVar("_Kind", bound=Record)


def check_stop(stop: threading.Event) -> None:
    """Raise Interrupted when asked to stop."""
    if stop.is_set():
        raise Interrupted("interrupted")


class TrialKernels:
    """The kernels of one bisection's trials, and the records of their builds. Several threads may ask."""

    def __init__(
        self,
        accepted: Accepted,
        graph: CommitGraph,
        services: Services,
        journal: Journal,
        events: EventSender,
        stop: threading.Event,
    ) -> None:
        self._accepted = accepted
        self._graph = graph
        self._services = services
        self._journal = journal
        self._events = events
        self._stop = stop
        self._queue = BuildQueue(services.builders, stop.is_set, services.measuring_builders)
        self._ordered: dict[str, Build] = {}  # by testbed, the last one
        self._reading = threading.Lock()  # what commits change
        self._has_read = False

    def is_awaited(self, testbed: str) -> bool:
        """Return whether the kernel that was ordered last for a testbed is still being built."""
        build = self._ordered.get(testbed)
        return build is not None and not build.ended.is_set()

    def close(self) -> None:
        """Drop what is being built."""
        self._queue.close()

    def build(
        self, measure: Measure, testbed: str, leaves: Callable[[], bool] | None = None
    ) -> Kernel | None:
        """Return the kernel, or None when the commit does not build (which is then recorded).

        leaves: whether to leave the testbed now; the build then goes on, and None is returned without a
        record. By default the testbed is kept.
        """
        build = self._queue.order(self._order(measure), self._events.progress(measure, testbed))
        self._ordered[testbed] = build
        try:
            kernel = self._queue.wait(build, leaves)
        except BuildFailed as error:
            check_stop(self._stop)
            seconds = build.seconds
            failed = Built(
                commit=measure.commit,
                ok=False,
                seconds=seconds,
                layout=measure.layout,
                failure=error.message.strip(),
                details=error.details,
            )
            with self._journal.lock:  # another testbed may have waited for the same kernel
                if measure.commit not in self._journal.state.untestable:
                    self._journal.record(failed)
            self._events.send("trouble", error.message, measure.commit, testbed, seconds=seconds)
            return None
        if kernel is None:
            text = "the kernel is being built; the testbed is left to others meanwhile"
            self._events.send("note", text, measure.commit, testbed)
            return None
        with self._journal.lock:  # another testbed, or worker, may wait for the same kernel
            self._journal.refresh()
            self._check_comparable(measure, kernel)
            binaries = self._journal.state.binaries
            known = binaries.get((measure.commit, measure.layout)) == kernel.binary
            if not known:
                self._journal.record(_built(measure, kernel))
        if not known:
            made = "built" if self._journal.state.goal.unit == "commit" else "unpacked"
            words = "is in the cache" if kernel.cached else f"is {made}"
            words = "comes from the artefact store" if kernel.fetched else words
            self._events.send("build", f"the kernel {words}", measure.commit, testbed, seconds=kernel.seconds)
            self._prune(measure.commit)
            if self._journal.is_measured_elsewhere(kernel.binary, measure.commit):
                self._events.send(
                    "note", "the same kernel as one that was measured: no boot needed", measure.commit
                )
                return None
        return kernel

    def _check_comparable(self, measure: Measure, kernel: Kernel) -> None:
        """Raise InfrastructureError for another compiler than the other kernels', or a second kernel.

        Builders on different hosts may have different compilers. One range may need several by age, so only
        kernels that the same command made are compared; '' is from earlier versions.
        A second kernel of a commit is allowed while no boot of the first one counts.
        """
        shas = self._graph.shas
        sha = short_name(shas[measure.commit])
        state = self._journal.state
        place = (measure.commit, measure.layout)
        counted = [visit.boot for visit in state.visits if (visit.commit, visit.layout) == place]
        before = state.binaries.get(place)
        if counted and before is not None and before != kernel.binary:
            raise InfrastructureError(
                f"{sha} was built again, and the kernel is another one: samples would not be comparable",
                details=f"then {before}\nnow  {kernel.binary}",
                cure="look whether its build depends on host or time; where the first kernel is lost, "
                f"'perfbisect discard {self._journal.id} --boot {counted[0]}' makes the samples of a boot "
                f"count no more ({', '.join(counted)})",
            )
        for made in state.records:
            if not isinstance(made, Built) or made.kernel is None:
                continue
            then = made.kernel.toolchain
            same = (made.commit, made.layout) == place
            by_same_command = made.kernel.compiler == kernel.compiler
            if (same or by_same_command) and "" not in (then, kernel.toolchain) and then != kernel.toolchain:
                raise InfrastructureError(
                    "the compiler of this builder is not the one that built "
                    f"{short_name(shas[made.commit])} for this bisection: {sha} would not be comparable",
                    details=f"then {then}\nnow  {kernel.toolchain}",
                    cure="have the same compiler on all builders, such as one in an image; or cancel this "
                    "bisection and start a new one",
                )

    def ahead(self, pending: Sequence[Measure]) -> None:
        """Have built what the planner would measure next if it had more testbeds.

        In a thread of its own, so that the trial need not wait: on a large history each of these decisions
        takes a second.
        """
        limit = self._accepted.request.build_ahead
        if limit and len(self._services.measuring_builders) < len(self._services.builders):
            threading.Thread(
                target=self._look_ahead, args=(limit, list(pending)), daemon=True, name="look-ahead"
            ).start()

    def _look_ahead(self, limit: int, pending: list[Measure]) -> None:
        orders: list[BuildOrder] = []
        trials = OpenTrials({f"open-{number}": trial for number, trial in enumerate(pending)})
        with self._journal.lock, contextlib.suppress(PerfbisectError):  # the trial itself will report it
            state = self._journal.state
            for number in range(2 * limit):  # some of what it would do needs no new kernel
                decision = trials.imagine(self._services.planner, state, f"imagined-{number}")
                if not isinstance(decision, Measure) or len(orders) == limit:
                    break
                if (decision.commit, decision.layout) not in state.binaries:
                    orders.append(self._order(decision))
        if not self._stop.is_set():
            self._queue.ahead(list(dict.fromkeys(orders)))

    def _prune(self, commit: int) -> None:
        """Record the commits that cannot change the kernel, by what the builds up to this one have read.

        And the prior weights of the others, by what is known of them.
        """
        found = self._services.irrelevant(self._graph)
        before = _last(self._journal.state.records, Irrelevant)
        if found is not None and (before is None or found.commits != before.commits):
            self._journal.record(found)
            count = len(found.commits)
            self._events.send("note", f"{count:,} commits cannot change this kernel: nearly no prior", commit)
            self._weigh(commit)

    def weigh_by_functions(self, measure: Measure, testbed: str) -> bool:
        """Weigh the commits anew, once, by the functions that the ends execute differently; return whether.

        Done before the first trial between the ends, in one thread, while other testbeds go on. Where it
        fails, an event says why, and the search goes on without.
        """
        if measure.purpose != "search" or not self._reading.acquire(blocking=False):
            return False
        try:
            records = self._journal.state.records
            if self._has_read or _functions_of(records) or not _last(records, Irrelevant):
                return False
            found = self._services.functions(self._journal.state, self._events.progress(measure, testbed))
            self._has_read = found is not None
            return found is not None and self._weigh(measure.commit, found)
        except PerfbisectError as error:
            check_stop(self._stop)
            self._has_read = True
            text = f"no priors by the functions that differ between the ends: {error.message}"
            self._events.send("note", text, measure.commit)
            return False
        finally:
            self._reading.release()

    def _weigh(self, commit: int, functions: FunctionEvidence | None = None) -> bool:
        """Record prior weights by all that is known; return whether there are any.

        functions: what those of the ends tell; by default what is recorded of it.
        """
        with self._journal.lock:
            self._journal.refresh()  # another worker may have read the functions, too
            records = self._journal.state.records
            irrelevant = _last(records, Irrelevant)
            known = _functions_of(records) or functions
            weighed = self._services.weigh(self._graph, irrelevant.commits if irrelevant else (), known)
            if weighed not in (None, _last(records, Weighed)):
                self._journal.record(weighed)
                text = _note_on_weights(weighed, self._journal.state.goal)
                again = "; this trial is decided anew" if functions is not None else ""
                self._events.send("note", text + again, commit)
        return weighed is not None

    def _order(self, measure: Measure) -> BuildOrder:
        sha = self._graph.shas[measure.commit]
        services, recipe = self._services, self._accepted.request.recipe
        commit, own = services.patched.get(sha, (sha, ()))
        return BuildOrder(commit, recipe, measure.layout, (*services.patches, *own), services.fixes)


def _last(records: Sequence[Record], kind: type[_Kind]) -> _Kind | None:
    return next((record for record in reversed(records) if isinstance(record, kind)), None)


def _functions_of(records: Sequence[Record]) -> FunctionEvidence | None:
    """Return the last recorded evidence of functions; newer weights of another worker may lack it."""
    weighed = (r for r in reversed(records) if isinstance(r, Weighed))
    return next((r.functions for r in weighed if r.functions is not None), None)


def _pointed_at(goal: Goal) -> str:
    """Return at which commits messages point, by what is looked for."""
    if goal.scan:
        return "a fix or revert names, or that mend or revert one,"
    return "a later fix or revert names" if goal.find == "regression" else "mend or revert an older one"


def _note_on_weights(weighed: Weighed, goal: Goal) -> str:
    """Return the user's message about new weights."""
    text = f"the other {len(weighed.commits):,} have priors by the folders that they change"
    if len(weighed.commits) == 1:
        text = "the other one has priors by the folders that it changes"
    if weighed.functions is not None:
        number = len({*weighed.functions.differ, *weighed.functions.call} & {*weighed.commits})
        text += ", and by what the functions that differ between the ends tell: "
        text += f"{number:,} {'changes or calls' if number == 1 else 'change or call'} one"
    if weighed.named:
        has = "has" if weighed.named == 1 else "have"
        text += f"; {weighed.named:,} that {_pointed_at(goal)} {has} more"
    return text


def _built(measure: Measure, kernel: Kernel) -> Built:
    return Built(
        commit=measure.commit,
        ok=True,
        seconds=kernel.seconds,
        binary=kernel.binary,
        layout=measure.layout,
        cached=kernel.cached,
        kernel=_facts_of(kernel),
        fetched=kernel.fetched,
    )


def _facts_of(kernel: Kernel) -> KernelFacts:
    """Return what is recorded of a kernel, for the report."""
    return KernelFacts(
        release=kernel.release,
        build_id=kernel.build_id,
        image=str(kernel.image),
        config=str(kernel.config),
        log=str(kernel.log),
        sizes=dict(kernel.sizes),
        options=dict(kernel.options),
        lost=kernel.lost,
        toolchain=kernel.toolchain,
        compiler=kernel.compiler,
        key=kernel.key,
    )
