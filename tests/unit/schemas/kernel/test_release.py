"""Releases and rows by age: order, reading a Makefile, half-open ranges, overlaps refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.errors import RequestError
from bisector.schemas.kernel.release import (
    NamedRow,
    Release,
    ReleaseRange,
    load_table,
    refuse_overlaps,
    release_of,
)
from bisector.schemas.loading import Spec
from bisector.schemas.refusal import WrongKeyError


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
        (f"VERSION = 6\nPATCHLEVEL = 1\nEXTRAVERSION = -rc{'5' * 5000}\n", "v6.1"),
    ],
)
def test_a_makefile_names_its_release(makefile: str, age: str) -> None:
    assert str(release_of(makefile)) == age


@pytest.mark.parametrize(
    "makefile",
    ["all:\n\techo no kernel\n", "VERSION = \N{SUPERSCRIPT TWO}\n", f"VERSION = {'5' * 5000}\n"],
)
def test_a_makefile_of_something_else_names_none(makefile: str) -> None:
    assert release_of(makefile) is None


@given(st.integers(0, 9), st.integers(1, 9), st.integers(0, 19))
def test_a_range_is_half_open(since: int, length: int, at: int) -> None:
    row = ReleaseRange(since=f"v3.{since}", before=f"v3.{since + length}")
    assert row.covers(Release(3, at)) == (since <= at < since + length)


def test_a_range_without_a_begin_or_an_end_covers_everything_on_that_side() -> None:
    old, young = Release(2, 0), Release(99, 99, 99)
    assert ReleaseRange().covers(old) and ReleaseRange().covers(young)
    assert ReleaseRange(since="v3.0").covers(young) and not ReleaseRange(since="v3.0").covers(old)
    assert ReleaseRange(before="v3.0").covers(old) and not ReleaseRange(before="v3.0").covers(young)


@pytest.mark.parametrize(
    ("since", "before", "words"),
    [
        ("", "", "every release"),
        ("v3.0", "", "from v3.0 on"),
        ("", "v3.0", "before v3.0"),
        ("v3.0", "v4.0", "v3.0 up to, not including, v4.0"),
    ],
)
def test_a_range_in_words(since: str, before: str, words: str) -> None:
    assert ReleaseRange(since=since, before=before).range == words


def test_a_candidate_is_before_its_release() -> None:
    row = ReleaseRange(since="v2.6.25", before="v2.6.30")
    assert not row.covers(Release.parse("v2.6.25-rc9"))
    assert row.covers(Release.parse("v2.6.30-rc1"))


def rows(*ranges: tuple[str, str]) -> list[NamedRow]:
    return [NamedRow(name="x", since=since, before=before) for since, before in ranges]


def test_rows_of_one_name_must_not_overlap() -> None:
    refuse_overlaps(rows(("v3.0", "v3.2"), ("v3.2", "v3.4")), "fixup")
    refuse_overlaps([*rows(("v3.0", "")), NamedRow(name="y", since="v3.0")], "fixup")
    with pytest.raises(WrongKeyError, match=r"'x' \(from v3.2 on\) overlaps .*v3.0 up to, not") as error:
        refuse_overlaps(rows(("v3.0", "v3.3"), ("v3.2", "")), "fixup")
    assert error.value.key == ("fixup", "1")


class Table(Spec):
    row: tuple[NamedRow, ...] = (NamedRow(name="default"),)


def test_a_table_that_is_not_there_has_the_default_rows(tmp_path: Path) -> None:
    assert load_table(tmp_path, "table.toml", Table).row == (NamedRow(name="default"),)


@pytest.mark.parametrize(
    ("second", "line", "words"),
    [
        (
            'since = "v3.2"\nbefore = "v3.0"',
            7,
            r"key 'row.1.before': the range ends \(v3.0\) before it begins \(v3.2\)",
        ),
        ('since = "v3.2"\nbefore = "3.0"', 7, "key 'row.1.before': '3.0' is not a release"),
        ('sinse = "v3.2"', 6, "unknown key 'row.1.sinse'; did you mean 'since'"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(tmp_path: Path, second: str, line: int, words: str) -> None:
    text = f'[[row]]\nname = "a"\nsince = "v3.0"\n[[row]]\nname = "b"\n{second}\n'
    (tmp_path / "table.toml").write_text(text)
    with pytest.raises(RequestError, match=rf"table\.toml:{line}: {words}"):
        load_table(tmp_path, "table.toml", Table)


def test_a_table_refuses_overlaps(tmp_path: Path) -> None:
    (tmp_path / "table.toml").write_text('[[row]]\nname = "a"\n[[row]]\nname = "a"\n')
    with pytest.raises(RequestError, match=r"table\.toml:3: key 'row.1': the row 'a' .* overlaps"):
        load_table(tmp_path, "table.toml", Table)
