"""Bare numbers, names with units, and what time and size print."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.adapters.parsers.results import plain_numbers, read
from bisector.errors import RequestError
from bisector.stats.samples import SampleSeries
from tests.support.result_samples import boots, only, written


def test_numbers_with_boots_and_comments(tmp_path: Path) -> None:
    found = only(written(tmp_path, "# a\n1 2.5\n3e1 # b\n# c\n\n-4\n\n\n", "old.txt"))
    assert boots(found) == {"value": ((1.0, 2.5, 30.0), (-4.0,))}
    assert found.name == "old"


def test_names_with_units_repeat_as_runs(tmp_path: Path) -> None:
    found = only(written(tmp_path, "real: 5.3 s\nops = 12\nreal: 5.4 s\nops = 13\n"))
    assert boots(found) == {"real": ((5.3, 5.4),), "ops": ((12.0, 13.0),)}
    assert found.series["real"].unit == "s"


def test_a_metric_may_have_a_point_of_a_matrix_in_its_name(tmp_path: Path) -> None:
    found = only(
        written(tmp_path, "real[n=2]: 5.3 s\nreal[n=4,m=a:b]: 6.1 s\nstd::sort: 7\nreal[n=2]: 5.4 s\n")
    )
    assert boots(found) == {"real[n=2]": ((5.3, 5.4),), "real[n=4,m=a:b]": ((6.1,),), "std::sort": ((7.0,),)}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("real\t0m5.328s\nuser\t1m0.106s\nsys\t0m2.287s\n", (5.328, 60.106, 2.287)),
        ("real 5.32\nuser 60.10\nsys 2.28\n", (5.32, 60.10, 2.28)),
        ("real\t0m5,328s\nuser\t1m0,106s\nsys\t0m2,287s\n", (5.328, 60.106, 2.287)),
        ("60.10user 2.28system 0:05.32elapsed 99%CPU (0avgtext+0avgdata)\n", (5.32, 60.10, 2.28)),
        ("60.10user 2.28system 1:00:05elapsed 99%CPU (0avgtext+0avgdata)\n", (3605.0, 60.10, 2.28)),
        (
            "\tUser time (seconds): 60.10\n\tSystem time (seconds): 2.28\n"
            "\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:05.32\n",
            (5.32, 60.10, 2.28),
        ),
    ],
)
def test_every_time(text: str, values: tuple[float, float, float], tmp_path: Path) -> None:
    found = only(written(tmp_path, text))
    assert tuple(found.series[n].boots[0][0] for n in ("real", "user", "sys")) == values
    assert found.series["real"].better == "lower"


def test_sizes_of_two_kernels_in_one_file(tmp_path: Path) -> None:
    found = read(
        written(
            tmp_path,
            "   text\t   data\t bss\t dec\t hex\tfilename\n 10 20 30 60 3c old\n 11 20 30 61 3d new\n",
        )
    )
    assert [(s.name, dict(s.sizes)) for s in found] == [
        ("old", {"text": 10, "data": 20, "bss": 30}),
        ("new", {"text": 11, "data": 20, "bss": 30}),
    ]


PART = st.sampled_from(
    ["real: 1.5 s", "real: 2 s", "real: 3", "real:", "real: 1 2", "user: 1 s", "", "# no", "real= 4 s"]
)


@given(st.lists(PART, max_size=5), st.sampled_from(["", "\n"]))
def test_the_quick_ways_say_what_the_careful_one_says(parts: list[str], end: str) -> None:
    text = "\n".join(parts) + end

    def said(quick: bool) -> object:
        with pytest.MonkeyPatch.context() as patch:
            if not quick:
                patch.setattr(plain_numbers, "_one_metric", lambda _: {})
                patch.setattr(plain_numbers, "_keyed_only", lambda _: {})
            try:
                return plain_numbers.keyed(text, "x")
            except RequestError as error:
                return error.message

    assert said(quick=True) == said(quick=False)


def test_lines_that_differ_in_numbers_alone_are_read_at_once() -> None:
    assert plain_numbers._one_metric("real: 1.5 s\nreal: 2 s\n") == {"real": SampleSeries(((1.5, 2.0),), "s")}
    assert plain_numbers._one_metric("real: 1.5 s\nreal: 2\n") == {}
    assert plain_numbers._one_metric("real: 1 2\nreal: \n") == {}


def test_hours_of_bash_and_a_time_without_real(tmp_path: Path) -> None:
    found = only(written(tmp_path, "real\t1h2m3.5s\nuser\t1m0s\n"))
    assert boots(found) == {"real": ((3723.5,),), "user": ((60.0,),)}


def test_what_size_cannot_have_printed_is_refused(tmp_path: Path) -> None:
    head = "   text\t   data\t bss\t dec\t hex\tfilename\n"
    with pytest.raises(RequestError, match="'10 20 30' is not a line of `size`"):
        read(written(tmp_path, f"{head} 10 20 30\n"))
    (found,) = read(written(tmp_path, f"{head} 10 20 30 60 3c my vmlinux\n"))
    assert found.name == "my vmlinux"


def test_a_comment_separates_no_boots_and_several_empty_lines_one(tmp_path: Path) -> None:
    careful, quick = "1 # a\n# b\n2\n\n\n\n3\n", "\n1\n2\n \n\t\n\n3\n"
    for text in (careful, quick, quick.replace("\n", "\r\n")):
        assert boots(only(written(tmp_path, text))) == {"value": ((1.0, 2.0), (3.0,))}


def test_most_lines_tell_the_form_and_comments_say_nothing(tmp_path: Path) -> None:
    comments = "# about\n" * 5
    assert boots(only(written(tmp_path, f"{comments}real: 1\n"))) == {"real": ((1.0,),)}
    with pytest.raises(RequestError, match=":2: 'up' is not a number"):
        read(written(tmp_path, "real: 1\nwarm: up\nreal: 2\n"))
    with pytest.raises(RequestError, match=":1: 'real:' is not a number"):
        read(written(tmp_path, "real: 1\n2\n3\n"))
