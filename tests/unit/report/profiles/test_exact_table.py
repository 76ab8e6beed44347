"""The table of two counted profiles: its lines add up, and functions of the commit are marked."""

from __future__ import annotations

import dataclasses

from bisector.linux.exact_profile import compare_exactly
from bisector.linux.profile import Symbol
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


def test_misses_of_a_model_are_shown_and_called_that() -> None:
    old, new = profile("a", OLD), profile("b", NEW)
    assert "MISSES" not in exact_table.render(compare_exactly(old, new), 9)
    before = {Symbol("lock", "kernel"): (10.0, 200.0, 3.0), Symbol("gone", "kernel"): (1.0, 1.0, 1.0)}
    after = {Symbol("lock", "kernel"): (10.0, 250.0, 9.0), Symbol("new", "kernel"): (2.0, 0.0, 0.0)}
    found = compare_exactly(
        dataclasses.replace(old, misses=before, geometry="a Skylake"),
        dataclasses.replace(new, misses=after, geometry="a Skylake"),
    )
    said = exact_table.render(found, 2)
    assert said.splitlines()[-5:] == [
        "lock                    10      +0  250     +50       9      +6",
        "gone                     0      -1    0      -1       0      -1",
        "all of the kernel       12      +1  250     +49       9      +5",
        "",
        "Misses are those of a model, never measured: a Skylake.",
    ]
    machines = exact_table.as_json(found)
    assert machines["modelled"] == "a Skylake"
    assert {one["name"]: one["misses"] for one in machines["functions"]}["lock"] == [
        [10.0, 200.0, 3.0],
        [10.0, 250.0, 9.0],
    ]


def test_misses_of_two_models_are_not_compared() -> None:
    old, new = profile("a", OLD), profile("b", NEW)
    some = {Symbol("lock", "kernel"): (10.0, 200.0, 3.0)}
    found = compare_exactly(
        dataclasses.replace(old, misses=some, geometry="a Skylake"),
        dataclasses.replace(new, misses=some, geometry="a Nehalem"),
    )
    said = " ".join(exact_table.render(found, 2).split())
    assert "MISSES" not in said
    assert "Misses are those of two models and do not compare: a Skylake; a Nehalem." in said
