"""The manifest `workload.yaml`: its keys and the rules that they follow.

`workloads/README.md` shows them in use; `schemas/workload/workload.py` finds and loads manifests.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from bisector.model.facts import Userspace
from bisector.model.goal import TestbedClock
from bisector.schemas.loading import Spec, matching
from bisector.schemas.workload.metric import MetricManifest, check_pattern, check_ratio
from bisector.schemas.workload.monitors import Monitors, monitors_by_name
from bisector.schemas.workload.parameter_matrix import (
    BLOCK_DEVICE,
    Point,
    placeholders,
    points,
    single_values,
)
from bisector.schemas.workload.requirements import Environment, Requirements

ParseKind = Literal["key-value", "time", "json", "regex", "results"]

WorkloadName = Annotated[
    str, matching(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)?", "small letters, digits, '.', '_' and '-'")
]


class WorkloadManifest(Spec):
    """The file `workload.yaml`."""

    name: WorkloadName
    description: str = Field(min_length=1)
    metrics: tuple[MetricManifest, ...] = Field(min_length=1)
    run: tuple[str, ...] = Field(
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
    setup: tuple[tuple[str, ...], ...] = Field(
        default=(), description="commands before the first run of a boot"
    )
    cleanup: tuple[tuple[str, ...], ...] = Field(
        default=(), description="commands at the end of a boot, also after failed runs"
    )
    requires: Requirements = Field(default_factory=lambda: Requirements())
    build: tuple[tuple[str, ...], ...] = Field(
        default=(),
        description="commands run on this machine in a copy of the workload's folder, once a bisection; "
        "'{cc}' stands for a C compiler with the flags that make a static program",
    )
    files: tuple[str, ...] = Field(default=(), description="what goes to the testbed, relative to the folder")
    parse: ParseKind = "key-value"
    results: str = Field(
        default="",
        description="file or folder that each run leaves: fetched, kept, and read by 'parse: results'",
    )
    runs: int = Field(default=3, ge=1, description="runs of a boot at first; the planner may add more")
    warmup: int = Field(default=0, ge=0, description="first runs of a boot that are kept but never samples")
    settle: float = Field(default=0.0, ge=0, description="seconds of rest before the first run of a boot")
    pause: float = Field(default=0.0, ge=0, description="seconds of rest between runs")
    timeout: float = Field(default=300.0, gt=0, description="seconds of host time after which a run has hung")
    environment: Environment = Field(default_factory=Environment)
    monitors: Monitors = Field(
        default_factory=Monitors,
        description="monitors of extra runs after the samples of a boot: names, or names with options",
    )
    clocks: tuple[TestbedClock, ...] = Field(
        default=("wall", "instructions"), min_length=1, description="the clocks that can decide this workload"
    )
    userspaces: tuple[Userspace, ...] = Field(
        default=("debian",),
        min_length=1,
        description="what it runs on: a distribution's ('debian'), static programs alone ('initramfs')",
    )

    @field_validator("run", "files", mode="after")
    @classmethod
    def _inside(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for part in value[:1]:
            if part.startswith("/") or ".." in Path(part).parts:
                raise ValueError(f"'{part}' must lie inside the workload's folder")
        return value

    @field_validator("results", mode="after")
    @classmethod
    def _results_inside(cls, value: str) -> str:
        if value.startswith("/") or value in (".", "./") or ".." in Path(value).parts:
            raise ValueError(f"'{value}' must lie inside the folder that a run begins in")
        return value

    @field_validator("parameters", mode="before")
    @classmethod
    def _lists(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if isinstance(value, dict):
            return {name: _values(name, given) for name, given in value.items()}
        return value

    @field_validator("monitors", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return monitors_by_name(value)

    @field_validator("decides_at", mode="before")
    @classmethod
    def _text_values(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return {k: str(v) for k, v in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _parameters_consistent(self) -> WorkloadManifest:
        for name, value in self.decides_at.items():
            if value not in self.parameters.get(name, ()):
                raise ValueError(f"'decides_at': the parameter '{name}' has no value '{value}'")
        for command in (self.run, *self.setup, *self.cleanup, *((p,) for p in self.requires.programs)):
            if not command or any("\n" in word for word in command):
                raise ValueError("a command needs a word, and no word may hold a line break")
            unknown = placeholders(command) - set(self.parameters)
            if BLOCK_DEVICE in unknown and self.requires.block_device is None:
                raise ValueError(f"'{{{BLOCK_DEVICE}}}' needs its size: 'requires: {{block_device: 1G}}'")
            unknown -= {BLOCK_DEVICE}
            if unknown:
                known = ", ".join(self.parameters) or "there are none"
                raise ValueError(
                    f"'{{{min(unknown)}}}' in '{command[0]} ...' is not a parameter (known: {known})"
                )
        for command in (*self.setup, *self.cleanup, self.requires.programs):
            varied = placeholders(command) & {n for n, v in self.parameters.items() if len(v) > 1}
            if varied:
                raise ValueError(f"'{{{min(varied)}}}' has several values; setup and cleanup happen once")
        if not self.files and not (self.requires.packages or self.requires.programs):
            raise ValueError(
                "without 'files' there must be 'requires' with the package that brings the program"
            )
        return self

    def packages(self) -> tuple[str, ...]:
        """Return the Debian packages that the workload and its monitors need."""
        return tuple(dict.fromkeys((*self.requires.packages, *self.monitors.packages())))

    def points(self) -> tuple[Point, ...]:
        """Return all combinations of parameters that one run executes; one empty point without lists."""
        return points(self.parameters)

    def programs(self) -> tuple[str, ...]:
        """Return what `requires.programs` names, with parameters replaced."""
        return Point().command(self.requires.programs, single_values(self.parameters))

    def expanded_metrics(self) -> tuple[MetricManifest, ...]:
        """Return the metrics of all points: 'real[threads=4x]' for each point of a matrix."""
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
                raise ValueError(
                    f"'{metric.name}' decides, so it must be there on every testbed: see 'decides_at'"
                )
        return self

    @model_validator(mode="after")
    def _results_available(self) -> WorkloadManifest:
        if self.results and "initramfs" in self.userspaces:
            raise ValueError("'results' are fetched over SSH, which an 'initramfs' does not have")
        if self.parse == "results" and not self.results:
            raise ValueError("'parse: results' needs 'results': the file or folder that a run leaves")
        if self.parse == "results" and len(self.points()) > 1:
            raise ValueError("'parse: results' reads the files of one run, so parameters need one value each")
        return self

    @model_validator(mode="after")
    def _one_decides(self) -> WorkloadManifest:
        names = [metric.name for metric in self.metrics]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the metric '{name}' is there twice")
        for clock in self.clocks:
            deciding = [m.name for m in self.metrics if m.decides and clock in m.clocks]
            if len(deciding) != 1:
                found = ", ".join(deciding) or "none has"
                raise ValueError(
                    f"exactly one metric must have 'decides: true' under the clock '{clock}' ({found})"
                )
        for metric in self.metrics:
            if metric.decides and metric.optional:
                raise ValueError(f"the metric '{metric.name}' decides, so it cannot be optional")
            if metric.operands is not None:
                check_ratio(metric, self.metrics)
            elif self.parse == "regex":
                check_pattern(metric)
        return self


def _values(name: object, given: object) -> list[str]:
    if name == BLOCK_DEVICE:
        raise ValueError(f"'{BLOCK_DEVICE}' is not a parameter: it stands for the path of a scratch disk")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", str(name)):
        raise ValueError(f"the parameter '{name}' needs a name of small letters, digits and '_'")
    listed = given if isinstance(given, list) else [given]
    texts = [str(value) for value in listed if isinstance(value, str | int | float)]
    if len(texts) != len(listed) or not texts:
        raise ValueError(f"the parameter '{name}' needs a number or text, or a list of them")
    if len(set(texts)) != len(texts):
        raise ValueError(f"the parameter '{name}' has a value twice")
    return texts
