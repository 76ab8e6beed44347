"""Every form of a comparison, for sets of any kind."""

from __future__ import annotations

import pytest

from bisector.report.comparison import FORMS, render
from bisector.stats.comparison_table import build
from tests.support.samples import sample_set


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "values",
    [
        ((0.0,), (0.0,)),
        ((0.0, 0.0, 0.0, 0.0), (1.0, 2.0, 3.0, 4.0)),
        ((-1.0, -2.0, -3.0, -4.0), (5.0, 6.0, 7.0, 8.0)),
        ((1.0,), (2.0, 3.0)),
        ((1e-12, 2e-12), (1e12, 2e12)),
        ((float("nan"), 1.0), (2.0, float("inf"))),
    ],
)
def test_no_form_chokes_on_odd_values(form: str, values: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    text = render(build([[sample_set("a", m=values[0])], [sample_set("b", m=values[1])]]), form)
    assert "m" in text
    assert "-0.00%" not in text
    assert "nan" not in text.lower().replace("finite", "")
