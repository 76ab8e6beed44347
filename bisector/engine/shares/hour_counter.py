"""Counts how long owners have testbeds, and knows who has had what the settings allow a week."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from bisector.model.machine_hours import HOUR_SECONDS, wait_until
from bisector.store_ports import Coordinator
from bisector.utc_time import minute

_WRITE_SECONDS = 30.0
"""Between two writes: what a killed process had counted since is lost."""
_ASK_SECONDS = 10.0
"""Between two looks at what others have counted."""


class HourCounter:
    """Counts for one process, and knows what all have counted. Used by one thread, but for `why_not`."""

    def __init__(self, coordinator: Coordinator, caps: Callable[[], Mapping[str, float]]) -> None:
        """caps: owner -> hours a week as of now; others have no limit."""
        self._coordinator = coordinator
        self._caps = caps
        self._counted: dict[str, float] = defaultdict(float)  # seconds
        self._looked = self._written = time.monotonic()
        self._asked = float("-inf")
        self._until: dict[str, float] = {}

    def count(self, owners: Iterable[str]) -> None:
        """Count the time since the last call. owners: of the testbeds in use, one for each."""
        now = time.monotonic()
        for owner in owners:
            self._counted[owner] += now - self._looked
        self._looked = now
        if now > self._written + _WRITE_SECONDS:
            self.write()
        if now > self._asked + _ASK_SECONDS:
            self._until = capped(self._coordinator, self._caps(), self._counted)
            self._asked = now

    def write(self) -> None:
        """Let others know what was counted."""
        self._written = time.monotonic()
        for owner, seconds in list(self._counted.items()):
            self._coordinator.add_machine_time(owner, seconds)
            del self._counted[owner]

    def why_not(self, owner: str) -> str | None:
        """Return why bisections of an owner wait, at the last look; None where they need not."""
        until = self._until.get(owner)  # once: `count` may replace the dictionary meanwhile
        return None if until is None else waits_until(owner, until)


def waits_until(owner: str, until: float) -> str:
    """Return, in words, why the bisections of an owner wait who has used up the hours that are allowed."""
    return f"waits until {minute(until)}: {owner} has had its machine hours of seven days (caps, budgets)"


def capped(
    coordinator: Coordinator, caps: Mapping[str, float], counted: Mapping[str, float] = MappingProxyType({})
) -> dict[str, float]:
    """Return until when each owner waits who has used up the hours. counted: seconds not written down yet."""
    if not caps:
        return {}
    now = coordinator.now()
    found = {
        owner: wait_until(coordinator.machine_time(owner), hours * HOUR_SECONDS, now, counted.get(owner, 0.0))
        for owner, hours in caps.items()
    }
    return {owner: until for owner, until in found.items() if until is not None}
