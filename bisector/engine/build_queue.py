"""A queue of kernel builds, with one thread for each builder.

Trials have ordered some builds; the others are speculative: they are done ahead, while builders are idle. A
build that was ordered goes to an idle builder, or a speculative one is cancelled for it. Speculative
builds are given as a list, the most probable first; one that is no longer in the list is cancelled. What was
ordered is built even if its trial stops waiting, and is kept until that asks again. A builder that is unwell
is taken out for a while: others go on with its build; where none is well, it waits for one. A build that
fails through no fault of the commit goes to the builders that have not tried it yet. One of which the log
tells no reason is done once more, on another builder where there is one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from bisector.errors import BuilderUnwell, BuildFailed, BuildUnexplained, InfrastructureError, Interrupted
from bisector.ports import Builder, BuildOrder, Kernel, Progress

Stop = Callable[[], bool]
MakeBuilder = Callable[[Stop], Builder]
"""Makes the adapter of one builder, which raises Interrupted soon after the callable returns True."""

_END_SECONDS = 30.0
"""How long `close` waits for cancelled builds: programs are killed in seconds, a transfer may not notice."""
_OUT_SECONDS = 60.0
"""How long an unwell builder is left alone: each attempt to use it again may cost a failed build."""
_LONGEST_OUT_SECONDS = 480.0
"""The longest pause where no builder is well; pauses double up to it."""
_UNWELL_SECONDS = 3600.0
"""How long trials wait while no builder is well: time enough for a person to make room on a disk."""

_WAIT_SECONDS = 0.2
"""How soon a waiting trial notices that it should stop."""


@dataclass(slots=True, eq=False)
class Build:
    """One build. progress: None while no trial has ordered it; waiting: how many trials wait for its end;
    failed_on: numbers of builders on which it has failed; unexplained: it has failed without a reason;
    seconds: how long it took."""

    order: BuildOrder
    progress: Progress | None
    waiting: int = 0
    dropped: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    kernel: Kernel | None = None
    error: BaseException | None = None
    failed_on: set[int] = field(default_factory=set)
    unexplained: bool = False
    seconds: float = 0.0

    def report(self, text: str) -> None:
        """Report progress to the trial that has ordered it, if one has."""
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
        self._waiting: list[Build] = []
        self._ahead: list[BuildOrder] = []
        self._active: dict[int, Build] = {}
        self._finished: dict[BuildOrder, Build] = {}
        self._out: set[int] = set()
        self._none_well: tuple[float, float] | None = None  # since when, and how long they are left alone
        self._ended = threading.Event()
        self._make = make
        self._threads: list[threading.Thread] = []

    def order(self, order: BuildOrder, progress: Progress) -> Build:
        """Have a kernel built before all speculative ones, for a trial that must `wait` for it."""
        with self._change:
            self._open()
            build = self._finished.pop(order, None)
            if build is None:
                known = [build for build in (*self._active.values(), *self._waiting) if build.order == order]
                build = next((build for build in known if not build.dropped), None)
                if build is None:
                    build = Build(order, progress)
                    self._waiting.append(build)
                    self._make_way()
                else:
                    progress("being built already")
                    build.progress = progress
                self._change.notify_all()
            build.waiting += 1
            return build

    def wait(self, build: Build, leaves: Stop | None = None) -> Kernel | None:
        """Return the kernel that was ordered; None once the trial leaves, though the build goes on.

        Raises what `Builder.build` raises, and Interrupted when told to stop.
        """
        while not build.ended.wait(_WAIT_SECONDS):
            if self._stop():
                raise Interrupted("interrupted")
            if leaves is not None and leaves():
                with self._change:
                    if not build.ended.is_set():
                        build.waiting -= 1
                        return None
        if build.error is not None:
            raise build.error
        assert build.kernel is not None
        return build.kernel

    def ahead(self, orders: Sequence[BuildOrder]) -> None:
        """Build these in this order while no trial waits; cancel other speculative builds.

        Nothing is built once it is closed: who orders may not know yet that nobody wants kernels any more.
        """
        with self._change:
            if self._ended.is_set():
                return
            self._open()
            self._ahead = [order for order in orders if order not in self._finished]
            for build in self._active.values():
                if build.progress is None and build.order not in orders:
                    build.dropped = True
            self._change.notify_all()

    def close(self) -> None:
        """Cancel all builds and wait until their threads have ended, for `_END_SECONDS` at most."""
        with self._change:
            self._ended.set()
            for build in (*self._active.values(), *self._waiting):
                build.dropped = True
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
        self._ended = threading.Event()  # a new one: threads that `close` told to end must stay ended
        for number, make in enumerate(self._make):
            arguments, name = (number, make, self._ended), f"builder-{number}"
            self._threads.append(threading.Thread(target=self._work, args=arguments, name=name, daemon=True))
            self._threads[-1].start()

    def _make_way(self) -> None:
        """Cancel as many speculative builds as trials wait for a builder. Holds the lock."""
        free = self._well - set(self._active)
        idle = sum(any(self._takes(number, build) for build in self._waiting) for number in free)
        unneeded = [build for build in self._active.values() if build.progress is None and not build.dropped]
        under_way = sum(build.dropped for build in self._active.values())
        for build in unneeded[::-1][: max(0, len(self._waiting) - idle - under_way)]:
            build.dropped = True

    def _next(self, number: int) -> Build | None:
        """Return what this builder should build now, if anything. Holds the lock."""
        for build in self._waiting:
            if self._takes(number, build):
                self._waiting.remove(build)
                return build
        if number in self._measuring:
            return None
        busy = {build.order for build in self._active.values()}
        for order in self._ahead:
            if order not in busy:
                self._ahead.remove(order)
                return Build(order, None)
        return None

    @property
    def _well(self) -> set[int]:
        """The numbers of the builders that are not taken out."""
        return set(range(len(self._threads))) - self._out

    def _takes(self, number: int, build: Build) -> bool:
        """Return whether a builder should take a build: not one that it failed, while another is left."""
        return number not in build.failed_on or self._well - {number} <= build.failed_on

    def _give_back(self, number: int, build: Build, error: BaseException) -> bool:
        """Queue a failed build again if another try may help; return whether it was. Holds the lock."""
        if self._active.get(number) is not build or build.progress is None or build.dropped:
            return False
        build.failed_on.add(number)
        again, what = False, "another builder tries"
        if isinstance(error, BuildUnexplained):
            again, build.unexplained = not build.unexplained, True
            what = "once more, to be sure"
        elif isinstance(error, InfrastructureError):
            again = not self._well <= build.failed_on
        if again:
            build.report(f"{error}: {what}")
            del self._active[number]
            self._waiting.insert(0, build)
            self._make_way()
            self._change.notify_all()
        return again

    def _take_out(self, number: int, build: Build, error: BuilderUnwell) -> float | None:
        """Hand the build of an unwell builder to the others; return how long that builder is left alone.

        None where no builder has been well for too long: the build then fails with that error.
        """
        with self._change:
            if self._active.get(number) is not build:
                return None
            seconds, now = _OUT_SECONDS, time.monotonic()
            if self._well - {number}:
                build.report(f"{error.message}: it is taken out for {seconds:.0f} s, another goes on")
            else:
                since, last = self._none_well or (now, _OUT_SECONDS / 2)
                seconds, left = min(2 * last, _LONGEST_OUT_SECONDS), since + _UNWELL_SECONDS - now
                if left <= 0:  # `_none_well` stays, so that a new order does not wait another hour
                    return None
                if build.progress is not None:
                    self._none_well = since, seconds
                build.report(
                    f"{error.message}: no builder is well. It is tried again in {seconds:.0f} s, for "
                    f"{left / 60:.0f} min at most; {error.cure}"
                )
            self._out.add(number)
            del self._active[number]
            if build.progress is not None and not build.dropped:
                self._waiting.insert(0, build)
            else:  # nobody waits for it: it is ordered again, if it is still probable
                build.error = error
                build.ended.set()
            self._make_way()
            self._change.notify_all()
            return seconds

    def _work(self, number: int, make: MakeBuilder, ended: threading.Event) -> None:
        current: list[Build] = []
        builder: Builder | None = None
        while True:
            with self._change:
                while not ended.is_set() and (build := self._next(number)) is None:
                    self._change.wait()
                if ended.is_set():
                    return
                assert build is not None
                self._active[number] = build
            current[:] = [build]
            started = time.monotonic()
            try:
                builder = builder or make(lambda: self._stop() or any(build.dropped for build in current))
                build.kernel = builder.build(build.order, build.report)
            except BuilderUnwell as error:
                seconds = self._take_out(number, build, error)
                if seconds is not None:
                    ended.wait(seconds)
                    with self._change:
                        self._out.discard(number)
                    continue
                build.error = error
            except BaseException as error:  # raised again in the thread that waits
                build.error = error
            build.seconds = time.monotonic() - started
            with self._change:
                if build.error is not None and self._give_back(number, build, build.error):
                    build.error = None
                    continue
                if self._active.get(number) is build:  # not one of the threads that came after `close`
                    del self._active[number]
                # That a commit does not build is a result to keep. An infrastructure failure, or what may be
                # one, is only for the trial that ordered the build.
                doubtful = isinstance(build.error, BuildUnexplained)
                tells = build.kernel is not None or (isinstance(build.error, BuildFailed) and not doubtful)
                if not build.waiting and (tells or (build.progress is not None and not build.dropped)):
                    self._finished[build.order] = build
                if not isinstance(build.error, BuilderUnwell):
                    self._none_well = None
                build.ended.set()
                self._change.notify_all()
