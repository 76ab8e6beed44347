"""One commit of one bisection is one input, by whatever names it is given."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bisector.errors import RequestError
from bisector.interfaces.cli import ask
from bisector.interfaces.cli.comparisons.compare_inputs import read_columns
from bisector.interfaces.cli.comparisons.repeated_inputs import by_full_ids
from bisector.stats.samples import SampleSeries, SampleSet

COMMITS = {"v1": "a" * 40, "a" * 40: "a" * 40, "v2": "b" * 40}


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Store the bisections pipe-1 and pipe-2, each with two commits; return what is asked of commits."""
    asked: list[str] = []

    def commit(identity: str | None, rev: str) -> dict[str, str]:
        asked.append(rev)
        if rev not in COMMITS:
            raise RequestError(f"no commit {rev}")
        return {"commit": COMMITS[rev]}

    def samples(identity: str | None, rev: str) -> list[SampleSet]:
        return [SampleSet(rev, {"real": SampleSeries(((1.0,), (2.0,)), "s")})]

    def status(identity: str | None) -> dict[str, str]:
        return {"id": "pipe-2" if identity in (None, "pipe-2") else "pipe-1"}

    found = SimpleNamespace(commit=commit, samples=samples, status=status)
    monkeypatch.setattr(ask, "operations", lambda: found)
    return asked


@pytest.mark.parametrize(
    "places",
    [
        ["pipe-2:v1", f"pipe-2:{'a' * 40}"],
        ["v1", "a" * 40],
        ["v1", "pipe-2:v1"],
    ],
)
def test_a_commit_by_two_names_is_compared_with_itself(places: list[str]) -> None:
    """It was compared with all its boots on both sides, as if two kernels were exactly equal."""
    columns, itself = read_columns(places, None)
    assert itself
    assert [len(column[0].series["real"].boots) for column in columns] == [1, 1]


def test_a_commit_by_two_names_beside_another_one_is_refused() -> None:
    with pytest.raises(RequestError, match="is given twice: its boots would count twice"):
        read_columns(["pipe-2:v1", f"pipe-2:{'a' * 40}", "pipe-2:v2"], None)


def test_a_commit_in_two_bisections_was_measured_twice() -> None:
    assert not read_columns(["pipe-1:v1", "pipe-2:v1"], None)[1]
    assert not read_columns(["pipe-2:v1", "pipe-2:v2"], None)[1]


def test_a_commit_alone_is_not_looked_up_and_an_unknown_one_is_left_to_who_reads_it(asked: list[str]) -> None:
    assert by_full_ids([("pipe-2", "v1"), None]) == [None, None]
    assert not asked
    assert by_full_ids([("pipe-2", "v1"), ("pipe-2", "nope")]) == [("pipe-2", "a" * 40), None]
