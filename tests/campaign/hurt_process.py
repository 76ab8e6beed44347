"""A bisection's process that faults strike: what says that a moment is passed, and what each class does.

The process is forked by the campaign, which has imported everything, and runs the real command line. What
lies below is put in by the subclasses: `fake_process` a lab of stand-ins, `real_process` only watchers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from bisector.adapters.guest.libvirt_testbed import domain_prefix
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.adapters.system import orphans, processes
from bisector.app.wiring import Wiring
from bisector.interfaces import cli
from bisector.ports import Job, Kernel, Progress, RunResult, Session, Testbed
from bisector.store_ports import Store
from tests.campaign import striking
from tests.campaign.faults import Fault
from tests.campaign.striking import Helper, Strike, Striker
from tests.support.small_disk import fill

MARK = "FAULT_CAMPAIGN"
"""Environment variable of everything that a bisection's process starts: its folder."""
LOCKED_SECONDS = (0.05, 0.6)
"""A database is locked so long by another process: a moment, and longer than a poll of the engine."""
STOPPED_SECONDS = (0.05, 0.4)
CLOCK_STEPS = (-86400.0 * 365 * 30, -86400.0, -3600.0, -1.0, 1.0, 3600.0, 86400.0 * 365 * 10)
"""Seconds by which the host's clock is set: a battery that was empty, time zones, ntpd, the wrong year."""


class SteppedClock:
    """ports.Clock: this host's, with steps."""

    offset = 0.0

    def now(self) -> float:
        return time.time() + self.offset


class WatchedStore:
    """A store that says 'write' before and 'written' after what it writes, 'engine' before reads."""

    def __init__(self, inner: Store, striker: Striker) -> None:
        self._inner, self._striker = inner, striker

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in ("list", "records"):
            self._striker.moment("engine")
        if name not in ("create", "append", "decide", "set_status"):
            return found

        def write(*arguments: Any, **more: Any) -> Any:
            self._striker.moment("write")
            result = found(*arguments, **more)
            self._striker.moment("written")
            return result

        return write


class WatchedTestbed:
    """A testbed that says 'boot' before and 'booted' after a boot, 'ran' after a run, 'leave' and 'left'."""

    def __init__(self, inner: Testbed, striker: Striker, kernel: Callable[[Kernel], Kernel]) -> None:
        """kernel: says what is booted instead of a kernel."""
        self._inner, self._striker, self._kernel = inner, striker, kernel
        self.name, self.clock = inner.name, inner.clock
        self.has_own_kernel = inner.has_own_kernel

    def give_back(self, progress: Progress, stop: Callable[[], bool] = lambda: False) -> None:
        self._inner.give_back(progress, stop)
        self._striker.moment("given back")

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        self._striker.moment("boot")
        session = self._inner.boot(self._kernel(kernel), job, folder, progress)
        self._striker.moment("booted")
        return _WatchedSession(session, self._striker)


class _WatchedSession:
    def __init__(self, inner: Session, striker: Striker) -> None:
        self._inner, self._striker = inner, striker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def run(self, index: int) -> RunResult:
        result = self._inner.run(index)
        self._striker.moment("ran")
        return result

    def leave(self) -> None:
        self._striker.moment("leave")
        self._inner.leave()
        self._striker.moment("left")


class HurtProcess:
    """One process of a bisection, and what each class of faults does to it."""

    def __init__(self, folder: Path, variant: int, faults: Sequence[Fault], helper: Helper) -> None:
        self.folder, self.variant, self.helper = folder, variant, helper
        self.disk = folder / "disk"
        self.state = self.disk / "state"
        self.clock = SteppedClock()
        self.striker = Striker(faults, folder, self._strikes())
        self.prefix = domain_prefix(self.state)
        self.cached_image: Path | None = None
        """The image that is about to be taken from the cache, at the moment 'cached'."""

    def run(self, arguments: Sequence[str]) -> None:
        """Run one command line in this (forked) process and end it with the command's code."""
        out = open(self.folder / "out.txt", "a", buffering=1)  # noqa: SIM115 - until the process ends
        for number in (1, 2):
            os.dup2(out.fileno(), number)
        sys.stdout = sys.stderr = out
        sys.argv = ["perfbisect", *arguments]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ[MARK] = str(self.folder)
        os.environ["PERFBISECT_STATE_DIR"] = str(self.state)
        os.environ["TMPDIR"] = str(self.disk / "tmp")
        Wiring.store = property(lambda wiring: self.store)  # type: ignore[assignment]
        self.patch()
        cli.main()

    def patch(self) -> None:
        """Put in what lies below the command line."""
        raise NotImplementedError

    @cached_property
    def store(self) -> Any:
        """The store of this process, watched."""
        return WatchedStore(SqlStore(open_state_file(self.state / "perfbisect.sqlite")), self.striker)

    # --- what faults do -------------------------------------------------------------------------------------

    def _strikes(self) -> Mapping[str, Strike]:
        return {
            "killed between records": striking.kill,
            "killed in an action": striking.kill,
            "killed in the engine": striking.kill,
            "killed at any time": striking.kill_soon,
            "told to end": striking.terminate,
            "guest killed": lambda fault: striking.signal_guests(self.prefix, signal.SIGKILL),
            "guest stopped a while": self._stop_guest,
            "libvirtd killed": self.kill_libvirtd,
            "ansible killed": self._kill_play,
            "disk full": self._fill_disk,
            "network cut": self.cut,
            "clock stepped": self._step_clock,
            "stopped a while": self._stop,
            "database locked": self._lock,
            "cache entry corrupted": self._corrupt,
            "image truncated": self._truncate,
            "wrong kernel": self._boot_another,
        }

    def kill_libvirtd(self, fault: Fault) -> None:
        """End the daemon that has started the guests."""
        raise NotImplementedError

    def cut(self, fault: Fault) -> None:
        """Cut the connection to the guest, which lives on."""
        raise NotImplementedError

    def boot_another(self) -> None:
        """Let another kernel than the next one wanted be booted."""
        raise NotImplementedError

    def _stop_guest(self, fault: Fault) -> None:
        pids = striking.signal_guests(self.prefix, signal.SIGSTOP)
        self.helper.tell("continue", seconds=_between(STOPPED_SECONDS, fault), pids=pids)

    def _stop(self, fault: Fault) -> None:
        self.helper.tell("continue", seconds=_between(STOPPED_SECONDS, fault), pids=[os.getpid()])
        os.kill(os.getpid(), signal.SIGSTOP)

    def _lock(self, fault: Fault) -> None:
        seconds = _between(LOCKED_SECONDS, fault)
        self.helper.ask("lock", seconds=seconds, file=str(self.state / "perfbisect.sqlite"))

    def _fill_disk(self, fault: Fault) -> None:
        fill(self.disk)

    def _kill_play(self, fault: Fault) -> None:
        for pid in orphans.find_marked(f"{processes.identity(os.getpid())}."):
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, signal.SIGKILL if fault.choice < 0.5 else signal.SIGTERM)

    def _step_clock(self, fault: Fault) -> None:
        self.clock.offset += CLOCK_STEPS[int(fault.choice * len(CLOCK_STEPS))]

    def _corrupt(self, fault: Fault) -> None:
        """Damage a kernel's image or the facts beside it, as a failing disk or a full one does."""
        image = self._image()
        facts = image.with_name("kernel.json")
        match int(fault.choice * 5):
            case 0 | 1:
                data = bytearray(image.read_bytes())
                data[int(fault.choice * 1e6) % len(data)] ^= 0x40
                image.write_bytes(data)
            case 2:
                facts.write_bytes(facts.read_bytes()[: int(fault.choice * 100)])
            case 3:
                facts.write_text("{}\n")
            case _:
                image.unlink()

    def _truncate(self, fault: Fault) -> None:
        image = self._image()
        os.truncate(image, int(fault.choice * image.stat().st_size))

    def _boot_another(self, fault: Fault) -> None:
        if fault.moment == "boot":
            self.boot_another()
            return
        image = self._image()  # another kernel's image under this one's name
        others = [p for p in sorted(image.parent.parent.glob("*/image")) if p != image]
        image.write_bytes(others[int(fault.choice * len(others))].read_bytes() if others else b"")

    def _image(self) -> Path:
        assert self.cached_image is not None, "'cached' names the image"
        return self.cached_image


def _between(ends: tuple[float, float], fault: Fault) -> float:
    return ends[0] + fault.choice * (ends[1] - ends[0])


def replace_all(fakes: Sequence[tuple[Any, str, Any]]) -> None:
    """Replace (module, name, value) each; a name that is no longer there is an error of the campaign."""
    for module, name, value in fakes:
        assert hasattr(module, name), f"{module.__name__} has no {name} any more"
        setattr(module, name, value)
