"""A change from zero in the forms of other programs: they had '+inf' and '?'."""

from __future__ import annotations

import pytest

from bisector.report.comparison import kernel_test_robot, mmtests_form, perf_stat_forms
from bisector.report.comparison.from_zero import mean_change
from bisector.stats.comparison_table import build
from tests.support.samples import sample_set

FORMS = {
    "mmtests": (mmtests_form.render, ("4.00 (  from 0)", "6.00 (  from 0)")),
    "perf-stat": (perf_stat_forms.render, ("5 (from 0)", "+-8.16%  from 0  ")),
    "robot": (kernel_test_robot.render, ("0.00          from 0       5.00 ± 16%  x",)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_change_from_zero_is_called_so(form: str) -> None:
    render, expected = FORMS[form]
    table = build([[sample_set("a", x=(0.0,) * 4)], [sample_set("b", x=(4.0, 5.0, 5.0, 6.0))]])
    text = render(table)
    assert "inf" not in text and "?" not in text
    for words in expected:
        assert words in text


def test_a_median_of_zero_hides_no_change_of_the_mean() -> None:
    table = build([[sample_set("a", x=(0.0, 0.0, 0.0, 4.0))], [sample_set("b", x=(1.0, 1.0, 2.0, 4.0))]])
    ((found,),) = [row.comparisons for row in table.testbeds[0].rows]
    assert found is not None
    assert mean_change(found) == pytest.approx(100.0)
