"""How many boots the verification of two ends takes, and how it ends, by what the ends differ by.

    python -m tests.bench.search.ended_ends [TRIALS [BOOT [EFFECT ...]]]

The planner decides what is booted, in which code layout, and when it ends; at most MOST boots. BOOT: standard
deviation between boots, EFFECT: of bad, both in thresholds. A metric of a model of caches: not exact.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Left, Ran, Record
from bisector.model.state import extend, fold
from bisector.search import endpoints
from bisector.search.cache import PlannerCache

GRAPH = CommitGraph(("a" * 40, "b" * 40), ((), (0,)), (False, True), 0, 1)
GOAL = Goal(Metric("m", "", "lower", Threshold(0.01)), clock="instructions", modelled=True)
RUN = 0.05
"""Standard deviation between the runs of a boot, in thresholds."""
MOST = 40
EFFECTS = (-30.0, -10.0, -3.6, -1.0, 0.0, 1.0)


def verify(random: np.random.Generator, effect: float, boot_sd: float) -> tuple[bool | None, int]:
    """Return whether the ends are said to differ, None for undecided, and after how many boots."""
    cache, state = PlannerCache(GRAPH, None), fold(GRAPH, GOAL, ())
    boots, runs, offset = 0, 0, 0.0
    while True:
        context = cache.context(state)
        evidence = endpoints.compare_ends(context, cache)
        differ = endpoints.ends_differ(context, evidence)
        if differ is not None or boots == MOST:
            return differ, boots
        trial = endpoints.next_trial(context, evidence)
        records: list[Record] = []
        if trial.boot is None:
            records += [Left(f"b{boots}")] if boots else []
            boots, runs = boots + 1, 0
            one = Booted(f"b{boots}", trial.commit, "t", True, 10.0, float(boots), trial.layout, "verify")
            records.append(one)
            offset = effect * trial.commit + boot_sd * random.standard_normal()
        for _ in range(trial.runs):
            value = 100 * math.exp((offset + RUN * random.standard_normal()) / 100)
            records.append(Ran(f"b{boots}", runs, {"m": value}, 5.0, boots + runs / 100))
            runs += 1
        state = extend(state, records)


def main(arguments: list[str]) -> int:
    """Print a row for each effect."""
    trials = int(arguments[0]) if arguments else 100
    boot_sd = float(arguments[1]) if len(arguments) > 1 else 0.28
    print("| effect | not reproduced | differ | open | boots: mean | 90% |\n|---|---|---|---|---|---|")
    for effect in map(float, arguments[2:] or EFFECTS):
        found = [verify(np.random.default_rng([trial, 7]), effect, boot_sd) for trial in range(trials)]
        said = [sum(differ is one for differ, _ in found) for one in (False, True, None)]
        boots = sorted(count for _, count in found)
        row = (f"{effect:+g}", *map(str, said), f"{np.mean(boots):.1f}", str(boots[int(0.9 * trials)]))
        print(f"| {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
