"""What a large history costs: ancestors, masses, posterior updates and decisions, and the memory for them.

    python tests/bench/search/large.py HISTORY.xz [GOOD..BAD]

HISTORY.xz holds a real commit graph (realdag.py). One culprit of 2% is searched among runs of 1% spread.
Times are this thread's CPU time.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bisector.model.dag import CommitDag
from bisector.model.decisions import Answer
from bisector.model.state import State
from bisector.search.cache import PlannerCache
from bisector.search.planner import Planner
from bisector.simulation.judge import judge
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from tests.bench.search import realdag

_taken: dict[str, list[float]] = {}


@contextmanager
def _timed(what: str) -> Iterator[None]:
    started = time.thread_time()
    yield
    _taken.setdefault(what, []).append(1000 * (time.thread_time() - started))


class TimedPlanner:
    """A planner whose decisions and posterior updates are timed."""

    def __init__(self) -> None:
        self._planner = Planner()

    def next(self, state: State) -> Answer:
        """Decide."""
        with _timed("decision"):
            return self._planner.next(state)


def _time_updates() -> None:
    update: Callable[..., object] = PlannerCache._compute_posterior

    def timed(*arguments: object) -> object:
        with _timed("posterior update"):
            return update(*arguments)

    PlannerCache._compute_posterior = timed  # type: ignore[method-assign, assignment]


def main() -> int:
    path = Path(sys.argv[1])
    good, _, bad = (sys.argv[2] if len(sys.argv) > 2 else "v2.6.18..v2.6.30").partition("..")
    graph = realdag.read_range(path, good, bad)
    with _timed("compressing the history"):
        history = CommitDag(graph)
    random = np.random.default_rng(1)
    candidates = np.flatnonzero(history.candidate)
    for a, b in random.choice(candidates, (50, 2)).tolist():
        with _timed("ancestor query"):
            history.is_ancestor(a, b)
    for _ in range(6):
        with _timed("mass of all commits"):
            history.mass(history.weights * random.random(history.n))
    _time_updates()
    scenario = Scenario(
        graph=graph, culprits=(Culprit(2.0),), threshold=1.0, lab=LabModel(run_noise=1.0, fork_offset=1.0)
    )
    trial = simulate_bisection(scenario, 5, TimedPlanner())
    spent = trial.total()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(candidates)} candidates in {history.segments} segments; peak memory {memory:.0f} MiB")
    print(
        f"{judge(scenario, trial).verdict}: {spent.builds} builds, {spent.boots} boots, {spent.runs} runs\n"
    )
    print("| what | times | mean ms | max ms |\n|---|---|---|---|")
    for what, ms in _taken.items():
        print(f"| {what} | {len(ms)} | {np.mean(ms):.1f} | {max(ms):.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
