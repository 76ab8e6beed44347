"""A revision is another one after each change that lists show, and the same after others; both databases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.web.sql_revision import read_revision
from bisector.app.alerts.alert_changes import AlertChange, set_alert
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.execution.health_check import health_store
from bisector.app.mail.delivery import outbox_of
from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.model.decisions import Measure
from bisector.model.outbox import LAB, Key, Message
from bisector.model.series import Night
from bisector.model.stored_bisection import Action
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab

SERIES, NIGHT = served_lab.SERIES, Night(served_lab.SERIES, 99, 2e9, 99.0)


def _measured(lab: Wiring) -> None:
    store = series_store(lab)
    store.add_night(replace(NIGHT, state="running", commit="a" * 40))
    store.end_night(replace(NIGHT, state="failed", commit="a" * 40, why="no kernel"), [])


CHANGES: Mapping[str, Callable[[Wiring], object]] = {
    "a bisection begins": lambda lab: served_lab.store(lab, sixty_boots(), "queued", "{}", 1, name="new"),
    "a bisection runs": lambda lab: lab.store.set_status("queued-1", "running"),
    "it is more urgent": lambda lab: lab.store.set_priority("paused-1", 1, Action("x", "ann", "")),
    "it decides": lambda lab: lab.store.decide("running-1", Measure(3, 2, "search", "why")),
    "it builds": lambda lab: lab.store.note_building("running-1", True),
    "a testbed is taken": lambda lab: lab.coordinator.set_testbed("machine-b", "maintenance", "disk", "ann"),
    "it is checked": lambda lab: health_store(lab).add_point("machine-b", {"commit": "1"}, "sound", ""),
    "it is reserved": lambda lab: lab.coordinator.reserve("machine-a", "ann", 2e9),
    "a series rests": lambda lab: series_store(lab).set_state(SERIES, "paused", "holidays"),
    "a night is due": lambda lab: series_store(lab).add_night(replace(NIGHT, number=98, place=98.0)),
    "a night ends": _measured,
    "somebody looks at an alert": lambda lab: set_alert(
        open_alerts(lab), served_lab.ALERT, AlertChange(note="real"), "ann"
    ),
    "a message waits": lambda lab: outbox_of(lab).put(
        Key("k", "w", "regression", LAB), "mail", Message(("a@b.c",), "s", "t"), "waiting", by="x"
    ),
}
"""What happens -> how. Each is done once, in this order."""


@pytest.fixture(params=["sqlite", "postgresql"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Wiring:
    url = request.getfixturevalue("database_url") if request.param == "postgresql" else None
    return served_lab.make(tmp_path, boots=12, database=url)


def test_each_change_of_a_list_is_another_revision(lab: Wiring) -> None:
    last = read_revision(lab.database)
    unseen = []
    for name, change in CHANGES.items():
        change(lab)
        now = read_revision(lab.database)
        if now == last:
            unseen.append(name)
        last = now
    assert unseen == []
    lab.coordinator.register("e1", "worker")
    assert read_revision(lab.database) != last
    last = read_revision(lab.database)
    lab.coordinator.heartbeat("e1")
    assert read_revision(lab.database) == last
