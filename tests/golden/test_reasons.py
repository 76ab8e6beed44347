"""The reason of every trial of five searches, and the conclusion of each."""

from __future__ import annotations

import pytest

from bisector.model.decisions import Answer, Conclusion, Measure
from bisector.model.state import State
from bisector.search.planner import Planner
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from tests.support.expected import check


class RecordingPlanner:
    """A planner that records its reasons and its conclusion."""

    def __init__(self) -> None:
        self.planner = Planner()
        self.texts: list[str] = []

    def next(self, state: State) -> Answer:
        decision = self.planner.next(state)
        if isinstance(decision, Measure):
            boot = decision.boot or "new boot"
            self.texts.append(f"{decision.commit}.{decision.layout} {boot}: {decision.reason}")
        elif isinstance(decision, Conclusion):
            self.texts += [f"{decision.ending.value}: {decision.summary}", *decision.warnings]
        return decision


CASES = {
    "one-culprit": Scenario(64, culprits=(Culprit(2.0, 23),), lab=LabModel(run_noise=0.8, boot_noise=0.3)),
    "two-culprits": Scenario(32, culprits=(Culprit(2.0, 5), Culprit(3.0, 20)), lab=LabModel(run_noise=0.2)),
    "exact-clock": Scenario(
        64, culprits=(Culprit(2.0, 40),), lab=LabModel(run_noise=0.0, background=0.3, clock="instructions")
    ),
    "untestable": Scenario(32, culprits=(Culprit(2.0, 9),), lab=LabModel(run_noise=0.5, broken=4)),
    "no-culprit": Scenario(32, culprits=(Culprit(0.0),), threshold=2.0, lab=LabModel(run_noise=0.8)),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_reasons_and_conclusion_of_a_search(name: str) -> None:
    planner = RecordingPlanner()
    simulate_bisection(CASES[name], 3, planner)
    check(f"reasons-{name}.txt", "\n".join(planner.texts) + "\n")
