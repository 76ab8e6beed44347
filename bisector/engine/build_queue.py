"""A queue of kernel builds, with one thread for each builder.

Trials wait for some builds; the others are speculative: they are done ahead, while builders are idle. A
build that a trial waits for goes to an idle builder, or a speculative one is cancelled for it. Speculative
builds are given as a list, the most probable first; one that is no longer in the list is cancelled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from bisector.errors import BuildFailed, Interrupted
from bisector.ports import Builder, BuildOrder, Kernel, Progress

Stop = Callable[[], bool]
MakeBuilder = Callable[[Stop], Builder]
"""Makes the adapter of one builder, which raises Interrupted soon after the callable returns True."""

_END_SECONDS = 30.0
"""For a build to end that was cancelled: its programs are killed in seconds, a transfer may not notice."""
_WAIT_SECONDS = 0.2
"""How soon a waiting trial notices that it should stop."""


@dataclass(slots=True, eq=False)
class _Job:
    """One build. progress: None while no trial waits for it."""

    order: BuildOrder
    progress: Progress | None
    dropped: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    kernel: Kernel | None = None
    error: BaseException | None = None

    def report(self, text: str) -> None:
        """Report progress to the trial that waits, if there is one."""
        if self.progress is not None:
            self.progress(text)


class BuildQueue:
    """Runs the builders of a lab. Close it: its threads end with it; a later order starts them again."""

    def __init__(self, make: Sequence[MakeBuilder], stop: Stop, measuring: Collection[int] = ()) -> None:
        """make: one for each builder; stop: asked while something is built or waited for.

        measuring: numbers of builders that do no speculative builds, which would disturb measurements there.
        """
        self._stop = stop
        self._measuring = measuring
        self._change = threading.Condition()
        self._waiting: list[_Job] = []
        self._ahead: list[BuildOrder] = []
        self._active: dict[int, _Job] = {}
        self._finished: dict[BuildOrder, _Job] = {}
        self._ended = threading.Event()
        self._make = make
        self._threads: list[threading.Thread] = []

    def build(self, order: BuildOrder, progress: Progress) -> Kernel:
        """Return the kernel of an order; it is built before all speculative builds.

        Raises what `Builder.build` raises, and Interrupted when told to stop.
        """
        with self._change:
            self._open()
            job = self._finished.pop(order, None)
            if job is None:
                job = next((j for j in self._active.values() if j.order == order and not j.dropped), None)
                if job is not None:
                    progress("being built ahead already")
                    job.progress = progress
                else:
                    job = _Job(order, progress)
                    self._waiting.append(job)
                    self._make_way()
                self._change.notify_all()
        while not job.ended.wait(_WAIT_SECONDS):
            if self._stop():
                raise Interrupted("interrupted")
        if job.error is not None:
            raise job.error
        assert job.kernel is not None
        return job.kernel

    def ahead(self, orders: Sequence[BuildOrder]) -> None:
        """Build these in this order while no trial waits; cancel other speculative builds.

        Nothing is built once it is closed: who orders may not know yet that nobody wants kernels any more.
        """
        with self._change:
            if self._ended.is_set():
                return
            self._open()
            self._ahead = [order for order in orders if order not in self._finished]
            for job in self._active.values():
                if job.progress is None and job.order not in orders:
                    job.dropped = True
            self._change.notify_all()

    def close(self) -> None:
        """Cancel all builds and wait until their threads have ended, for `_END_SECONDS` at most."""
        with self._change:
            self._ended.set()
            for job in (*self._active.values(), *self._waiting):
                job.dropped = True
            threads, self._threads = self._threads, []
            self._waiting.clear()
            self._ahead.clear()
            self._change.notify_all()
        deadline = time.monotonic() + _END_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _open(self) -> None:
        """Start the threads unless they run. Holds the lock."""
        if self._threads:
            return
        self._ended = threading.Event()  # of these threads: those that were closed must not see it reopened
        for number, make in enumerate(self._make):
            arguments, name = (number, make, self._ended), f"builder-{number}"
            self._threads.append(threading.Thread(target=self._work, args=arguments, name=name, daemon=True))
            self._threads[-1].start()

    def _make_way(self) -> None:
        """Cancel as many speculative builds as trials wait for a builder. Holds the lock."""
        idle = len(self._threads) - len(self._active)
        unneeded = [job for job in self._active.values() if job.progress is None and not job.dropped]
        under_way = sum(job.dropped for job in self._active.values())
        for job in unneeded[::-1][: max(0, len(self._waiting) - idle - under_way)]:
            job.dropped = True

    def _next(self, number: int) -> _Job | None:
        """Return what this builder should build now, if anything. Holds the lock."""
        if self._waiting:
            return self._waiting.pop(0)
        if number in self._measuring:
            return None
        busy = {job.order for job in self._active.values()}
        for order in self._ahead:
            if order not in busy:
                self._ahead.remove(order)
                return _Job(order, None)
        return None

    def _work(self, number: int, make: MakeBuilder, ended: threading.Event) -> None:
        current: list[_Job] = []
        builder = make(lambda: self._stop() or any(job.dropped for job in current))
        while True:
            with self._change:
                while not ended.is_set() and (job := self._next(number)) is None:
                    self._change.wait()
                if ended.is_set():
                    return
                assert job is not None
                self._active[number] = job
            current[:] = [job]
            try:
                job.kernel = builder.build(job.order, job.report)
            except BaseException as error:  # raised again in the thread that waits
                job.error = error
            with self._change:
                if self._active.get(number) is job:  # not one of the threads that came after `close`
                    del self._active[number]
                # A commit that fails to build is a result to keep; an infrastructure failure is not.
                if job.progress is None and (job.kernel is not None or isinstance(job.error, BuildFailed)):
                    self._finished[job.order] = job
                job.ended.set()
                self._change.notify_all()
