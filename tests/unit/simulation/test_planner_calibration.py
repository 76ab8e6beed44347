"""A small, seeded calibration of the real planner: is it wrong as seldom as it says, and right often enough?

The full grid is `make bench-search`; this guards its result on every change, in seconds on an idle machine.
"""

from typing import Any

import pytest
from scipy.stats import binom

from bisector.simulation.batch import simulate
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario

pytestmark = pytest.mark.timeout(900)  # much to compute, on machines that may be busy
ALPHA = 0.05
TRIALS = 20
LAB: dict[str, Any] = {"run_noise": 0.7, "boot_noise": 0.3, "noise": "t3"}


def most(count: int, share: float) -> int:
    """Return how many of `count` events of that probability are seen except once in a thousand times."""
    return int(binom.ppf(0.999, count, share))


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("heavy tails and boot noise", Scenario(commits=32, lab=LabModel(**LAB))),
        ("untestable commits", Scenario(commits=32, lab=LabModel(untestable=0.2, **LAB))),
        ("drift", Scenario(commits=32, lab=LabModel(drift="walk", drift_size=1.0, **LAB))),
        ("boots scatter, runs do not", Scenario(commits=8, lab=LabModel(run_noise=0.1, boot_noise=2.0))),
        ("testbeds differ", Scenario(commits=32, testbeds=3, lab=LabModel(testbed_spread=20.0, **LAB))),
        ("branches", Scenario(commits=32, history="branched", lab=LabModel(fork_offset=1.0, **LAB))),
    ],
)
def test_wrong_among_the_claims_is_at_most_alpha(name: str, scenario: Scenario) -> None:
    result = simulate(scenario, TRIALS, seed=11)
    assert result.wrong_claims.count <= most(result.wrong_claims.of, ALPHA), result
    assert TRIALS - result.success_with_sets.count <= most(TRIALS, 0.1), result


def test_of_two_culprits_both_are_found() -> None:
    lab = LabModel(run_noise=2.0, build_seconds=20, boot_seconds=5, run_seconds=1)
    scenario = Scenario(commits=256, culprits=(Culprit(2.0),) * 2, threshold=1.0, lab=lab)
    result = simulate(scenario, TRIALS, seed=11)
    assert TRIALS - result.correct <= most(TRIALS, 0.1), result


def test_a_history_without_a_culprit_is_not_accused() -> None:
    scenario = Scenario(commits=32, culprits=(Culprit(0.0),), threshold=2.0, lab=LabModel(**LAB))
    result = simulate(scenario, TRIALS, seed=11)
    assert TRIALS - result.not_reproduced <= most(TRIALS, ALPHA), result
