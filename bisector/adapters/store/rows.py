"""Rows and their texts as values: an error names what is damaged and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from bisector.adapters.store import scheduling
from bisector.adapters.store.database import Row
from bisector.adapters.store.notes_v1 import with_note
from bisector.errors import InfrastructureError, RequestError
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Decision, Ending
from bisector.model.records import Record
from bisector.model.stored_bisection import Summary
from bisector.schemas import serialization
from bisector.schemas.documents.json_reader import parse_json
from bisector.schemas.ranges import LAST_TIME


def read_summary(row: Row) -> Summary:
    """Return the summary of a row of `bisections` with the columns of `scheduling`."""
    return Summary(
        id=row["id"],
        created=read_time(row["created"], row["id"]),
        changed=row["changed"],
        status=row["status"],
        workload=row["workload"],
        good=row["good"],
        bad=row["bad"],
        ending=None if row["ending"] is None else Ending(row["ending"]),
        culprits=tuple(row["culprits"].split()),
        priority=row["priority"],
        owner=row["owner"],
        action=scheduling.action_of(row),
        testbeds=tuple(json.loads(row["testbeds"])),
        progress=scheduling.progress_of(row),
    )


def read_time(value: object, bisection: str) -> float:
    """Return when a bisection was made. Raises InfrastructureError: SQLite keeps whatever it is given."""
    if isinstance(value, float | int) and 0 <= value <= LAST_TIME:
        return value
    raise _damaged(f"the bisection '{bisection}' was made at no time: {str(value)[:80]}")


@lru_cache(maxsize=1)
def decode_graph(body: bytes) -> CommitGraph:
    """Read a packed graph; quick for the one that was read last. Raises InfrastructureError."""
    try:
        return serialization.unpack_graph(body)
    except ValueError as error:
        raise InfrastructureError(
            "a stored commit graph cannot be read",
            details=str(error),
            cure="the state file is damaged: 'perfbisect start' with the same request begins anew",
        ) from error


def conclusion_text(conclusion: Conclusion | None) -> str | None:
    """Return a conclusion as it is stored."""
    return None if conclusion is None else json.dumps(serialization.to_json(conclusion))


def parse_object(text: str) -> dict[str, Any]:
    """Read a stored JSON object. Raises InfrastructureError for a damaged one."""
    try:
        value = parse_json(text, "a record")
    except RequestError as error:
        raise _damaged(error.message) from error
    if not isinstance(value, dict):
        raise _damaged(f"not an object: {text[:80]}")
    return value


def numbered_record(row: Row) -> tuple[int, Record]:
    """Return a record with its number. Raises InfrastructureError naming it, for a damaged one."""
    with _of_event(row):
        body = with_note(parse_object(row["body"]), row["note"])
        return int(row["sequence"]), serialization.record_from(body)


def numbered_decision(row: Row) -> tuple[int, Decision]:
    """Return as `numbered_record` what the planner decided."""
    with _of_event(row):
        return int(row["sequence"]), serialization.decision_from(parse_object(row["body"]))


@contextmanager
def _of_event(row: Row) -> Iterator[None]:
    try:
        yield
    except InfrastructureError as error:
        where = f"event {row['sequence']} of the bisection '{row['bisection']}': {error.message}"
        raise InfrastructureError(where, details=error.details, cure=error.cure) from error


def _damaged(details: str) -> InfrastructureError:
    return InfrastructureError(
        "a stored record cannot be read",
        details=details,
        cure="the state file is damaged: 'perfbisect start' with the same request begins anew",
    )
