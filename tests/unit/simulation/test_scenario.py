"""Scenarios: defaults, refusals, and how they are read from options and files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.simulation.batch import simulate
from bisector.simulation.histories import linear
from bisector.simulation.scenario import (
    Culprit,
    Scenario,
    parse_costs,
    parse_culprits,
    parse_probability,
    read_samples,
)
from tests.support.searching import CENTRE


def test_threshold_defaults_to_half_the_smallest_effect_and_places_count_from_either_end() -> None:
    scenario = Scenario(commits=10, culprits=parse_culprits("first:2,last:-3,4:1"))
    assert scenario.limit == 0.5
    assert scenario.draw(1)[1].culprits == {1: 2.0, 10: -3.0, 4: 1.0}
    assert scenario.goal.metric.threshold.value == 0.005


@pytest.mark.parametrize(
    "make",
    [
        lambda: Scenario(alpha=0.5),
        lambda: Scenario(alpha=float("nan")),
        lambda: Scenario(culprits=(Culprit(0.0),)),
        lambda: Scenario(culprits=(Culprit(2.0, 200),)),
        lambda: Scenario(culprits=(Culprit(float("inf")),)),
        lambda: Scenario(threshold=-1.0),
        lambda: Scenario(testbeds=0),
        lambda: linear(0),
        lambda: parse_culprits("40"),
        lambda: parse_culprits("0:2"),
        lambda: parse_costs("build=20,coffee=1"),
        lambda: parse_probability("often"),
        lambda: simulate(CENTRE, 0, 1),
    ],
)
def test_wrong_requests_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(RequestError):
        make()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"boots": []}', '{"boots": [[]]}', '{"boots": [[1, NaN]]}', '{"boots": [["1"]]}'],
)
def test_bad_sample_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "samples.json"
    path.write_text(text)
    with pytest.raises(RequestError) as error:
        read_samples(path)
    assert str(path) in error.value.message


def test_sample_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    path.write_text('{"boots": [[1, 2.5], [3]]}')
    assert read_samples(path) == ((1.0, 2.5), (3.0,))
