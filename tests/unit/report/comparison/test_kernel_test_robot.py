"""The kernel test robot's form: columns, points of percentages, spreads above 2%."""

from __future__ import annotations

from bisector.report.comparison import kernel_test_robot
from bisector.stats.comparison_table import build
from bisector.stats.samples import SampleSeries, SampleSet
from tests.support.samples import two_kernels


def test_a_block_with_known_numbers() -> None:
    lines = kernel_test_robot.render(two_kernels()).splitlines()
    assert lines[:8] == [
        "testbed: amd",
        "6.1              6.2-rt",
        "---------------- ---------------------------",
        "         %stddev    %change         %stddev",
        "            \\             |               \\",
        "     10.00          +20.0%      12.00        real (slower)",
        "    100.00 ±  8%     +8.8%     108.75 ±  8%  iops (not shown)",
        "   2000000 ±  2%     +5.0%    2100000 ±  4%  cycles (not shown)",
    ]


def test_a_small_change_that_is_shown_has_a_size() -> None:
    """A mail about 0.03% had '+0.0%' in its table."""
    columns = [
        [SampleSet(n, {"real": SampleSeries(tuple((v, v + 1e-4) for _ in range(4)), "s", "lower")})]
        for n, v in (("a", 100.0), ("b", 100.03))
    ]
    assert "+0.03%     100.03        real (slower)" in kernel_test_robot.render(build(columns))


def test_percentages_change_by_points() -> None:
    columns = [
        [SampleSet(n, {"idle": SampleSeries(((v,),), "%"), "cpu_pct": SampleSeries(((v,),))})]
        for n, v in (("a", 12.0), ("b", 18.0))
    ]
    text = kernel_test_robot.render(build(columns))
    assert [line.split()[1] for line in text.splitlines() if line.endswith(("idle", "cpu_pct"))] == [
        "+6.0",
        "+6.0",
    ]


def test_what_is_small_keeps_its_digits() -> None:
    """The mail for 20 and 30 us said '0.00  +50.0%  0.00': times are in seconds."""
    columns = [
        [SampleSet(n, {"lat": SampleSeries(((v,),), "s"), "real": SampleSeries(((v * 7500,),), "s")})]
        for n, v in (("a", 0.00002), ("b", 0.00003))
    ]
    lines = [line.split() for line in kernel_test_robot.render(build(columns)).splitlines()]
    found = [line[:4] for line in lines]
    assert ["2e-05", "+50.0%", "3e-05", "lat"] in found
    assert ["0.15", "+50.0%", "0.225", "real"] in found
