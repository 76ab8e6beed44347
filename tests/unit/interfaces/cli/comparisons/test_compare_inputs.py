"""The arguments of `perfbisect compare`: what is one kernel, what it is called, how percentages are read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from bisector.errors import RequestError
from bisector.interfaces.cli import ask, run
from bisector.interfaces.cli.comparisons.compare_inputs import (
    listed,
    parse_stored_commit,
    read_columns,
    refuse_two_inputs,
    unknown_metric,
    with_directions,
)
from bisector.stats.samples import SampleSeries, SampleSet


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in (("old.txt", 1.0), ("new.txt", 2.0), ("a/run.txt", 3.0), ("b/run.txt", 4.0)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{value}\n{value}\n\n{value}\n{value}\n")


def names(*places: str) -> list[list[tuple[str, str]]]:
    """Return (name, testbed) of each set of samples, column by column."""
    return [[(one.name, one.testbed) for one in column] for column in read_columns(places, None)[0]]


def boots(*places: str) -> list[int]:
    """Return the boots of each column, of all its testbeds."""
    columns, _ = read_columns(places, None)
    return [sum(len(s.series["value"].boots) for s in column) for column in columns]


def test_a_file_is_called_by_its_name_without_the_ending() -> None:
    assert names("old.txt", "new.txt") == [[("old", "")], [("new", "")]]


def test_files_of_one_name_are_called_by_their_path() -> None:
    assert [column[0][0] for column in names("a/run.txt", "b/run.txt")] == ["a/run.txt", "b/run.txt"]


def test_places_with_one_label_are_one_kernel_in_more_boots() -> None:
    assert names("good=old.txt", "good=a/run.txt", "bad=new.txt") == [[("good", "")], [("bad", "")]]
    assert boots("good=old.txt", "good=a/run.txt", "bad=new.txt") == [4, 2]


def test_boots_with_two_models_are_no_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def samples(identity: str, rev: str) -> list[SampleSet]:
        unit = "modelled misses" if rev != "plain" else "instructions"
        return [SampleSet(rev, {"misses": SampleSeries(((1.0,),), unit)}, modelled=identity)]

    fake = SimpleNamespace(
        samples=samples, status=lambda name: {"id": name}, commit=lambda name, rev: {"commit": rev}
    )
    monkeypatch.setattr(ask, "operations", lambda: fake)
    with pytest.raises(RequestError, match=r"good: .* of two models: a and b.*") as refused:
        read_columns(["good=a:v1", "good=b:v1", "bad=b:v2"], None)
    assert "label" in refused.value.cure
    found = read_columns(["good=a:v1", "good=a:v2", "bad=b:v2"], None)[0]
    assert [column[0].modelled for column in found] == ["a", "b"]
    read_columns(["good=a:plain", "good=b:plain", "bad=b:plain"], None)


def test_places_with_one_label_on_two_testbeds_are_one_kernel() -> None:
    found = names("good@one=old.txt", "good@two=a/run.txt", "bad@one=new.txt")
    assert found == [[("good", "one"), ("good", "two")], [("bad", "one")]]


def test_the_same_place_twice_is_a_kernel_against_itself_in_halves() -> None:
    columns, itself = read_columns(["old.txt", "old.txt"], None)
    assert itself
    assert [len(column[0].series["value"].boots) for column in columns] == [1, 1]
    assert not read_columns(["old.txt", "new.txt"], None)[1]


@pytest.mark.parametrize(
    "places",
    [
        ["old.txt", "old.txt", "new.txt"],
        ["new.txt", "old.txt", "./old.txt"],
        ["x=old.txt", "y=new.txt", "x=old.txt"],
        ["x@one=old.txt", "x@two=old.txt", "y@one=new.txt"],
        ["id:v1", "id:v1", "new.txt"],
    ],
)
def test_boots_of_one_input_do_not_count_twice(places: list[str]) -> None:
    with pytest.raises(RequestError, match=r"(old\.txt|id:v1) is given twice: its boots would count twice"):
        read_columns(places, None)
    assert names("x=old.txt", "y=old.txt", "z=new.txt") == [[("x", "")], [("y", "")], [("z", "")]]


def test_a_file_whose_name_has_an_equals_sign_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "x=y.txt").write_text("1\n2\n")
    assert names("x=y.txt", "old.txt")[0] == [("x=y", "")]


def test_a_label_may_have_a_slash_where_a_file_is_named_behind_it() -> None:
    found = names("quota=old.txt", "10000/1000@box=new.txt")
    assert found == [[("quota", "")], [("10000/1000", "box")]]
    with pytest.raises(RequestError, match="there is no such file"):
        read_columns(["old.txt", "a/x=nowhere.txt"], None)


def test_directions_and_units_of_the_command_line_count_for_every_metric_or_for_one() -> None:
    columns = read_columns(["old.txt", "new.txt"], None, "ops")[0]
    for directions in ({"": "higher"}, {"value": "higher", "": "lower"}):
        series = with_directions(columns, directions)[0][0].series["value"]  # type: ignore[arg-type]
        assert (series.better, series.unit) == ("higher", "ops")
    with pytest.raises(RequestError, match="there is no metric 'vlaue'; did you mean 'value'"):
        with_directions(columns, {"vlaue": "lower"})


def test_every_metric_is_in_one_unit(tmp_path: Path) -> None:
    for name, text in (("s", "real: 1 s"), ("ms", "real: 1500 ms"), ("none", "real: 2")):
        (tmp_path / f"{name}.txt").write_text(text)
    columns = read_columns(["x=s.txt", "x=ms.txt", "y=ms.txt"], None)[0]
    assert columns[0][0].series["real"].boots == ((1.0,), (1.5,)), "also within a kernel"
    assert (columns[1][0].series["real"].boots, columns[1][0].series["real"].unit) == (((1.5,),), "s")
    assert read_columns(["ms.txt", "none.txt"], None, "s")[0][1][0].series["real"].boots == ((2000.0,),)
    for unit, given in (("", "none.txt"), ("B", "none.txt")):
        with pytest.raises(RequestError, match="'real' is in 's' in s and"):
            read_columns(["s.txt", given], None, unit)


@pytest.mark.parametrize(
    ("place", "stored"),
    [
        ("pipe-test-3f2a:v6.1", ("pipe-test-3f2a", "v6.1")),
        ("3f2a:HEAD~2", ("3f2a", "HEAD~2")),
        ("v6.1", None),
        ("/tmp/a:b", None),
    ],
)
def test_a_commit_of_a_bisection(place: str, stored: tuple[str, str] | None) -> None:
    assert parse_stored_commit(place) == stored


def test_standard_input_is_read_once() -> None:
    refuse_two_inputs(["-", "old.txt"])
    with pytest.raises(RequestError, match="only once"):
        refuse_two_inputs(["-", "-"])


def test_an_unknown_metric_is_told_with_those_measured() -> None:
    error = unknown_metric("--metric", "reel", ["real", "user"])
    assert error.message == "--metric: there is no metric 'reel'; did you mean 'real'?"
    assert error.details == "metrics measured: real, user"


@pytest.mark.parametrize("place", [f"{'x' * 501}=old.txt", f"a@{'x' * 501}=old.txt"])
def test_a_label_that_would_fill_every_line_is_refused(place: str) -> None:
    with pytest.raises(RequestError, match=r"the label 'x+\.\.\.' has 501 characters"):
        read_columns([place, "new.txt"], None)


def test_an_error_lists_a_few_short_names_on_one_line() -> None:
    assert listed(["a\nb", "c"]) == "a\\nb, c"
    assert listed([f"m{n}" for n in range(25)]).endswith(", m19 and 5 more")
    error = unknown_metric("--metric", "x" * 500, ["y" * 500])
    assert max(len(error.message), len(error.details)) < 150


def test_sets_without_a_common_metric_are_named_shortly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text('{"%s": [1]}' % ("x" * 500))
    (tmp_path / "b.json").write_text('{"b\\ncure: c": [1]}')
    assert run(["compare", "a.json", "b.json"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) < 120
    assert lines[2] == "  b: b\\ncure: c"


def test_what_is_there_and_cannot_be_read_is_no_commit(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RequestError, match="loop: cannot be read: Too many levels"):
        read_columns(["loop", "new.txt"], None)
