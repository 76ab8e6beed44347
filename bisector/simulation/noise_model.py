"""The model of fake measurements: a synthetic history with its culprits, testbeds and noise.

`SyntheticLab` knows the truth that a search has to find. The simulator asks it for builds, boots and runs.
The fake Builder and Testbed wrap it, too, so tests, simulation and documentation all measure the same way.

Levels, effects and standard deviations are in percent of the metric's level at the good end. Every draw
depends only on the seed and on what is drawn (binary, boot key, repetition), never on the order of the calls.
A search that is stopped and resumed therefore meets the same lab.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

import numpy as np

from bisector.errors import RequestError
from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import Floats, Mask
from bisector.model.goal import Direction, TestbedClock, worse_sign
from bisector.schemas import noise_kinds as kinds
from bisector.schemas.noise_kinds import DriftKind, NoiseKind, require_within
from bisector.simulation.histories import ancestors
from bisector.simulation.testbed_traits import TestbedTraits

_AR1 = 0.5
"""Correlation of neighbouring runs for noise 'ar1'."""
_LOGNORMAL_SHAPE = 0.6
"""Standard deviation of the log for noise 'lognormal'."""
_OUTLIER_SHARE, _OUTLIER_SHIFT = 0.05, 10.0
"""Noise 'outliers': share of the runs, and their shift in standard deviations."""
_SLOW_SHARE, _WITHIN_MODE = 0.3, 0.6
"""Noise 'bimodal': share of slow boots, and standard deviation within a mode over that of the mixture."""
_MODE_GAP = float(np.sqrt((1 - _WITHIN_MODE**2) / (_SLOW_SHARE * (1 - _SLOW_SHARE))))
"""Distance of the modes that makes the mixture's variance one: w^2 + s(1-s) gap^2 = 1."""
_DRAWN_RUNS = 64
"""Runs whose noise is drawn at once."""
_MIN_LEVEL = 0.01
"""Smallest value, as a share of the level: a time or a rate cannot be negative."""


@dataclass(frozen=True, slots=True)
class LabModel:
    """How the synthetic lab behaves: percent of the good end's level, probabilities, and seconds of cost.

    background: standard deviation of the random walk of levels over the whole range. fork_offset: that of the
    offset of each fork point, for commits that do not contain good. testbed_spread: that of the testbeds'
    levels. untestable: probability that a commit does not build or boot. broken: length of a stretch of
    untestable commits around the first culprit. inert: probability that a commit does not change the binary.
    samples: real runs by boot, resampled instead of run and boot noise. clock 'instructions': repetition k of
    every boot differs from repetition 0 by the same known profile. copied: boots of a binary without fresh
    random numbers repeat each other. testbeds: those that differ.
    """

    run_noise: float = 1.0
    boot_noise: float = 0.0
    build_noise: float = 0.0
    noise: NoiseKind = "gauss"
    drift: DriftKind = "none"
    drift_size: float = 0.0
    background: float = 0.0
    fork_offset: float = 0.0
    untestable: float = 0.0
    broken: int = 0
    inert: float = 0.0
    testbed_spread: float = 0.0
    build_seconds: float = 20.0
    boot_seconds: float = 5.0
    run_seconds: float = 1.0
    level: float = 100.0
    better: Direction = "lower"
    clock: TestbedClock = "wall"
    samples: tuple[tuple[float, ...], ...] = ()
    copied: bool = False
    testbeds: tuple[TestbedTraits, ...] = ()

    def __post_init__(self) -> None:
        """Raise RequestError, naming the option, for an impossible setting."""
        for name in ("run_noise", "boot_noise", "build_noise", "background", "fork_offset", "testbed_spread"):
            require_within(name, getattr(self, name), 0.0, 100.0, "percent")
        require_within("drift_size", self.drift_size, -kinds.MAX_DRIFT, kinds.MAX_DRIFT, "percent")
        for name in ("untestable", "inert"):
            require_within(name, getattr(self, name), 0.0, 1.0, "a probability: 0.1 is 10%")
        for name in ("build_seconds", "boot_seconds", "run_seconds"):
            require_within(name, getattr(self, name), 0.0, kinds.MAX_COST, "a cost")
        if self.noise not in get_args(NoiseKind):
            raise RequestError(f"unknown noise '{self.noise}'", cure=f"one of {', '.join(kinds.NOISE_KINDS)}")
        if self.drift not in get_args(DriftKind):
            raise RequestError(f"unknown drift '{self.drift}'", cure=f"one of {', '.join(kinds.DRIFT_KINDS)}")
        if self.broken < 0:
            raise RequestError(f"a broken stretch of {self.broken} commits is impossible", cure="0 or more")


@dataclass(slots=True)
class SyntheticBoot:
    """One boot: its constant part (percent) and its stream of run noise (in deviations)."""

    lab: SyntheticLab
    commit: int
    testbed: str
    constant: float
    random: np.random.Generator
    mode: float = 0.0
    real: Floats | None = None
    noise_factor: float = 1.0
    noise: list[float] = field(default_factory=list)

    def run(self, index: int, at: float) -> float:
        """Return the value of repetition `index` that ends at virtual time `at` (seconds)."""
        while index >= len(self.noise):
            self._draw()
        lab = self.lab
        cold = 0.24 if lab.model.clock == "instructions" else 0.0  # first repetitions: as much was measured
        percent = self.constant + lab.drift(self.testbed, at) + self.noise[index]
        return lab.value(percent) * (1.0 + cold * math.exp(-1.0 - index))

    def _draw(self) -> None:
        model = self.lab.model
        if self.real is not None:
            self.noise.extend(float(x) for x in self.real)
            return
        z = self.random.standard_normal(_DRAWN_RUNS)
        match model.noise:
            case "gauss":
                pass
            case "t3":
                z = z / np.sqrt(self.random.chisquare(3, _DRAWN_RUNS) / 3) / np.sqrt(3)
            case "lognormal":
                s2 = _LOGNORMAL_SHAPE**2
                z = (np.exp(_LOGNORMAL_SHAPE * z - s2 / 2) - 1) / np.sqrt(np.exp(s2) - 1)
            case "bimodal":
                z = self.mode + _WITHIN_MODE * z
            case "ar1":
                scale = max(model.run_noise * self.noise_factor, 1e-300)
                last = self.noise[-1] / scale if self.noise else float(self.random.standard_normal())
                for i in range(_DRAWN_RUNS):
                    last = _AR1 * last + np.sqrt(1 - _AR1**2) * z[i]
                    z[i] = last
            case "outliers":
                z = z + _OUTLIER_SHIFT * (self.random.random(_DRAWN_RUNS) < _OUTLIER_SHARE)
        self.noise.extend(float(x) for x in model.run_noise * self.noise_factor * z)


class SyntheticLab:
    """A drawn lab: levels of all commits, which of them are untestable, and the offsets of the testbeds."""

    def __init__(self, graph: CommitGraph, model: LabModel, culprits: Mapping[int, float], seed: int) -> None:
        """culprits: commit index -> effect in percent, positive means worse."""
        self.graph, self.model, self.culprits, self.seed = graph, model, dict(culprits), seed
        self._sign = worse_sign(model.better)
        n = len(graph.shas)
        random = self._random("history")
        candidate = np.array(graph.candidate)
        last = np.zeros(n, dtype=bool)
        last[[graph.good, graph.bad]] = True
        self._inert = (random.random(n) < model.inert) & candidate
        self._inert[list(culprits)] = False
        self._inert[[i for i, p in enumerate(graph.parents) if len(p) != 1]] = False
        broken = (random.random(n) < model.untestable) & candidate & ~last
        if model.broken and culprits:
            broken |= self._stretch(min(culprits), model.broken, random) & ~last
        self.untestable: dict[int, str] = {
            int(i): ("build" if random.random() < 0.5 else "boot") for i in np.flatnonzero(broken)
        }
        steps = random.standard_normal(n) * model.background / np.sqrt(max(1, candidate.sum()))
        # What each commit itself adds to the level, in percent.
        self.steps = np.where(candidate & ~self._inert, steps, 0.0)
        for commit, effect in culprits.items():
            self.steps[commit] += effect
        self._fork = np.where(~candidate, random.standard_normal(n) * model.fork_offset, 0.0)
        self._linear = all(p == ((i - 1,) if i else ()) for i, p in enumerate(graph.parents))
        self._levels: Floats | dict[int, float] = np.cumsum(self.steps) if self._linear else {}
        self._testbeds: dict[str, tuple[float, float, float, list[float]]] = {}
        self._real = _centred(model.samples)
        self._visit = max(model.build_seconds + model.boot_seconds + model.run_seconds, 1e-9)

    def value(self, percent: float) -> float:
        """Turn percent above the good level (positive is worse) into the metric's unit."""
        return self.model.level * max(_MIN_LEVEL, 1.0 + self._sign * percent / 100.0)

    def truth(self, commit: int, testbed: str = "") -> float:
        """Return the true level of a commit, in percent above good's (positive is worse).

        testbed: one of those whose effects differ; any other one by default.
        """
        factor = self.traits(testbed).effect
        if factor != 1.0:
            inside = ancestors(self.graph, commit)
            own = sum(effect for culprit, effect in self.culprits.items() if inside[culprit])
            return self.truth(commit) + (factor - 1.0) * own
        if self._linear:
            return float(self._levels[commit])
        if commit not in self._levels:
            assert isinstance(self._levels, dict)
            self._levels[commit] = self._level(commit)
        return float(self._levels[commit])

    def traits(self, testbed: str) -> TestbedTraits:
        """Return how a testbed differs from the others."""
        return next((t for t in self.model.testbeds if t.testbed == testbed), TestbedTraits(testbed))

    def binary(self, commit: int, layout: int = 0) -> str:
        """Return the id of the commit's kernel; commits that change nothing share their parent's."""
        while self._inert[commit]:
            commit = self.graph.parents[commit][0]
        return f"b{commit}" if layout == 0 else f"b{commit}.{layout}"

    def boot(self, commit: int, layout: int, testbed: str, key: str, *, fresh: bool = False) -> SyntheticBoot:
        """Boot a testable commit; `key` names this boot, and equal keys give equal boots. fresh: its seed."""
        model = self.model
        binary = self.binary(commit, layout)
        constant = self.truth(commit, testbed) + self._testbed(testbed)[0]
        if model.build_noise:
            constant += model.build_noise * float(self._random("build", binary).standard_normal())
        random = self._random("boot", testbed, binary if model.copied and not fresh else key)
        traits = self.traits(testbed)
        factor = traits.noise
        if traits.shown < 1:
            own = self.truth(commit, testbed) - self.truth(self.graph.good, testbed)
            constant += own * ((random.random() < traits.shown) / traits.shown - 1)
        boot = SyntheticBoot(self, commit, testbed, constant, random, noise_factor=factor)
        if self._real:
            runs = self._real[int(random.integers(len(self._real)))]
            boot.real = np.roll(runs, int(random.integers(len(runs))))
            return boot
        if model.boot_noise:
            boot.constant += model.boot_noise * factor * float(random.standard_normal())
        if model.noise == "bimodal":
            slow = random.random() < _SLOW_SHARE
            boot.mode = _MODE_GAP * (float(slow) - _SLOW_SHARE)
        return boot

    def drift(self, testbed: str, at: float) -> float:
        """Return the drift of a testbed at a virtual time, in percent."""
        model = self.model
        if model.drift == "none":
            return 0.0
        _, sign, when, path = self._testbed(testbed)
        visits = at / self._visit
        if model.drift == "linear":
            return model.drift_size * visits / 100.0
        if model.drift == "step":
            return sign * model.drift_size * float(visits >= when)
        slot = int(visits * 4)  # a quarter of a visit is finer than anything that a search can resolve
        while len(path) <= slot + 1:
            block = self._random("walk", testbed, str(len(path))).standard_normal(256)
            path.extend((path[-1] + np.cumsum(block) * model.drift_size / np.sqrt(400)).tolist())
        part = visits * 4 - slot
        return float(path[slot] * (1 - part) + path[slot + 1] * part)

    def _testbed(self, name: str) -> tuple[float, float, float, list[float]]:
        if name not in self._testbeds:
            random = self._random("testbed", name)
            offset = self.model.testbed_spread * float(random.standard_normal())
            sign = 1.0 if random.random() < 0.5 else -1.0
            self._testbeds[name] = (offset, sign, float(random.uniform(0, 50)), [0.0])
        return self._testbeds[name]

    def _level(self, commit: int) -> float:
        mask = ancestors(self.graph, commit)
        level = float(self.steps[mask].sum())
        if not mask[self.graph.good]:
            outside = np.flatnonzero(mask & ~np.array(self.graph.candidate))
            if len(outside):  # the newest fork point: what lies above it is missing
                level += float(self._fork[outside[-1]])
        return level

    def _stretch(self, culprit: int, length: int, random: np.random.Generator) -> Mask:
        """Mark `length` commits in a row, the culprit among them, along first parents."""
        line = [culprit]
        for _ in range(int(random.integers(length))):
            parents = [p for p in self.graph.parents[line[0]] if self.graph.candidate[p]]
            line = [*parents[:1], *line]
        child = {p[0]: i for i, p in enumerate(self.graph.parents) if p}
        while len(line) < length and line[-1] in child:
            line.append(child[line[-1]])
        mask = np.zeros(len(self.graph.shas), dtype=bool)
        mask[line] = True
        return mask

    def _random(self, *key: str) -> np.random.Generator:
        return np.random.default_rng((self.seed, zlib.crc32("/".join(key).encode())))


def _centred(samples: tuple[tuple[float, ...], ...]) -> list[Floats]:
    """Return real runs in percent about their common mean."""
    if not samples:
        return []
    mean = float(np.mean(np.concatenate([np.asarray(b, dtype=float) for b in samples])))
    if mean == 0:
        raise RequestError(
            "the samples average zero, so a percentage of them means nothing",
            cure="give samples of a metric whose values have one sign",
        )
    return [(np.asarray(b, dtype=float) / mean - 1.0) * 100.0 for b in samples]
