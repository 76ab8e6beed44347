"""Many simulated bisections on several cores. The result depends only on scenario, number and seed."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np

from bisector.errors import InfrastructureError, RequestError
from bisector.search.planner import Planner
from bisector.simulation.judge import Judged, judge
from bisector.simulation.scenario import Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from bisector.simulation.summary import SimulationSummary, summarise

OnProgress = Callable[[int, int], None]
"""Called with (simulated bisections done, in all)."""
_SERIAL_BISECTIONS = 4
"""Up to this many are simulated in this process: starting others takes longer."""


def simulate(
    scenario: Scenario, bisections: int, seed: int, *, jobs: int = 1, progress: OnProgress | None = None
) -> SimulationSummary:
    """Simulate so many bisections with the real planner; sum up. RequestError for fewer than one."""
    return summarise(simulate_all(scenario, bisections, seed, jobs=jobs, progress=progress))


def simulate_all(
    scenario: Scenario, bisections: int, seed: int, *, jobs: int = 1, progress: OnProgress | None = None
) -> list[Judged]:
    """Return the judgement of every simulated bisection, in the order of their seeds."""
    if bisections < 1:
        raise RequestError(
            f"{bisections} simulated bisections say nothing", cure="1 or more; 100 give a first idea"
        )
    if seed < 0 or jobs < 1:
        raise RequestError(f"seed {seed}, {jobs} jobs", cure="the seed is 0 or more, jobs are 1 or more")
    seeds = derive_seeds(bisections, seed)
    tell = progress or (lambda done, of: None)
    if jobs == 1 or bisections <= _SERIAL_BISECTIONS:
        result = []
        for s in seeds:
            result.append(simulate_one(scenario, s))
            tell(len(result), bisections)
        return result
    return _parallel(scenario, seeds, jobs, tell)


def derive_seeds(bisections: int, seed: int) -> list[int]:
    """Return a seed for each simulated bisection; the first k do not depend on how many follow."""
    state = np.random.SeedSequence(seed).generate_state(bisections, np.uint64)
    return [int(s >> np.uint64(1)) for s in state]


def simulate_one(scenario: Scenario, seed: int) -> Judged:
    """Simulate and judge one bisection with a fresh planner."""
    return judge(scenario, simulate_bisection(scenario, seed, Planner()))


_scenario: Scenario | None = None
"""In a worker process: received once, because a real graph takes megabytes."""


def _initialise_worker(scenario: Scenario) -> None:
    global _scenario
    _scenario = scenario
    end_with_parent()


def end_with_parent() -> None:
    """Make this worker process end when the process that started it is gone, however that was killed.

    Otherwise a worker of a pool waits for work for ever, because it holds the other end of its own queue.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is for workers"

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _simulate_in_worker(seed: int) -> Judged:
    assert _scenario is not None
    return simulate_one(_scenario, seed)


def _parallel(scenario: Scenario, seeds: list[int], jobs: int, tell: OnProgress) -> list[Judged]:
    size = max(1, min(25, len(seeds) // (jobs * 4)))
    result: list[Judged] = []
    # spawn, not fork: a caller with threads (an executor, a progress bar) must not be copied
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_initialise_worker, initargs=(scenario,)
    ) as pool:
        try:
            for judged in pool.map(_simulate_in_worker, seeds, chunksize=size):
                result.append(judged)
                tell(len(result), len(seeds))
        except BrokenProcessPool as error:
            raise InfrastructureError(
                "a process of the simulation was ended from outside",
                cure="run it again; with --jobs 1 it needs no other processes",
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return result
