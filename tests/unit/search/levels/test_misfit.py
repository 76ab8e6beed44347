"""Levels measured on the way that the proven culprits do not explain are told, with where to look."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest

from bisector.search.confirmation import Proof
from bisector.search.levels import misfit
from bisector.search.levels.misfit import Misfit, misfit_warnings, misfits
from bisector.search.sequential_test import Evidence
from tests.support.searching import Seen, context_of, goal, linear, make_evidence

AT, LOSS = 40, math.log(1.1)


def evidence(estimate: float) -> Evidence:
    return make_evidence(9.0, -9.0, estimate - 0.01, estimate, estimate + 0.01, 0.005, 1.0)


def judged(
    *extra: tuple[int, float], boots: int = 3, total: float = LOSS, **more: object
) -> tuple[list[Misfit], Sequence[str]]:
    """Judge a search that has proven a loss of 10% at commit 40. extra: further (commit, level) measured."""
    random = np.random.default_rng(4)
    wanted = dataclasses.replace(goal(), **more)  # type: ignore[arg-type]
    ends = [(0, 1.0), (64, math.exp(total))] * 3
    proof = [(c, 1.1 if c >= AT else 1.0) for c in (AT - 1, AT)] * 4
    visits = [
        Seen(c, tuple(100 * level * (1 + 0.005 * random.standard_normal(3))))
        for c, level in [*ends, *proof, *extra * boots]
    ]
    context, cache = context_of(linear(64), visits, wanted=wanted)
    posterior = cache.posterior(context, ((AT,),), LOSS)
    arguments = context, posterior, [Proof((AT,), AT, (AT - 1,), evidence(LOSS), 0.03)], evidence(total)
    return misfits(*arguments), misfit_warnings(*arguments)


def test_a_level_that_no_step_explains_is_told_with_its_neighbours() -> None:
    found, (text,) = judged((20, 1.1), (24, 1.1), (30, 1.0))
    assert [(sorted(m.commits), m.before, m.after) for m in found] == [([20, 24], 0, 30)]
    assert found[0].size.low < 0.1 < found[0].size.high
    names = [f"{c:040x}"[:12] for c in (20, 24, 0, 30)]
    assert text.startswith(f"The level at {names[0]} and {names[1]} does not fit: +")
    assert f"'perfbisect start --good {names[2]} --bad {names[3]} --scan'" in text
    assert "a loss and its fix" in text


def test_a_level_below_what_is_proven_is_told_too() -> None:
    found, _ = judged((52, 1.0))
    assert [(m.commits, m.before, m.after) for m in found] == [((52,), AT, 64)]
    assert found[0].size.high < 0


@pytest.mark.parametrize(
    ("extra", "total"), [(((20, 1.0), (52, 1.1)), LOSS), (((20, 1.05), (52, 1.15)), LOSS + 0.05)]
)
def test_levels_between_what_is_proven_and_that_with_the_rest_fit(
    extra: tuple[tuple[int, float], ...], total: float
) -> None:
    assert judged(*extra, total=total) == ([], ())


def test_where_only_the_ends_were_measured_every_level_fits() -> None:
    context, cache = context_of(linear(1), [Seen(0), Seen(1, (110.0, 110.1, 109.9))] * 3)
    posterior = cache.posterior(context, ((1,),), LOSS)
    proofs = [Proof((1,), 1, (0,), evidence(LOSS), 0.03)]
    assert misfits(context, posterior, proofs, evidence(LOSS)) == []


def test_a_level_below_the_least_effect_of_a_culprit_fits() -> None:
    assert judged((20, 1.03), boots=8)[0] == []


def test_the_largest_places_are_told_first_and_not_all_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    fitting = [(c, 1.1 if c >= AT else 1.0) for c in (5, 10, 15, 28, 34, 43, 46, 58, 62)]
    places = [(52, 1.15), (53, 1.15), (20, 1.1), (21, 1.1), (22, 1.1)]
    assert [set(m.commits) for m in judged(*fitting, *places)[0]] == [{20, 21, 22}, {52, 53}]
    monkeypatch.setattr(misfit, "MAX_MISFITS", 1)
    assert [set(m.commits) for m in judged(*fitting, *places)[0]] == [{20, 21, 22}]


def test_with_scan_there_is_nothing_to_suspect() -> None:
    assert judged((20, 1.1), scan=True)[1] == ()


def test_where_a_fix_was_looked_for_the_command_says_so() -> None:
    _, (text,) = judged((20, 1.1), find="fix", metric=dataclasses.replace(goal().metric, better="higher"))
    assert "perfbisect start --find fix --bad " in text
