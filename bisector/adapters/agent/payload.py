"""The payload of a workload: built once for a bisection, checksummed, sent as one archive."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bisector.adapters.agent.monitors import plan_text as monitors_text
from bisector.adapters.agent.monitors import plans
from bisector.adapters.agent.workload_sources import build_error, checksum, copy_sources
from bisector.adapters.system.architectures import machine_for
from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import write_atomically
from bisector.errors import InfrastructureError, RequestError
from bisector.linux.settings_report import NO_TURBO
from bisector.ports import Counting, Job, MetricSpec, Needs
from bisector.resources import resource
from bisector.schemas.documents.json_reader import read_state_json
from bisector.schemas.workload.counted_metrics import counted_operands
from bisector.schemas.workload.manifest import WorkloadManifest
from bisector.schemas.workload.metric import MetricManifest
from bisector.schemas.workload.parameter_matrix import Combination, single_values
from bisector.schemas.workload.workload import MANIFEST, Workload

AGENT = "perfbisect-agent"
FACTS = "perfbisect-facts"
SETTINGS = "perfbisect-settings"
MONITORS = "perfbisect-monitors"
RUNNER = "perfbisect-runner"
PLAN = "perfbisect-plan"

_BUILD_SECONDS = 600.0
"""Timeout of one build step of a workload, a small program: seconds on an idle machine."""

HOST = "perfbisect-host"
"""The script for settings that are no file (playbooks/roles/quiet)."""

_CPU = "/sys/devices/system/cpu"

_PATHS: Mapping[str, tuple[str, ...]] = {
    "autogroup": ("/proc/sys/kernel/sched_autogroup_enabled",),
    "aslr": ("/proc/sys/kernel/randomize_va_space",),
    "caches": ("/proc/sys/vm/drop_caches",),
    "cstates": (f"{_CPU}/cpu*/cpuidle/state[1-9]*/disable",),
    "governor": (f"{_CPU}/cpu*/cpufreq/scaling_governor",),
    "irqs": (f"!{HOST}", "/proc/irq/*/smp_affinity_list"),
    "numa_balancing": ("/proc/sys/kernel/numa_balancing",),
    "smt": (f"{_CPU}/smt/control",),
    "swap": (f"!{HOST}",),
    "thp": ("/sys/kernel/mm/transparent_hugepage/enabled",),
    "timers": (f"!{HOST}",),
    "turbo": (f"{_CPU}/cpufreq/boost",),
}
"""Setting -> the files, or patterns of files, to which it is written. sysctl.* follows from its name. The
agent itself does other settings."""

_NO_TURBO = f"{_CPU}/intel_pstate/no_turbo"  # Intel's driver has the inverse of 'turbo'

PREPARE = f"./{AGENT} prepare {FACTS} {SETTINGS}"
"""Command that the deploy role runs in the unpacked archive: prints the facts and applies the settings."""


def workload_job(workload: Workload, out_dir: Path, arch: str = "x86_64", *, explain: bool = False) -> Job:
    """Build the workload and the measuring agent below out_dir, or take what was built there before.

    arch: what they are to run on; explain: whether what functions execute is counted, where it can be, for
    the report of a bisection. Raises RequestError when the workload's own build fails. Raises
    InfrastructureError for a missing compiler, and when out_dir no longer holds what was built: runs of two
    builds do not compare.
    """
    payload = out_dir / "payload"
    note = out_dir / "payload.json"
    about = read_state_json(note) if note.exists() else {}
    if about.get("arch", "x86_64") == arch and "checksum" in about:
        recorded = about["checksum"]
        found = checksum(payload)
        if found != recorded:
            raise InfrastructureError(
                f"the workload in {payload} has changed since this bisection began",
                details=f"checksum then: {recorded}\nchecksum now:  {found}",
                cure="its measurements cannot be compared: start a new bisection",
            )
    else:
        _build(workload, out_dir / "build", payload, machine_for(arch).compiler())
        recorded = checksum(payload)
        about = {"workload": workload.name, "checksum": recorded, "arch": arch}
        write_atomically(note, json.dumps(about))
    manifest = workload.manifest
    return Job(
        name=workload.name,
        payload=payload,
        run=(RUNNER, PLAN) if needs_runner(manifest) else manifest.points()[0].command(manifest.run, {}),
        metrics=metric_specs(manifest),
        warmup=manifest.warmup,
        settle=manifest.settle,
        pause=manifest.pause,
        timeout=manifest.timeout,
        environment=manifest.environment.settings(),
        parse=manifest.parse,
        checksum=recorded,
        packages=manifest.packages(),
        cleanup=bool(manifest.cleanup),
        needs=Needs(
            manifest.requires.block_device_bytes, manifest.requires.cgroup or "", manifest.requires.cpus
        ),
        results=manifest.results,
        monitors=plans(manifest.monitors),
        counting=_counting(workload, explain=explain and not manifest.sample_sets_up),
    )


def _counting(workload: Workload, *, explain: bool) -> Counting | None:
    """Return what an emulated guest is to count; None where nothing is asked of it."""
    counted, watched = workload.manifest.counted(), workload.manifest.monitors.counters
    if watched is None and not counted and not explain:
        return None
    cpu = watched.cpu if watched is not None else ""
    profile = watched is not None or explain
    return Counting(counted, workload.needed_counters(), profile=profile, cpu=cpu, models=bool(cpu))


def needs_runner(manifest: WorkloadManifest) -> bool:
    """Return whether a run is more than one program of the payload with fixed words."""
    requires = manifest.requires
    return bool(
        manifest.parameters
        or manifest.setup
        or manifest.cleanup
        or not manifest.files
        or requires.block_device
        or requires.cgroup
        or requires.cpus > 1
    )


def plan_text(manifest: WorkloadManifest, payload: Path) -> str:
    """Return the runner's plan; its form is in the source of the runner. payload: for its programs."""
    once = single_values(manifest.parameters)

    def command_lines(command: Sequence[str], point: Combination) -> list[str]:
        words = point.command(command, once)
        program = f"./{words[0]}" if (payload / words[0]).is_file() else words[0]
        return [*(f"word {word}" for word in (program, *words[1:])), "end"]

    requires = manifest.requires
    lines = [f"needs cpus {requires.cpus}"] if requires.cpus > 1 else []
    lines += [f"needs cgroup {requires.cgroup}"] if requires.cgroup else []
    lines += [f"needs device {requires.block_device_bytes}"] if requires.block_device else []
    for part, commands in (("setup", manifest.setup), ("cleanup", manifest.cleanup)):
        for command in commands:
            lines += [part, *command_lines(command, Combination())]
    for point in manifest.points():
        lines.append(f"point {point.label}")
        lines += [f"atmost {number} {factor:g}" for number, factor in point.limits]
        lines += command_lines(manifest.run, point)
    return "".join(f"{line}\n" for line in lines)


def metric_specs(manifest: WorkloadManifest) -> tuple[MetricSpec, ...]:
    """Return what a run must print, for every point of the parameters."""
    metrics = manifest.expanded_metrics()
    labels = [point.label for point in manifest.points() for _ in manifest.metrics]
    return tuple(
        MetricSpec(m.name, m.unit, m.at, m.optional or _is_counted(m, manifest), label, _ratio(m, label))
        for m, label in zip(metrics, labels, strict=True)
    )


def _is_counted(metric: MetricManifest, manifest: WorkloadManifest) -> bool:
    """Return whether a metric is a ratio of counts, which the testbed adds to what the run has printed."""
    return bool(counted_operands(metric, manifest.metrics))


def _ratio(metric: MetricManifest, label: str) -> tuple[str, str] | None:
    if metric.operands is None:
        return None
    over, under = (f"{name}[{label}]" if label else name for name in metric.operands)
    return over, under


def write_archive(job: Job, path: Path) -> None:
    """Write what the deploy role unpacks on a testbed: payload and settings, as one tar file."""
    with tarfile.open(path, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for entry in sorted(job.payload.rglob("*")):
            name = str(entry.relative_to(job.payload))
            archive.add(entry, arcname=name, recursive=False, filter=_owned_by_root)
        for name, text in agent_files(job).items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))


def agent_files(job: Job) -> Mapping[str, bytes]:
    """Return what goes to a testbed beside the payload: name -> content, for the agent alone."""
    settings = settings_text(job.environment)
    texts = {SETTINGS: settings, MONITORS: monitors_text(job.monitors)}
    if f" !{HOST} " in settings:
        texts[HOST] = (resource("playbooks") / "roles" / "quiet" / "files" / "host.sh").read_text("utf-8")
    return {name: text.encode() for name, text in texts.items()}


def settings_text(environment: Mapping[str, str]) -> str:
    """Return the agent's settings file: 'NAME PLACE VALUE' a line (settings.h of the agent)."""
    lines = []
    # CPUs that come back have neither their governor nor their idle states set: they come first.
    for name, value in sorted(environment.items(), key=lambda one: (one != ("smt", "on"), one)):
        sysctl = "/proc/sys/" + name.removeprefix("sysctl.").replace(".", "/")
        places = (sysctl,) if name.startswith("sysctl.") else _PATHS.get(name, ())
        lines += [f"{name} {place} {value}\n" for place in places]
        if name == "turbo":
            lines.append(f"{NO_TURBO} {_NO_TURBO} {1 - int(value)}\n")
    return "".join(lines)


def with_lab_settings(job: Job, lab: Mapping[str, str]) -> Job:
    """Return the job with the lab's settings for its testbed; the job's own settings win."""
    return replace(job, environment={**lab, **job.environment})


def boot_parameters(environment: Mapping[str, str]) -> str:
    """Return what settings add to the kernel's command line, with a blank before each word.

    aslr, as written to its file: programs that run before that, the agent among them, would lie at random.
    """
    words = ["nokaslr"] if environment.get("kaslr") == "off" else []
    words += ["norandmaps"] if environment.get("aslr") == "0" else []
    words += [f"isolcpus={environment['isolated']}"] if "isolated" in environment else []
    return "".join(f" {word}" for word in words)


def agent_command(job: Job, *, undo: bool = False) -> list[str]:
    """Return the command that serves runs of this job, to be started in the work folder.

    undo: put all settings back at the end; for machines that live on.
    """
    command = [f"./{AGENT}", "serve", *(("--undo", "yes") if undo else ())]
    for name, value in sorted(job.environment.items()):
        if name in ("cpus", "nice"):
            command += [f"--{name}", value]
        elif name.startswith("env."):
            command += ["--env", f"{name.removeprefix('env.')}={value}"]
    if job.cleanup:
        command += ["--cleanup", PLAN]
    return [*command, "--", f"./{job.run[0].removeprefix('./')}", *job.run[1:]]


def _build(workload: Workload, build: Path, payload: Path, cc: tuple[str, ...]) -> None:
    for folder in (build, payload):
        shutil.rmtree(folder, ignore_errors=True)  # of an interrupted build
    copy_sources(workload, build)
    payload.mkdir(parents=True)
    for step in workload.manifest.build:
        command = [word for part in step for word in (cc if part == "{cc}" else (part,))]
        done = run_command(command, cwd=build, timeout=_BUILD_SECONDS, check=False)
        if done.code != 0:
            raise build_error(workload, command, done)
    for name in workload.manifest.files:
        source, target = build / name, payload / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.is_file():
            shutil.copy2(source, target)
        else:
            raise RequestError(
                f"{workload.folder / MANIFEST}: 'files': there is no '{name}' after the build",
                cure="name it as the build step writes it",
            )
    if needs_runner(workload.manifest):
        (payload / PLAN).write_text(plan_text(workload.manifest, payload), encoding="utf-8")
        _add_own(cc, "runner", payload / RUNNER)
    _add_own(cc, "agent", payload / AGENT)
    shutil.copyfile(_sources("agent") / "facts.txt", payload / FACTS)


def _sources(name: str) -> Path:
    return resource("playbooks") / "roles" / "measure" / "files" / name


def _add_own(cc: tuple[str, ...], name: str, program: Path) -> None:
    names = sorted(path.name for path in _sources(name).glob("*.c"))
    command: list[str | Path] = [*cc, "-O2", "-s", "-o", program.absolute(), *names]
    run_command(command, cwd=_sources(name), timeout=_BUILD_SECONDS)


def _owned_by_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Take times and owners out: they are no part of a payload."""
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mtime = 0
    return info
