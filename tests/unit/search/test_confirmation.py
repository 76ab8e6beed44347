"""Certificates: what proves a culprit, what alpha it may spend, and against whom it is compared."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.search import confirmation
from bisector.search.confirmation import (
    EXPECTED_DIRECTION_SHARE,
    compare_with_parent,
    enough_boots,
    judge_suspect,
    layouts_to_visit,
    until_last_fresh_boot,
)
from bisector.search.design_matrix import NoiseHypothesis
from bisector.search.interleaving import (
    BOOTS_BEFORE_MORE_LAYOUTS,
    CERTIFICATE_LAYOUTS,
    LARGE_SCATTER_LAYOUTS,
    SCATTER_LAYOUTS,
    min_boots_per_side,
)
from bisector.search.limits.alpha_spending import alpha_share, alpha_spent, commits_with_fresh_boots
from bisector.search.sequential_test import Evidence
from tests.support.searching import Seen, context_of, goal, linear, make_evidence

ALPHA = 0.05
PROOF = make_evidence(10.0, -10.0, 0.08, 0.1, 0.12, 0.01, 1.0)
"""A change of 10% that is proven and surely reaches the threshold."""
OPEN = replace(PROOF, log_e_change=1.0)
SMALL = replace(PROOF, estimate=0.01, p_reaches_threshold=0.001)
"""A change that is proven and hardly reaches the threshold; not proven to be below it."""


SLOW = (110.0, 110.1, 109.9)
ENDS = [Seen(c, purpose="verify") for c in (0, 4) * 2]


def fresh(commit: int, count: int = 1) -> list[Seen]:
    return [Seen(commit, purpose="certify", layout=k % 2) for k in range(count)]


def test_every_parent_must_prove_the_change() -> None:
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(4)), ((), (0,), (0,), (1, 2)), (False, True, True, True), 0, 3
    )
    context, _ = context_of(graph, [*fresh(3), *fresh(1), *fresh(2)])
    assert judge_suspect(context, (3,), 3, (1, 2), []) is None
    assert judge_suspect(context, (3,), 3, (1, 2), [PROOF, OPEN]) is None
    assert judge_suspect(context, (3,), 3, (1, 2), [OPEN, PROOF]) is None
    proof = judge_suspect(context, (3,), 3, (1, 2), [PROOF, replace(PROOF, log_e_change=9.0)])
    assert proof is not None
    assert (proof.parents, proof.small) == ((1, 2), False)
    assert proof.evidence.log_e_change == 9.0  # the weakest counts


def test_the_first_suspect_needs_log_e_of_its_share_of_alpha() -> None:
    context, _ = context_of(linear(4), fresh(2))
    need = math.log(1 / (ALPHA * 6 / math.pi**2))
    assert judge_suspect(context, (2,), 2, (1,), [replace(PROOF, log_e_change=need - 0.01)]) is None
    assert judge_suspect(context, (2,), 2, (1,), [replace(PROOF, log_e_change=need + 0.01)]) is not None


def test_the_shares_of_alpha_fall_with_the_commits_with_fresh_boots_and_sum_to_at_most_alpha() -> None:
    suspects = [7, 3, 12, 5]
    context, _ = context_of(linear(16), [v for c in suspects for v in fresh(c)])
    assert commits_with_fresh_boots(context) == suspects
    shares = [alpha_share(context, c) for c in suspects]
    assert shares == pytest.approx([ALPHA * 6 / (math.pi * j) ** 2 for j in (1, 2, 3, 4)])
    assert alpha_share(context, 9) == pytest.approx(ALPHA * 6 / (math.pi * 5) ** 2)  # would be the fifth
    assert sum(ALPHA * 6 / (math.pi * j) ** 2 for j in range(1, 10_000)) <= ALPHA


def test_a_parent_with_fresh_boots_takes_a_share_of_alpha() -> None:
    context, _ = context_of(linear(16), [v for c in (7, 6, 6, 7, 3, 2) for v in fresh(c)])
    assert commits_with_fresh_boots(context) == [7, 6, 3, 2]
    assert [round(1 / alpha_share(context, c)) for c in (7, 6, 3)] == [33, 132, 296]
    assert [round(1 - alpha_spent(context, c), 3) for c in (7, 6, 3)] == [0.97, 0.962, 0.959]
    needed = [min_boots_per_side(context, "certify", alpha_share(context, c)) for c in (7, 6, 3)]
    assert needed == [4, 5, 6]


def test_a_suspect_that_others_failed_before_is_less_certain() -> None:
    suspects = [7, 3, 12]
    context, _ = context_of(linear(16), [v for c in suspects for v in fresh(c)])
    spent = [alpha_spent(context, c) for c in (*suspects, 9)]
    assert spent[0] == pytest.approx(alpha_share(context, 7))
    assert [b - a for a, b in pairwise(spent)] == pytest.approx([alpha_share(context, c) for c in (3, 12, 9)])
    proof = judge_suspect(context, (12,), 12, (11,), [replace(PROOF, log_e_change=50.0)])
    assert proof is not None and proof.alpha_spent == spent[2]


def test_a_small_change_is_settled_when_further_boots_tell_no_more() -> None:
    def judged(evidence: Evidence, boots: int, clock: str = "wall") -> bool | None:
        context, _ = context_of(linear(4), fresh(2, boots), wanted=goal(clock=clock))
        proof = judge_suspect(context, (2,), 2, (1,), [evidence])
        return None if proof is None else proof.small

    assert judged(SMALL, 2) is None
    assert judged(replace(SMALL, log_e_below=math.log(1 / ALPHA) + 0.01), 2) is True
    assert judged(SMALL, BOOTS_BEFORE_MORE_LAYOUTS) is True
    assert judged(SMALL, 2, "instructions") is True
    assert judged(PROOF, 2) is False


def test_one_parent_that_is_hardly_worse_makes_a_merge_no_culprit_yet() -> None:
    context, _ = context_of(linear(4), fresh(2, 2))
    assert judge_suspect(context, (2,), 2, (1,), [PROOF, SMALL]) is None


@pytest.mark.parametrize(
    ("boots", "enough", "without_ordinary"),
    [
        ([(3, 0), (3, 1), (2, 0), (2, 1)] * 2, True, False),  # two boots a side of layout 1
        ([(3, 0), (3, 1), (2, 0), (2, 1)] * 4, True, False),  # one layout a side
        ([(3, 1), (3, 2), (2, 1), (2, 2)] * 2, True, True),
        ([(3, 1), (3, 2), (2, 1), (2, 2)] + [(3, 0), (2, 0)] * 2, True, False),
        ([(3, 0), (3, 1), (2, 0), (2, 1)], False, False),  # six orders
        ([(3, 0), (3, 1), (2, 0), (2, 1), (3, 0), (2, 0)], False, False),  # twenty, where 33 are needed
        ([(3, 0), (3, 1)] * 3 + [(2, 0)], False, False),  # one boot of the parent
        ([(3, 0), (3, 1), (2, 0), (2, 0)] * 2, False, False),  # one layout of the parent
        ([(3, 0), (3, 0), (2, 0), (2, 1)] * 2, False, False),  # one layout of the suspect
    ],
)
def test_each_side_needs_the_boots_of_a_claim_and_two_layouts(
    monkeypatch: pytest.MonkeyPatch, boots: list[tuple[int, int]], enough: bool, without_ordinary: bool
) -> None:
    """Where binaries scattered before, a comparison leaves out ordinary builds, and so does the count of its
    boots. By two boots a side of another layout, and two ordinary ones, equal commits could be proven."""
    fresh_boots = [Seen(c, purpose="certify", layout=k) for c, k in boots]
    for scatter, expected in ((False, enough), (True, without_ordinary)):
        monkeypatch.setattr(confirmation, "binaries_scatter", lambda posterior, scatter=scatter: scatter)
        context, cache = context_of(linear(4), [*ENDS, *fresh_boots])
        assert enough_boots(context, cache, 3, (2,), (), 0.1) is expected


def test_layouts_do_not_count_under_an_exact_clock_nor_boots_of_another_purpose() -> None:
    boots = [Seen(c, purpose="certify") for c in (3, 2, 2, 3)]
    exact, cache = context_of(linear(4), boots, wanted=goal(clock="instructions"))
    assert enough_boots(exact, cache, 3, (2,), (), 0.1)
    other, cache = context_of(linear(4), [replace(b, purpose="search") for b in boots])
    assert not enough_boots(other, cache, 3, (2,), (), 0.1)


def test_boots_of_an_earlier_proof_do_not_count_against_what_drifted_since() -> None:
    """5 was compared with 4 before the testbed slowed down by 5%; 4 is no faster than 3."""
    ends = [Seen(0, purpose="verify"), Seen(8, SLOW, "verify")] * 2
    quick, later = (100.0, 100.1, 99.9), (105.0, 105.1, 104.9)

    def boots(slow: int, parent: int, level: tuple[float, ...]) -> list[Seen]:
        return [Seen(c, level, "certify", k % 2) for k in range(6) for c in (slow, parent)]

    both = [*ends, *boots(5, 4, quick), *[Seen(8, SLOW)] * 12, *boots(4, 3, later)]
    context, cache = context_of(linear(8), both)
    found = compare_with_parent(context, cache, 3, 4, (), 0.1)
    assert found is not None
    assert found.estimate == pytest.approx(0.0, abs=0.002)
    assert enough_boots(context, cache, 4, (3,), (), 0.1)
    alone, _ = context_of(linear(8), [*both[:-12], *(v for v in boots(4, 3, later) if v.commit == 3)])
    assert not enough_boots(alone, cache, 4, (3,), (), 0.1)
    one_layout = [replace(v, layout=v.layout * (v.commit == 3)) for v in boots(4, 3, later)]
    plain, _ = context_of(linear(8), [*both[:-12], *one_layout])
    assert not enough_boots(plain, cache, 4, (3,), (), 0.1)  # 4 had another layout before only


@pytest.mark.parametrize(
    ("binary", "layouts"),
    [
        (0.0, range(CERTIFICATE_LAYOUTS)),
        (0.3, range(1, 1 + SCATTER_LAYOUTS)),
        (0.5, range(1, 1 + LARGE_SCATTER_LAYOUTS)),
    ],
)
def test_where_binaries_scatter_a_certificate_goes_over_more_layouts_than_the_searchs(
    binary: float, layouts: range
) -> None:
    """The ordinary build is left out there, for the search chose the suspect by it; none else is."""
    context, cache = context_of(linear(4), ENDS)
    posterior = cache.posterior(context, (), 0.1)
    noises = tuple(NoiseHypothesis(0.0, binary * 0.1) for _ in posterior.fits.noises)
    believed = replace(posterior, fits=replace(posterior.fits, noises=noises))
    assert layouts_to_visit(believed, 0) == layouts
    # Binaries scattered when the certificate began: it never goes over builds that its comparison leaves out.
    assert layouts_to_visit(believed, 1) == (layouts if binary else range(1, 1 + CERTIFICATE_LAYOUTS))


def test_a_verdict_on_a_suspect_does_not_change_with_what_is_measured_later() -> None:
    levels = {0: 100.0, 8: 110.0, 4: 100.0, 5: 110.0}
    visits = [
        Seen(c, (y, y + 0.1, y - 0.1), "verify" if c in (0, 8) else "search") for c, y in levels.items()
    ]
    visits += [replace(v, purpose="certify", layout=k) for v in visits[2:] for k in (0, 1)]
    later = [Seen(c, (y, y + 2.0, y - 2.0)) for c, y in ((6, 125.0), (3, 90.0), (0, 95.0), (0, 105.0))]

    def compared(seen: list[Seen]) -> Evidence | None:
        context, cache = context_of(linear(8), seen)
        return compare_with_parent(context, cache, 4, 5, (), 0.1)

    before, after = compared(visits), compared([*visits, *later])
    assert before is not None
    assert after is not None
    assert (after.log_e_change, after.estimate, after.low, after.high) == pytest.approx(
        (before.log_e_change, before.estimate, before.low, before.high), rel=1e-9
    )


def test_a_suspect_that_makes_it_better_is_compared_as_one_that_makes_it_worse() -> None:
    def compared(before: float, after: float) -> Evidence:
        levels = {0: before, 4: before, 5: after, 8: after}
        seen = [
            Seen(c, (y, 1.001 * y, y / 1.001), "verify" if c in (0, 8) else "search")
            for c, y in levels.items()
        ]
        seen += [replace(v, purpose="certify", layout=k) for v in seen[1:3] for k in (0, 1)]
        context, cache = context_of(linear(8), seen)
        found = compare_with_parent(context, cache, 4, 5, (), 0.1)
        assert found is not None
        return found

    worse, better = compared(100.0, 110.0), compared(110.0, 100.0)
    assert better.log_e_change == pytest.approx(worse.log_e_change)
    assert (-better.high, -better.estimate, -better.low) == pytest.approx(
        (worse.low, worse.estimate, worse.high)
    )


def misled(levels: tuple[float, float], boots: int) -> list[Seen]:
    """Return ends that differ by a loss, a search that saw a gain at commit 2, and its fresh boots."""
    ends = [Seen(c, at(100.0 + 2 * (c > 0)), "verify") for c in (0, 4) * 4]
    search = [Seen(c, at(level)) for c, level in ((1, 103.0), (2, 100.0), (3, 102.0)) for _ in range(2)]
    proof = [
        Seen(c, at(level + 0.01 * k), "certify", layout=k)
        for k in range(boots)
        for c, level in zip((2, 1), levels, strict=True)
    ]
    return [*ends, *search, *proof]


def at(level: float) -> tuple[float, ...]:
    return level, level + 0.05, level - 0.05


def test_a_loss_is_proven_where_the_search_expected_a_gain_for_more_evidence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[Evidence] = []
    in_direction = confirmation._in_direction

    def record(*arguments: Any) -> Evidence:
        compared.append(in_direction(*arguments))
        return compared[-1]

    monkeypatch.setattr(confirmation, "_in_direction", record)
    # A loss where a gain was expected counts a twentieth of what a gain would.
    for levels, sign, directions, share in (((102.0, 100.0), 1, 2, 0.05), ((100.0, 102.0), -1, 1, 0.95)):
        compared.clear()
        context, cache = context_of(linear(4), misled(levels, 8))
        found = compare_with_parent(context, cache, 1, 2, (), 0.02)
        assert found is not None and len(compared) == directions
        assert sign * found.estimate == pytest.approx(0.02, abs=0.001)
        assert (found.low > 0) == (sign > 0) and (found.high < 0) == (sign < 0)
        assert found.log_e_change == pytest.approx(compared[-1].log_e_change + math.log(share))
        assert found.log_e_change > 4 and found.p_reaches_threshold < 0.05  # 2% of a threshold of 5%
    assert EXPECTED_DIRECTION_SHARE == 0.95


def test_what_comes_after_the_last_fresh_boot_of_some_commits_is_left_out() -> None:
    context, cache = context_of(linear(4), [*ENDS, *fresh(3), *fresh(2), Seen(2), *fresh(1), Seen(3)])
    used = [len(until_last_fresh_boot(context, cache, some).state.visits) for some in ((3,), (2, 3), (1, 2))]
    assert used == [5, 6, 8]
