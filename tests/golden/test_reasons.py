"""What the planner says: the reason of every trial of four searches, and how each of them ends."""

from __future__ import annotations

import pytest

from bisector.model.records import Conclusion, Measure
from bisector.model.state import State
from bisector.search.planner import Planner
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.simulated_bisection import run_trial
from tests.support.expected import check


class Listener:
    """A planner that notes what it says."""

    def __init__(self) -> None:
        self.planner = Planner()
        self.said: list[str] = []

    def next(self, state: State) -> Measure | Conclusion:
        decision = self.planner.next(state)
        if isinstance(decision, Measure):
            boot = decision.boot or "new boot"
            self.said.append(f"{decision.commit}.{decision.layout} {boot}: {decision.reason}")
        else:
            self.said += [f"{decision.ending.value}: {decision.summary}", *decision.warnings]
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
def test_what_the_planner_says(name: str) -> None:
    listener = Listener()
    run_trial(CASES[name], 3, listener)
    check(f"reasons-{name}.txt", "\n".join(listener.said) + "\n")
