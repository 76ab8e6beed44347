"""Every run with its average, ten a line; then what changed."""

from __future__ import annotations

from bisector.report.comparison import run_table
from bisector.stats.comparison_table import build
from tests.support.samples import normal, sample_set, two_kernels


def test_runs_averages_and_changes() -> None:
    text = run_table.render(two_kernels())
    lines = text.splitlines()
    assert lines[0] == "amd: 6.1"
    assert lines[2].split() == ["real", "10", "10.1", "9.9", "10", "10", "s"]
    assert "6.1 -> 6.2-rt (AVG: positive is better)" in lines
    told = " ".join(text.split())
    assert "real: AVG -20.00% (slower, p 0.0286); Hodges-Lehmann +20.00% of the number" in told
    assert "iops: AVG +8.75% (faster, p 0.29, not shown)" in told


def test_more_than_ten_runs_go_on_below_and_the_average_is_last() -> None:
    lines = run_table.render(
        build([[sample_set(n, real=normal(12, i))] for i, n in enumerate("ab")])
    ).splitlines()
    heads = [line.split() for line in lines[1:5:2]]
    assert heads == [[str(n) for n in range(1, 11)], ["11", "12", "AVG"]]


def test_what_was_not_tested_says_so() -> None:
    text = run_table.render(build([[sample_set("a", real=(2.0,))], [sample_set("b", real=(1.0,))]]))
    assert "real: AVG +50.00% (faster, not tested)" in " ".join(text.split())


def test_small_averages_keep_their_digits_and_zero_has_no_percentages() -> None:
    """It was 'AVG +0.03% ...; Hodges-Lehmann -0.0300%', and 'AVG ?' from zero."""
    columns = [
        [sample_set("a", real=(100.0, 100.0001, 100.0002, 100.0003), lost=(0.0, 0.0, 0.0))],
        [sample_set("b", real=(99.97, 99.9701, 99.9702, 99.9703), lost=(5.0, 6.0, 5.0))],
    ]
    told = " ".join(run_table.render(build(columns)).split())
    assert "real: AVG +0.0300% (faster, p 0.0286); Hodges-Lehmann -0.0300% of the number" in told
    assert "lost: AVG from 0 (" in told
