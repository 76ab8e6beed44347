"""The cells of the benchmark: one factor at a time around a centre, and the goals that numbers must meet.

Centre: linear, n = 1024, effect / run deviation d = 1, cost (build 20, boot 5, run 1), Gauss, threshold half
the effect. Effects are 2% throughout, so d says how noisy the runs are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Budget
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.testbed_traits import TestbedTraits

EFFECT = 2.0
Samples = tuple[tuple[float, ...], ...]
BOOTS_IN_POOL, RUNS_IN_POOL = 400, 64
"""Boots of a pool of noise, and runs of each: a search draws a few hundred boots."""
Rivals = Literal["both", "bisect", "none"]


@dataclass(frozen=True)
class Cell:
    """One setting. rivals: who can be compared there; weight: trials relative to the ordinary number."""

    factor: str
    value: str
    scenario: Scenario
    rivals: Rivals = "both"
    weight: float = 1.0
    d: float = 1.0
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.factor} {self.value}"


def scenario(
    *,
    d: float = 1.0,
    n: int = 1024,
    costs: tuple[float, float, float] = (20, 5, 1),
    ratio: float = 0.5,
    culprits: tuple[Culprit, ...] = (Culprit(EFFECT),),
    lab: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Scenario:
    """Return the centre with changes. ratio: threshold / effect."""
    build, boot, run = costs
    model = dict(run_noise=EFFECT / d, build_seconds=build, boot_seconds=boot, run_seconds=run, **(lab or {}))
    return Scenario(commits=n, culprits=culprits, threshold=ratio * EFFECT, lab=LabModel(**model), **rest)


def _differing_testbeds(count: int) -> list[Cell]:
    """Return cells of testbeds whose noise is 1:3, of an effect on one alone, of opposite ones, and of none.

    Their levels differ by as much as the effect. Where it acts on one alone it is 1.2 thresholds there.
    """
    factors = (0.5, 1.5) if count == 2 else (0.5, 1.0, 1.5)
    noisy = tuple(TestbedTraits(f"testbed-{i}", noise=f) for i, f in enumerate(factors))
    alone = tuple(TestbedTraits(f"testbed-{i}", effect=1.2 * (i == 0)) for i in range(count))
    opposite = tuple(TestbedTraits(f"testbed-{i}", effect=1.2 * (-1) ** i) for i in range(count))

    def cell(value: str, traits: tuple[TestbedTraits, ...], **rest: Any) -> Cell:
        lab = {"testbed_spread": EFFECT, "testbeds": traits}
        return Cell(f"{count} testbeds", value, scenario(n=128, testbeds=count, lab=lab, **rest), "none", 0.5)

    none = (Culprit(0.0),)
    return [
        cell("alike", ()),
        cell("noise 1:3", noisy),
        cell("effect on one", alone, ratio=1.0),
        cell("opposite effects", opposite, ratio=1.0),
        cell("alike, no culprit", (), culprits=none),
        cell("noise 1:3, no culprit", noisy, culprits=none),
    ]


def _shown_in_some_boots() -> list[Cell]:
    """Return cells of a culprit whose effect a part of the boots shows, larger by as much."""
    found = []
    for shown in (0.5, 0.2):
        lab = {"testbeds": (TestbedTraits("testbed-0", shown=shown),)}
        cell = scenario(n=128, d=4, lab=lab, budget=Budget(runs=4000))
        found.append(Cell("effect shown in", f"{shown:.0%} of boots", cell, "none", 0.5, 4))
    return found


def boots_in_modes(*modes: tuple[float, float], run: float = 0.05, scatter: float = 0.0) -> Samples:
    """Return runs by boot, in percent of 100: each boot is in one mode. modes: (share, level) of each.

    run: standard deviation of runs within a boot; scatter: of boots within a mode, with the heavy tails of
    Student's t with 2.5 degrees of freedom.
    """
    random = np.random.default_rng(5)
    shares = np.array([share for share, _ in modes])
    levels = np.array([level for _, level in modes])
    boots = levels[random.choice(len(modes), BOOTS_IN_POOL, p=shares)]
    boots = boots + scatter * random.standard_t(2.5, BOOTS_IN_POOL)
    runs = 100 + boots[:, None] + run * random.standard_normal((BOOTS_IN_POOL, RUNS_IN_POOL))
    return tuple(tuple(row) for row in runs.tolist())


def _modes() -> list[Cell]:
    """Return cells whose boots have modes, some exact, or heavy tails; with a culprit, and without."""
    pools = {
        "3:7, two effects apart": boots_in_modes((0.7, 0.0), (0.3, 2 * EFFECT)),
        "3:7, one effect apart": boots_in_modes((0.7, 0.0), (0.3, EFFECT)),
        "even, exact values": boots_in_modes((0.5, 0.0), (0.5, 2 * EFFECT), run=0.0),
        "three": boots_in_modes((0.5, 0.0), (0.3, 1.5 * EFFECT), (0.2, 3 * EFFECT)),
        "none, heavy tails": boots_in_modes((1.0, 0.0), scatter=EFFECT / 3),
    }
    found = []
    for name, samples in pools.items():
        for culprits, more in (((Culprit(EFFECT),), ""), ((Culprit(0.0),), ", no culprit")):
            lab = {"samples": samples}
            cell = scenario(n=128, culprits=culprits, lab=lab, budget=Budget(runs=2000))
            found.append(Cell("modes of boots", name + more, cell, "none", 0.5))
    return found


def _copies() -> list[Cell]:
    """Return cells of a clock that should be exact, where boots with the same random numbers are copies.

    What scatters with these numbers, by half of the effect, are the runs of a boot or its level.
    """
    found = []
    for name, d, boot in (("runs", 2.0, 0.0), ("levels", 400.0, EFFECT / 2)):
        lab = {"clock": "instructions", "copied": True, "boot_noise": boot}
        for culprits, more in (((Culprit(EFFECT),), ""), ((Culprit(0.0),), ", no culprit")):
            cell = scenario(n=128, d=d, culprits=culprits, lab=lab, budget=Budget(runs=2000))
            found.append(Cell("copied boots", f"{name} scatter{more}", cell, "none", 0.5, d))
    return found


def cells(real: CommitGraph | None = None) -> list[Cell]:
    """Return the grid; `real` adds the real DAG."""
    result = [Cell("centre", "d=1", scenario())]
    add = result.append
    for d, weight in ((0.25, 0.2), (0.5, 0.5), (2.0, 1.0), (4.0, 1.0)):
        add(Cell("d", f"{d:g}", scenario(d=d), weight=weight, d=d))
    # At d = .5 one trial takes minutes: hundreds of commits are measured, each in a decision of its own.
    for d, weight in ((0.5, 0.05), (1.0, 1.0), (2.0, 1.0), (4.0, 1.0)):
        add(Cell("costs 0,0,1", f"d={d:g}", scenario(d=d, costs=(0, 0, 1)), weight=weight, d=d))
    for d, weight in ((0.5, 0.5), (1.0, 1.0), (2.0, 1.0)):
        add(Cell("costs 60,5,1", f"d={d:g}", scenario(d=d, costs=(60, 5, 1)), weight=weight, d=d))
    add(Cell("costs 5,20,1", "d=1", scenario(costs=(5, 20, 1))))
    for n, weight in ((16, 1.0), (128, 1.0), (16384, 0.2)):
        add(Cell("n", str(n), scenario(n=n), weight=weight))
    for ratio in (0.1, 0.25, 1.0):
        add(Cell("threshold/effect", f"{ratio:g}", scenario(ratio=ratio), rivals="none"))
    for part in (0.5, 1.0, 2.0):
        add(Cell("boot/run noise", f"{part:g}", scenario(lab={"boot_noise": part * EFFECT}), weight=0.5))
    for part in (1.0, 2.0):
        lab = {"boot_noise": part * EFFECT}
        add(Cell("quiet runs, boot noise", f"{part:g}", scenario(d=20, lab=lab), "none", weight=0.2, d=20))
    for part in (0.25, 0.5):
        add(Cell("build effect", f"{part:g}", scenario(lab={"build_noise": part * EFFECT}), weight=0.5))
    for kind in ("t3", "lognormal", "bimodal", "ar1", "outliers"):
        add(Cell("noise", kind, scenario(lab={"noise": kind})))
    add(Cell("noise", "none", scenario(d=1e9), d=1e9))
    exact = {"clock": "instructions"}
    seven = tuple(Culprit(e) for e in (5.8, 34.3, -15.3, -6.8, 17.6, -11.5, 4.7))
    several = scenario(d=400, ratio=1.0, culprits=seven, lab=exact)
    add(Cell("instruction clock", "7 changes", several, "none", d=400))
    wander = scenario(d=400, lab={**exact, "background": EFFECT / 2})
    add(Cell("instruction clock", "background 0.5", wander, "none", d=400))
    for part in (0.5, 2.0):
        add(Cell("background", f"{part:g}", scenario(lab={"background": part * EFFECT}), weight=0.5))
    for kind in ("linear", "walk", "step"):
        add(Cell("drift", kind, scenario(lab={"drift": kind, "drift_size": EFFECT})))
    for share in (0.1, 0.3):
        add(Cell("untestable", f"{share:.0%}", scenario(lab={"untestable": share})))
    add(Cell("untestable", "stretch of 10", scenario(lab={"broken": 10})))
    forks = scenario(n=200, d=4, history="branched", lab={"broken": 8})
    add(Cell("untestable", "stretch of 8 with forks", forks, "none", 0.5, 4))
    add(Cell("history", "branched", scenario(history="branched", lab={"fork_offset": EFFECT / 2})))
    if real is not None:
        model = {"fork_offset": EFFECT / 2}
        add(Cell("history", "real DAG", scenario(graph=real, lab=model), weight=0.2))
    none = (Culprit(0.0),)
    add(Cell("culprits", "0", scenario(culprits=none), rivals="none"))
    add(Cell("culprits", "2 same sign", scenario(culprits=(Culprit(EFFECT),) * 2), rivals="none"))
    sizes = tuple(Culprit(EFFECT * share) for share in (1, 1.5, 2, 1.2))
    branches = scenario(n=24, d=50, culprits=sizes, history="branched", lab={"untestable": 0.2})
    add(Cell("culprits", "4 on branches of 24 commits, d=50", branches, "none", 0.5, 50))
    opposite = (Culprit(2 * EFFECT), Culprit(-EFFECT))
    add(Cell("culprits", "2 opposite", scenario(culprits=opposite), rivals="none"))
    transient = (Culprit(EFFECT, 300), Culprit(-EFFECT, 700))
    add(Cell("culprits", "transient", scenario(culprits=transient, scan=True), rivals="none", weight=0.5))
    add(Cell("place", "first", scenario(culprits=(Culprit(EFFECT, 1),))))
    add(Cell("place", "last", scenario(culprits=(Culprit(EFFECT, -1),))))
    add(Cell("ends", "swapped", scenario(culprits=(Culprit(-EFFECT),)), rivals="none"))
    small = (Culprit(EFFECT / 4),) * 30
    for d in (1.0, 4.0):
        creep = scenario(n=256, d=d, ratio=1.0, culprits=small, budget=Budget(runs=6000))
        add(Cell("culprits", f"30 of a quarter of the threshold, d={d:g}", creep, "none", 0.5, d))
    again = (Culprit(EFFECT, 40), Culprit(-EFFECT, 120), Culprit(EFFECT, 200))
    back = scenario(n=256, d=2, culprits=again, scan=True)
    add(Cell("culprits", "regress, fix, regress", back, "none", 0.5, 2))
    result.extend(_modes())
    result.extend(_copies())
    result.extend(_shown_in_some_boots())
    for count in (2, 3):
        result.extend(_differing_testbeds(count))
    add(Cell("testbeds", "4", scenario(testbeds=4, lab={"testbed_spread": 1.0}), rivals="none"))
    return result
