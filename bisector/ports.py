"""The doors between the program and the world: small protocols and the values that pass through them.

Each port has a real adapter in `adapters/` and a shipped fake in `testing/fakes.py`; both pass the same
contract suite in `tests/contract`. Those of durable memory are in `bisector/store_ports.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bisector.model.commit_graph import CommitGraph
from bisector.model.facts import MonitorResult, Userspace
from bisector.model.goal import TERMS, Terms, TestbedClock

Progress = Callable[[str], None]
"""Called with one short sentence each time about what a long action is doing now."""


class Clock(Protocol):
    """Wall time of this host."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The parts of a commit that people read. when: author date, seconds since the epoch; describe: the tag
    before it and the commits since, as `git describe` has it, '' where nobody asked."""

    sha: str
    subject: str
    author: str
    when: float
    describe: str = ""


class Source(Protocol):
    """A git repository that is only ever read, or a list of kernels; trees are checked out elsewhere."""

    def resolve(self, rev: str) -> str:
        """Return the full id of a commit. Raises RequestError naming near misses."""
        ...

    def names(self) -> Sequence[str]:
        """Return the names of tags and branches."""
        ...

    def graph(
        self,
        good: str,
        bad: str,
        *,
        first_parent: bool = False,
        paths: Sequence[str] = (),
        skip: Sequence[str] = (),
        terms: Terms = TERMS["regression"],
    ) -> CommitGraph:
        """Return the history from an older to a newer end. Raises RequestError for ends of no use."""
        ...

    def infos(self, shas: Sequence[str], *, described: Container[str] = ()) -> Sequence[CommitInfo]:
        """Return what a person needs to recognise commits; each described one takes up to a second more."""
        ...

    def holds_linux(self, sha: str) -> bool:
        """Return whether the commit's tree is a Linux kernel's."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Return what a user should know about the repository, such as changes that are not tested."""
        ...


@dataclass(frozen=True, slots=True)
class Fix:
    """A known fix (`--with-fix`), put on commits that have a guilty one behind them and it not. Full ids."""

    sha: str
    guilty: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """One commit through one recipe. patches: absolute paths put on top of it in order, after its fixes."""

    sha: str
    recipe: str
    layout: int = 0
    patches: tuple[Path, ...] = ()
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """A built kernel in the cache. Sizes in bytes; `binary` is equal for kernels that are the same code.

    release, version: of uname -r and -v; build_id: GNU build id (hex) of /sys/kernel/notes; '' if unknown.
    options: effective .config as NAME -> value ('y', 'm', text), without absent ones; lost: wanted options
    that were not granted; userspace: what a guest that boots it runs; arch: what it runs on, as recipes call
    it; modules: archive of lib/modules, if it has any; load: those that a guest needs before its root is
    there; fetched: another host has built it; compiler: what was wanted; toolchain: what that says it is.
    """

    sha: str
    recipe: str
    binary: str
    image: Path
    config: Path
    log: Path
    release: str
    build_id: str
    seconds: float
    cached: bool
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    toolchain: str = ""
    key: str = ""
    userspace: Userspace = "debian"
    arch: str = "x86_64"
    modules: Path | None = None
    load: tuple[str, ...] = ()
    fetched: bool = False
    compiler: str = ""
    version: str = ""


class Builder(Protocol):
    """Turns commits into kernels; remembers what it has built."""

    def build(self, order: BuildOrder, progress: Progress) -> Kernel:
        """Build or fetch from the cache. Raises BuildFailed (the commit) or InfrastructureError (we)."""
        ...

    def cached(self, order: BuildOrder) -> Kernel | None:
        """Return the kernel if it is in the cache already."""
        ...


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A metric as it is read from a run's output.

    at: where it stands if not under its name (JSON path, regular expression, key; see
    schemas/workload/metric.py).
    optional: a run that does not give it is a good run. point: of a parameter matrix, by its label.
    ratio: the names of its numerator and denominator, where it is computed instead of read.
    """

    name: str
    unit: str
    at: str = ""
    optional: bool = False
    point: str = ""
    ratio: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """What a job finds on its testbed, or cannot run there. block_device: bytes of a scratch disk, 0 where it
    needs none; cgroup: 'v1', 'v2', 'any', or '' for none."""

    block_device: int = 0
    cgroup: str = ""
    cpus: int = 1


@dataclass(frozen=True, slots=True)
class Monitor:
    """What watches a run that is no sample. plan: what the measuring agent does for it, line by line (its
    observe.h); runs: how often it executes the workload."""

    name: str
    plan: tuple[str, ...]
    runs: int = 1


@dataclass(frozen=True, slots=True)
class Counting:
    """Counters of an emulated guest in each run, beside the metrics that the workload prints.

    metrics: by name (schemas/workload/counted_metrics.py); needed: those without which a run decides nothing,
    all else is left out where nothing counts; profile: instructions of each function, too; cpu: of
    kernels/cpus.toml, '' for its first one; models: whether the profile has its modelled misses.
    """

    metrics: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    profile: bool = False
    cpu: str = ""
    models: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """One workload, ready to execute on a testbed. Durations in seconds.

    payload: folder whose content is put on the testbed; run: command as a list, relative to that folder,
    never a shell string; environment: settings for the guest, such as {'autogroup': '0'};
    checksum: of the payload, recorded with every boot; packages: that the testbed must have;
    cleanup: whether the agent has something to end when the boot is left;
    results: file or folder below the payload that each run leaves and that is fetched ('': none);
    monitors: what is to be watched after the samples of a boot; counting: None where nothing is counted.
    """

    name: str
    payload: Path
    run: tuple[str, ...]
    metrics: tuple[MetricSpec, ...]
    warmup: int = 0
    settle: float = 0.0
    pause: float = 0.0
    timeout: float = 300.0
    environment: Mapping[str, str] = field(default_factory=dict)
    parse: str = "key-value"
    checksum: str = ""
    packages: tuple[str, ...] = ()
    cleanup: bool = False
    needs: Needs = field(default_factory=Needs)
    results: str = ""
    monitors: tuple[Monitor, ...] = ()
    counting: Counting | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """One finished run. seconds: host time; guest_seconds: the guest's; raw: output; number: in the boot."""

    values: Mapping[str, float]
    seconds: float
    guest_seconds: float
    raw: Path
    flags: tuple[str, ...] = ()
    number: int = 0


@dataclass(frozen=True, slots=True)
class BootFacts:
    """Facts that the running guest reports; waited_seconds: for others on its host, before it booted;
    profiled: whether what each function executes is counted in its runs."""

    release: str
    build_id: str
    facts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    overhead_seconds: float = 0.0
    console: Path | None = None
    waited_seconds: float = 0.0
    profiled: bool = False


class Session(Protocol):
    """One live boot with the workload deployed on it."""

    facts: BootFacts

    def run(self, index: int) -> RunResult:
        """Execute the workload once. Raises WorkloadFailed, BootFailed (it crashed) or TestbedLost."""
        ...

    def run_monitor(self, monitor: Monitor) -> MonitorResult:
        """Make the runs of a monitor; what runs afterwards in this boot is no sample.

        What cannot be had is `absent` in the answer, a workload that fails as well. Raises BootFailed or
        TestbedLost.
        """
        ...

    def leave(self) -> None:
        """End the boot and free the testbed. Never raises for a boot that is gone already."""
        ...


class Testbed(Protocol):
    """Boots kernels, one at a time. has_own_kernel: it lives on, and is given back with its own kernel."""

    name: str
    clock: TestbedClock
    has_own_kernel: bool

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        """Boot a kernel and deploy the job; raw output goes into `folder`.

        Raises BootFailed (panic, hang, no SSH, wrong kernel) or InfrastructureError.
        """
        ...

    def give_back(self, progress: Progress, stop: Callable[[], bool] = lambda: False) -> None:
        """Leave the testbed as it was found, checked, for whoever comes next; also after an error.

        Does nothing where nothing was booted, or for a testbed that ends with its boot. stop: whether it is
        another's by now. Raises InfrastructureError: it was not given back; Interrupted when told to stop.
        """
        ...
