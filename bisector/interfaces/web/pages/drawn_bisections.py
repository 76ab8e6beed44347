"""Charts of bisections, kept until the bisections change.

To draw two hundred boots takes a tenth of a second, the interim conclusion on a long history seconds.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from threading import Lock

from bisector.app import load_report
from bisector.app.execution.current_status import current_status
from bisector.app.import_results import recorded_profiles
from bisector.app.operations.bisection_values import status_values
from bisector.app.operations.operations import Values
from bisector.app.wiring import Wiring
from bisector.interfaces.web.problems import Refused
from bisector.interfaces.web.request_slots import Slots
from bisector.report.html import bisection_page, page_assets

_MOST_KEPT = 100
"""Drawn bisections that are kept: each takes 100 to 300 kB, so at most 30 MB."""
_PATIENCE_SECONDS = 1.0
"""How long to wait for another request that draws what was never drawn: each that waits holds one of the 40
threads that answer."""
_SHARE = 0.1
"""Largest share of one core's time for drawing a bisection that changes, and is looked at, all the time.
Chosen."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The content of a bisection's page. version: its status, as pages show it, and its last event; sections:
    of the report; content, data: markup; status: values of `status --json`; seconds: that drawing it took;
    at: when, by the monotonic clock."""

    version: tuple[str, int]
    headline: str
    lead: str
    sections: tuple[bisection_page.Section, ...]
    content: str
    data: str | None
    status: Values
    seconds: float
    at: float


@dataclass
class DrawnBisections:
    """The drawn bisections of a server; those that were looked at longest ago are forgotten."""

    slots: Slots
    _kept: OrderedDict[str, Drawn] = field(default_factory=OrderedDict)
    _locks: dict[str, Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def find(self, wiring: Wiring, bisection: str) -> tuple[Drawn, bool]:
        """Return what was drawn of a bisection, and whether that is as it is now.

        It is drawn anew if it has changed since; while it changes all the time it may be some seconds old,
        and while another request draws it, or no slot is left for the user, as old as it is. Raises
        RequestError; Refused where nothing was drawn before.
        """
        with self._lock:
            own = self._locks.setdefault(bisection, Lock())
            older = self._kept.get(bisection)
        if not own.acquire(timeout=0 if older is not None else _PATIENCE_SECONDS):
            if older is not None:
                return older, False
            raise self.slots.refusal()
        try:
            # A process that is killed leaves the stored status as it was.
            status = current_status(wiring, load_report.find_summary(wiring, bisection))
            version = (status, wiring.store.trials(bisection)[0])
            drawn = self._kept.get(bisection)
            if drawn is None or (drawn.version != version and not _is_young(drawn, version)):
                try:
                    with self.slots.one(wiring.settings.owner):
                        drawn = _draw(wiring, bisection, version)
                except Refused:
                    if drawn is None:
                        raise
        finally:
            own.release()
        with self._lock:
            self._kept[bisection] = drawn
            self._kept.move_to_end(bisection)
            while len(self._kept) > _MOST_KEPT:
                self._locks.pop(self._kept.popitem(last=False)[0], None)
        return drawn, drawn.version == version


def _is_young(drawn: Drawn, version: tuple[str, int]) -> bool:
    """Return whether it would take too much of a core to draw it again already; a new status is drawn."""
    return drawn.version[0] == version[0] and time.monotonic() - drawn.at < drawn.seconds / _SHARE


def _draw(wiring: Wiring, bisection: str, version: tuple[str, int]) -> Drawn:
    began = time.monotonic()
    material = load_report.load_material(wiring, bisection, so_far=True)
    page = bisection_page.draw(material, recorded_profiles(material))
    content = bisection_page.render_sections(page)
    now = time.monotonic()
    return Drawn(
        version=version,
        headline=page.headline,
        lead=page.lead,
        sections=tuple(replace(one, content=None) for one in page.sections),
        content=content,
        data=None if page.data is None else page_assets.json_block(page.data),
        status=status_values(material),
        seconds=now - began,
        at=now,
    )
