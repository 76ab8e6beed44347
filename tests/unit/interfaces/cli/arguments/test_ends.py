"""The ends of a request by name and by age: what is meant, what is missing, what is said twice."""

from __future__ import annotations

import pytest

from bisector.errors import RequestError
from bisector.interfaces.cli.arguments import ends

UNSAID = dict.fromkeys(("good", "bad", "old", "new", "find"))


@pytest.mark.parametrize(
    ("find", "good", "bad"), [(None, "v1", "v2"), ("regression", "v1", "v2"), ("fix", "v2", "v1")]
)
def test_old_and_new_are_the_ends_whichever_is_looked_for(find: str | None, good: str, bad: str) -> None:
    found = ends.with_names({**UNSAID, "old": "v1", "new": "v2", "find": find, "other": 3})
    assert found == {"good": good, "bad": bad, "find": find, "other": 3}
    assert ends.with_names({**UNSAID, "good": good, "bad": bad, "find": find})["good"] == good


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "--good is missing"),
        ({"good": "v1"}, "--bad is missing"),
        ({"old": "v1"}, "--bad is missing"),
        ({"find": "fix", "good": "v2"}, "--bad is missing"),
        ({"find": "fix", "old": "v2"}, "--good is missing"),
        ({"old": "v1", "good": "v1", "bad": "v2"}, "--old and --good are the same end"),
        ({"old": "v1", "bad": "v1", "find": "fix"}, "--old and --bad are the same end"),
    ],
)
def test_an_end_is_needed_once(said: dict[str, str], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        ends.with_names({**UNSAID, **said})
