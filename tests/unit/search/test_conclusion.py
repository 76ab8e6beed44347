"""Conclusions: their endings, confidences and sums."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Ending
from bisector.model.goal import Find, Unit
from bisector.search import conclusion
from bisector.search.cache import PlannerCache
from bisector.search.candidates import most_probable_suspect
from bisector.search.certainty.culprit_probability import proof_probability
from bisector.search.certainty.suspect_probability import set_probability, suspect_probability
from bisector.search.conclusion import (
    conclude_culprits,
    conclude_fixed_on_good_side,
    conclude_not_reproduced,
    conclude_spread,
    conclude_unfinished,
    conclude_untestable,
)
from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext
from bisector.search.posterior import Posterior
from bisector.search.sequential_test import Evidence
from tests.support.searching import Seen, context_of, drive, goal, linear, make_evidence, step

GOOD, BAD = (100.0, 100.1, 99.9), (121.0, 121.1, 120.9)


def measured(graph: CommitGraph) -> tuple[SearchContext, PlannerCache, Posterior]:
    context, cache = context_of(graph, [Seen(c, BAD if c else GOOD, "verify") for c in (0, graph.bad) * 3])
    return context, cache, cache.posterior(context, (), math.log(1.1))


def evidence(estimate: float, sd: float = 0.01) -> Evidence:
    return make_evidence(9.0, -9.0, estimate - 2 * sd, estimate, estimate + 2 * sd, sd, 1.0)


def proof(
    *commits: int, effect: float = 0.1, alpha_spent: float = 0.03, small: bool = False, parents: int = 1
) -> Proof:
    below = tuple(range(commits[0] - parents, commits[0]))
    return Proof(commits, commits[-1], below, evidence(math.log1p(effect)), alpha_spent, small)


TOTAL = evidence(math.log(1.21))


def test_the_confidence_is_what_the_suspects_tried_so_far_leave_of_one() -> None:
    context, cache, posterior = measured(linear(16))
    one = conclude_culprits(context, cache, posterior, [proof(5)], TOTAL)
    assert one.confidence == pytest.approx(0.97)
    two = conclude_culprits(context, cache, posterior, [proof(5), proof(9, alpha_spent=0.038)], TOTAL)
    assert two.confidence == pytest.approx(0.962)
    assert [f.confidence for f in two.findings] == pytest.approx([0.97, 0.962])


def test_each_culprit_has_its_probability_given_the_others_and_a_small_change_has_none() -> None:
    context, cache, posterior = measured(linear(16))
    proofs = [proof(5), proof(9), proof(12, small=True)]
    end = conclude_culprits(context, cache, posterior, proofs, TOTAL)
    wanted = [proof_probability(context, cache, proofs, p, TOTAL) for p in proofs[:2]]
    assert [f.probability for f in end.findings] == [*wanted, None]


def test_the_ending_says_how_many_culprits_there_are_and_whether_one_is_a_set() -> None:
    context, cache, posterior = measured(linear(16))

    def ending(*proofs: Proof) -> Ending:
        return conclude_culprits(context, cache, posterior, proofs, TOTAL).ending

    assert ending(proof(5)) is Ending.CULPRIT
    assert ending(proof(5), proof(9, small=True)) is Ending.CULPRIT
    assert ending(proof(5), proof(9)) is Ending.CULPRITS
    assert ending(proof(5), proof(8, 9)) is Ending.CULPRIT_SET
    assert ending(proof(5), proof(8, 9, small=True)) is Ending.CULPRIT


def test_what_culprits_explain_and_the_rest_is_the_total() -> None:
    context, cache, posterior = measured(linear(16))
    end = conclude_culprits(context, cache, posterior, [proof(9), proof(5)], TOTAL)
    assert [f.commits for f in end.findings] == [(5,), (9,)]  # in the order of history
    assert end.total is not None
    assert end.rest is not None
    assert end.total.estimate == pytest.approx(0.21)
    assert end.rest.estimate == pytest.approx(0.0, abs=1e-9)
    assert end.rest.low < 0 < end.rest.high
    assert "total +21.00%" in end.summary
    assert "= +10.00%" in end.summary
    assert "+ +11.00%" in end.summary


@pytest.mark.parametrize("zero", [8, 9, 12])
def test_a_commit_that_reads_zero_leaves_the_total_as_it_is(zero: int) -> None:
    """No level has a logarithm then, neither those of the ends nor those of a proof made before."""
    usual = step(9, 0.25)
    found, _, _ = drive(linear(16), goal(), lambda commit, run: 0.0 if commit == zero else usual(commit, run))
    assert found.total is not None
    assert found.total.estimate == pytest.approx(0.25, abs=0.01)
    assert found.rest is not None
    assert abs(found.rest.estimate) < 0.02


def test_small_changes_stand_behind_the_culprits_with_a_note() -> None:
    context, cache, posterior = measured(linear(16))
    end = conclude_culprits(context, cache, posterior, [proof(3, small=True, effect=0.02), proof(9)], TOTAL)
    assert [(f.commits, f.small) for f in end.findings] == [((9,), False), ((3,), True)]
    assert end.findings[1].note == "smaller than the threshold"


def test_a_proven_change_for_the_other_direction_is_none_of_those_looked_for() -> None:
    """In the search what is looked for is worse, whichever way the metric counts."""
    context, cache, posterior = measured(linear(16))
    proofs = [proof(5), proof(9, effect=-0.1), proof(12, small=True, effect=-0.02)]
    end = conclude_culprits(context, cache, posterior, proofs, TOTAL)
    assert [(f.commits, f.opposite) for f in end.findings] == [((5,), False), ((9,), True), ((12,), True)]
    assert [f.commits for f in end.culprits] == [(5,)]


@pytest.mark.parametrize(("parents", "said"), [(2, "each of its 2"), (1, "1 of its 2")])
def test_a_merge_names_how_many_of_its_parents_it_was_compared_with(parents: int, said: str) -> None:
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(4)), ((), (0,), (0,), (1, 2)), (False, True, True, True), 0, 3
    )
    context, cache, posterior = measured(graph)
    end = conclude_culprits(context, cache, posterior, [proof(3, parents=parents)], TOTAL)
    assert end.findings[0].note == f"a merge, proven against {said} parents"


def test_an_unfinished_search_names_the_most_probable_commits_and_what_is_proven() -> None:
    context, cache, posterior = measured(linear(16))
    found = most_probable_suspect(posterior, context)
    end = conclude_unfinished(context, cache, posterior, found, [proof(5)], TOTAL, "The budget is spent.")
    assert (end.ending, end.summary) == (Ending.INCONCLUSIVE, "The budget is spent.")
    certain, likely = end.findings
    assert (certain.commits, certain.certified) == ((5,), True)
    assert not likely.certified
    assert len(likely.commits) >= 15  # nothing between the ends was measured
    assert conclude_unfinished(context, cache, None, None, [], None, "x").findings == ()


def test_swapped_ends_are_named() -> None:
    context, _, _ = measured(linear(4))
    assert "Are the ends swapped?" in conclude_not_reproduced(context, evidence(-0.2)).summary
    plain = conclude_not_reproduced(context, evidence(0.001))
    assert "less than the threshold" in plain.summary
    assert plain.confidence == pytest.approx(0.95)


def test_a_search_without_testable_ends_or_candidates_ends_at_once() -> None:
    empty = CommitGraph(("a" * 40,), ((),), (False,), 0, 0)
    for graph, words in (
        (empty, "no commit between"),
        (linear(4, untestable={0: "not Linux"}), "good end cannot be tested: not Linux"),
        (linear(4, untestable={4: "skipped"}), "bad end cannot be tested: skipped"),
    ):
        end = conclude_untestable(context_of(graph)[0])
        assert end is not None
        assert words in end.summary
    assert conclude_untestable(context_of(linear(4))[0]) is None


@pytest.mark.parametrize(
    ("find", "unit", "said"),
    [
        ("regression", "commit", "Name another commit with --bad, or make it testable with --with-fix, "),
        ("fix", "commit", "Name another commit with --good, or make it testable with --with-fix, "),
        ("regression", "kernel", "Name another kernel with --bad."),
    ],
)
def test_an_end_that_cannot_be_tested_has_a_cure(find: Find, unit: Unit, said: str) -> None:
    graph = linear(4, untestable={4: "does not boot"})
    end = conclude_untestable(context_of(graph, wanted=replace(goal(), find=find, unit=unit))[0])
    assert end is not None
    assert said in end.summary
    assert ("--with-fix" in end.summary) is (unit == "commit")


@pytest.mark.parametrize(("candidates", "hides"), [(1, False), (2, True)])
def test_a_single_commit_hides_no_changes_that_cancel(candidates: int, hides: bool) -> None:
    end = conclude_not_reproduced(measured(linear(candidates))[0], evidence(0.001))
    assert ("--scan looks for" in end.summary) is hides


@pytest.mark.parametrize(
    ("many", "said"), [(1, "commit so far; not proven"), (2, "commits so far; not proven")]
)
def test_one_most_probable_commit_is_not_called_several(many: int, said: str) -> None:
    boots = [Seen(c, BAD if c >= 5 else GOOD, "search") for c in (5, 5 - many) * 4]
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 3]
    context, cache = context_of(linear(16), [*ends, *boots])
    posterior = cache.posterior(context, (), math.log(1.1))
    found = most_probable_suspect(posterior, context)
    end = conclude_unfinished(context, cache, posterior, found, [], TOTAL, "x")
    (likely,) = end.findings
    assert len(likely.commits) == many
    assert likely.note == f"the most probable {said}"
    one = suspect_probability(context, cache, found.commits, (), math.log(1.1))
    several = set_probability(context, cache, found.commits, (), math.log(1.1))
    assert one < several
    assert end.confidence == likely.probability == (one if many == 1 else several)


@pytest.mark.parametrize(
    ("find", "ending", "ends", "what"),
    [
        ("regression", Ending.FIXED_ON_GOOD_SIDE, "--find fix --bad {base} --good {old}", "the fix"),
        ("fix", Ending.BROKEN_ON_BAD_SIDE, "--good {base} --bad {old}", "its culprit"),
    ],
)
def test_a_loss_on_goods_side_is_as_sure_as_alpha_allows_and_names_the_search_that_finds_it(
    find: Find, ending: Ending, ends: str, what: str
) -> None:
    """The older end is good's, and bad's where a fix is looked for."""
    graph = replace(linear(4), shas=tuple(f"{i}" * 40 for i in range(5)))
    context, _ = context_of(graph, [Seen(c) for c in (0, 4) * 3], wanted=replace(goal(), find=find))
    end = conclude_fixed_on_good_side(context, 1, TOTAL)
    assert end.ending is ending
    assert end.confidence == pytest.approx(0.95)
    assert [f.confidence for f in end.findings] == pytest.approx([0.95])
    said = ends.format(base="1" * 12, old="0" * 12)
    assert f"'perfbisect start {said}', with the other options as here, looks for {what}." in end.summary


@pytest.mark.parametrize("expected", [0.1, 7.0])
def test_a_spread_loss_is_as_sure_as_it_is_that_no_step_reaches_the_threshold(
    monkeypatch: pytest.MonkeyPatch, expected: float
) -> None:
    """No probability follows from seven expected steps; then it is that of no culprit."""
    monkeypatch.setattr(conclusion, "expected_steps_reaching_threshold", lambda *_: expected)
    context, cache, posterior = measured(linear(16))
    assert 0 < posterior.none < 0.9
    end = conclude_spread(context, cache, posterior, [], TOTAL)
    assert end.confidence == pytest.approx(0.9 if expected < 1 else posterior.none)


def test_every_ending_warns_of_runs_that_do_not_count() -> None:
    from bisector.model.records import Booted, Ran

    boot = Booted("x", 0, "t", True, 5.0, 0.0)
    flagged = [Ran("x", k, {"real": 100.0}, 1.0, 0.0, ("stall",)) for k in range(2)]
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 4) * 3]
    context, cache = context_of(linear(4), ends, records=[boot, *flagged])
    posterior = cache.posterior(context, (), math.log(1.1))
    for end in (
        conclude_fixed_on_good_side(context, 1, TOTAL),
        conclude_not_reproduced(context, TOTAL),
        conclude_culprits(context, cache, posterior, [proof(3)], TOTAL),
        conclude_spread(context, cache, posterior, [], TOTAL),
        conclude_unfinished(context, cache, posterior, None, [], TOTAL, "why"),
    ):
        assert "2 runs were flagged as suspicious and do not count." in end.warnings, end.ending


@pytest.mark.parametrize(
    ("low", "said"),
    [
        (0.9, "reaches the threshold. The largest steps"),
        (1.1, "reaches the threshold: at least 2 commits have a part in it. The largest steps"),
        (3.5, "reaches the threshold: at least 4 commits have a part in it. The largest steps"),
    ],
)
def test_a_spread_loss_has_several_parts_only_where_all_of_its_interval_is_above_the_threshold(
    low: float, said: str
) -> None:
    """low: lower limit of the total, in thresholds. What may be below one threshold may be one commit's."""
    context, cache, posterior = measured(linear(16))
    total = evidence((low + 2) * context.threshold, context.threshold)
    assert said in conclude_spread(context, cache, posterior, [], total).summary


@pytest.mark.parametrize(("last", "named"), [(100, True), (110, False)])
def test_the_most_probable_commits_are_named_up_to_a_quarter_of_the_range(last: int, named: bool) -> None:
    """Of 401 commits: those from 1 to `last`, 95% of which is less or more than a quarter of all."""
    visits = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 400) * 3]
    visits += [Seen(last, BAD)] * 3
    context, cache = context_of(linear(400), visits)
    posterior = cache.posterior(context, (), math.log(1.21))
    found = most_probable_suspect(posterior, context)
    end = conclude_unfinished(context, cache, posterior, found, [], TOTAL, "The budget is spent.")
    assert end.confidence == set_probability(context, cache, found.commits, (), math.log(1.21)) > 0.9
    assert bool(end.findings) is named
    assert [f.probability for f in end.findings] == [f.confidence for f in end.findings]
    by_set = [set_probability(context, cache, f.commits, (), math.log(1.21)) for f in end.findings]
    assert [f.probability for f in end.findings] == by_set
