"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(true: Callable[[], bool], seconds: float, every: float = 0.01) -> None:
    """Return as soon as it is true; fail the test when it has not been for so long.

    every: seconds between two looks; longer where a look is a command, which takes what is awaited its time.
    """
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"it has not happened within {seconds} s"
        time.sleep(every)
