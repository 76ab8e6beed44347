"""Searches under the instruction clock: one culprit in few boots; many changes, most commits in no kernel."""

import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import CommitDag
from bisector.model.decisions import Conclusion, Ending, Measure
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Built, Left, Ran, Record
from bisector.model.state import fold
from bisector.search.cache import PlannerCache
from bisector.search.context import SearchContext
from bisector.search.planner import Planner
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.simulated_bisection import simulate_bisection
from tests.support.searching import drive, goal, linear

SCHEDULER = (0.058, 0.343, -0.153, -0.068, 0.176, -0.115, 0.047)
"""What seven commits between v2.6.18 and v2.6.30 did to a workload of context switches."""
COMMITS = 1024
RUNS = 5e-5
"""Relative spread of runs under the instruction clock."""


def history(seed: int, effects: Sequence[float]) -> tuple[CommitGraph, NDArray[np.float64], dict[int, float]]:
    """Return (graph, level of each commit, relative change by commit); 7 in 10 commits are irrelevant."""
    draw = random.Random(seed)
    places = sorted(draw.sample(range(1, COMMITS + 1), len(effects)))
    irrelevant = {c for c in range(1, COMMITS + 1) if draw.random() < 0.7} - set(places)
    steps = np.random.default_rng(seed).normal(0.0, 4e-4, COMMITS + 1)
    steps[[0, *irrelevant]] = 0.0
    changes = dict(zip(places, effects, strict=True))
    steps[places] = np.log1p(effects)
    return linear(COMMITS, weights=dict.fromkeys(irrelevant, 1e-4)), 100 * np.exp(np.cumsum(steps)), changes


def search(
    seed: int, effects: Sequence[float], threshold: float
) -> tuple[Conclusion, list[Record], set[int]]:
    """Return the conclusion, the records, and the changes that reach the threshold."""
    graph, level, changes = history(seed, effects)
    noise = np.random.default_rng(seed)
    wanted = Goal(Metric("real", "s", "lower", Threshold(threshold)), clock="instructions")
    end, records, _ = drive(graph, wanted, lambda c, _: level[c] * (1 + RUNS * noise.normal()), limit=800)
    return end, records, {c for c, e in changes.items() if abs(np.log1p(e)) >= np.log1p(threshold)}


ORDER = """
from bisector.model.records import Built
from tests.unit.simulation.test_exact_clock import SCHEDULER, search
print([r.commit for r in search(4, SCHEDULER, 0.02)[1] if isinstance(r, Built)])
"""


def test_decisions_do_not_depend_on_the_processor() -> None:
    """Under an exact clock two trials often bring the same, and the last digit of a logarithm chose: it is
    another one where a processor has wider vectors."""
    wide = ",".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", ()))
    orders = []
    for without in ("", wide):
        environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": without}
        command = [sys.executable, "-c", ORDER]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        orders.append(done.stdout)
    assert orders[0].count(",") > 20
    assert orders[0] == orders[1]


@pytest.mark.parametrize("seed", range(6))
def test_every_change_of_a_range_is_found_where_the_clock_is_exact(seed: int) -> None:
    """A drift in time was thought of there, too, and then one culprit was found, or none: 10 of 42."""
    end, records, changes = search(seed, SCHEDULER, 0.02)
    assert end.ending is Ending.CULPRITS
    assert {f.commits for f in end.large} == {(c,) for c in changes}
    assert sum(isinstance(r, Built) for r in records) <= 65


@pytest.mark.parametrize("seed", [3, 5, 23, 24])
def test_what_is_too_unlikely_to_be_counted_does_not_end_a_search(seed: int) -> None:
    """Probabilities below the smallest number gave an unknown time to go, which is never worth it."""
    with np.errstate(all="raise", under="ignore"):
        end, _, changes = search(seed, SCHEDULER, 0.1)
    assert {f.commits for f in end.large} == {(c,) for c in changes}


@pytest.mark.parametrize("seed", range(8))
def test_nobody_is_blamed_for_a_background(seed: int) -> None:
    end, _, changes = search(seed, (0.2, 0.15), 0.05)
    assert {f.commits for f in end.large} == {(c,) for c in changes}


def measured(values: Mapping[int, float]) -> list[Record]:
    """Return the records of a visit to each commit. values: what its runs read."""
    records: list[Record] = []
    for k, (commit, value) in enumerate(values.items()):
        records.append(Built(commit, True, 60.0, f"k{commit}"))
        records.append(Booted(f"b{k}", commit, "t", True, 8.0, float(k), 0, "verify" if k < 2 else "search"))
        records += [Ran(f"b{k}", n, {"real": value * (1 + RUNS * n)}, 1.0, k + n / 100) for n in range(3)]
        records.append(Left(f"b{k}"))
    return records


def test_what_two_culprits_explain_to_the_last_digit_leaves_room_for_a_third() -> None:
    """Without it two commits that read the same were compared for ever: one had to be a culprit."""
    records = measured({0: 100.0, COMMITS: 110.0, 300: 100.0, 301: 120.0, 700: 120.0, 710: 110.0, 900: 110.0})
    graph = linear(COMMITS)
    context = SearchContext(fold(graph, goal(clock="instructions"), records), CommitDag(graph))
    noises = PlannerCache(graph, None).posterior(context, (), 0.1).fits.noises
    assert any(n.background or n.binary for n in noises)


def test_the_one_commit_of_a_stretch_that_can_change_the_kernel_is_proven_without_another_build() -> None:
    """A real search had 61 commits left, one of them relevant, and built six others before that one."""
    records = measured({0: 100.0, COMMITS: 120.0, 479: 100.0, 540: 120.0})
    irrelevant = set(range(480, 541)) - {500}
    graph = linear(COMMITS, weights=dict.fromkeys(irrelevant, 1e-4))
    decision = Planner().next(fold(graph, goal(clock="instructions"), records))
    assert isinstance(decision, Measure)
    assert (decision.purpose, decision.commit) == ("certify", 500)


@pytest.mark.parametrize("place", [1, 4, 8])
def test_a_culprit_is_proven_in_few_boots(place: int) -> None:
    lab = LabModel(
        run_noise=0.0, clock="instructions", build_seconds=60.0, boot_seconds=10.0, run_seconds=3.0
    )
    scenario = Scenario(commits=8, culprits=(Culprit(19.0, place),), threshold=5.0, lab=lab)
    trial = simulate_bisection(scenario, 1, Planner())
    assert trial.conclusion.ending is Ending.CULPRIT
    assert [f.commits for f in trial.conclusion.findings] == [(place,)]
    # Each end once, three halvings, two fresh boots for the culprit and its parent; some slack.
    assert trial.total().boots <= 14


@pytest.mark.parametrize("commits", [2, 16])
def test_a_clock_whose_boots_do_not_repeat_blames_nobody(commits: int) -> None:
    """By its name alone it called equal ends different in 28 of 120 comparisons of one boot each."""
    pool = tuple((level,) * 8 for level in (100.0, 100.0, 100.0, 103.0, 103.0))
    lab = LabModel(samples=pool, clock="instructions")
    scenario = Scenario(commits=commits, culprits=(Culprit(0.0),), threshold=1.0, lab=lab)
    ends = [simulate_bisection(scenario, seed, Planner()).conclusion.ending for seed in range(12)]
    assert ends == [Ending.NOT_REPRODUCED] * 12


def copied(threshold: float, commits: int, effect: float, *, of: str = "run") -> Scenario:
    """Return a range whose boots with the same random numbers are copies. of: what scatters by 1%."""
    run, boot = (1.0, 0.0) if of == "run" else (0.01, 1.0)
    lab = LabModel(run_noise=run, boot_noise=boot, clock="instructions", copied=True)
    return Scenario(commits=commits, culprits=(Culprit(effect),), threshold=threshold, lab=lab)


@pytest.mark.parametrize("commits", [1, 4])
def test_copies_of_runs_that_scatter_blame_nobody(commits: int) -> None:
    """Where each copy counted, 13 of these 40 searches blamed somebody: 5 of one commit, 8 of four."""
    found = [simulate_bisection(copied(1.0, commits, 0.0), seed, Planner()) for seed in range(20)]
    assert sum(bool(one.conclusion.large) for one in found) <= 1
    for one in found:
        again = [v.booted.fresh_seed for v in one.state.boots if one.state.boots[0].commit == v.commit]
        assert all(again[1:])


def test_levels_that_belong_to_the_seed_blame_nobody() -> None:
    """Runs of a boot agree, and boots with one seed repeat: where these counted, 6 of 16 blamed somebody."""
    scenario = copied(0.5, 4, 0.0, of="boot")
    found = [simulate_bisection(scenario, seed, Planner()) for seed in range(100, 116)]
    assert not any(one.conclusion.large for one in found)


@pytest.mark.parametrize("of", ["run", "boot"])
def test_a_culprit_above_the_scatter_of_copies_is_found(of: str) -> None:
    for seed in range(6):
        one = simulate_bisection(copied(1.0, 16, 6.0, of=of), seed, Planner())
        assert one.conclusion.ending is Ending.CULPRIT
        assert {c for f in one.conclusion.large for c in f.commits} == set(one.lab.culprits)
