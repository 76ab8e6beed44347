"""The manifest `workload.yaml`: its keys, documented where they stand, and what makes one wrong.

`workloads/README.md` shows them in use; `spec/workload.py` finds and loads manifests.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from bisector.core.model import Direction, Metric, TestbedClock, Threshold
from bisector.spec.base import Spec, nearest
from bisector.spec.host import CPUS, HostManifest, Switch
from bisector.spec.monitors import Monitors, listed
from bisector.spec.monitors import Userspace as Userspace
from bisector.spec.points import BLOCK_DEVICE, Point, fixed, placeholders, points

ParseKind = Literal["key-value", "time", "json", "regex", "results"]

_THRESHOLD = re.compile(r"\s*(?P<value>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*(?P<unit>\S.*?)?\s*")
_RATIO = re.compile(r"(?P<over>[A-Za-z][\w.-]*)\s*/\s*(?P<under>[A-Za-z][\w.-]*)")
_SIZE = re.compile(r"(?P<number>[1-9][0-9]*)(?P<unit>[MGT])")
_UNITS = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NAME = r"^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)?$"


class MetricManifest(Spec):
    """One number that a run gives."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$")
    unit: str = Field(min_length=1, description="as the workload prints it: 's', 'ops/s', ...")
    better: Direction
    threshold: str = Field(description="smallest change worth blaming: '5%', or absolute with unit: '0.1 s'")
    decides: bool = Field(default=False, description="the metric that the search follows; one for each clock")
    clocks: tuple[TestbedClock, ...] = Field(
        default=("wall", "instructions"), min_length=1, description="the clocks under which it can decide"
    )
    optional: bool = Field(default=False, description="a run without it is a good run; it cannot decide")
    at: str = Field(
        default="",
        description="where it stands in the output, if not under its name: a dotted path (json), a regular "
        "expression with one group (regex), the key (key-value, time), the name in 'compare' (results)",
    )

    ratio: str = Field(
        default="", description="'A / B': computed from two other metrics of the same run, not printed"
    )

    @field_validator("ratio")
    @classmethod
    def _two_names(cls, value: str) -> str:
        if value and _RATIO.fullmatch(value) is None:
            raise ValueError("write the names of two metrics, as in 'cycles / instructions'")
        return value

    @property
    def operands(self) -> tuple[str, str] | None:
        """Numerator and denominator of a ratio, by name."""
        match = _RATIO.fullmatch(self.ratio)
        return (match["over"], match["under"]) if match is not None else None

    @field_validator("threshold", mode="before")
    @classmethod
    def _with_unit(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError("a threshold needs a unit: '5%' of the good level, or an amount such as '0.1 s'")
        return value

    @field_validator("threshold", mode="after")
    @classmethod
    def _understood(cls, value: str, info: ValidationInfo) -> str:
        if "unit" in info.data:  # else the unit itself is wrong, which is told already
            parse_threshold(value, info.data["unit"])
        return value

    def metric(self) -> Metric:
        """Return it as the core knows it."""
        return Metric(self.name, self.unit, self.better, parse_threshold(self.threshold, self.unit))


def parse_threshold(text: str, unit: str) -> Threshold:
    """Read '5%' or '0.1 s' for a metric in `unit`. Raises ValueError that says what would be right."""
    match = _THRESHOLD.fullmatch(text)
    right = f"write '5%' (of the good level) or an amount in the metric's unit, such as '0.1 {unit}'"
    if match is None:
        raise ValueError(f"the threshold '{text}' is not a number with a unit; {right}")
    value, found = float(match["value"]), match["unit"]
    if found is None:
        raise ValueError(f"the threshold '{text}' has no unit; {right}")
    if value <= 0:
        raise ValueError(f"the threshold '{text}' must be above zero; {right}")
    if found == "%":
        return Threshold(value / 100.0, relative=True)
    if found != unit:
        raise ValueError(f"the threshold '{text}' is not in the metric's unit '{unit}'; {right}")
    return Threshold(value, relative=False)


class EnvironmentManifest(HostManifest):
    """What is pinned on the testbed while the workload runs; before and after are recorded."""

    autogroup: Switch = Field(
        default="off", description="an SSH session's task group costs a fifth of a pipe-test"
    )
    cpus: str | None = Field(default=None, pattern=CPUS)
    nice: int = Field(default=0, ge=-20, le=19)
    sysctl: dict[str, str] = Field(default_factory=dict, description="name with dots -> value")
    variables: dict[str, str] = Field(default_factory=dict, description="added to the fixed environment")

    @field_validator("sysctl", "variables", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if isinstance(value, dict):
            return {
                k: str(v) if isinstance(v, int | float) and not isinstance(v, bool) else v
                for k, v in value.items()
            }
        return value

    def settings(self) -> dict[str, str]:
        """Return the flat form that travels in `Job.environment`: '0'/'1', 'sysctl.<name>', 'env.<NAME>'."""
        flat = {**super().settings(), "autogroup": "1" if self.autogroup == "on" else "0"}
        flat["nice"] = str(self.nice)
        if self.cpus is not None:
            flat["cpus"] = self.cpus
        flat.update({f"sysctl.{name}": value for name, value in self.sysctl.items()})
        flat.update({f"env.{name}": value for name, value in self.variables.items()})
        return flat


class RequiresManifest(Spec):
    """What a kernel and a testbed must have; `perfbisect workload check` looks whether they do."""

    packages: tuple[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")], ...] = Field(
        default=(),
        description="Debian packages; a guest gets an image with them, other testbeds must have them",
    )
    programs: tuple[str, ...] = Field(
        default=(),
        description="programs that must be found on the testbed; '{name}' of a parameter becomes its value",
    )
    kernel: tuple[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")], ...] = Field(
        default=(), description="fragments of kernels/configs that its kernels are built with, all granted"
    )
    block_device: str | None = Field(
        default=None,
        description="a scratch disk of at least so many bytes: '512M', '1G'; its content is lost",
    )
    cgroup: Literal["v1", "v2", "any"] | None = Field(
        default=None, description="version of the control groups; asks for the fragment 'cgroup' as well"
    )
    cpus: int = Field(default=1, ge=1, description="CPUs that the testbed has at least")

    @field_validator("block_device", mode="before")
    @classmethod
    def _size(cls, value: object) -> object:
        if value is not None and (not isinstance(value, str) or _SIZE.fullmatch(value) is None):
            raise ValueError("write the size of the device as '512M' or '1G'")
        return value

    @property
    def fragments(self) -> tuple[str, ...]:
        """The config fragments that kernels for this workload have beside their recipe's own."""
        return tuple(sorted({*self.kernel, *(("cgroup",) if self.cgroup else ())}))

    @property
    def block_device_bytes(self) -> int:
        """The size that the scratch disk has at least; 0 where none is needed."""
        match = _SIZE.fullmatch(self.block_device) if self.block_device is not None else None
        return int(match["number"]) * _UNITS[match["unit"]] if match is not None else 0


class WorkloadManifest(Spec):
    """The file `workload.yaml`."""

    name: str = Field(pattern=_NAME)
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
        default_factory=dict, description="at which value of a list the metric decides; the last if not said"
    )
    setup: tuple[tuple[str, ...], ...] = Field(
        default=(), description="commands before the first run of a boot"
    )
    cleanup: tuple[tuple[str, ...], ...] = Field(
        default=(), description="commands when a boot is left, however the runs went"
    )
    requires: RequiresManifest = Field(default_factory=lambda: RequiresManifest())
    build: tuple[tuple[str, ...], ...] = Field(
        default=(),
        description="commands run on this machine in a copy of the workload's folder, once a bisection; "
        "'{cc}' stands for a C compiler with the flags that make a static program",
    )
    files: tuple[str, ...] = Field(default=(), description="what goes to the testbed, relative to the folder")
    parse: ParseKind = "key-value"
    results: str = Field(
        default="",
        description="file or folder that each run leaves, brought home and kept; 'parse: results' reads it",
    )
    runs: int = Field(default=3, ge=1, description="runs of a boot to begin with; the planner may want more")
    warmup: int = Field(default=0, ge=0, description="first runs of a boot that are kept but never samples")
    settle: float = Field(default=0.0, ge=0, description="seconds of rest before the first run of a boot")
    pause: float = Field(default=0.0, ge=0, description="seconds of rest between runs")
    timeout: float = Field(default=300.0, gt=0, description="seconds of host time after which a run has hung")
    environment: EnvironmentManifest = Field(default_factory=EnvironmentManifest)
    monitors: Monitors = Field(
        default_factory=Monitors,
        description="what is watched in extra runs after the samples of a boot: names, or names with options",
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
        return listed(value)

    @field_validator("decides_at", mode="before")
    @classmethod
    def _text_values(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return {k: str(v) for k, v in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _parameters_fit(self) -> WorkloadManifest:
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
                    f"'{{{min(unknown)}}}' in '{command[0]} ...' is no parameter (known: {known})"
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
        """Return all combinations of parameters that one run executes; a single empty one without lists."""
        return points(self.parameters)

    def programs(self) -> tuple[str, ...]:
        """Return what `requires.programs` names, with parameters replaced."""
        return Point().command(self.requires.programs, fixed(self.parameters))

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
    def _results_can_be_had(self) -> WorkloadManifest:
        if self.results and "initramfs" in self.userspaces:
            raise ValueError("'results' are brought home over SSH, which an 'initramfs' has not")
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
                _check_ratio(metric, self.metrics)
            elif self.parse == "regex":
                _check_pattern(metric)
        return self


def _values(name: object, given: object) -> list[str]:
    if name == BLOCK_DEVICE:
        raise ValueError(f"'{BLOCK_DEVICE}' is no parameter: it stands for the path of a scratch disk")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", str(name)):
        raise ValueError(f"the parameter '{name}' needs a name of small letters, digits and '_'")
    listed = given if isinstance(given, list) else [given]
    texts = [str(value) for value in listed if isinstance(value, str | int | float)]
    if len(texts) != len(listed) or not texts:
        raise ValueError(f"the parameter '{name}' needs a number or text, or a list of them")
    if len(set(texts)) != len(texts):
        raise ValueError(f"the parameter '{name}' has a value twice")
    return texts


def _check_ratio(ratio: MetricManifest, metrics: tuple[MetricManifest, ...]) -> None:
    printed = {metric.name: metric for metric in metrics if not metric.ratio}
    if ratio.at:
        raise ValueError(f"metric '{ratio.name}' is a ratio, so it stands nowhere: leave 'at' out")
    for name in ratio.operands or ():
        if name not in printed:
            raise ValueError(f"metric '{ratio.name}': no metric '{name}' is printed{nearest(name, printed)}")
        if printed[name].optional and not ratio.optional:
            raise ValueError(f"metric '{ratio.name}' must be optional, because '{name}' is")


def _check_pattern(metric: MetricManifest) -> None:
    try:
        groups = re.compile(metric.at).groups
    except re.error as error:
        raise ValueError(f"metric '{metric.name}': 'at' is not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"metric '{metric.name}': 'at' needs exactly one group, the number")
