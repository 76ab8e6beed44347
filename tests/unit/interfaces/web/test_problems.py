"""What is answered to a request that fails: its status, and words that hold nothing a terminal obeys."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest

from bisector.errors import (
    BootFailed,
    InfrastructureError,
    NotFound,
    PerfbisectError,
    RecordsAway,
    RecordsUnusable,
    RequestError,
)
from bisector.interfaces.web.problems import Defect, Refused, document_of, response_of, wrong_fields


@pytest.mark.parametrize(
    ("error", "status", "exit_code"),
    [
        (RequestError("wrong"), 400, 1),
        (BootFailed("a panic"), 400, 1),
        (NotFound("there is none"), 404, 1),
        (InfrastructureError("no power"), 503, 3),
        (Refused(HTTPStatus.FORBIDDEN, "not you", cure=""), 403, 1),
        (Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many", cure=""), 429, 3),
        (Defect("perfbisect itself failed"), 500, 3),
    ],
)
def test_each_kind_of_failure_has_its_status_and_exit_code(
    error: PerfbisectError, status: int, exit_code: int
) -> None:
    answer = response_of(error)
    document = json.loads(bytes(answer.body))
    assert (answer.status_code, document["status"], document["exit_code"]) == (status, status, exit_code)
    assert answer.media_type == "application/problem+json"


def test_who_finds_the_database_away_is_told_when_to_ask_again() -> None:
    away = response_of(RecordsAway("the database does not answer"))
    assert (away.status_code, away.headers["Retry-After"]) == (503, "30")
    damaged = response_of(RecordsUnusable("the database is damaged"))
    assert damaged.status_code == 503 and "Retry-After" not in damaged.headers, "time mends nothing"


def test_nothing_in_the_words_of_an_error_is_obeyed_by_a_terminal() -> None:
    error = RequestError("a\x1b]0;b", details="c\x9bd", cure="e\u202ef")
    document = document_of(error)
    assert all(str(document[key]).isprintable() for key in ("detail", "details", "cure"))
    assert document["detail"].startswith("a") and document["detail"].endswith("]0;b")


def test_what_a_field_of_ours_refuses_is_told_in_its_words() -> None:
    why = ValueError("its host is this machine")
    found = [{"type": "value_error", "loc": ("body", "notify", 0), "ctx": {"error": why}}]
    assert wrong_fields(found).message == "notify.0: its host is this machine"


@pytest.mark.parametrize(
    ("kind", "limits", "said"),
    [
        ("less_than_equal", {"le": 10_000}, "page: must be at most 10,000"),
        ("less_than_equal", {"le": 8760.0}, "page: must be at most 8,760"),
        ("greater_than_equal", {"ge": 0.1}, "page: must be at least 0.1"),
        ("string_too_long", {"max_length": 2000}, "page: must have at most 2,000 characters"),
        ("literal_error", {"expected": "'open' or 'all'"}, "page: must be 'open' or 'all'"),
    ],
)
def test_limits_are_told_as_elsewhere(kind: str, limits: dict[str, object], said: str) -> None:
    assert wrong_fields([{"type": kind, "loc": ("query", "page"), "ctx": limits}]).message == said


def test_of_many_wrong_fields_the_first_ten_are_told() -> None:
    found = [{"type": "missing", "loc": ("body", f"field{number}")} for number in range(12)]
    error = wrong_fields(found)
    told = [error.message, *error.details.splitlines()]
    assert [line.partition(":")[0] for line in told] == [f"field{number}" for number in range(10)]
