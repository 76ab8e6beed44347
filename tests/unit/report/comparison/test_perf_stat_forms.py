"""perf stat's forms: brackets are the number's own change, the gain is positive where that is better."""

from __future__ import annotations

import re

from bisector.report.comparison import perf_stat_forms
from bisector.stats.comparison_table import build
from bisector.stats.samples import SampleSeries, SampleSet
from tests.support.samples import sample_set, two_kernels

TEXT = perf_stat_forms.render(two_kernels())


def test_brackets_hold_the_change_of_the_number() -> None:
    assert re.search(r"^\[6.1\] +10 +100 +2000000 +\[baseline\]$", TEXT, re.MULTILINE)
    assert re.search(
        r"^\+6.2-rt +12 \(\+20.00\) +108.75 \(\+8.75\) +2100000 \(\+5.00\) +\[rel\]$", TEXT, re.MULTILINE
    )


def test_gains_and_errors() -> None:
    assert re.search(
        r"^cycles +2,000,000 +\+-1.00% +2,100,000 +\+-2.00% +-5.00% +more, worse\?", TEXT, re.MULTILINE
    )
    assert re.search(r"^iops +100 +\+-4.08% +108.75 .* +8.75% +faster\?", TEXT, re.MULTILINE)


def test_seconds_have_nine_places() -> None:
    a, b = sample_set("a", real=(1.25,)), sample_set("b", real=(2.0,))
    assert "1.250000000" in perf_stat_forms.render(build([[a], [b]]))


def test_a_counter_that_is_missing_says_why() -> None:
    a = SampleSet("a", {"x": SampleSeries(((1.0,),))}, missing={"cycles": "not supported"})
    b = SampleSet("b", {"x": SampleSeries(((1.0,),)), "cycles": SampleSeries(((5.0,),))})
    assert "<not supported>" in perf_stat_forms.render(build([[a], [b]]))


def test_six_counters_take_two_tables() -> None:
    counters = {f"c{i}": (1.0,) for i in range(6)}
    text = perf_stat_forms.render(
        build([[SampleSet(n, {c: SampleSeries((v,)) for c, v in counters.items()})] for n in "ab"])
    )
    assert text.count("[baseline]") == 2


def test_one_kernel_against_itself_says_what_the_brackets_are() -> None:
    table = build([[sample_set(n, real=(1.0, 1.1))] for n in "ab"], same=True)
    assert "Both are one kernel: the brackets are its run-to-run variation." in perf_stat_forms.render(table)
