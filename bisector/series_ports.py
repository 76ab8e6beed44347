"""The port of nightly series. It lies in the database of the bisections (`adapters/store/series`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bisector.model.series import Night, NightState, Point, Series, SeriesState


class SeriesStore(Protocol):
    """Series, their nights and points. Several processes may work on one series at the same time."""

    def add(self, series: Series) -> Series:
        """Add a series, created now; return it. Raises RequestError: the name is taken."""
        ...

    def all(self) -> Sequence[Series]:
        """Return all series, by name."""
        ...

    def load(self, name: str) -> Series:
        """Return one series. Raises NotFound naming the nearest."""
        ...

    def set_state(self, name: str, state: SeriesState, why: str = "") -> None:
        """Let a series be measured or rest. Raises NotFound."""
        ...

    def remove(self, name: str) -> None:
        """Forget a series with its nights and points; bisections stay. Raises NotFound."""
        ...

    def add_night(self, night: Night) -> bool:
        """Add a night; return False where another process has added one of that number, or the series is
        gone."""
        ...

    def nights(self, name: str) -> Sequence[Night]:
        """Return the nights of a series by place, none of one that is not known."""
        ...

    def set_commit(self, night: Night) -> bool:
        """Write `commit` and `note` of a night that is due and has no commit; return whether that was so."""
        ...

    def change_night(self, night: Night, expected: NightState) -> bool:
        """Write a night as it is now, if its state was `expected`; return whether it was."""
        ...

    def end_night(self, night: Night, points: Sequence[Point]) -> bool:
        """The same for a night that ran and has ended, with its points: all of it, once."""
        ...

    def set_verdict(self, night: Night, begins: int | None = None) -> bool:
        """Write the `verdict` of a measured night that has none; return whether it had none.

        begins: the night from which on the level is new, if it is.
        """
        ...

    def open_nights(self) -> Sequence[Night]:
        """Return the nights of all series for which something is left to do, by series and place.

        They have not ended, or were measured and have no verdict, or their confirmation goes on.
        """
        ...

    def begin_confirmation(self, night: Night) -> bool:
        """Write `confirmation` and `verdict` of a night without the first; return whether it had none."""
        ...

    def end_confirmation(self, night: Night, begins: int | None) -> bool:
        """Write the end of a night's confirmation, if it had none; return whether that was so.

        begins: the night from which on the level is new, if it is.
        """
        ...

    def points(self, name: str) -> Sequence[Point]:
        """Return all points of a series, by night and boot."""
        ...
