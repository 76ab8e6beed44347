"""Inputs of `compare` that are given twice, be it one commit of one bisection by two names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bisector.errors import PerfbisectError, RequestError
from bisector.interfaces.cli import ask
from bisector.schemas.documents.document import exists, shortened

Place = tuple[str | None, str | None, str]
"""Label and testbed, if they were given, and what is to be read."""


def by_full_ids(commits: Sequence[tuple[str | None, str] | None]) -> list[tuple[str, str] | None]:
    """Return the full ids of (bisection, commit) of inputs; None stays, and what is not to be found is None.

    bisection: None for the latest. Nothing is asked for a single commit: it has no other to be the same as.
    """
    asked = set(commits) - {None}
    found = {one: _full_ids(*one) for one in asked if one is not None} if len(asked) > 1 else {}
    return [None if one is None else found.get(one) for one in commits]


def _full_ids(bisection: str | None, rev: str) -> tuple[str, str] | None:
    operations = ask.operations()
    try:
        return str(operations.status(bisection)["id"]), str(operations.commit(bisection, rev)["commit"])
    except PerfbisectError:  # whoever reads its samples says what is wrong with it
        return None


def refuse_repeated(places: Sequence[Place], keys: Sequence[tuple[object, object, object]]) -> None:
    """Raise RequestError where one kernel is given the same input again: its boots would count twice.

    keys: as the places, with what each is read from whatever it is called.
    """
    known = set[tuple[object, object]]()
    for (label, _, place), (_, _, same) in zip(places, keys, strict=True):
        key = (label, str(Path(place).resolve()) if exists(Path(place)) else same)
        if key in known:
            raise RequestError(
                f"{shortened(place)} is given twice: its boots would count twice",
                cure="give each input once; by itself, the same input twice is compared in two halves",
            )
        known.add(key)
