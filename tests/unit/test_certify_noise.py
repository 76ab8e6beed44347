"""A comparison of two equal commits passes at most as often as it may, however much boots scatter."""

import math

import numpy as np
import pytest

from bisector.core import verify
from bisector.core.memory import Memory
from bisector.core.model import Booted, CommitGraph, Goal, Metric, Ran, Threshold
from bisector.core.state import fold

GRAPH = CommitGraph(("a" * 40, "b" * 40), ((), (0,)), (False, True), 0, 1)
GOAL = Goal(Metric("m", "s", "lower", Threshold(0.01)))
TRIALS, ALPHA = 100, 0.05
ALLOWED = 12
"""Of 100 trials at 5%: more come once in a thousand times."""


def largest_evidence(random, boot_sd, runs):
    """Return the most that 'bad differs from good' ever looks like in forty boots of two equal commits."""
    memory = Memory(GRAPH, None)
    records, largest = [], -math.inf
    for b in range(40):
        offset = random.normal(0, boot_sd)
        records.append(Booted(f"b{b}", (b + b // 2) % 2, "t", True, 5.0, float(b), purpose="verify"))
        for k in range(3 if b < 4 else runs):
            value = 100 * math.exp(offset + random.normal(0, 0.02))
            records.append(Ran(f"b{b}", k, {"m": value}, 1.0, b + k / 10))
        if b % 4 == 3 and b >= 7:
            state = fold(GRAPH, GOAL, records)
            found = verify.ends(memory.view(state), memory)
            largest = max(largest, found.change)
    return largest


@pytest.mark.parametrize(
    ("boot_sd", "runs"), [(0.0, 1), (0.04, 1), (0.12, 1), (0.2, 4)], ids=["none", "2x", "6x", "10x"]
)
def test_equal_ends_pass_no_more_often_than_alpha(boot_sd, runs):
    random = np.random.default_rng(17)
    found = [largest_evidence(random, boot_sd, runs) for _ in range(TRIALS)]
    passed = sum(x > math.log(1 / ALPHA) for x in found)
    assert passed <= ALLOWED
