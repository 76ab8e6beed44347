"""Releases and rows by age: order, reading a Makefile, half-open ranges, overlaps refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.errors import RequestError
from bisector.schemas.kernel.fixup import Fixup
from bisector.schemas.kernel.option_history import OptionAtRelease, OptionRow, option_at_release
from bisector.schemas.kernel.release import Release, ReleaseRange, refuse_overlaps, release_of


def test_releases_compare_by_age() -> None:
    tags = [
        "v2.6.18",
        "v2.6.29",
        "v2.6.30-rc1",
        "v2.6.30-rc2",
        "v2.6.30",
        "v2.6.31-rc1",
        "v3.0",
        "v3.10",
        "v6.1",
    ]
    releases = [Release.parse(tag) for tag in tags]
    assert releases == sorted(releases)
    assert [str(release) for release in releases] == tags
    assert Release.parse("v2.6.27.8") == Release.parse("v2.6.27"), "a stable release is its base's age"


@pytest.mark.parametrize("text", ["2.6.30", "v2", "v2.6.30-rc", "", "next-20260101"])
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a release"):
        Release.parse(text)


@pytest.mark.parametrize(
    ("makefile", "age"),
    [
        (
            "VERSION = 2\nPATCHLEVEL = 6\nSUBLEVEL = 30\nEXTRAVERSION = -rc5\nNAME = Vindictive\n",
            "v2.6.30-rc5",
        ),
        ("# SPDX\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 176\nEXTRAVERSION =\n", "v6.1.176"),
        ("VERSION = 3\nPATCHLEVEL = 0\nEXTRAVERSION =\n", "v3.0"),
        ("VERSION = 2\nPATCHLEVEL = 6\nSUBLEVEL = 27\nEXTRAVERSION = .8-vendor\n", "v2.6.27"),
    ],
)
def test_a_makefile_names_its_release(makefile: str, age: str) -> None:
    assert str(release_of(makefile)) == age


def test_a_makefile_of_something_else_names_none() -> None:
    assert release_of("all:\n\techo no kernel\n") is None


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_rows_are_half_open(since: int, before: int, at: int) -> None:
    row = ReleaseRange(since=f"v3.{since}", before=f"v3.{before}")
    assert row.covers(Release(3, at)) == (since <= at < before)


def test_a_candidate_is_before_its_release() -> None:
    row = ReleaseRange(since="v2.6.25", before="v2.6.30")
    assert not row.covers(Release.parse("v2.6.25-rc9"))
    assert row.covers(Release.parse("v2.6.30-rc1"))


def fixup(since: str = "", before: str = "") -> Fixup:
    return Fixup(name="x", files=("a",), pattern="a", replacement="b", why="w", since=since, before=before)


def test_rows_that_overlap_or_end_before_they_begin_are_refused_with_name_and_file() -> None:
    file = Path("fixups.toml")
    refuse_overlaps([fixup("v3.0", "v3.2"), fixup("v3.2", "v3.4")], file)
    with pytest.raises(RequestError, match=r"fixups\.toml: two rows 'x' overlap") as error:
        refuse_overlaps([fixup("v3.0", "v3.3"), fixup("v3.2")], file)
    assert "since v3.2 before (never)" in error.value.details
    with pytest.raises(RequestError, match=r"'x' ends \(v3\.0\) before it begins \(v3\.2\)"):
        refuse_overlaps([fixup("v3.2", "v3.0")], file)


def test_an_option_is_asked_for_under_its_older_names_as_well() -> None:
    rows = {
        "NEW": OptionRow(name="NEW", since="v3.2", was="OLD"),
        "OLD": OptionRow(name="OLD", since="v3.0", before="v3.2"),
    }
    assert option_at_release(rows, "ALWAYS", Release(2, 6, 18), "x86_64") == OptionAtRelease(
        ("ALWAYS",), True
    )
    assert option_at_release(rows, "NEW", Release(3, 2), "x86_64").names == ("NEW",)
    between = option_at_release(rows, "NEW", Release(3, 1), "x86_64")
    assert (between.names, between.expected) == (("NEW", "OLD"), True)
    ancient = option_at_release(rows, "NEW", Release(2, 6, 18), "x86_64")
    assert (ancient.names, ancient.expected) == (("NEW", "OLD"), False)
    assert not option_at_release(rows, "OLD", Release(3, 4), "x86_64").expected
