"""What a workload is: the manifest `workloads/<name>/workload.yaml`, checked at the border.

`load_workload` finds one by name or by path, `list_workloads` all of a folder. The manifest's keys are
documented where they stand, and `workloads/README.md` shows them in use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from bisector.core.model import Direction, Metric, TestbedClock, Threshold
from bisector.errors import RequestError
from bisector.resources import resource
from bisector.spec.base import Spec, load_yaml, nearest

MANIFEST = "workload.yaml"

Userspace = Literal["debian", "initramfs"]
"""As `ports.Userspace`."""

ParseKind = Literal["key-value", "time", "json", "regex"]

_THRESHOLD = re.compile(r"\s*(?P<value>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*(?P<unit>\S.*?)?\s*")
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
        "expression with one group (regex), the key (key-value, time)",
    )

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


def _on_off(value: object) -> object:
    """YAML reads a bare on/off as a boolean."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


Switch = Annotated[Literal["on", "off"], BeforeValidator(_on_off)]


class EnvironmentManifest(Spec):
    """What is pinned on the testbed while the workload runs; before and after are recorded."""

    autogroup: Switch = Field(
        default="off", description="an SSH session's task group costs a fifth of a pipe-test"
    )
    aslr: Switch | None = Field(default=None, description="address space randomisation; unset leaves it")
    cpus: str | None = Field(default=None, pattern=r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$")
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
        flat = {"autogroup": "1" if self.autogroup == "on" else "0", "nice": str(self.nice)}
        if self.aslr is not None:
            flat["aslr"] = "2" if self.aslr == "on" else "0"
        if self.cpus is not None:
            flat["cpus"] = self.cpus
        flat.update({f"sysctl.{name}": value for name, value in self.sysctl.items()})
        flat.update({f"env.{name}": value for name, value in self.variables.items()})
        return flat


class WorkloadManifest(Spec):
    """The file `workload.yaml`."""

    name: str = Field(pattern=_NAME)
    description: str = Field(min_length=1)
    metrics: tuple[MetricManifest, ...] = Field(min_length=1)
    run: tuple[str, ...] = Field(min_length=1, description="command and arguments, relative to the payload")
    build: tuple[tuple[str, ...], ...] = Field(
        default=(),
        description="commands run on this machine in a copy of the workload's folder, once a bisection; "
        "'{cc}' stands for a C compiler with the flags that make a static program",
    )
    files: tuple[str, ...] = Field(
        min_length=1, description="what goes to the testbed, relative to the folder"
    )
    parse: ParseKind = "key-value"
    runs: int = Field(default=3, ge=1, description="runs of a boot to begin with; the planner may want more")
    warmup: int = Field(default=0, ge=0, description="first runs of a boot that are kept but never samples")
    settle: float = Field(default=0.0, ge=0, description="seconds of rest before the first run of a boot")
    pause: float = Field(default=0.0, ge=0, description="seconds of rest between runs")
    timeout: float = Field(default=300.0, gt=0, description="seconds of host time after which a run has hung")
    environment: EnvironmentManifest = Field(default_factory=EnvironmentManifest)
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
            if self.parse == "regex":
                _check_pattern(metric)
        return self


def _check_pattern(metric: MetricManifest) -> None:
    try:
        groups = re.compile(metric.at).groups
    except re.error as error:
        raise ValueError(f"metric '{metric.name}': 'at' is not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"metric '{metric.name}': 'at' needs exactly one group, the number")


@dataclass(frozen=True, slots=True)
class Workload:
    """A checked manifest and the folder it came from."""

    folder: Path
    manifest: WorkloadManifest

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.manifest.name

    def metric(self, name: str | None = None, clock: TestbedClock | None = None) -> Metric:
        """Return a metric by name, or the one that decides; where clocks differ in that, under `clock`.

        Raises RequestError naming the known ones, or those that the clock can decide by.
        """
        found = self._find(name, clock)
        if clock is not None and clock not in found.clocks:
            able = [metric.name for metric in self.manifest.metrics if clock in metric.clocks]
            raise RequestError(
                f"the metric '{found.name}' of '{self.name}' cannot decide under the clock '{clock}'",
                details=f"metrics that can: {', '.join(able) or 'none'}",
                cure="its README says why; choose another metric, or a testbed with another clock",
            )
        return found.metric()

    def _find(self, name: str | None, clock: TestbedClock | None) -> MetricManifest:
        for metric in self.manifest.metrics:
            if metric.name == name:
                return metric
            if name is None and metric.decides and (clock is None or clock in metric.clocks):
                return metric
        known = [metric.name for metric in self.manifest.metrics]
        raise RequestError(
            f"the workload '{self.name}' has no metric '{name}'{nearest(name or '', known)}",
            details=f"its metrics: {', '.join(known)}",
        )

    def check_clock(self, clock: TestbedClock) -> None:
        """Raise RequestError if this clock cannot decide this workload."""
        if clock not in self.manifest.clocks:
            raise RequestError(
                f"the workload '{self.name}' cannot be decided by the clock '{clock}'",
                cure=f"choose a testbed with clock {' or '.join(self.manifest.clocks)}; its README says why",
            )

    def check_userspace(self, userspace: Userspace) -> None:
        """Raise RequestError if this workload cannot run on such a user space."""
        if userspace not in self.manifest.userspaces:
            raise RequestError(
                f"the workload '{self.name}' does not run on the user space '{userspace}'",
                details=f"it runs on: {', '.join(self.manifest.userspaces)}",
                cure="for kernels older than any distribution there are only static programs: choose a "
                "workload made of those, or younger kernels",
            )


def load_workload(name: str, folder: Path | None = None) -> Workload:
    """Load by name from `folder` (default: those that come with perfbisect), or by path to a folder.

    Raises RequestError: unknown name (with the nearest known), or what is wrong in which line.
    """
    root = folder if folder is not None else resource("workloads")
    path = Path(name).expanduser()
    place = path.parent if path.name == MANIFEST else path
    if not (place / MANIFEST).is_file() and not name.startswith(("/", ".", "~")):
        place = root / name
    if not (place / MANIFEST).is_file():
        known = [str(found.parent.relative_to(root)) for found in _manifests(root)]
        raise RequestError(
            f"there is no workload '{name}'{nearest(name, known)}",
            details=f"known: {', '.join(known) or 'none'} (in {root})",
            cure="'perfbisect workload list' shows all; a path to a folder with a workload.yaml works too",
        )
    manifest = load_yaml(place / MANIFEST, WorkloadManifest)
    for name_of_file in manifest.files:
        if not manifest.build and not (place / name_of_file).exists():
            raise RequestError(f"{place / MANIFEST}: 'files': '{name_of_file}' does not exist in {place}")
    return Workload(place.resolve(), manifest)


def list_workloads(folder: Path | None = None) -> list[Workload]:
    """Return all workloads of a folder (default: those that come with perfbisect), by name."""
    root = folder if folder is not None else resource("workloads")
    return [load_workload(str(path.parent)) for path in _manifests(root)]


def _manifests(root: Path) -> list[Path]:
    """Workloads, and below them those that run the same in another way ('db-aio/fio')."""
    return sorted([*root.glob(f"*/{MANIFEST}"), *root.glob(f"*/*/{MANIFEST}")])
