"""Nightly series without a database: for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from bisector.adapters.store.series.series_refusals import name_taken, unknown_series
from bisector.model.series import Night, NightState, Point, Series, SeriesState


class MemorySeries:
    """series_ports.SeriesStore that forgets everything with its process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: stands for the database's."""
        self._clock = clock
        self._lock = threading.RLock()
        self._series: dict[str, Series] = {}
        self._nights: dict[str, dict[int, Night]] = {}
        self._points: dict[str, list[Point]] = {}

    def add(self, series: Series) -> Series:
        """Add a series, created now."""
        with self._lock:
            if series.name in self._series:
                raise name_taken(series.name)
            self._nights[series.name], self._points[series.name] = {}, []
            return self._series.setdefault(series.name, replace(series, created=self._clock()))

    def all(self) -> Sequence[Series]:
        """Return all series, by name."""
        with self._lock:
            return [self._series[name] for name in sorted(self._series)]

    def load(self, name: str) -> Series:
        """Return one series."""
        with self._lock:
            if name not in self._series:
                raise unknown_series(name, self._series)
            return self._series[name]

    def set_state(self, name: str, state: SeriesState, why: str = "") -> None:
        """Let a series be measured or rest."""
        with self._lock:
            self._series[name] = replace(self.load(name), state=state, why=why)

    def remove(self, name: str) -> None:
        """Forget a series with its nights and points."""
        with self._lock:
            self.load(name)
            del self._series[name], self._nights[name], self._points[name]

    def add_night(self, night: Night) -> bool:
        """Add a night."""
        with self._lock:
            nights = self._nights.get(night.series)
            if nights is None or night.number in nights:
                return False
            nights[night.number] = night
            return True

    def nights(self, name: str) -> Sequence[Night]:
        """Return the nights of a series by place."""
        with self._lock:
            return sorted(self._nights.get(name, {}).values(), key=lambda n: (n.place, n.number))

    def set_commit(self, night: Night) -> bool:
        """Write the commit of a night that is due."""
        return self._change(night, lambda known: known.state == "due" and not known.commit)

    def change_night(self, night: Night, expected: NightState) -> bool:
        """Write a night as it is now."""
        return self._change(night, lambda known: known.state == expected)

    def end_night(self, night: Night, points: Sequence[Point]) -> bool:
        """Write a night that has ended, with its points."""
        with self._lock:
            changed = self._change(night, lambda known: known.state == "running")
            if changed:
                self._points[night.series] += points
            return changed

    def set_verdict(self, night: Night, begins: int | None = None) -> bool:
        """Write the verdict of a night."""
        return self._change_level(
            night, lambda known: known.state == "measured" and known.verdict is None, begins
        )

    def open_nights(self) -> Sequence[Night]:
        """Return the nights of all series for which something is left to do."""
        with self._lock:
            return [n for name in sorted(self._nights) for n in self.nights(name) if n.is_open]

    def begin_confirmation(self, night: Night) -> bool:
        """Write the confirmation of a night."""
        return self._change(night, lambda known: not known.confirmation)

    def end_confirmation(self, night: Night, begins: int | None) -> bool:
        """Write the end of a night's confirmation."""
        return self._change_level(night, lambda known: known.confirmed is None, begins)

    def points(self, name: str) -> Sequence[Point]:
        """Return all points of a series."""
        with self._lock:
            return sorted(self._points.get(name, []), key=lambda point: (point.night, point.boot))

    def _change_level(self, night: Night, may: Callable[[Night], bool], begins: int | None) -> bool:
        with self._lock:
            changed = self._change(night, may)
            nights = self._nights.get(night.series, {})
            if changed and begins in nights:
                nights[begins] = replace(nights[begins], new_level=True)
            return changed

    def _change(self, night: Night, may: Callable[[Night], bool]) -> bool:
        with self._lock:
            known = self._nights.get(night.series, {}).get(night.number)
            if known is None or not may(known):
                return False
            self._nights[night.series][night.number] = replace(night, new_level=known.new_level)
            return True
