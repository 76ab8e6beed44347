"""A workload: a folder with a manifest (`schemas/workload/manifest.py`).

`load_workload` finds one by name or by path, `list_workloads` all of a folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from bisector.errors import RequestError, nearest
from bisector.model.goal import Metric, TestbedClock
from bisector.resources import resource
from bisector.schemas.documents.document import exists, expand_user, is_file, shortened, shown_path
from bisector.schemas.loading import load_yaml
from bisector.schemas.refusal import WrongKeyError, refusal
from bisector.schemas.workload.counted_metrics import COUNTERS, counted_operands, counter, is_modelled
from bisector.schemas.workload.manifest import WorkloadManifest
from bisector.schemas.workload.metric import MetricManifest

MANIFEST = "workload.yaml"


@dataclass(frozen=True, slots=True)
class Workload:
    """A checked manifest and the folder it came from; a command of `--run` has a script instead.

    decided_by: the metric that was asked for, '' for the one that decides by the manifest.
    """

    folder: Path
    manifest: WorkloadManifest
    script: str = ""
    decided_by: str = ""

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.manifest.name

    def metric(self, name: str | None = None, clock: TestbedClock | None = None) -> Metric:
        """Return a metric by name, or the one that decides under a clock.

        Raises RequestError naming the known metrics, or those that can decide under the clock.
        """
        found = self._find(name, clock)
        if clock is not None and clock not in found.clocks:
            unable = self.unable(clock)
            able = [one.name for one in self.manifest.expanded_metrics() if one.name not in unable]
            why = (
                "only emulated guests count it"
                if counter(found.name) is not None or counted_operands(found, self.manifest.metrics)
                else "its README says why"
            )
            raise RequestError(
                f"the metric '{found.name}' of '{self.name}' cannot decide under the clock '{clock}'",
                details=f"metrics that can: {', '.join(able) or 'none'}",
                cure=f"{why}; choose another metric, or a testbed with another clock",
            )
        return found.metric()

    def unable(self, clock: TestbedClock) -> frozenset[str]:
        """Return the metrics that cannot decide under a clock, by name."""
        known = self.manifest.all_metrics()
        return frozenset(one.name for one in known) - {one.name for one in known if clock in one.clocks}

    def _find(self, name: str | None, clock: TestbedClock | None) -> MetricManifest:
        named = [
            one for one in self.manifest.all_metrics() if (one.decides if name is None else one.name == name)
        ]
        able = [one for one in named if clock is None or clock in one.clocks]
        if able or (named and name is not None):
            return (able or named)[0]
        known = [metric.name for metric in self.manifest.expanded_metrics()]
        raise RequestError(
            f"the workload '{self.name}' has no metric '{name}'{nearest(name or '', [*known, *COUNTERS])}",
            details=f"its metrics: {', '.join(known)}\ncounted in emulated guests: {', '.join(COUNTERS)}; "
            "instructions.FUNCTION, of one function of the kernel",
            cure=f"name one of them; 'perfbisect workload show {self.name}' describes them",
        )

    def with_counter(self, metric: str | None) -> Workload:
        """Return the workload decided by a metric, which is counted if the workload does not print it.

        It is also counted if the workload does not print it in every run: perf's numbers are optional, since
        an emulated guest has none. On machines perf's numbers decide, in emulated guests the counted ones.
        """
        printed = {one.name: one.optional for one in self.manifest.expanded_metrics()}
        own = replace(self, decided_by=metric or "")
        counted = metric is not None and counter(metric) is not None and printed.get(metric, True)
        if not counted or metric in self.manifest.counters:
            return own
        more: dict[str, object] = {"counters": (*self.manifest.counters, metric)}
        if metric in printed:
            more["metrics"] = tuple(
                one.model_copy(update={"clocks": ("wall",)}) if one.name == metric else one
                for one in self.manifest.metrics
            )
        return replace(own, manifest=self.manifest.model_copy(update=more))._warmed_up(f"--metric {metric}")

    def needed_counters(self) -> tuple[str, ...]:
        """Return what must be counted in a run that decides; others are counted beside it, where they can."""
        printed = self.manifest.metrics
        own = (one.name for one in printed if one.decides and "instructions" in one.clocks)
        name = self.decided_by or next(own, "")
        ratios = (counted_operands(one, printed) for one in printed if one.name == name)
        wanted = {name, *next(ratios, ())}
        return tuple(name for name in self.manifest.counted() if name in wanted)

    def modelled_processor(self) -> str | None:
        """Return the processor whose caches are modelled, '' for the first of cpus.toml; None for none."""
        watched = self.manifest.monitors.counters
        named = watched.cpu if watched is not None else ""
        return named if named or any(map(is_modelled, self.manifest.counted())) else None

    def with_monitors(self, asked: Sequence[str]) -> Workload:
        """Return the workload with the monitors of `--monitor` added. Raises RequestError."""
        monitors = self.manifest.monitors.with_requested(asked)
        watched = replace(self, manifest=self.manifest.model_copy(update={"monitors": monitors}))
        return watched._warmed_up("--monitor counters")

    def _warmed_up(self, option: str) -> Workload:
        """Return the workload unless an option counts in the run that sets it up. Raises RequestError."""
        disturbed = self.manifest.disturbed_by_setup()
        if disturbed:
            raise RequestError(
                f"{option}: the first run of a boot of '{self.name}' begins with 'setup', so {disturbed} "
                "would be those of both",
                cure=f"write 'warmup: 1' in {self.folder / MANIFEST}: that run is no sample then",
            )
        return self

    def with_parameters(self, given: Mapping[str, Sequence[str]]) -> Workload:
        """Return the workload with other values for some of its parameters.

        `decides_at` is kept for parameters that still have that value. Raises RequestError naming the nearest
        known parameter, or the rule of the manifest that a value breaks.
        """
        if not given:
            return self
        known = self.manifest.parameters
        for name in given:
            if name not in known:
                raise RequestError(
                    f"the workload '{self.name}' has no parameter '{name}'{nearest(name, known)}",
                    details=f"its parameters: {', '.join(known) or 'none'}",
                    cure=f"name one of them; 'perfbisect workload show {self.name}' describes them",
                )
        parameters = {name: list(values) for name, values in {**known, **given}.items()}
        decides = {n: v for n, v in self.manifest.decides_at.items() if v in parameters[n]}
        data = dict(self.manifest) | {"parameters": parameters, "decides_at": decides}
        try:
            return replace(self, manifest=WorkloadManifest.model_validate(data))
        except ValidationError as error:
            raise refusal(
                error,
                WorkloadManifest,
                lambda key: f"--param: the workload '{self.name}'",
                described_in=WorkloadManifest.described_in,
            ) from error

    def check_clock(self, clock: TestbedClock) -> None:
        """Raise RequestError if this clock cannot decide this workload."""
        if clock not in self.manifest.clocks:
            raise RequestError(
                f"the workload '{self.name}' cannot be decided by the clock '{clock}'",
                cure=f"choose a testbed with clock {' or '.join(self.manifest.clocks)}; its README says why",
            )


def load_workload(name: str, folder: Path | None = None) -> Workload:
    """Load a workload by its name in `folder` (default: the shipped ones), or by the path of its own folder.

    Raises RequestError for an unknown name, or naming the wrong line of the manifest.
    """
    root = _root(folder)
    path = expand_user(name)
    place = path.parent if path.name == MANIFEST else path
    if not is_file(place / MANIFEST) and not name.startswith(("/", ".", "~")):
        place = root / name
    if not is_file(place / MANIFEST):
        known = workload_names(root)
        raise RequestError(
            f"there is no workload '{shortened(name)}'{nearest(name[:200], known)}",
            details=f"known: {', '.join(known) or 'none'} (in {root})",
            cure="'perfbisect workload list' shows all; a path to a folder with a workload.yaml works too",
        )
    fragments = sorted(path.stem for path in (resource("kernels") / "configs").glob("*.config"))

    def check(manifest: WorkloadManifest) -> None:
        for number, file in enumerate(manifest.files):
            if not manifest.build and not exists(place / file):
                raise WrongKeyError(f"{shown_path(place / file)} does not exist", "files", str(number))
        for number, fragment in enumerate(manifest.requires.kernel):
            if fragment not in fragments:
                hint = f"there is no fragment '{fragment}'{nearest(fragment, fragments)}"
                raise WrongKeyError(hint, "requires", "kernel", str(number))

    return Workload(place.resolve(), load_yaml(place / MANIFEST, WorkloadManifest, check))


def load_requested(name: str) -> Workload:
    """Load the workload of a request, whose own folders are absolute: any other name is of a shipped one.

    Who resumes, reports or executes a request may stand in a folder that has another workload of that name.
    Raises as `load_workload`.
    """
    shipped = _root(None) / name
    return load_workload(str(shipped) if is_file(shipped / MANIFEST) else name)


def list_workloads(folder: Path | None = None) -> tuple[list[Workload], list[RequestError]]:
    """Return the workloads of a folder (default: the shipped ones), and what is wrong with others."""
    found, wrong = [], []
    for path in _manifests(_root(folder)):
        try:
            found.append(load_workload(str(path.parent)))
        except RequestError as error:
            wrong.append(error)
    return found, wrong


def workload_names(folder: Path | None = None) -> list[str]:
    """Return the names of the workloads of a folder (default: the shipped ones), without reading them."""
    root = _root(folder)
    return [str(found.parent.relative_to(root)) for found in _manifests(root)]


def _root(folder: Path | None) -> Path:
    """Return the folder of workloads. Raises RequestError for one that was named and holds none."""
    if folder is None:
        return resource("workloads")
    root = expand_user(folder)
    try:
        found = root.is_dir() and _manifests(root)
    except OSError:  # a link to itself
        found = []
    if not found:
        raise RequestError(
            f"{shown_path(folder)}: there is no workload in it",
            cure=f"name a folder of folders with a {MANIFEST}, or none for the shipped ones",
        )
    return root


def _manifests(root: Path) -> list[Path]:
    """Return the manifests of workloads, and of their variants one folder below ('db-aio/fio')."""
    return sorted([*root.glob(f"*/{MANIFEST}"), *root.glob(f"*/*/{MANIFEST}")])
