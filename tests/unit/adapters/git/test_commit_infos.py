"""Commits as git prints them, whoever wrote them."""

from __future__ import annotations

import pytest

from bisector.adapters.git.commit_infos import parse_infos
from bisector.errors import InfrastructureError
from bisector.ports import CommitInfo


def line(subject: str = "change", author: str = "A <a@b>", when: str = "5") -> str:
    return "\0".join(("id", subject, author, when)) + "\n"


def test_a_commit_is_read() -> None:
    assert parse_infos(line(), ["id"]) == {"id": CommitInfo("id", "change", "A <a@b>", 5.0)}


def test_subject_and_author_are_a_line_of_some_hundred_characters() -> None:
    info = parse_infos(line("s" * 300_000, "a" * 300_000), ["id"])["id"]
    assert (len(info.subject), len(info.author)) == (500, 500)
    assert info.subject.endswith("s ...")
    assert parse_infos(line("s" * 500), ["id"])["id"].subject == "s" * 500


@pytest.mark.parametrize(
    ("when", "seconds"), [("", 0.0), ("999999999999999", 0.0), ("-999999999999999", 0.0), ("-5", -5.0)]
)
def test_a_time_that_no_calendar_has_is_none(when: str, seconds: float) -> None:
    assert parse_infos(line(when=when), ["id"])["id"].when == seconds


@pytest.mark.parametrize("output", ["", "id\0a\0b\n", line().replace("id", "other"), "x" * 10_000])
def test_what_is_no_commit_is_told_in_short(output: str) -> None:
    with pytest.raises(InfrastructureError, match="git tells of a commit") as error:
        parse_infos(output, ["id"])
    assert len(error.value.message) < 120
    assert error.value.cure == "git fsck"
