"""Monitors of a workload: the key `monitors` of a manifest, and the option `--monitor`.

A monitor disturbs the workload, so it gets runs of its own after the samples of a boot. These runs are
never samples. `shortfalls` names what a user space, an emulated guest or a kernel cannot provide; the
testbed reports the rest when it tries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator

from bisector.errors import RequestError, nearest
from bisector.model.facts import Userspace
from bisector.model.goal import TestbedClock
from bisector.schemas.documents.document import shown
from bisector.schemas.loading import Distinct, Spec, matching
from bisector.schemas.ranges import Repeats, SampleFrequency
from bisector.schemas.refusal import refusal
from bisector.schemas.workload.counted_metrics import COUNTERS, is_unasked

PERF_PACKAGE = "linux-perf"
"""The Debian package of perf; a guest gets an image with it."""

FTRACE_FRAGMENT = "ftrace"
"""The fragment of kernels/configs with the function profiler."""

Word = Annotated[str, matching(r"[^\s,][^\s]*", "a text without spaces"), Field(max_length=500)]


class PerfStat(Spec):
    """`perf stat -j`: counters of the workload and all it starts, repeated."""

    events: Distinct[Word] = Field(
        default=(
            *("task-clock", "context-switches", "cpu-migrations", "page-faults"),
            *("cycles", "instructions", "branches", "branch-misses"),
        ),
        min_length=1,
        description="as 'perf list' names them; the report states which are not supported",
    )
    repeat: Repeats = Field(default=3, description="runs of the workload; perf gives +- of their mean")


class PerfRecord(Spec):
    """`perf record -a -g`: where the whole system spends its time, with call chains."""

    frequency: SampleFrequency = Field(default=99, description="samples a second and CPU")


class Ftrace(Spec):
    """ftrace's function profiler: how often functions of the kernel are called, and how long they take."""

    functions: Distinct[Word] = Field(
        default=(), description="names or patterns ('kmem_cache_*'); empty: every function, which is slow"
    )


class Proc(Spec):
    """Files of /proc and statistics of cgroups, before and after."""

    files: Distinct[Word] = Field(
        default=(
            *("/proc/stat", "/proc/vmstat", "/proc/interrupts", "/proc/softirqs", "/proc/schedstat"),
            *("/proc/diskstats", "/proc/meminfo", "/sys/fs/cgroup/*.stat"),
        ),
        min_length=1,
        description="paths or patterns",
    )

    @field_validator("files")
    @classmethod
    def _absolute(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            if not path.startswith(("/proc/", "/sys/")) or ".." in path.split("/"):
                raise ValueError(f"'{path}' must be a path below /proc/ or /sys/")
        return value


class Dmesg(Spec):
    """The kernel's messages during the run."""


class Counters(Spec):
    """Instructions of each function of the kernel, counted in the samples themselves by an emulated guest."""

    cpu: Annotated[str, matching(r"|[a-z0-9][a-z0-9-]{0,39}", "the name of a processor")] = Field(
        default="", description="of kernels/cpus.toml: its modelled cache misses as well"
    )


class Monitors(Spec):
    """All monitors; None for one that is not wanted."""

    perf_stat: PerfStat | None = Field(default=None, alias="perf-stat")
    perf_record: PerfRecord | None = Field(default=None, alias="perf-record")
    ftrace: Ftrace | None = None
    proc: Proc | None = None
    dmesg: Dmesg | None = None
    counters: Counters | None = None

    def names(self) -> tuple[str, ...]:
        """Return the names of those wanted, as users write them."""
        return tuple(name for name, found in self._by_name() if found is not None)

    def counted_beside(self) -> tuple[str, ...]:
        """Return the metrics that the monitor `counters` adds to each run."""
        if self.counters is None:
            return ()
        return tuple(name for name in COUNTERS if self.counters.cpu or is_unasked(name))

    def packages(self) -> tuple[str, ...]:
        """Return the Debian packages that they need."""
        return (PERF_PACKAGE,) if self.perf_stat or self.perf_record else ()

    def _by_name(self) -> Iterator[tuple[str, Spec | None]]:
        for name, info in type(self).model_fields.items():
            yield info.alias or name, getattr(self, name)

    def with_requested(self, asked: Sequence[str]) -> Monitors:
        """Return these and those of `--monitor`: 'NAME', or 'NAME=A,B', whose list replaces the manifest's.

        Raises RequestError naming the known ones.
        """
        data = {name: found.model_dump() for name, found in self._by_name() if found is not None}
        for text in asked:
            name, equals, items = text.partition("=")
            if name not in MONITOR_NAMES:
                raise RequestError(
                    f"--monitor: there is no monitor '{name}'{nearest(name, MONITOR_NAMES)}",
                    details=f"known: {', '.join(MONITOR_NAMES)}",
                    cure="name one that is known",
                )
            if not equals:
                data.setdefault(name, {})
                continue
            key = _LIST_KEYS.get(name)
            if key is None or not items:
                raise RequestError(
                    f"--monitor {text}: "
                    + (f"'{name}' takes no list" if key is None else "nothing follows '='"),
                    cure=f"write --monitor {name}",
                )
            given: Any = items if key in ("frequency", "cpu") else tuple(items.split(","))
            data[name] = {**data.get(name, {}), key: given}
        try:
            return Monitors.model_validate(data)
        except ValidationError as error:
            raise refusal(error, Monitors, label=lambda key: f"--monitor {key[0]}") from error


MONITOR_NAMES = tuple(info.alias or name for name, info in Monitors.model_fields.items())

_LIST_KEYS = {
    "perf-stat": "events",
    "perf-record": "frequency",
    "ftrace": "functions",
    "proc": "files",
    "counters": "cpu",
}
"""The key that a list after 'NAME=' on the command line sets."""


def monitors_by_name(value: object) -> object:
    """Return the key `monitors` as a mapping: a list of names asks for each with its defaults."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        for name in value:
            if value.count(name) > 1:
                raise ValueError(f"{shown(name)} is there twice")
        return {name: {} for name in value}
    if isinstance(value, dict):
        return {name: {} if options is None else options for name, options in value.items()}
    return value


def shortfalls(
    wanted: Monitors,
    userspaces: Sequence[Userspace],
    clocks: Sequence[TestbedClock],
    fragments: Sequence[str],
) -> Iterator[tuple[str, str]]:
    """Yield (monitor, what it cannot measure and why). userspaces, clocks: those that may be used.

    fragments: those that its kernels are built with.
    """
    for name in wanted.names():
        if name.startswith("perf") and "initramfs" in userspaces:
            yield name, "not in an initramfs: there is no perf"
        if name == "perf-stat" and "instructions" in clocks:
            yield name, _NO_COUNTERS
        if name == "perf-record" and "instructions" in clocks:
            yield name, _NO_NMI
        if name == "counters" and "wall" in clocks:
            yield name, _NOT_EMULATED
        if name == "ftrace" and FTRACE_FRAGMENT not in fragments:
            yield name, _NO_PROFILER


_NO_COUNTERS = (
    "an emulated guest (clock 'instructions') has no performance counters: cycles, instructions and the like "
    "are not supported there; events of the kernel itself are"
)
_NOT_EMULATED = "only an emulated guest (clock 'instructions') counts what each function executes"
_NO_NMI = (
    "an emulated guest (clock 'instructions') samples by its timer, which sees nothing where interrupts are "
    "off: the tick, for one (ftrace does)"
)
_NO_PROFILER = (
    "kernels have no function profiler unless it is asked for, because its hooks slow every sample: "
    f"'requires: {{kernel: [{FTRACE_FRAGMENT}]}}' in the manifest, or --recipe x86_64-guest+{FTRACE_FRAGMENT}"
)
