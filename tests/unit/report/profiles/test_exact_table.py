"""The table of two counted profiles: its lines add up, and functions of the commit are marked."""

from __future__ import annotations

import dataclasses

from bisector.linux.exact_profile import compare_exactly
from bisector.linux.profile import Profile, Symbol
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


def with_spreads(spreads: dict[str, float], name: str, own: dict[Symbol, float]) -> Profile:
    known = {symbol: spreads[symbol.name] for symbol in own if symbol.name in spreads}
    return dataclasses.replace(profile(name, own), spreads=known)


def test_each_function_has_what_runs_of_one_boot_differ_by() -> None:
    old = with_spreads({"lock": 3.0, "gone": 0.0, "[user programs]": 0.0}, "a", OLD)
    new = with_spreads({"lock": 12.0, "new": 0.0, "[user programs]": 7.0}, "b", NEW)
    found = compare_exactly(old, new)
    lines = exact_table.render(found, 3).splitlines()
    assert lines[:6] == [
        "INSTRUCTIONS A RUN    a    b  CHANGE   OF ALL  RUNS DIFFER BY",
        "new                   0   75     +75  +41.67%               0",
        "gone                 30    0     -30  -16.67%               0",
        "lock                100   90     -10   -5.56%              12",
        "1 others             50   50      +0   +0.00%            <= 7",
        "all                 180  215     +35  +19.44%",
    ]
    assert "Runs of one boot differ by at most 12 in any one function." in " ".join(" ".join(lines).split())
    machines = {one["name"]: one["spread"] for one in exact_table.as_json(found)["functions"]}
    assert machines == {"new": [0, 0], "gone": [0, 0], "lock": [3, 12], "[user programs]": [0, 7]}


def test_runs_that_agree_are_told_and_unknown_ones_are_not_called_equal() -> None:
    zeros = dict.fromkeys(["lock", "gone", "new"], 0.0)
    found = compare_exactly(with_spreads(zeros, "a", OLD), with_spreads(zeros, "b", NEW))
    said = exact_table.render(found, 3)
    assert "Runs of one boot agree in every function" in " ".join(said.split())
    assert "1 others             50   50      +0   +0.00%               ?" in said
    unknown = compare_exactly(profile("a", OLD), with_spreads(zeros, "b", NEW))
    assert "RUNS" not in exact_table.render(unknown, 3).upper().replace("RUN  ", "")
    assert exact_table.as_json(unknown)["functions"][0]["spread"] == [None, 0.0]


def test_a_unit_of_work_is_told_where_the_workload_says_it() -> None:
    found = compare_exactly(profile("a", OLD), profile("b", NEW))
    assert "Of +35 instructions a run, +8.75 a message (+19.44%) the" in exact_table.sentence(
        found, 2, ("message", 4)
    )
    many = compare_exactly(profile("a", {}), profile("b", {Symbol("f", "kernel"): 31_210e3}))
    assert "Of +31,210,000 instructions a run, +31,210 a message (-)" in exact_table.sentence(
        many, 2, ("message", 1000)
    )
    assert "a run (+19.44%)" in exact_table.sentence(found, 2)


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
    main = {Symbol("[user programs]", "user"): (1.0, 1.0, 1.0)}
    both = compare_exactly(
        dataclasses.replace(old, misses={**before, **main}, geometry="a Skylake"),
        dataclasses.replace(new, misses={**after, **main}, geometry="a Skylake"),
    )
    assert "all                     13      +1  251     +49      10      +5" in exact_table.render(both, 2)
    machines = exact_table.as_json(found)
    assert machines["modelled"] == "a Skylake"
    assert {one["name"]: one["misses"] for one in machines["functions"]}["lock"] == [
        [10.0, 200.0, 3.0],
        [10.0, 250.0, 9.0],
    ]


def test_modelled_cycles_and_tlbs_have_a_table_of_their_own() -> None:
    old, new = profile("a", OLD), profile("b", NEW)
    before = {Symbol("lock", "kernel"): (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 900.0)}
    after = {
        Symbol("lock", "kernel"): (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 17.0, 8.0, 990.0),
        Symbol("new", "kernel"): (0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 8000.0),
    }
    found = compare_exactly(
        dataclasses.replace(old, misses=before, geometry="a Skylake"),
        dataclasses.replace(new, misses=after, geometry="a Skylake"),
    )
    said = [line.split() for line in exact_table.render(found, 2).splitlines()]
    at = next(number for number, line in enumerate(said) if line[:2] == ["MODELLED,", "A"])
    assert said[at : at + 4] == [
        [
            *("MODELLED,", "A", "RUN", "CYCLES", "CHANGE", "L2", "CHANGE", "iTLB", "CHANGE"),
            *("dTLB", "CHANGE", "BOTH", "TLBS", "CHANGE"),
        ],
        ["new", "8,000", "+8,000", "0", "+0", "0", "+0", "0", "+0", "1", "+1"],
        ["lock", "990", "+90", "5", "+0", "6", "+0", "17", "+10", "8", "+0"],
        ["all", "of", "the", "kernel", "8,990", "+8,090", "5", "+0", "6", "+0", "17", "+10", "9", "+1"],
    ]
    few = {symbol: values[:4] for symbol, values in before.items()}
    earlier = compare_exactly(dataclasses.replace(old, misses=few, geometry="a Skylake"), found.b)
    assert "CYCLES" not in exact_table.render(earlier, 2)


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
