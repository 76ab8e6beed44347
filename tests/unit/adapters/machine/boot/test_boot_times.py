"""Each part of a boot has its own seconds."""

from __future__ import annotations

import pytest

from bisector.adapters.machine.boot import boot_times
from bisector.adapters.machine.boot.boot_times import BootTimes


def test_each_part_begins_where_the_one_before_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 102.5, 103.0, 110.0])
    monkeypatch.setattr(boot_times, "awake_seconds", lambda: next(clock))
    times = BootTimes()
    assert str(times) == ""
    for part in ("reached in", "told in", "answered after"):
        times.end(part)
    assert str(times) == "reached in 2.5 s, told in 0.5 s, answered after 7.0 s"
    assert times.began == 100.0
