"""The time of a boot, part by part."""

from __future__ import annotations

from bisector.adapters.system.awake_clock import awake_seconds


class BootTimes:
    """Parts that follow one another from now on."""

    def __init__(self) -> None:
        self.began = self._end = awake_seconds()
        self._parts: list[str] = []

    def end(self, part: str) -> None:
        """Note that a part has ended. part: as it stands before its seconds."""
        now = awake_seconds()
        self._parts.append(f"{part} {now - self._end:.1f} s")
        self._end = now

    def __str__(self) -> str:
        return ", ".join(self._parts)
