"""The manifest `workload.yaml`: its keys and the rules that they follow.

`workloads/README.md` shows them in use; `schemas/workload/workload.py` finds and loads manifests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from bisector.model.facts import Userspace
from bisector.model.goal import TestbedClock
from bisector.schemas.documents.document import shown
from bisector.schemas.loading import Argument, Distinct, Spec, matching
from bisector.schemas.ranges import RestSeconds, Runs, TimeoutSeconds, WarmupRuns
from bisector.schemas.refusal import WrongKeyError
from bisector.schemas.workload.counted_metrics import CounterName, counted_metric, counted_operands
from bisector.schemas.workload.metric import MetricManifest, check_pattern, check_ratio, check_seconds
from bisector.schemas.workload.monitors import Monitors, monitors_by_name
from bisector.schemas.workload.parameter_matrix import (
    BLOCK_DEVICE,
    Combination,
    is_plain,
    lists_of,
    placeholders,
    points,
    single_values,
)
from bisector.schemas.workload.requirements import Environment, Requirements
from bisector.schemas.workload.work import Work

ParseKind = Literal["key-value", "time", "json", "regex", "results", "elapsed"]

WorkloadName = Annotated[
    str,
    matching(
        r"[a-z0-9][a-z0-9._-]{0,99}(/[a-z0-9][a-z0-9._-]{0,99})?",
        "small letters, digits, '.', '_' and '-', up to 100",
    ),
]


class WorkloadManifest(Spec):
    """The file `workload.yaml`."""

    described_in = "workloads/README.md"

    name: WorkloadName = Field(description="how it is asked for: that of its folder")
    description: str = Field(min_length=1, max_length=1000, description="a sentence on what it measures")
    metrics: tuple[MetricManifest, ...] = Field(min_length=1, description="the numbers that it prints")
    run: tuple[Argument, ...] = Field(
        min_length=1,
        description="command and arguments; the program is one of `files`, or of a required package",
    )
    parameters: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="name -> value or list of values; '{name}' in `run` becomes it; '4x': 4 times the CPUs. "
        "Of lists every combination is executed in each run",
    )
    decides_at: dict[str, str] = Field(
        default_factory=dict, description="the value of a list at which the metric decides; default: the last"
    )
    setup: tuple[tuple[Argument, ...], ...] = Field(
        default=(), description="commands at the beginning of the first run of a boot"
    )
    cleanup: tuple[tuple[Argument, ...], ...] = Field(
        default=(), description="commands at the end of a boot, also after failed runs"
    )
    requires: Requirements = Field(
        default_factory=lambda: Requirements(), description="what its kernels and testbeds must have"
    )
    build: tuple[tuple[Argument, ...], ...] = Field(
        default=(),
        description="commands run on this machine in a copy of the workload's folder, once a bisection; "
        "'{cc}' stands for a C compiler with the flags that make a static program",
    )
    files: Distinct[Argument] = Field(
        default=(), description="what goes to the testbed, relative to the folder"
    )
    parse: ParseKind = Field(
        default="key-value", description="the form of what it prints; elapsed: seconds that a run takes"
    )
    results: Argument = Field(
        default="",
        description="file or folder that each run leaves: fetched, kept, and read by 'parse: results'",
    )
    runs: Runs = Field(default=3, description="runs of a boot at first; the planner may add more")
    warmup: WarmupRuns = Field(default=0, description="first runs of a boot that are kept but never samples")
    settle: RestSeconds = Field(default=0.0, description="seconds of rest before the first run of a boot")
    pause: RestSeconds = Field(default=0.0, description="seconds of rest between runs")
    timeout: TimeoutSeconds = Field(default=300.0, description="seconds after which a run has hung")
    environment: Environment = Field(default_factory=Environment, description="settings of the testbed")
    counters: Distinct[CounterName] = Field(default=(), description="what emulated guests count in each run")
    work: Work | None = Field(default=None, description="units of work that a run does, for reports")
    monitors: Monitors = Field(
        default_factory=Monitors,
        description="monitors of extra runs after the samples of a boot: names, or names with options",
    )
    clocks: Distinct[TestbedClock] = Field(
        default=("wall", "instructions"), min_length=1, description="the clocks that can decide this workload"
    )
    userspaces: Distinct[Userspace] = Field(
        default=("debian",),
        min_length=1,
        description="what it runs on: a distribution's ('debian'), static programs alone ('initramfs')",
    )

    @field_validator("run", "files", mode="after")
    @classmethod
    def _inside(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for part in value[:1] if info.field_name == "run" else value:
            if part in ("", ".") or part.startswith("/") or ".." in Path(part).parts:
                raise ValueError(f"{shown(part)} must lie inside the workload's folder")
        return value

    @field_validator("results", mode="after")
    @classmethod
    def _results_inside(cls, value: str) -> str:
        if value.startswith("/") or value in (".", "./") or ".." in Path(value).parts:
            raise ValueError(f"{shown(value)} must lie inside the folder that a run begins in")
        return value

    @field_validator("parameters", mode="before")
    @classmethod
    def _lists(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return lists_of(value) if isinstance(value, dict) else value

    @field_validator("monitors", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return monitors_by_name(value)

    @field_validator("decides_at", mode="before")
    @classmethod
    def _text_values(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if not isinstance(value, dict):
            return value
        return {k: str(v) if is_plain(v) else v for k, v in value.items()}

    @model_validator(mode="after")
    def _parameters_consistent(self) -> WorkloadManifest:
        for name, value in self.decides_at.items():
            if value not in self.parameters.get(name, ()):
                raise WrongKeyError(
                    f"the parameter {shown(name)} has no value {shown(value)}", "decides_at", name
                )
        for key, command in self._commands():
            if not command or not command[0]:
                raise WrongKeyError("a command needs a word", *key)
            unknown = placeholders(command) - set(self.parameters)
            if BLOCK_DEVICE in unknown and self.requires.block_device is None:
                raise WrongKeyError(
                    f"'{{{BLOCK_DEVICE}}}' needs its size: 'requires: {{block_device: 1G}}'", *key
                )
            unknown -= {BLOCK_DEVICE}
            if unknown:
                known = ", ".join(self.parameters) or "there are none"
                raise WrongKeyError(f"'{{{min(unknown)}}}' is not a parameter (known: {known})", *key)
            varied = placeholders(command) & {n for n, v in self.parameters.items() if len(v) > 1}
            if varied and key not in (("run",), ("work", "count")):
                raise WrongKeyError(
                    f"'{{{min(varied)}}}' has several values; setup and cleanup happen once", *key
                )
        if not self.files and not (self.requires.packages or self.requires.programs):
            raise WrongKeyError(
                "without 'files' there must be 'requires' with the package that brings the program",
                "requires",
            )
        return self

    def _commands(self) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Yield key and words of the commands on the testbed."""
        yield ("run",), self.run
        for name, commands in (("setup", self.setup), ("cleanup", self.cleanup)):
            yield from (((name, str(number)), command) for number, command in enumerate(commands))
        for number, program in enumerate(self.requires.programs):
            yield ("requires", "programs", str(number)), (program,)
        if self.work is not None:
            yield ("work", "count"), (self.work.count,)

    def packages(self) -> tuple[str, ...]:
        """Return the Debian packages that the workload and its monitors need."""
        return tuple(dict.fromkeys((*self.requires.packages, *self.monitors.packages())))

    def points(self) -> tuple[Combination, ...]:
        """Return all combinations of parameters that one run executes; one empty point without lists."""
        return points(self.parameters)

    def programs(self) -> tuple[str, ...]:
        """Return what `requires.programs` names, with parameters replaced."""
        return Combination().command(self.requires.programs, single_values(self.parameters))

    def all_metrics(self) -> tuple[MetricManifest, ...]:
        """Return what is printed and what is counted in each run."""
        return (*self.expanded_metrics(), *map(counted_metric, self.counted()))

    def counted(self) -> tuple[str, ...]:
        """Return the names of what is counted in each run: by `counters`, for a ratio, by the monitor."""
        printed = {metric.name for metric in self.expanded_metrics()}
        names = [name for one in self.metrics for name in counted_operands(one, self.metrics)]
        names += [name for name in self.monitors.counted_beside() if name not in printed]
        return tuple(dict.fromkeys((*self.counters, *names)))

    @property
    def sample_sets_up(self) -> bool:
        """Whether the first sample of a boot is of a run that begins with `setup`."""
        return bool(self.setup) and self.warmup == 0

    def disturbed_by_setup(self) -> str:
        """Return what the first sample of a boot would give of `setup` as well as of `run`; '' for nothing.

        What `run` prints is its own.
        """
        if not self.sample_sets_up:
            return ""
        counted = self.counted()
        return (
            "the seconds that it takes" if self.parse == "elapsed" else f"'{counted[0]}'" if counted else ""
        )

    def expanded_metrics(self) -> tuple[MetricManifest, ...]:
        """Return the printed metrics of all points: 'real[threads=4x]' for each point of a matrix."""
        if len(self.points()) == 1:
            return self.metrics
        chosen = {n: self.decides_at.get(n, v[-1]) for n, v in self.parameters.items() if len(v) > 1}
        return tuple(
            metric.model_copy(
                update={
                    "name": f"{metric.name}[{point.label}]",
                    "at": "" if metric.ratio else metric.at or metric.name,
                    "decides": metric.decides and point.values == chosen,
                    "optional": metric.optional or bool(point.limits),
                }
            )
            for point in self.points()
            for metric in self.metrics
        )

    @model_validator(mode="after")
    def _decides_everywhere(self) -> WorkloadManifest:
        for metric in self.expanded_metrics() if len(self.points()) > 1 else ():
            if metric.decides and metric.optional:
                raise WrongKeyError(
                    f"'{metric.name}' decides, so it must be there on every testbed", "decides_at"
                )
        return self

    @model_validator(mode="after")
    def _results_available(self) -> WorkloadManifest:
        if self.results and "initramfs" in self.userspaces:
            raise WrongKeyError("they are fetched over SSH, which an 'initramfs' does not have", "results")
        if self.parse == "results" and not self.results:
            raise WrongKeyError("'results' needs the key 'results': what a run leaves", "parse")
        if self.parse in ("results", "elapsed") and len(self.points()) > 1:
            raise WrongKeyError(f"'{self.parse}' is of one run, so parameters need one value each", "parse")
        check_seconds(self.parse, self.metrics)
        return self

    @model_validator(mode="after")
    def _setup_in_no_sample(self) -> WorkloadManifest:
        if disturbed := self.disturbed_by_setup():
            raise WrongKeyError(
                f"the first run of a boot begins with 'setup', so {disturbed} would be those of both",
                "warmup",
                cure="write 'warmup: 1': that run is no sample then",
            )
        return self

    @model_validator(mode="after")
    def _one_decides(self) -> WorkloadManifest:
        names = [metric.name for metric in self.metrics]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise WrongKeyError(f"the metric '{name}' is there twice", "metrics", str(number), "name")
            if name in self.counters:
                raise WrongKeyError(f"'{name}' is a metric that is printed as well", "counters")
        for clock in self.clocks:
            deciding = [m.name for m in self.metrics if m.decides and clock in m.clocks]
            if len(deciding) != 1:
                found = ", ".join(deciding) or "none has"
                raise WrongKeyError(
                    f"exactly one metric must have 'decides: true' under the clock '{clock}' ({found})",
                    "metrics",
                )
        for number, metric in enumerate(self.metrics):
            at = ("metrics", str(number))
            if metric.decides and metric.optional:
                raise WrongKeyError(f"'{metric.name}' decides, so it cannot be optional", *at, "optional")
            try:
                if metric.operands is not None:
                    counted = counted_operands(metric, self.metrics)
                    check_ratio(metric, self.metrics, counted, one_point=len(self.points()) == 1)
                elif self.parse == "regex":
                    check_pattern(metric)
            except ValueError as error:
                raise WrongKeyError(str(error), *at, "ratio" if metric.ratio else "at") from error
        return self
