"""One bisection on 1 to 200 testbeds in virtual time: python -m tests.bench.service.simulated [SEEDS]"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from statistics import mean

from bisector.simulation.batch import simulate_all
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario

TESTBEDS = (1, 2, 4, 8, 16, 32, 64, 200)
NOISES = (0.2, 2.0, 4.0)
"""Percent, between the runs of a boot; the culprit's effect is 2%."""
BUILD, BOOT, RUN = 200.0, 15.0, 5.0
"""Seconds: of a build from a warm tree, of a boot on a small server, of a short workload."""


def aim(testbeds: int) -> float:
    """Return what share of one testbed's wall time is aimed at."""
    return min(1.0, 1.3 / float(testbeds**0.8))


def scenarios() -> Iterator[tuple[str, Scenario]]:
    """Yield what is simulated on one testbed, with its name."""
    for build in (0.0, BUILD):
        for noise in NOISES:
            lab = LabModel(
                run_noise=noise, testbed_spread=2.0, build_seconds=build, boot_seconds=BOOT, run_seconds=RUN
            )
            name = f"{'one builder' if build else 'kernels built'}, noise {noise:g}%"
            yield name, Scenario(512, culprits=(Culprit(2.0),), lab=lab)


def main(arguments: list[str]) -> int:
    """Print a row for each scenario and number of testbeds."""
    number = int(arguments[0]) if arguments else 20
    heads = "testbeds   wall s  ratio    aim  machine h  boots   runs builds  right  CPU s"
    print(f"{'scenario':28}{heads}")
    for name, scenario in scenarios():
        alone = 0.0
        for testbeds in TESTBEDS:
            found = simulate_all(replace(scenario, testbeds=testbeds), number, 18)
            wall = mean(one.wall for one in found)
            alone = alone or wall
            hours = mean(one.spent.boots * BOOT + one.spent.runs * RUN for one in found) / 3600
            boots, runs, builds = (
                mean(getattr(one.spent, kind) for one in found) for kind in ("boots", "runs", "builds")
            )
            print(
                f"{name:28}{testbeds:8} {wall:8.0f}  {wall / alone:5.3f}  {aim(testbeds):5.3f} {hours:10.2f} "
                f"{boots:6.1f} {runs:6.1f} {builds:6.1f} {sum(one.right for one in found):3}/{number} "
                f"{mean(one.cpu for one in found):6.2f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
