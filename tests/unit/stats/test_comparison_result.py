"""Many comparisons at once: chance is not taken for a finding, and a finding is not lost."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.stats.comparison import compare
from bisector.stats.comparison_result import Comparison, beyond_chance, by_chance_alone
from bisector.stats.comparison_table import build
from bisector.stats.samples import SampleSeries, SampleSet


def side(metrics: int, seed: int, moved: int = 0, alike: bool = False) -> SampleSet:
    """Return metrics in eight boots; the first `moved` rise by 10% with an even seed. alike: all as one."""
    random = np.random.default_rng(seed)
    one = random.normal(100, 1, 8)
    series = {}
    for k in range(metrics):
        values = one if alike else random.normal(100, 1, 8)
        values = values * (1.1 if k < moved and seed % 2 == 0 else 1.0)
        series[f"m{k}"] = SampleSeries(tuple((float(v),) for v in values), "s")
    return SampleSet(f"kernel {seed}", series)


def compared(*sides: SampleSet) -> list[Comparison]:
    a, b = sides
    return [compare(name, a.series[name], b.series[name]) for name in a.series]


@pytest.mark.parametrize("alike", [False, True])
def test_a_kernel_against_itself_drifts_in_one_of_twenty_tables_at_most_however_many_metrics(
    alike: bool,
) -> None:
    said = [
        " ".join(
            build([[side(20, 2 * k, alike=alike)], [side(20, 2 * k + 1, alike=alike)]], same=True).sentences
        )
        for k in range(40)
    ]
    assert sum("are significant" in one for one in said) > (0 if alike else 10)
    assert sum("drifts" in one for one in said) <= 4
    assert alike or any("no more than chance shows" in one for one in said)


def test_what_differs_is_kept_among_many() -> None:
    found = compared(side(40, 1), side(40, 2, moved=3))
    assert {one.name for one in beyond_chance(found, 0.05)} == {"m0", "m1", "m2"}
    assert "drifts" in " ".join(build([[side(40, 1)], [side(40, 2, moved=3)]], same=True).sentences)
    single = compared(side(1, 1), side(1, 2, moved=1))
    assert beyond_chance(single, 0.05) == single
    assert beyond_chance([], 0.05) == []


def test_a_table_of_many_metrics_says_how_many_differ_by_chance() -> None:
    note = "40 comparisons, each with an error of 0.05 by itself: where nothing differs, about 2 of them are"
    assert by_chance_alone(compared(side(40, 1), side(40, 3)), 0.05).startswith(note)
    assert any(one.startswith(note) for one in build([[side(40, 1)], [side(40, 3)]]).warnings)
    assert by_chance_alone(compared(side(9, 1), side(9, 3)), 0.05) == ""
