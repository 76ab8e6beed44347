"""The table of two counted profiles: its lines add up, and functions of the commit are marked."""

from __future__ import annotations

from bisector.linux.exact_profile import compare_exactly
from bisector.report.profiles import exact_table
from tests.unit.linux.test_exact_profile import NEW, OLD, profile

TEXT = """\
INSTRUCTIONS A RUN    a    b  CHANGE   OF ALL
new                   0   75     +75  +41.67%
gone                 30    0     -30  -16.67%
2 others            150  140     -10   -5.56%
all                 180  215     +35  +19.44%

Of +35 instructions a run (+19.44%) the functions above account for +45; -10
are left. Counted, not sampled. * marks functions that the commit changes:
-10.
"""


def test_what_is_not_shown_is_summed_up() -> None:
    found = compare_exactly(profile("a", OLD), profile("b", NEW), ["lock"])
    assert exact_table.render(found, 2) == TEXT
    assert "\n*lock " in exact_table.render(found, 3)
    assert "gone" in exact_table.render(found, 100)


def test_machines_get_every_function() -> None:
    found = exact_table.as_json(compare_exactly(profile("a", OLD), profile("b", NEW), ["lock"]))
    assert found["totals"] == [180.0, 215.0]
    assert sum(one["change"] for one in found["functions"]) == 35.0
    assert [one["name"] for one in found["functions"] if one["touched"]] == ["lock"]
