"""Under the instruction clock a bisection is short, wherever the culprit is: first, last, between."""

from __future__ import annotations

import pytest

from bisector.model.records import Ending
from bisector.search.planner import Planner
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.simulated_bisection import run_trial


@pytest.mark.parametrize("place", [1, 4, 8])
def test_a_culprit_is_proven_in_few_boots(place: int) -> None:
    lab = LabModel(
        run_noise=0.0, clock="instructions", build_seconds=60.0, boot_seconds=10.0, run_seconds=3.0
    )
    scenario = Scenario(commits=8, culprits=(Culprit(19.0, place),), threshold=5.0, lab=lab)
    trial = run_trial(scenario, 1, Planner())
    assert trial.conclusion.ending is Ending.CULPRIT
    assert [f.commits for f in trial.conclusion.findings] == [(place,)]
    # Each end once, three halvings, two fresh boots for the culprit and its parent; some slack.
    assert trial.total().boots <= 14
