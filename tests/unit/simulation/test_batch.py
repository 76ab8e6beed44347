"""Many simulated bisections: the same result however many processes share them."""

from typing import Any

from bisector.simulation.batch import simulate
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Scenario
from bisector.simulation.summary import SimulationSummary


def test_the_same_seed_gives_the_same_result_whatever_the_jobs() -> None:
    small = Scenario(commits=4, lab=LabModel(run_noise=0.2))
    one = simulate(small, 6, 5)
    assert _timeless(one) == _timeless(simulate(small, 6, 5, jobs=2))
    assert _timeless(one) != _timeless(simulate(small, 6, 6))


def _timeless(summary: SimulationSummary) -> dict[str, Any]:
    return summary.model_dump(exclude={"planner_cpu_seconds_per_decision"})
