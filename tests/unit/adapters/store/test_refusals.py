"""Which names and times are refused, by what is known of others."""

from __future__ import annotations

import pytest

from bisector.adapters.store.refusals import check_name, check_reservation
from bisector.errors import RequestError
from bisector.model.leases import HEARTBEAT_TTL_SECONDS, Executor, Reservation

NOW = 1000.0


def test_the_name_of_a_silent_executor_is_free() -> None:
    check_name("w@here-2", [Executor("w@there-1", "w", 0.0, HEARTBEAT_TTL_SECONDS, False)])
    with pytest.raises(RequestError, match="runs already"):
        check_name("w@here-2", [Executor("w@there-1", "w", 0.0, HEARTBEAT_TTL_SECONDS - 1, False)])


@pytest.mark.parametrize(
    "wanted",
    [
        Reservation("a", "eve", NOW + 15, NOW + 30),  # longer than one's own
        Reservation("b", "bob", NOW + 15, NOW + 30),
        Reservation("a", "bob", NOW + 20, NOW + 30),  # it begins as the other ends
        Reservation("a", "bob", NOW, NOW + 10),
    ],
)
def test_what_meets_nobody_elses_reservation_is_allowed(wanted: Reservation) -> None:
    check_reservation(wanted, [Reservation("a", "eve", NOW + 10, NOW + 20)], NOW)


def test_what_has_ended_is_not_reserved() -> None:
    with pytest.raises(RequestError, match="has ended already"):
        check_reservation(Reservation("a", "eve", NOW - 20, NOW - 10), [], NOW)
