"""Errors that both stores of series raise, in the same words."""

from __future__ import annotations

from collections.abc import Iterable

from bisector.errors import NotFound, RequestError, nearest


def name_taken(name: str) -> RequestError:
    """Return the refusal of a second series of one name."""
    return RequestError(
        f"there is a series '{name}' already",
        cure=f"choose another name, or remove that one: perfbisect series remove {name}",
    )


def unknown_series(name: str, known: Iterable[str]) -> NotFound:
    """Return the refusal of a series that does not exist."""
    return NotFound(
        f"there is no series '{name}'{nearest(name, known)}", cure="'perfbisect series list' shows them"
    )
