"""What alerts know of git's commits, in a repository that loses some and gets them back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.git import fetching
from bisector.app import accept
from bisector.app.alerts.alert_context import AlertContext, alert_context
from bisector.app.alerts.suspects import suspect_found
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.model.series import owner_of
from bisector.schemas.request import Request
from bisector.schemas.settings import Settings
from tests.support.series.alert_lab import SHAS, a_series, found
from tests.support.small_git import SmallGit


@pytest.fixture
def origin(tmp_path: Path) -> SmallGit:
    return SmallGit(tmp_path / "origin").make("a\nb: a\nc: b\nd: c\n")


def context_of(root: Path) -> AlertContext:
    return alert_context(Wiring(Settings(cache_dir=root / "cache", state_dir=root / "state")))


def test_a_commit_that_git_has_lost_is_in_no_range_until_it_is_back(tmp_path: Path, origin: SmallGit) -> None:
    ids, copy = origin.ids, tmp_path / "linux"
    origin.git("branch", "old", "b")
    part = ("--no-local", "--no-tags", "--single-branch", "--branch", "old")
    origin.git("clone", "--quiet", *part, str(origin.path), str(copy))
    commits = context_of(tmp_path).commits
    away = origin.path.rename(tmp_path / "away")
    assert commits(str(copy), ids["a"], ids["b"]) == {ids["b"]}
    for good, bad in (("a", "d"), ("d", "b")):  # either end
        assert commits(str(copy), ids[good], ids[bad]) == frozenset()
    away.rename(origin.path)
    assert commits(str(copy), ids["a"], ids["d"]) == frozenset(), "its remote is asked once an hour"
    origin.git("-C", str(copy), "fetch", "--quiet", "origin", "main")
    assert commits(str(copy), ids["a"], ids["d"]) == {ids["b"], ids["c"], ids["d"]}


def test_a_commit_that_another_worker_has_fetched_is_fetched_here(tmp_path: Path, origin: SmallGit) -> None:
    """It is not on any branch any more."""
    ids, copy = origin.ids, tmp_path / "linux"
    origin.git("branch", "old", "b")
    part = ("--no-local", "--no-tags", "--single-branch", "--branch", "old")
    origin.git("clone", "--quiet", *part, str(origin.path), str(copy))
    origin.git("checkout", "--quiet", "--detach", "a")
    for name in origin.git("for-each-ref", "--format=%(refname)").split():
        origin.git("update-ref", "-d", name)
    commits = context_of(tmp_path).commits
    assert commits(str(copy), ids["a"], ids["d"]) == {ids["b"], ids["c"], ids["d"]}


def test_ends_that_stand_the_other_way_round_are_of_no_range(tmp_path: Path, origin: SmallGit) -> None:
    """A branch was set back behind the last good commit."""
    ids, commits = origin.ids, context_of(tmp_path).commits
    assert commits(str(origin.path), ids["d"], ids["b"]) == frozenset()
    assert commits(str(origin.path), ids["b"], ids["d"]) == {ids["c"], ids["d"]}


def test_a_repository_that_is_away_comes_back(tmp_path: Path, origin: SmallGit) -> None:
    ids, commits = origin.ids, context_of(tmp_path).commits
    away = origin.path.rename(tmp_path / "away")
    assert commits(str(origin.path), ids["a"], ids["b"]) == frozenset()
    away.rename(origin.path)
    assert commits(str(origin.path), ids["a"], ids["b"]) == {ids["b"]}


def test_a_damaged_repository_is_not_taken_for_a_lost_commit(tmp_path: Path, origin: SmallGit) -> None:
    ids = origin.ids
    (origin.path / ".git/objects" / ids["c"][:2] / ids["c"][2:]).unlink()  # between both ends
    with pytest.raises(InfrastructureError, match="git cannot read the repository"):
        context_of(tmp_path).commits(str(origin.path), ids["a"], ids["d"])


def test_a_night_is_judged_though_an_older_alert_names_a_lost_commit(
    tmp_path: Path, origin: SmallGit
) -> None:
    ids, context = origin.ids, context_of(tmp_path)
    repo = str(origin.path)
    lost = suspect_found(context, found(0, 0, repo=repo, last_good="a" * 40, first_bad=ids["b"]), "")
    kept = suspect_found(context, found(0, 0, repo=repo, last_good=ids["c"], first_bad=ids["d"]), "")
    assert kept.id != lost.id


def test_the_bisection_of_an_alert_asks_what_its_series_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []
    fetched: list[tuple[str, ...]] = []
    monkeypatch.setattr(accept, "accept", lambda wiring, request: asked.append(request))
    monkeypatch.setattr(fetching, "fetch_commits", lambda repo, shas: fetched.append(tuple(shas)))
    settings = Settings(state_dir=tmp_path, alpha=0.01, caps={owner_of("nightly"): 4.0})
    context = alert_context(Wiring(settings))
    series = replace(a_series(), threshold="2%", recipe="small", testbed="box1", workload="pipe-test")
    alert = replace(found(10, 20), tip=SHAS[30])
    context.accept(alert, series)
    context.accept(replace(alert, tip="", first_bad=SHAS[21]), series)
    first, second = asked
    assert (first.good, first.bad, second.bad) == (SHAS[10], SHAS[30], SHAS[21])
    assert (first.repo, first.workload, first.threshold) == (series.repo, "pipe-test", "2%")
    assert (first.recipe, first.testbeds, first.alpha) == ("small", ("box1",), 0.01)
    assert fetched == [(SHAS[30], SHAS[10]), (SHAS[21], SHAS[10])], "another worker may have found them"
    assert context.hours(series) == 4.0, "a cap of the lab, below the budget"
