"""What the workflow engine keeps of work that ended long ago. The store has the results; nobody needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbos import DBOSClient

_ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_AT_ONCE = 500
"""Workflows that one statement deletes."""


def old_workflows(url: str, before: float) -> list[str]:
    """Return the ids of workflows that ended and began before a time, in seconds since the epoch."""
    end = datetime.fromtimestamp(before, UTC).isoformat()
    with _client(url) as client:
        found = client.list_workflows(status=_ENDED, end_time=end, load_input=False, load_output=False)
        return [status.workflow_id for status in found]


def delete_workflows(url: str, identities: list[str]) -> None:
    """Forget workflows."""
    with _client(url) as client:
        for start in range(0, len(identities), _AT_ONCE):
            client.delete_workflows(identities[start : start + _AT_ONCE])


@contextmanager
def _client(url: str) -> Iterator[DBOSClient]:
    from dbos import DBOSClient

    from bisector.engine.workflows import JsonSerializer

    client = DBOSClient(system_database_url=url, serializer=JsonSerializer(), retry_connection_errors=False)
    try:
        yield client
    finally:
        client.destroy()
