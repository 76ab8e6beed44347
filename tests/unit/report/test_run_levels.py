"""What a person reads of runs made by hand."""

from __future__ import annotations

from bisector.model.goal import Metric, Threshold
from bisector.report.run_levels import lines

METRIC = Metric("real", "s", "lower", Threshold(0.05))


def test_quiet_runs_show_the_threshold() -> None:
    _, row, said, boots = lines([(METRIC, [1.0, 1.001, 0.999])], {"real"}, None)
    assert row.split() == ["real", "1.0000", "s", "±", "0.0010", "(0.10%)", "0.9990", "..", "1.0010", "3"]
    assert said == "note: real: 3 runs a side show the threshold of 0.0500 s 19 times in 20; 2 would do"
    assert "calibrate" in boots


def test_noisy_runs_say_how_many_it_takes() -> None:
    _, _, said, _ = lines([(METRIC, [1.0, 1.3, 0.7])], {"real"}, None)
    assert said == (
        "note: real: 3 runs a side show a change of 0.8830 s 19 times in 20; "
        "the threshold of 0.0500 s takes 936 runs a side"
    )


def test_of_a_metric_that_does_not_decide_nothing_is_promised() -> None:
    assert len(lines([(METRIC, [1.0, 1.3, 0.7])], {"user"}, None)) == 3


def test_a_run_far_off_is_named_and_one_run_promises_nothing() -> None:
    found = lines([(METRIC, [1.0, 1.01, 0.99, 1.0, 1.02, 9.0])], {"real"}, None)
    assert "note: real: far off: 9.0000 s" in found
    assert len(lines([(METRIC, [1.0])], {"real"}, None)) == 3, "a table and what it leaves out"


def test_a_share_of_zero_is_no_threshold() -> None:
    found = lines([(METRIC, [0.0, 0.0])], {"real"}, None)
    said = "its level is 0, of which 5.00% is nothing: give the threshold in its unit, such as '1 s'"
    assert f"note: real: {said}" in found
    absolute = Metric("real", "s", "lower", Threshold(0.1, relative=False))
    assert not any("level is 0" in line for line in lines([(absolute, [0.0, 0.0])], {"real"}, None))


def test_a_series_is_drawn_in_the_order_of_runs() -> None:
    found = lines([(METRIC, [1.0, 1.1, 1.05, 1.2])], {"real"}, None)
    assert found[2] == "real  ▁▅▃█  in the order of runs"
    assert not any("▁" in line for line in lines([(METRIC, [1.0, 1.1, 1.2])], {"real"}, None))
    assert not any("▁" in line for line in lines([(METRIC, [1.0] * 5)], {"real"}, None))


def test_it_fits_a_narrow_terminal() -> None:
    narrow = lines([(METRIC, [1.0, 1.3, 0.7])], {"real"}, 40)
    assert narrow[0].split() == ["METRIC", "MEAN", "SPREAD"]
    assert all(len(line) <= 40 for line in narrow)
