"""Slots are taken, given back whatever happens, and shared among users."""

from __future__ import annotations

import pytest

from bisector.interfaces.web.problems import Refused
from bisector.interfaces.web.request_slots import Slots


def test_whoever_comes_too_many_is_told_to_come_again() -> None:
    slots = Slots("plans", most=3, each=2)
    with slots.one("ann"), slots.one("ann"):
        with pytest.raises(Refused, match="busy with plans") as refused, slots.one("ann"):
            pytest.fail("ann has two")
        assert refused.value.status == 429 and refused.value.headers["Retry-After"] == "5"
        with slots.one("bob"), pytest.raises(Refused), slots.one("cas"):
            pytest.fail("there are three")
    with pytest.raises(ZeroDivisionError), slots.one("ann"):
        _ = 1 / 0
    with slots.one("ann"), slots.one("ann"), slots.one("cas"):
        pass
