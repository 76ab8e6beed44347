"""Errors that every store of alerts raises, in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.errors import NotFound, nearest


def unknown(identity: str, known: Sequence[str]) -> NotFound:
    """Return the error for an id that no alert has."""
    return NotFound(
        f"there is no alert '{identity}'{nearest(identity, known)}",
        cure="'perfbisect alert list --all' shows them",
    )
