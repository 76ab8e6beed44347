"""The report as plain text, at most 78 columns where names allow it: what a person reads or mails."""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Mapping
from typing import Any

from bisector.core import environment
from bisector.core.model import Conclusion, Discarded, Ending, Finding
from bisector.core.words import count
from bisector.interfaces.report import drift, levels, monitors, trials, words
from bisector.interfaces.report.differences import Change, Differences, compare
from bisector.interfaces.report.material import Material

_OPTIONS_SHOWN = 20
_CLOCKS = {
    "instructions": (
        "instructions: the guest's clock advances with the instructions it executes (emulation, icount). "
        "Repeatable to a fraction of a percent on a busy machine, and blind to cache misses, memory speed "
        "and I/O: it sees longer code paths, not slower hardware use."
    ),
    "wall": "wall: real time. It sees everything, other load on the machine included.",
}


def render(material: Material) -> str:
    """Return the whole report."""
    out = [f"perfbisect report  {material.id}", "=" * words.WIDTH]
    out += summary(material)
    conclusion = material.conclusion
    if conclusion is not None:
        for finding in conclusion.findings:
            out += _differences(material, finding)
        out += _rest(material, conclusion)
        if conclusion.ending is Ending.SPREAD:
            out += levels.lines(material, conclusion)
        out += _reproduce(material, conclusion)
    out += _costs(material)
    out += trials.lines(material)
    out += monitors.section(material)
    out += drift.lines(material)
    out += _user(material)
    out += _untestable(material)
    out += _request(material)
    out += _environment(material)
    return "\n".join(line.rstrip() for line in out) + "\n"


def short(material: Material) -> str:
    """Return what the terminal shows at the end: the result, what differs besides code, how it adds up."""
    out = summary(material)
    if material.conclusion is not None:
        for finding in material.conclusion.findings:
            out += _differences(material, finding)
        out += _rest(material, material.conclusion)
    return "\n".join(line.rstrip() for line in out) + "\n"


def summary(material: Material) -> list[str]:
    """Return the first part: what was found, how sure, how large; it stands alone on a terminal."""
    conclusion = material.conclusion
    if conclusion is None:
        return [f"No conclusion yet: {material.status}.", "", *words.wrap(_asked(material))]
    out = [f"Result: {words.ending(conclusion.ending)}", ""]
    for finding in conclusion.findings:
        out += _finding(material, finding)
    out += words.wrap(conclusion.summary)
    if conclusion.warnings:
        out += ["", "Warnings:", *words.bullets(conclusion.warnings)]
    return out


def _asked(material: Material) -> str:
    g = material.graph
    count = sum(g.candidate)
    return (
        f"{count} candidate{'s' if count != 1 else ''} between {material.label(g.good)} and "
        f"{material.label(g.bad)}, judged by {material.goal.metric.name}"
    )


def _finding(material: Material, finding: Finding) -> list[str]:
    metric = material.goal.metric
    out: list[str] = []
    for index in finding.commits:
        commit = material.commit(index)
        out += [f"  {commit.sha}", f"      {commit.subject}"]
        if commit.author:
            out.append(f"      {commit.author}, {_date(commit.when)}")
    out.append("")
    rows: dict[str, str] = {}
    first, parents = finding.commits[0], finding.parents
    if len(finding.commits) == 1:
        before = trials.level(material, parents[0]) if parents else None
        after = trials.level(material, first)
        if before is not None and after is not None:
            rows[metric.name] = (
                f"{words.number(before, after)} -> {words.number(after)} {metric.unit}  "
                "(mean, parent -> culprit)"
            )
    rows["effect"] = words.effect(finding.effect, metric.better)
    rows["confidence"] = f"{100 * finding.confidence:.1f}%"
    if finding.certified:
        against = ", ".join(material.commit(p).sha[:12] for p in parents)
        boots = sum(
            1
            for t in material.trials
            if t.booted.purpose == "certify" and t.booted.commit in {*finding.commits, *parents}
        )
        rows["proof"] = (
            f"compared afresh with its parent{'s' if len(parents) > 1 else ''} {against}: "
            f"{count(boots, 'fresh boot')}"
        )
    elif len(finding.commits) == 1:
        rows["proof"] = "not certified: no fresh comparison with its parent held"
    for parent in parents:
        rows.setdefault("parent", material.label(parent))
    if finding.note:
        rows["note"] = finding.note
    out += _pairs(rows)
    out.append("")
    return out


def _differences(material: Material, finding: Finding) -> list[str]:
    if len(finding.commits) != 1 or not finding.parents:
        return []
    found = between(material, finding.parents[0], finding.commits[0])
    commit = material.commit(finding.commits[0])
    out = words.heading(f"What differs besides code: {commit.sha[:12]} and its parent")
    if not found.known:
        return [*out, "  Unknown: one of the two kernels' configurations was not recorded."]
    out += words.bullets(found.sentences(f"commit {commit.sha[:12]}"))
    out += _changes("effective .config", found.options, "CONFIG_")
    out += _changes("guest", found.settings)
    out += _changes("mitigations", found.mitigations)
    out += _changes("sysctl defaults", found.sysctls)
    out += _changes("sizes in bytes", found.sizes)
    same = [
        name
        for name, changes in (
            ("effective .config", found.options),
            ("clocksource and command line", found.settings),
            ("mitigations", found.mitigations),
            ("sysctl defaults", found.sysctls),
        )
        if not changes
    ]
    if same:
        out += words.wrap(f"The same in both: {', '.join(same)}.")
    if found.preemption is not None:
        out += words.wrap(f"Preemption model: {' -> '.join(dict.fromkeys(found.preemption))}.")
    return out


def between(material: Material, before: int, after: int) -> Differences:
    """Return what differs besides code between two commits of the bisection."""
    return compare(
        material.kernel(before), material.kernel(after), material.facts(before), material.facts(after)
    )


def _changes(title: str, changes: tuple[Change, ...], prefix: str = "") -> list[str]:
    if not changes:
        return []
    out = [f"  {title}:"]
    for name, before, after in changes[:_OPTIONS_SHOWN]:
        line = f"    {prefix}{name}: {before} -> {after}"
        out += [line] if len(line) <= words.WIDTH else words.wrap(line.strip(), "    ", "        ")
    if len(changes) > _OPTIONS_SHOWN:
        out.append(f"    and {len(changes) - _OPTIONS_SHOWN} more, all of them in report.json")
    return out


def _rest(material: Material, conclusion: Conclusion) -> list[str]:
    better = material.goal.metric.better
    out = words.heading("How it adds up")
    if conclusion.total is None:
        return [*out, "  The two ends were not compared."]
    rows = {"good to bad": words.effect(conclusion.total, better)}
    for finding in conclusion.findings:
        names = ", ".join(material.commit(i).sha[:12] for i in finding.commits)
        rows[names if len(finding.commits) < 3 else f"set of {len(finding.commits)}"] = words.effect(
            finding.effect, better
        )
    if conclusion.rest is not None:
        rows["unexplained"] = words.effect(conclusion.rest, better)
    out += _pairs(rows)
    rest = conclusion.rest
    if rest is not None and conclusion.findings:
        unknown = rest.low > 0 or rest.high < 0
        text = (
            "Part of the change from good to bad is not explained by what was found: other commits of the "
            "range contribute, each less than the threshold or not searched for."
            if unknown
            else "What was found explains the change from good to bad within the interval."
        )
        out += words.wrap(text)
    return out


def _reproduce(material: Material, conclusion: Conclusion) -> list[str]:
    request = material.request
    repo = str(request.get("repo") or ".")
    workload = str(request.get("workload") or "WORKLOAD")
    extra, beds = _selection(request), [str(t) for t in request.get("testbeds") or ()]
    where = ["--testbed", beds[0]] if beds else []
    out = words.heading("How to reproduce")
    pairs = [
        (*f.parents[:1], f.commits[-1])
        for f in conclusion.findings
        if conclusion.ending in (Ending.CULPRIT, Ending.CULPRITS, Ending.CULPRIT_SET)
    ] or [(material.graph.good, material.graph.bad)]
    involved = tuple(dict.fromkeys(index for pair in pairs for index in pair))
    commands = []
    for index in involved:
        sha = material.graph.shas[index]
        commands.append(["perfbisect", "kernel", "build", sha, "--repo", repo, *extra])
        commands.append(
            ["perfbisect", "workload", "run", workload, "--rev", sha, "--repo", repo, *extra, *where]
        )
    commands.extend(["git", "-C", repo, "show", material.graph.shas[pair[-1]]] for pair in pairs)
    out += [f"  {shlex.join(c)}" for c in commands]
    out += ["", "  The whole bisection again:", f"  {shlex.join(start_command(request))}"]
    for index in involved:
        kernel = material.kernel(index)
        if kernel.get("config"):
            out.append(f"  .config of {material.graph.shas[index][:12]}: {kernel['config']}")
    return out


def start_command(request: Mapping[str, Any]) -> list[str]:
    """Return the command line that asks for the same bisection."""
    command = ["perfbisect", "start", "--repo", str(request.get("repo") or ".")]
    for name in ("good", "bad", "workload"):
        command += [f"--{name}", str(request.get(name, ""))]
    for name, values in (request.get("param") or {}).items():
        command += [word for value in values for word in ("--param", f"{name}={value}")]
    command += _selection(request)
    for testbed in request.get("testbeds") or ():
        command += ["--testbed", str(testbed)]
    for name in ("metric", "threshold", "alpha", "max_hours", "max_builds", "max_runs"):
        if request.get(name) not in (None, ""):
            command += [f"--{name.replace('_', '-')}", str(request[name])]
    if request.get("build_ahead"):
        command += ["--build-ahead", str(request["build_ahead"])]
    for name in ("first_parent", "scan"):
        if request.get(name):
            command.append(f"--{name.replace('_', '-')}")
    for skip in request.get("skip") or ():
        command += ["--skip", str(skip)]
    for monitor in request.get("monitors") or ():
        command += ["--monitor", str(monitor)]
    paths = [str(p) for p in request.get("paths") or ()]
    return command + (["--", *paths] if paths else [])


def _selection(request: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    if request.get("recipe"):
        out += ["--recipe", str(request["recipe"])]
    for patch in request.get("apply") or ():
        out += ["--apply", str(patch)]
    for fix in request.get("with_fix") or ():
        out += ["--with-fix", str(fix)]
    return out


def _costs(material: Material) -> list[str]:
    return words.heading("What it cost") + _pairs(trials.costs(material))


def _user(material: Material) -> list[str]:
    if not material.words_of_user:
        return []
    out = words.heading("What the user said on the way")
    for said in material.words_of_user:
        note = f" ({said.note})" if said.note else ""
        if isinstance(said, Discarded):
            out += words.bullets([f"discarded the data of {said.kind} {said.name}{note}"])
        else:
            out += words.bullets([f"{material.label(said.commit)} is {said.verdict}{note}"])
    return out


def _untestable(material: Material) -> list[str]:
    found = material.state.untestable
    if not found:
        return []
    out = words.heading(f"Commits that could not be tested ({len(found)})")
    shown = sorted(found.items())
    out += words.bullets(f"{material.label(i)}: {why}" for i, why in shown[:_OPTIONS_SHOWN])
    if len(shown) > _OPTIONS_SHOWN:
        out.append(f"  and {len(shown) - _OPTIONS_SHOWN} more, all of them in report.json")
    return out


def _request(material: Material) -> list[str]:
    goal = material.goal
    threshold = goal.metric.threshold
    rows = {
        "started": f"{_date(material.created)}, id {material.id}",
        "range": _asked(material),
        "metric": f"{goal.metric.name} in {goal.metric.unit}, {goal.metric.better} is better",
        "threshold": f"{100 * threshold.value:g}% of good"
        if threshold.relative
        else f"{threshold.value:g} {goal.metric.unit}",
        "alpha": f"{goal.alpha:g}",
        "clock": _CLOCKS[goal.clock],
    }
    for name, value in material.request.items():
        if name not in rows and value not in (None, "", [], (), False, {}):
            rows[name] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return words.heading("What was asked") + _pairs(rows)


def _environment(material: Material) -> list[str]:
    out = words.heading("Where it was measured")
    rows = dict(material.host)
    guest = material.facts(material.graph.good) or material.facts(material.graph.bad)
    for name in ("cpu.model", "memory.total", "clocksource", "cpus.online", "cmdline"):
        if guest.get(name):
            rows[f"guest {name}"] = guest[name]
    rows |= _settings(material)
    for name in ("workload", "image"):
        sums = sorted({t.note[name] for t in material.trials if t.note.get(name)})
        if sums:
            rows[f"{name} checksum"] = ", ".join(sums)
            if len(sums) > 1:
                rows[f"{name} checksum"] += " - it changed: boots on both sides of the change do not compare"
    toolchains = sorted(
        {
            str(k["toolchain"])
            for k in map(material.kernel, range(len(material.graph.shas)))
            if k.get("toolchain")
        }
    )
    if toolchains:
        rows["toolchain"] = ", ".join(toolchains)
    rows.update(material.files)
    return out + _pairs(rows)


def _settings(material: Material) -> dict[str, str]:
    """Return what was set on each testbed, by its first boot; named where there are several."""
    first: dict[str, dict[str, str]] = {}
    for trial in material.trials:
        if trial.booted.ok and trial.note.get("facts"):
            facts = {str(k): str(v) for k, v in json.loads(trial.note["facts"]).items()}
            first.setdefault(trial.booted.testbed, environment.settings(facts))
    return {
        f"set {name}" if len(first) == 1 else f"set {name} on {testbed}": words
        for testbed, found in first.items()
        for name, words in found.items()
    }


def _pairs(rows: Mapping[str, str]) -> list[str]:
    width = min(max((len(name) for name in rows), default=0), 20)
    out: list[str] = []
    for name, value in rows.items():
        out += words.wrap(f"{name:<{width}}  {value}", "  ", " " * (width + 4))
    return out


def _date(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
