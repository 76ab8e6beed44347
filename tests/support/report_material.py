"""The material of a finished bisection, as the demo's history gives it: made up, with its real shape.

Also the records of machines that do not show the same change, and a search of sixty boots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Finding, Interval, Measure
from bisector.model.facts import KernelFacts
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Built, Discarded, Left, Marked, Ran, Record
from bisector.report.report_model import Commit, Material
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fakes import METRIC as FAKE_METRIC

METRIC = Metric("real", "s", "lower", Threshold(0.05))
SUBJECTS = (
    "Linux 6.1.176",
    "vduse: Remove include of rwlock.h",
    "signal: Add proper comment about preempt-disable",
    "x86: Allow to enable RT",
    "x86: Enable RT also on 32bit",
)

CULPRIT = 5
GRAPH = linear(8)
W1 = {"clovertown": (3.38, 1.0), "barcelona": (1.56, 0.3), "westmere": (8.62, 0.3)}
"""What jump labels cost bandwidth control on three machines: percent of elapsed time, 'W1' unconstrained; and
the noise of runs there, in the order of their A/A tables (Turner, sched: use jump labels..., July 2011)."""
W2 = {"clovertown": (1.01, 0.5), "barcelona": (-2.24, 0.3), "westmere": (0.45, 0.3)}
"""The same of 'W2', where the machines disagree even in direction."""


def _sha(i: int) -> str:
    return f"{i + 1:x}" * 40


def _kernel(i: int, rt: bool) -> KernelFacts:
    options = {"SMP": "y", "HZ": "250"}
    options |= {"PREEMPT_RT": "y", "PREEMPTION": "y"} if rt else {"PREEMPT_NONE": "y"}
    return KernelFacts(
        release="6.1.176",
        build_id=f"{i:040x}",
        config=f"/cache/kernels/{i}/config",
        options=options,
        lost=() if rt else ("PREEMPT_RT",),
        sizes={"vmlinux": 30_000_000 + 1000 * rt},
        toolchain="gcc 12.2.0",
    )


def _facts(i: int, rt: bool) -> dict[str, str]:
    return {
        "build_id": f"{i:040x}",
        "cpu.model": "QEMU Virtual CPU version 2.5+",
        "memory.total": "498012 kB" if rt else "498116 kB",
        "clocksource": "tsc",
        "cmdline": "console=ttyS0 panic=-1",
        "sysctl.kernel.sched_rt_runtime_us": "950000",
        "sysctl.vm.stat_interval": "1",
        **({"realtime": "1"} if rt else {}),
    }


def demo() -> Material:
    """Return a bisection that ended with one culprit; one commit was skipped, one boot discarded."""
    graph = CommitGraph(
        shas=tuple(_sha(i) for i in range(5)),
        parents=((), (0,), (1,), (2,), (3,)),
        candidate=(False, True, True, True, True),
        good=0,
        bad=4,
    )
    records: list[tuple[int, Record]] = []
    decisions = []
    plan = (
        (0, "verify", 0.15827, "the good end must be measured first"),
        (4, "verify", 0.18912, "the bad end: is there a regression?"),
        (2, "search", 0.15830, "splits the remaining mass 50 to 50; 3 runs bring 1.0 bit for 75 s"),
        (3, "search", 0.18899, "splits the remaining mass 50 to 50; 3 runs bring 1.0 bit for 75 s"),
        (2, "certify", 0.15829, "a fresh boot of the parent for the proof"),
        (3, "certify", 0.18901, "a fresh boot of the culprit for the proof"),
    )
    number = 0
    built: set[int] = set()
    for step, (commit, purpose, level, reason) in enumerate(plan):
        rt = commit >= 3
        number += 1
        decisions.append((number, Measure(commit, 3, purpose, reason)))  # type: ignore[arg-type]
        if commit not in built:
            built.add(commit)
            number += 1
            kernel = _kernel(commit, rt)
            records.append((number, Built(commit, True, 95.0 + commit, f"b{commit}", kernel=kernel)))
        boot = f"b{step + 1}"
        number += 1
        at = 1_790_000_000.0 + 100 * step
        booted = Booted(
            boot,
            commit,
            "laptop-icount",
            True,
            6.5,
            at,
            purpose=purpose,  # type: ignore[arg-type]
            facts=_facts(commit, rt),
            overhead=3.9,
            workload="sha256:aa11",
            image="sha256:bb22",
        )
        records.append((number, booted))
        for index in range(3):
            number += 1
            value = level + 0.00002 * index
            records.append((number, Ran(boot, index, {"real": value}, 2.0, at + index, warmup=index == 0)))
        number += 1
        records.append((number, Left(boot)))
    number += 1
    records.append((number, Built(1, False, 12.0, failure="kernel/fork.c:88: error: 'x' undeclared")))
    records.append((number + 1, Marked(1, "skip", "known not to build")))
    records.append((number + 2, Discarded("boot", "b3", "somebody rebooted the host")))
    conclusion = Conclusion(
        Ending.CULPRIT,
        "One commit makes the metric 19.4% worse; it was compared with its parent in fresh boots.",
        findings=(
            Finding(
                (3,),
                Interval(0.1935, 0.1941, 0.1947),
                0.987,
                parents=(2,),
                certified=True,
                probability=0.9957,
            ),
        ),
        total=Interval(0.1942, 0.1949, 0.1956),
        rest=Interval(-0.0004, 0.0007, 0.0018),
        confidence=0.987,
    )
    return Material(
        id="b-1",
        created=1_790_000_000.0,
        status="done",
        request={
            "repo": "/home/me/linux",
            "good": "rt-00",
            "bad": "rt-04",
            "workload": "pipe-test",
            "skip": ["rt-01"],
            "alpha": 0.05,
        },
        graph=graph,
        goal=Goal(METRIC, clock="instructions"),
        conclusion=conclusion,
        records=records,
        decisions=decisions,
        commits={
            i: Commit(
                _sha(i),
                subject,
                "A. Developer <dev@example.org>",
                1_600_000_000.0 + i,
                f"v6.1-{i}-g{_sha(i)[:12]}" if i == 3 else "",
            )
            for i, subject in enumerate(SUBJECTS)
        },
        host={"perfbisect": "0.1.0", "host": "Debian 12, 2 CPUs"},
        files={"raw output": "/state/bisections/b-1"},
    )


def concluded(material: Material, **changes: Any) -> Material:
    """Return the material with another finding, which has these fields."""
    assert material.conclusion is not None
    findings = tuple(dataclasses.replace(one, **changes) for one in material.conclusion.findings)
    conclusion = dataclasses.replace(material.conclusion, findings=findings)
    return dataclasses.replace(material, conclusion=conclusion)


def differing_records(
    effects: Mapping[str, tuple[float, float]], *, boots: int = 2, runs: int = 5
) -> list[Record]:
    """Return boots of both ends, then of the culprit and its parent, alternating on each testbed.

    effects: testbed -> the culprit's effect and the noise of a run, in percent.
    """
    sides = [("verify", GRAPH.good), ("verify", GRAPH.bad), ("certify", CULPRIT - 1), ("certify", CULPRIT)]
    found: list[Record] = []
    for testbed, (effect, noise) in effects.items():
        lab = SyntheticLab(GRAPH, LabModel(run_noise=noise), {CULPRIT: effect}, seed=2)
        for number in range(boots):
            for purpose, commit in sides:
                name = f"{testbed}-{purpose}-{commit}-{number}"
                drawn = lab.boot(commit, 0, testbed, name)
                found.append(Booted(name, commit, testbed, True, 10.0, 1e9, purpose=purpose))  # type: ignore[arg-type]
                found += [Ran(name, k, {FAKE_METRIC: drawn.run(k, 0.0)}, 2.0, 1e9 + k) for k in range(runs)]
                found.append(Left(name))
    return found


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\u202e{{ 7*7 }}"
"""Text as a commit, a log or a workload may hold it."""


def failures(number: int, subject: str) -> list[tuple[int, Record]]:
    """Return what comes after event `number`: a commit that does not build, and one that boots nowhere."""
    failed: list[Record] = [
        Built(7, False, 9.0, failure=subject.format("build"), details=subject.format("log")),
        Built(26, True, 90.0, "k26", kernel=_kernel(26, True)),
    ]
    for testbed in ("machine-a", "machine-b"):
        name, said = f"boot-failed-{testbed}", subject.format("console")
        failed.append(
            Booted(name, 26, testbed, False, 9.0, 1.79e9 + 9000, failure=said, details=f"{said}\n{said}")
        )
        failed.append(Left(name))
    return list(enumerate(failed, start=number + 1))


def sixty_boots(subject: str = "sched: rework number {}", runs: int = 12, boots: int = 60) -> Material:
    """Return a search of 60 boots, or more, over 33 commits on two testbeds.

    Runs warm up or are flagged. Two further boots, of one commit, failed.
    """
    graph, culprit = linear(33), 20
    levels = {"machine-a": 100.0, "machine-b": 60.0}
    lab = SyntheticLab(graph, LabModel(run_noise=1.0, boot_noise=0.5), {culprit: 6.0}, seed=5)
    ends = [graph.good, graph.bad, culprit - 1, culprit]
    search = [graph.good, graph.bad, 16, 24, 20, 18, 19, 22]
    records: list[tuple[int, Record]] = []
    decisions = []
    number, built = 0, set[int]()
    for boot in range(boots):
        commit = search[boot % 8] if boot < 40 else ends[boot % 4]
        testbed = "machine-a" if (boot // (8 if boot < 40 else 4)) % 2 else "machine-b"
        purpose = "verify" if boot < 8 else "search" if boot < 40 else "certify"
        spread = max(1, 33 - boot)
        near = [c for c in range(1, len(graph.shas)) if abs(c - culprit) < spread]
        suspects = tuple((c, 1 / len(near)) for c in near) if purpose != "verify" else ()
        reason = (
            f"splits the remaining mass 50 to 50; {runs} runs bring 0.8 bit for 75 s; {subject.format(boot)}"
        )
        number += 1
        decisions.append((number, Measure(commit, runs, purpose, reason, suspects=suspects)))  # type: ignore[arg-type]
        if commit not in built:
            built.add(commit)
            number += 1
            kernel = _kernel(commit, commit >= culprit)
            records.append((number, Built(commit, True, 90.0, f"k{commit}", kernel=kernel)))
        name = f"boot-{boot}"
        drawn = lab.boot(commit, 0, testbed, name)
        number += 1
        facts = _facts(commit, commit >= culprit)
        booted = Booted(name, commit, testbed, True, 9.0, 1.79e9 + 60 * boot, purpose=purpose, facts=facts)  # type: ignore[arg-type]
        records.append((number, booted))
        for k in range(runs):
            number += 1
            flags = ("stall",) if (boot, k) == (3, 5) else ()
            value = drawn.run(k, 0.0) * levels[testbed] / 100
            records.append(
                (number, Ran(name, k, {METRIC.name: value}, 2.0, 1.79e9 + k, flags=flags, warmup=k == 0))
            )
        number += 1
        records.append((number, Left(name)))
    names = {
        i: Commit(sha, subject.format(i), subject.format(i), 1.6e9 + i) for i, sha in enumerate(graph.shas)
    }
    finding = Finding((culprit,), Interval(0.052, 0.061, 0.07), 0.98, parents=(culprit - 1,), certified=True)
    return Material(
        id="series-of-sixty",
        created=1.79e9,
        status="done",
        request={"repo": "/home/me/linux", "good": "v6.1", "bad": "v6.2", "workload": subject.format("w")},
        graph=graph,
        goal=Goal(METRIC),
        conclusion=Conclusion(
            Ending.CULPRIT,
            subject.format("summary"),
            findings=(finding,),
            total=Interval(0.05, 0.06, 0.07),
            rest=Interval(-0.01, 0.0, 0.01),
            confidence=0.98,
            warnings=(subject.format("warning"),),
        ),
        records=[*records, *failures(number, subject)],
        decisions=decisions,
        commits=names,
        host={"host": subject.format("host")},
        files={"raw output": "/state/bisections/series"},
    )


def two_levels() -> Material:
    """Return a search on two machines of which one is twice as slow, each commit in other shares on both.

    The culprit adds 5% on each.
    """
    plan = [(0, "fast", 100.0), (4, "fast", 105.0), (0, "slow", 200.0), (4, "slow", 210.0)]
    proof = [(2, "fast", 100.0), (3, "fast", 105.0), (3, "fast", 105.0), (2, "slow", 200.0)]
    records: list[Record] = []
    both = [("verify", plan), ("certify", [*proof, (2, "slow", 200.0), (3, "slow", 210.0)])]
    for purpose, boots in both:
        for commit, testbed, value in boots:
            name = f"b{len(records)}"
            records.append(Booted(name, commit, testbed, True, 1.0, 1e9, purpose=purpose))  # type: ignore[arg-type]
            records += [Ran(name, k, {"real": value}, 2.0, 1e9 + k) for k in range(3)]
            records.append(Left(name))
    return dataclasses.replace(demo(), records=list(enumerate(records)))


COLD = (1.03, 1.01, 1.0)
"""What runs 1, 2 and 3 of a boot read, over what later ones would."""


def uneven_runs(metric: str = "real", more: float = 1.0003) -> Material:
    """Return a search by the instruction clock whose boots ran differently often, as real ones do.

    All is exact; commit 3 is the culprit. metric: its name; more: what the culprit reads over its parent.
    """
    boots = [(0, 3, "verify"), (4, 2, "verify"), (2, 1, "search"), (3, 1, "search")]
    boots += [(2, 2, "certify"), (3, 3, "certify")]
    records: list[Record] = []
    for commit, runs, purpose in boots:
        name, level = f"u{len(records)}", 100.0 * (more if commit >= 3 else 1.0)
        records.append(Booted(name, commit, "fake", True, 1.0, 1e9, purpose=purpose))  # type: ignore[arg-type]
        records += [Ran(name, k + 1, {metric: level * COLD[k]}, 2.0, 1e9 + k) for k in range(runs)]
        records.append(Left(name))
    return dataclasses.replace(demo(), records=list(enumerate(records)))
