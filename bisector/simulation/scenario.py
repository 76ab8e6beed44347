"""Scenarios: a history, its culprits, a lab, and the goal that a user would state."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from bisector.errors import RequestError
from bisector.model import format
from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Budget, Goal, Metric, Threshold
from bisector.schemas.documents.document import shown_path
from bisector.schemas.documents.json_reader import read_json
from bisector.schemas.noise_kinds import MAX_COST
from bisector.simulation import histories
from bisector.simulation.noise_model import LabModel, SyntheticLab

_NO_EFFECT = "no number above -99 and up to 1,000,000"
_PERCENT = "in percent: 1.5 is 1.5%"

History = Literal["linear", "branched"]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A culprit's place and effect (percent, positive is worse). None: a random place in every simulation.

    place: 1 is the first commit after good; negative counts from bad, -1 being bad itself.
    """

    effect: float
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One simulated setting. threshold is in percent of good's level; None means half the smallest effect.

    graph: a real history, instead of `history` with `commits` candidates.
    """

    commits: int = 128
    history: History = "linear"
    graph: CommitGraph | None = None
    culprits: tuple[Culprit, ...] = (Culprit(2.0),)
    threshold: float | None = None
    alpha: float = 0.05
    lab: LabModel = field(default_factory=LabModel)
    testbeds: int = 1
    scan: bool = False
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        """Raise RequestError for what cannot be simulated."""
        if not 0 < self.alpha < 0.5:
            raise RequestError(
                f"alpha is {self.alpha:g}", cure="a probability between 0 and 0.5, such as 0.05"
            )
        if not 1 <= self.testbeds <= 1000:
            raise RequestError(f"{self.testbeds} testbeds cannot be simulated", cure="1 to 1000")
        if not all(_is_effect(c.effect) for c in self.culprits):
            raise RequestError(f"an effect is {_NO_EFFECT}", cure=_PERCENT)
        if self.threshold is None and not any(c.effect for c in self.culprits):
            raise RequestError(
                "a history without a culprit needs a threshold", cure="--threshold PERCENT, such as 1"
            )
        if not 1e-6 <= self.limit <= 1e6:
            raise RequestError(f"the threshold is {self.limit:g}%", cure="0.000001 to 1,000,000 percent")
        count = self.commits if self.graph is None else sum(self.graph.candidate)
        if count < 1:
            raise RequestError(f"a history of {count} commits is impossible", cure="1 or more candidates")
        for culprit in self.culprits:
            if culprit.place is not None and not 1 <= abs(culprit.place) <= count:
                raise RequestError(
                    f"--culprits: there is no commit {culprit.place} in a range of {count}",
                    cure=f"1 to {count}",
                )
        if len(self.culprits) > count:
            raise RequestError(
                f"{format.count(len(self.culprits), 'culprit')} cannot be among "
                f"{format.count(count, 'commit')}",
                cure="name fewer culprits, or simulate more commits",
            )

    @property
    def limit(self) -> float:
        """Return the threshold in percent."""
        if self.threshold is not None:
            return self.threshold
        return min(abs(c.effect) for c in self.culprits if c.effect) / 2

    @property
    def testbed_names(self) -> tuple[str, ...]:
        """Return the names of the testbeds."""
        return tuple(f"testbed-{i}" for i in range(self.testbeds))

    @property
    def goal(self) -> Goal:
        """Return what a user would state: metric, threshold, alpha, limits; nothing of the truth."""
        metric = Metric("simulated", "s", self.lab.better, Threshold(self.limit / 100))
        return Goal(metric, self.alpha, self.budget, self.lab.clock, self.scan)

    def describe(self) -> dict[str, object]:
        """Return every setting as JSON values; a real graph is given by its size."""
        size = self.commits if self.graph is None else sum(self.graph.candidate)
        lab = dataclasses.asdict(self.lab)
        lab["samples"] = sum(len(b) for b in self.lab.samples)
        if not self.lab.testbeds:  # only benchmarks and tests have testbeds that differ, or copies
            del lab["testbeds"]
        if not self.lab.copied:
            del lab["copied"]
        return {
            "commits": size,
            "history": self.history if self.graph is None else "real",
            "culprits": [dataclasses.asdict(c) for c in self.culprits],
            "threshold": self.limit,
            "alpha": self.alpha,
            "testbeds": self.testbeds,
            "scan": self.scan,
            "budget": dataclasses.asdict(self.budget),
            "lab": lab,
        }

    def draw(self, seed: int) -> tuple[CommitGraph, SyntheticLab]:
        """Draw one history and its lab; the same seed always gives the same."""
        graph = self.graph
        if graph is None:
            if self.history == "linear":
                graph = histories.linear(self.commits)
            else:
                graph = histories.branched(self.commits, seed)
        candidates = np.flatnonzero(np.array(graph.candidate))
        random = np.random.default_rng((seed, 0xC0))
        placed: dict[int, float] = {}
        for culprit in self.culprits:
            if not culprit.effect:
                continue
            if culprit.place is None:
                free = [int(c) for c in random.permutation(candidates)[: len(placed) + 1]]
                commit = next(c for c in free if c not in placed)
            else:
                place = culprit.place if culprit.place < 0 else culprit.place - 1
                commit = int(candidates[place])
            placed[commit] = placed.get(commit, 0.0) + culprit.effect
        return graph, SyntheticLab(graph, self.lab, placed, seed)


def _is_effect(value: float) -> bool:
    return -99 < value <= 1e6  # false for NaN as well


def parse_culprits(text: str) -> tuple[Culprit, ...]:
    """Read 'POS:EFFECT,...' with POS a number from 1, 'first', 'last' or 'random'. Raises RequestError."""
    culprits = []
    for part in text.split(","):
        place, _, effect = part.strip().rpartition(":")
        names = {"first": 1, "last": -1, "random": None}
        try:
            where = names[place] if place in names else int(place)
            culprits.append(Culprit(float(effect), where))
        except ValueError as error:
            raise RequestError(
                f"--culprits: '{part.strip()}' is not POS:EFFECT",
                cure="such as 'random:2' or '100:1.5,700:1.5' (percent)",
            ) from error
        if not _is_effect(culprits[-1].effect):
            raise RequestError(f"--culprits: the effect of '{part.strip()}' is {_NO_EFFECT}", cure=_PERCENT)
        if where is not None and where == 0:
            raise RequestError(
                "--culprits: commits are counted from 1", cure="1 is the first after good; 'last' is bad"
            )
        if where is not None and any(other.place == where for other in culprits[:-1]):
            raise RequestError(
                f"--culprits: the commit {place} is there twice", cure="name it once, with the whole effect"
            )
    return tuple(culprits)


def parse_costs(text: str) -> dict[str, float]:
    """Read 'build=20,boot=5,run=1' into LabModel's names. Raises RequestError."""
    costs = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        try:
            if name not in ("build", "boot", "run") or f"{name}_seconds" in costs:
                raise ValueError
            costs[f"{name}_seconds"] = float(value)
        except ValueError as error:
            raise RequestError(
                f"--cost: '{part.strip()}' is not understood, or there twice",
                cure="such as build=20,boot=5,run=1",
            ) from error
        if not 0 <= costs[f"{name}_seconds"] <= MAX_COST:  # false for NaN as well
            raise RequestError(f"--cost: '{part.strip()}' is no cost", cure=f"from 0 to {MAX_COST:,}")
    if not any(costs.values()):
        raise RequestError("--cost: nothing costs anything", cure="such as build=20,boot=5,run=1")
    return costs


def parse_probability(text: str) -> float:
    """Read '0.1' or '10%'. Raises RequestError."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError as error:
        raise RequestError(f"'{text}' is not a probability", cure="such as 0.1 or 10%") from error


def read_samples(path: Path) -> tuple[tuple[float, ...], ...]:
    """Read `{"boots": [[run, run, ...], ...]}`. Raises RequestError naming what is wrong."""
    data = read_json(path)
    shape = 'expected {"boots": [[run, run, ...], ...]}'
    boots = data.get("boots") if isinstance(data, dict) else None
    if not isinstance(boots, list) or not boots:
        raise RequestError(f"{shown_path(path)}: {shape}", cure="'perfbisect calibrate' writes such files")
    result = []
    for number, runs in enumerate(boots):
        good = isinstance(runs, list) and runs and all(type(x) in (int, float) for x in runs)
        if not good:
            raise RequestError(f"{shown_path(path)}: boot {number} is not a list of numbers", cure=shape)
        result.append(tuple(float(x) for x in runs))
    return tuple(result)
