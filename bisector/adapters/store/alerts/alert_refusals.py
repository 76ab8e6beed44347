"""What every store of alerts refuses, in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.errors import NotFound, RequestError, nearest
from bisector.model.alerts import MAX_ENTRIES


def unknown(identity: str, known: Sequence[str]) -> NotFound:
    """Return the error for an id that no alert has."""
    return NotFound(
        f"there is no alert '{identity}'{nearest(identity, known)}",
        cure="'perfbisect alert list --all' shows them",
    )


def refuse_full_history(identity: str) -> RequestError:
    """Return the error for an alert that was changed too often."""
    return RequestError(
        f"the alert '{identity}' has {MAX_ENTRIES:,} entries, as many as are kept of one",
        cure="keep further notes in a bug tracker",
    )
