"""Options of the kernel by release: names, and whether a build fails without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas.kernel.option_history import OptionAtRelease, OptionRow, load_options, option_at_release
from bisector.schemas.kernel.release import Release

ROWS = {
    row.name: row
    for row in (
        OptionRow(name="NEW", since="v3.2", was="OLD"),
        OptionRow(name="OLD", since="v3.0", before="v3.2"),
        OptionRow(name="GONE", before="v3.2"),
        OptionRow(name="LATE", since="v3.2"),
        OptionRow(name="ARM", arch=("arm64",)),
    )
}


def at(name: str, minor: int, arch: str = "x86_64") -> OptionAtRelease:
    return option_at_release(ROWS, name, Release(3, minor), arch)


def test_an_option_without_a_row_is_expected_in_every_release() -> None:
    assert at("ALWAYS", 0) == OptionAtRelease(("ALWAYS",), True)


def test_an_option_is_asked_for_under_its_older_name_as_well() -> None:
    assert (at("NEW", 2).names, at("NEW", 2).expected) == (("NEW",), True)
    assert (at("NEW", 1).names, at("NEW", 1).expected) == (("NEW", "OLD"), True)


def test_before_the_older_name_existed_the_option_is_not_expected() -> None:
    before = option_at_release(ROWS, "NEW", Release(2, 6, 18), "x86_64")
    assert (before.names, before.expected) == (("NEW", "OLD"), False)


@pytest.mark.parametrize(
    ("name", "minor", "expected"), [("GONE", 1, True), ("GONE", 2, False), ("LATE", 1, False)]
)
def test_outside_of_its_range_an_option_may_be_missing(name: str, minor: int, expected: bool) -> None:
    found = at(name, minor)
    assert (found.names, found.expected, found.row) == ((name,), expected, ROWS[name])


def test_an_option_of_another_architecture_may_be_missing() -> None:
    assert not at("ARM", 5).expected
    assert at("ARM", 5, "arm64").expected


def test_the_shipped_table_has_one_row_for_each_name() -> None:
    options = load_options()
    assert options and all(name == row.name for name, row in options.items())


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ('[[option]]\nname = "A"\n[[option]]\nname = "A"\n', ":4: .*'A' has a row already"),
        (
            '[[option]]\nname = "A"\nbefore = "v3.0"\n[[option]]\nname = "A"\nsince = "v3.0"\n',
            ":5: .*'A' has a row already",
        ),
        ('[[option]]\nname = "A"\nwas = "A"\n', ":3: .*older than itself"),
        ('[[option]]\nname = "A"\nwas = "B"\n[[option]]\nname = "B"\nwas = "A"\n', ":3: .*older than itself"),
        ('[[option]]\nname = "CONFIG_A"\n', ":2: .*without CONFIG_"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(tmp_path: Path, rows: str, words: str) -> None:
    (tmp_path / "options.toml").write_text(rows)
    with pytest.raises(RequestError, match=words):
        load_options(tmp_path)


def test_without_a_table_every_option_is_expected(tmp_path: Path) -> None:
    assert load_options(tmp_path) == {}
