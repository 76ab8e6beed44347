"""Who takes a testbed out of use or keeps it over the API, and what is written down of that."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from bisector.app.wiring import Wiring

Written = Callable[[], tuple[str, str, str, str]]


def test_who_took_a_testbed_out_and_why_is_kept_and_written_down(
    admin: httpx.Client, served: Wiring, written: Written
) -> None:
    made = admin.post("/testbeds/box/state", json={"state": "maintenance", "reason": "new memory"}).json()
    assert (made["state"], made["reason"], made["by"]) == ("maintenance", "new memory", "admin")
    assert written() == ("admin", "testbed state", "box", "maintenance new memory")
    (status,) = served.coordinator.testbeds()
    assert (status.state, status.reason, status.by) == ("maintenance", "new memory", "admin")
    assert admin.post("/testbeds/box/state", json={"state": "good"}).status_code == 200
    assert written() == ("admin", "testbed state", "box", "good")


def test_a_reservation_is_written_down_with_its_time(
    admin: httpx.Client, served: Wiring, written: Written
) -> None:
    now = served.coordinator.now()
    made = admin.post("/testbeds/box/reservations", json={"hours": 2.5, "wait": 12}).json()
    (held,) = served.coordinator.reservations()
    assert (held.testbed, held.who, made["reserved_by"]) == ("box", "admin", "admin")
    assert held.start == pytest.approx(now + 12 * 3600.0, abs=60)
    assert held.end - held.start == pytest.approx(2.5 * 3600.0)
    assert written() == ("admin", "testbed reserve", "box", f"from {held.start:.0f} for 2.5 h")
    admin.post("/testbeds/box/state", json={"state": "good"})
    assert not served.coordinator.reservations(), "one's own reservation ends with that"
    admin.post("/testbeds/box/reservations", json={"hours": 1})
    (held,) = served.coordinator.reservations()
    assert held.start <= served.coordinator.now(), "at once by default"


@pytest.mark.parametrize("path", ["/testbeds/other/state", "/testbeds/other/reservations"])
def test_a_testbed_that_the_server_does_not_list_is_left_alone(
    admin: httpx.Client, served: Wiring, written: Written, path: str
) -> None:
    before = written()
    answer = admin.post(path, json={"state": "good"} if path.endswith("state") else {"hours": 1})
    assert answer.status_code == 400 and "the server lists no testbed 'other'" in answer.json()["detail"]
    assert not served.coordinator.testbeds() and not served.coordinator.reservations()
    assert written() == before
