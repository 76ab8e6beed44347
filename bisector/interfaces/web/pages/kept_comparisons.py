"""Comparisons of two commits, kept until one of their bisections changes.

Most of a look goes into reading the records of the two bisections: 0.13 s of CPU for one of 200 boots.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from bisector.app import load_report
from bisector.app.operations import stored_measurements
from bisector.app.operations.operations import Values
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.interfaces.web.request_slots import Slots
from bisector.report.html import comparison_page
from bisector.schemas.request import read_accepted

_MOST_KEPT = 100
"""Comparisons: each takes some 30 kB."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One commit. named: as whoever asks calls it; version: of its bisection, another one when it changes."""

    bisection: str
    commit: int
    named: str
    version: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Compared:
    """Two commits side by side. values: as `compare --json` prints them; sections: of the page, markup."""

    names: tuple[str, ...]
    values: Values
    sections: str


@dataclass
class KeptComparisons:
    """The comparisons of a server; those that were looked at longest ago are forgotten."""

    slots: Slots
    _kept: OrderedDict[tuple[ComparedSide, ...], Compared] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def find(self, wiring: Wiring, places: Sequence[tuple[str, str]], names: Sequence[str]) -> Compared:
        """Return the comparison of two places, (bisection, commit) as they were asked for.

        A name that means another commit now is another place. Raises RequestError: a place is unknown, both
        are one commit, or there is nothing to compare; Refused: it is not kept, and others keep the server
        busy.
        """
        sides = tuple(_side(wiring, *place, name) for place, name in zip(places, names, strict=True))
        if len({(side.bisection, side.commit) for side in sides}) < len(sides):
            raise RequestError("both are the same commit", cure="name two commits, or one of two bisections")
        with self._lock:
            found = self._kept.get(sides)
        if found is None:
            with self.slots.one(wiring.settings.owner):
                found = _compare(wiring, sides)
        with self._lock:
            self._kept[sides] = found
            self._kept.move_to_end(sides)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found


def _side(wiring: Wiring, identity: str, rev: str, name: str) -> ComparedSide:
    store = wiring.store
    bisection = load_report.find_summary(wiring, identity).id
    version = (store.status(bisection), store.trials(bisection)[0])  # before what it is the version of
    stored = store.load(bisection)
    request = read_accepted(stored.request).request.model_dump(mode="json")
    commit = load_report.find_commit(wiring, bisection, stored.graph, request, rev)
    return ComparedSide(bisection, commit, name, version)


def _compare(wiring: Wiring, sides: Sequence[ComparedSide]) -> Compared:
    """Return the comparison of commits, as `perfbisect compare` makes it."""
    from bisector.app.machines.one_firmware import require_one_firmware
    from bisector.report.comparison import json_table
    from bisector.stats import comparison_table
    from bisector.stats.samples import name_one_testbed

    materials = {
        bisection: load_report.load_material(wiring, bisection)
        for bisection in dict.fromkeys(side.bisection for side in sides)
    }
    columns = name_one_testbed(
        [stored_measurements.samples_of(materials[side.bisection], side.commit, side.named) for side in sides]
    )
    require_one_firmware(columns)
    try:
        table = comparison_table.build(columns, alpha=wiring.settings.alpha)
    except ValueError as error:
        raise RequestError(str(error), cure="compare commits that measured a metric of one name") from error
    return Compared(tuple(table.names), json_table.value(table), comparison_page.render_sections(table))
