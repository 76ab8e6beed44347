"""Bisections that open alerts, nights and messages refer to stay, until those are done with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.app.alerts.alert_changes import AlertChange, set_alert
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.mail.delivery import outbox_of
from bisector.app.series.series_store import series_store
from bisector.app.upkeep import retention
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.model.alerts import HistoryEntry, alert_id
from bisector.model.outbox import Key, Message, State
from bisector.model.series import Night
from bisector.model.stored_bisection import Stored
from bisector.schemas.settings import Settings
from bisector.simulation.histories import linear
from tests.support.series.alert_lab import a_series, found

LONG_AGO = 1e9


@pytest.fixture
def wiring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wiring:
    """A state with one bisection that ended long ago."""
    wiring = Wiring(Settings(state_dir=tmp_path / "state", cache_dir=tmp_path / "cache"))
    with monkeypatch.context() as patch:
        patch.setattr("bisector.adapters.store.sqlite_file.time.time", lambda: LONG_AGO)
        wiring.store.create(Stored("old", LONG_AGO, "{}", "done", linear(3)))
    assert would_go(wiring)
    return wiring


def would_go(wiring: Wiring) -> bool:
    """Return whether `prune` removes the bisection; `rm` says the same."""
    pruned = "old" in [item.name for item in retention.find_removable(wiring, 90.0)]
    try:
        assert [item.name for item in retention.to_remove(wiring, ["old"])] == ["old"]
    except RequestError as error:
        assert not pruned and "refers to the bisection 'old'" in error.message and error.cure
        return False
    assert pruned
    return True


def test_of_an_open_alert_it_stays(wiring: Wiring) -> None:
    suspect = found(1, 2)
    name = alert_id(suspect.series, suspect.last_good, suspect.first_bad, suspect.direction)
    alert = replace(suspect, id=name, finding="culprit", bisection="old")
    open_alerts(wiring).add(alert, HistoryEntry("perfbisect", "culprit"))
    assert not would_go(wiring)
    set_alert(open_alerts(wiring), name, AlertChange("fixed"), "ann")
    assert would_go(wiring)


@pytest.mark.parametrize("role", ["bisection", "confirmation"])
def test_of_a_night_that_nobody_has_followed_it_stays(wiring: Wiring, role: str) -> None:
    store = series_store(wiring)
    store.add(a_series())
    night = Night("nightly", 1, 1.0, 1.0, state="running", bisection="its-own")
    store.add_night(replace(night, **{role: "old"}))  # type: ignore[arg-type]
    assert not would_go(wiring)
    store.remove("nightly")
    assert would_go(wiring)


@pytest.mark.parametrize("state", ["waiting", "approved", "unsure", "draft"])
def test_of_a_message_that_waits_it_stays(wiring: Wiring, state: State) -> None:
    kind = "ended" if state == "draft" else "regression"
    message = Message(("ann@example.org",), "subject", "text")
    key = Key("old", "w", kind, "ann@example.org")  # type: ignore[arg-type]
    entry = outbox_of(wiring).put(key, "mail", message, state, by="ann", bisection="old")
    assert entry is not None and not would_go(wiring)
    outbox_of(wiring).stop(entry.number, "ann", "nobody wants it")
    assert would_go(wiring)


@pytest.mark.parametrize("state", ["draft", "refused", "stopped", "sent"])
def test_of_a_message_that_goes_nowhere_it_goes(wiring: Wiring, state: State) -> None:
    message = Message(("ann@example.org",), "subject", "text")
    key = Key("old", "w", "regression", "maintainers")
    assert outbox_of(wiring).put(key, "mail", message, state, by="ann", bisection="old")
    assert would_go(wiring)


def test_a_removal_that_was_begun_is_ended(wiring: Wiring) -> None:
    alert = replace(found(1, 2), id="a" * 10, finding="culprit", bisection="old")
    open_alerts(wiring).add(alert, HistoryEntry("perfbisect", "culprit"))
    wiring.store.set_status("old", "removing")
    assert [item.name for item in retention.to_remove(wiring, ["old"])] == ["old"]
